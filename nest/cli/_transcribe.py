"""`nest transcribe`: recordings and videos in, texts and subtitles out."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from typing import Any

from nest._env import check_environment
from nest.cli._damage import damage_told
from nest.cli._fetching import announce_fetch
from nest.cli._format import plain
from nest.cli._shared_options import told_quantization, weights_as
from nest.cli._spoken import refuse_foreign
from nest.cli._transcribe_outputs import Outputs, formats_of, identities, planned
from nest.cli._transcribe_screen import Screen
from nest.cli.runs._items import standard_input
from nest.errors import CallError, InputError, ManifestError, NestError
from nest.loading import chosen_backend
from nest.registry import Entry, find
from nest.tasks import audio, pipeline
from nest.tasks._kinds import kind_of
from nest.tasks.beams import Beams
from nest.tasks.subtitles import Lines
from nest.tasks.voice import detector

__all__ = ["main"]

USAGE = 2
_STEP = 0.2


def main(args: argparse.Namespace) -> int:
    check_environment()
    if wrong := _misuse(args):
        return _misused(wrong)
    entry = find(args.model)
    formats = formats_of(args.output_dir, args.output_format)
    try:
        kind_of(entry, "transcription")  # which says where it has no such task
        plan = planned(args.inputs, args.output_dir, formats)
        refuse_foreign(entry, args.language, args.task)
    except CallError as error:
        return _misused(str(error))
    lines = Lines(args.max_line_width, args.max_line_count)
    screen = Screen(files=bool(formats))
    safe, failed = _safe(list(zip(args.inputs, plan, strict=True)), screen)
    left = _left(safe, args, screen)
    tried = len(failed) + len(left)
    if left:
        run = _prepared(entry, args, lines, screen)
        failed += [
            given
            for number, (given, outputs) in enumerate(left)
            if not run.done(given, outputs, number, len(left))
        ]
    if failed and tried > 1:
        screen.note(f"{len(failed)} of {tried} recordings failed:")
        sys.stderr.write("".join(f"  {plain(given)}\n" for given in failed))
    return int(bool(failed))


def _misuse(args: argparse.Namespace) -> str:
    """What is wrong with the arguments taken together; nothing where all is well."""
    if not args.inputs:
        return "Nothing to transcribe: give a FILE, such as talk.mp3, or '-' for standard input."
    if args.max_line_count is not None and args.max_line_width is None:
        return "--max-line-count means nothing without --max-line-width: give both."
    if args.patience is not None and args.beam_size is None:
        return "--patience means nothing without --beam-size: give both."
    if args.patience is not None and not Beams(args.beam_size, args.patience).enough:
        return "--beam-size times --patience must be over 0.5: the search would end before any text has."
    if args.length_penalty is not None and args.beam_size is None and args.best_of is None:
        return "--length-penalty means nothing without --beam-size or --best-of, whose texts it ranks."
    if args.beam_size is not None and args.temperature > 0:
        return "--beam-size is for temperature 0: leave out --temperature, or give --best-of instead."
    return ""


def _misused(message: str) -> int:
    sys.stderr.write(f"nest: error: {plain(message)} See: nest transcribe --help\n")
    return USAGE


def _prepared(entry: Entry, args: argparse.Namespace, lines: Lines, screen: Screen) -> _Run:
    """The loaded model, and how it is asked."""
    if not (entry.trusted or args.trust_source):
        raise ManifestError(entry.refusal)
    if not args.offline:
        announce_fetch(entry)
    backend = args.backend or chosen_backend(extras=("transcribe",), dtype=args.dtype)
    options = {
        "local_files_only": args.offline,
        "trust_source": args.trust_source or None,
        **weights_as(args),
    }
    task = pipeline(args.model, task="transcription", backend=backend, plan=args.plan, **options)
    told_quantization(task)
    if not args.no_vad:
        detector(local_files_only=args.offline)
    screen.note(
        f"{entry.manifest.model.title} on {backend}, plan {args.plan}; --model, --backend and --plan choose others."
    )
    about = {"model": entry.name, "backend": backend, "task": args.task}
    guard = not (args.overwrite or args.skip_existing)
    return _Run(task, _wishes(args), lines, screen, about, guard=guard)


def _safe(given: list[tuple[str, Outputs]], screen: Screen) -> tuple[list[tuple[str, Outputs]], list[str]]:
    """What would write over no recording, and the names of the rest, of which that is said."""
    recordings = identities(name for name, _ in given if name != "-")
    safe, refused = [], []
    for name, outputs in given:
        try:
            outputs.refuse_recordings(recordings)
        except InputError as error:
            screen.note(f"error: {error}")
            refused.append(name)
        else:
            safe.append((name, outputs))
    return safe, refused


def _left(
    given: list[tuple[str, Outputs]], args: argparse.Namespace, screen: Screen
) -> list[tuple[str, Outputs]]:
    """What is to be done; of the only recording, that it is no file is said before a model is fetched."""
    left = given
    if args.skip_existing:
        left = [(name, outputs.missing()) for name, outputs in given if not outputs.done()]
    if len(left) < len(given):
        counted = f"{len(given) - len(left)} of {len(given)} recordings are"
        screen.note(f"{counted if len(given) > 1 else 'The recording is'} transcribed already.")
    only = left[0][0] if len(left) == 1 else "-"
    if only != "-" and (not os.path.lexists(only) or os.path.isdir(only)):  # noqa: PTH112 - which raises nothing
        with audio.stream(only):  # which says what is wrong
            pass
    return left


@dataclass(frozen=True)
class _Run:
    """How each recording is transcribed; `guard` keeps what was written before."""

    task: Any
    wishes: dict[str, Any]
    lines: Lines
    screen: Screen
    about: dict[str, Any]
    guard: bool

    def done(self, given: str, outputs: Outputs, number: int, count: int) -> bool:
        """Transcribe one recording, and return whether that went well: one that is bad does not stop the others."""
        self.screen.begin(given, number, count)
        try:
            with damage_told(self.screen.note):
                self._transcribe(given, outputs)
        except NestError as error:
            named = given in str(error) or count == 1
            self.screen.note(f"error: {error}" if named else f"error: {given}: {error}")
            return False
        return True

    def _transcribe(self, given: str, outputs: Outputs) -> None:
        if self.guard:
            outputs.refuse_existing()
        source = standard_input() if given == "-" else given
        with self.task.stream(source, timestamps=True, **self.wishes) as stream:
            for segment in stream:
                self.screen.segment(segment, stream)
            outputs.write(stream.result, self.lines, file=given, **self.about)
        self.screen.end(stream, [str(path) for path in outputs.paths.values()])


def _wishes(args: argparse.Namespace) -> dict[str, Any]:
    """What is asked of the transcriber; the temperature is from 0, so that few steps lead to 1."""
    temperatures = [args.temperature]
    while temperatures[-1] + _STEP < 1 + 1e-6:
        temperatures.append(round(temperatures[-1] + _STEP, 6))
    return {
        "language": args.language,
        "task": args.task,
        "start": args.start,
        "duration": args.duration,
        "channels": args.channels,
        "vad": not args.no_vad,
        "batch_size": args.batch_size,
        "word_timestamps": args.word_timestamps,
        "initial_prompt": args.initial_prompt,
        "condition_on_previous_text": not args.no_condition_on_previous_text,
        "temperature": temperatures,
        "beam_size": args.beam_size,
        "patience": args.patience,
        "best_of": args.best_of,
        "length_penalty": args.length_penalty,
        "compression_ratio_threshold": args.compression_ratio_threshold,
        "log_probability_threshold": args.logprob_threshold,
        "no_speech_threshold": args.no_speech_threshold,
    }
