"""`nest eval`: what a transcriber gets wrong of recordings whose transcripts are known, and how long it takes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from nest._env import check_environment
from nest.cli._damage import damage_told
from nest.cli._fetching import announce_fetch
from nest.cli._format import columns, json_text, plain
from nest.cli._spoken import refuse_foreign
from nest.cli._targets import check_targets
from nest.cli._transcribe_screen import clock
from nest.errors import CallError, InputError, ManifestError
from nest.evaluating.dataset import Dataset, Fault, Recording, read_dataset
from nest.evaluating.evaluate import Evaluation, evaluate, warmed_up
from nest.evaluating.record import facts, run_of, save
from nest.evaluating.scores import check_installed
from nest.loading import chosen_backend
from nest.registry import Entry, find
from nest.registry.evaluations import ErrorCounts, EvalRun, check_eval
from nest.tasks import pipeline
from nest.tasks._kinds import kind_of
from nest.tasks.voice import detector
from nest.weights._files import atomic, user_path

__all__ = ["main"]

USAGE = 2


def main(args: argparse.Namespace) -> int:
    check_environment()
    entry = find(args.name)
    try:
        kind_of(entry, "transcription")  # which says where it has no such task
        refuse_foreign(entry, args.language, args.task)
    except CallError as error:
        sys.stderr.write(f"nest: error: {plain(str(error))} See: nest eval --help\n")
        return USAGE
    check_installed()
    check_targets([args.name], args, check_eval)
    data = read_dataset(args.data)
    for fault in data.faults:
        _failed(fault)
    chosen = data.recordings[: args.limit]
    if not chosen:
        raise InputError(f"No recording in '{args.data}' can be evaluated.")
    run, found = _measured(entry, chosen, data, args)
    if args.output:
        _write(args.output, json_text(facts(entry, run, found)))
    print(json_text(facts(entry, run, found)) if args.json else _report(entry, run, found))
    if args.save:
        _keep(entry, run, found)
    return int(bool(found.faults))


def _measured(
    entry: Entry, chosen: Sequence[Recording], data: Dataset, args: argparse.Namespace
) -> tuple[EvalRun | None, Evaluation]:
    """Load, warm up, and hear all; the run is None where no recording could be evaluated."""
    if not (entry.trusted or args.trust_source):
        raise ManifestError(entry.refusal)
    if not args.offline:
        announce_fetch(entry)
    backend = args.backend or chosen_backend(extras=("transcribe",))
    if not args.no_vad:
        detector(local_files_only=args.offline)
    options = {"local_files_only": args.offline, "trust_source": args.trust_source or None}
    begin = perf_counter()
    task = pipeline(args.name, task="transcription", backend=backend, plan=args.plan, **options)
    load_s = perf_counter() - begin
    asked = {
        "language": args.language,
        "task": args.task,
        "vad": not args.no_vad,
        "batch_size": args.batch_size,
        "condition_on_previous_text": not args.no_condition_on_previous_text,
    }
    wishes = {"timestamps": True, **asked}
    with damage_told(lambda said: None):  # it is told when the whole is heard
        first_s = warmed_up(task, chosen, wishes)
    screen = _Progress(chosen)
    with damage_told(screen.note):
        heard = evaluate(task, chosen, wishes, told=screen.heard, failed=screen.failed)
    screen.clear()
    found = Evaluation(heard.results, (*data.faults, *heard.faults))
    if not found.results:
        return None, found
    run = run_of(
        entry,
        args.data_name or _name(args.data),
        found,
        settings={"backend": backend, "plan": args.plan, **asked},
        load_s=load_s,
        first_s=first_s,
        trust_source=args.trust_source or None,
    )
    return run, found


def _name(folder: str) -> str:
    """Of a folder, as one line that can be printed."""
    name = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for letter in Path(folder).resolve().name
    )
    return name if name.strip() else "recordings"


def _failed(fault: Fault) -> None:
    named = fault.why if fault.name in fault.why else f"{fault.name}: {fault.why}"
    sys.stderr.write(f"nest: error: {plain(named)}\n")


class _Progress:
    """How far it is, on a terminal."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._numbers = {recording.name: number for number, recording in enumerate(recordings)}
        self._shown = sys.stderr.isatty()
        self._done = self._last = 0.0
        self._number = 0
        self._since = perf_counter()

    def heard(self, recording: Recording, seconds: float) -> None:
        """Some of a recording is."""
        if self._numbers[recording.name] != self._number:
            self._done += self._last
            self._number = self._numbers[recording.name]
        self._last = seconds
        if self._shown:
            whole = self._done + seconds
            speed = whole / max(perf_counter() - self._since, 1e-3)
            self.clear()
            sys.stderr.write(
                f"recording {self._number + 1} of {len(self._numbers)}, {clock(whole)} heard, "
                f"{speed:.1f} times as fast as it was said"
            )
            sys.stderr.flush()

    def failed(self, fault: Fault) -> None:
        """One cannot be evaluated."""
        self.clear()
        _failed(fault)

    def note(self, text: str) -> None:
        """Say something about a recording."""
        self.clear()
        sys.stderr.write(f"nest: {plain(text)}\n")

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")


def _report(entry: Entry, run: EvalRun | None, found: Evaluation) -> str:
    failed = f"{len(found.faults)} failed, and are no part of it." if found.faults else ""
    if run is None:
        return f"{entry.name}: none of the recordings could be evaluated."
    settings = run.settings
    recordings = "1 recording" if run.data.recordings == 1 else f"{run.data.recordings} recordings"
    head = (
        f"{entry.name} on {settings['backend']}, plan {settings['plan']}: {run.data.name}, "
        f"{recordings}, {clock(run.data.seconds)}. {failed}"
    )
    times = (
        f"{clock(found.processing)} for {clock(run.data.seconds)}; load {run.load_s:.3g} s, "
        f"first call {run.first_s:.3g} s"
    )
    rows = [
        ("word error rate", f"{100 * run.words.rate:.2f} %", _edits(run.words, "words")),
        ("character error rate", f"{100 * run.characters.rate:.2f} %", _edits(run.characters, "characters")),
        ("real-time factor", f"{run.real_time_factor:.3g}", times),
        *([("peak memory", f"{run.peak_mib:.0f} MiB", "")] if run.peak_mib is not None else []),
        ("normaliser", ", ".join(run.normalizers), ""),
    ]
    return f"{head.rstrip()}\n\n{columns(rows)}"


def _edits(counts: ErrorCounts, unit: str) -> str:
    return (
        f"of {counts.length} {unit} {counts.substitutions} are others and {counts.deletions} are missing; "
        f"{counts.insertions} are too many"
    )


def _keep(entry: Entry, run: EvalRun | None, found: Evaluation) -> None:
    if run is None or found.faults:
        sys.stderr.write(
            f"nest: {len(found.faults)} failed, so nothing is saved: a rate over the rest is that of no data set.\n"
        )
        return
    sys.stderr.write(f"nest: {save(entry, run)}\n")


def _write(name: str, text: str) -> None:
    path: Any = user_path(name, "--output")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as file:
            file.write(f"{text}\n".encode())
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror or error}.") from error
