"""The options of `nest transcribe`, as the common Whisper command lines spell them: with hyphens or underscores."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from nest.cli import _transcribe_values as values
from nest.cli._shared_options import NAME, offline, plan, stored, trust
from nest.cli._transcribe_values import FORMATS

__all__ = [
    "DEFAULT_MODEL",
    "ELSEWHERE",
    "computed",
    "independent",
    "language",
    "no_vad",
    "spelled",
    "transcribe",
]

DEFAULT_MODEL = "whisper-tiny.en"
_LEFT_OUT = "Leave it out"
ELSEWHERE = {
    "--clip-timestamps": "--start and --duration hear a part.",
    "--compute-type": "--dtype and --quantize choose how weights are kept.",
    "--device": "--backend chooses what computes.",
    "--fp16": f"{_LEFT_OUT}: --backend and --plan choose how the model is computed.",
    "--temperature-increment-on-fallback": f"{_LEFT_OUT}: it is 0.2.",
    "--threads": "From Python, on onnx, nest.pipeline(NAME, threads=2) sets how many there are.",
    "--vad-filter": f"{_LEFT_OUT}: voice activity is detected unless --no-vad is given.",
    "--verbose": f"{_LEFT_OUT}: progress is shown on a terminal alone.",
}
"""Options of other Whisper command lines that this one has not, and what to do instead."""
_SWITCHES = ("--word-timestamps", "--condition-on-previous-text")


def transcribe(command: argparse.ArgumentParser) -> None:
    """Add them."""
    command.add_argument(
        "inputs",
        metavar="FILE",
        nargs="*",
        default=[],
        help="recordings and videos: wav, flac, mp3, ogg, m4a, mp4, mkv, webm ... ('-' is standard input)",
    )
    command.set_defaults(more="inputs")
    command.add_argument(
        "--model", metavar="NAME", default=DEFAULT_MODEL, help=f"{NAME}; {DEFAULT_MODEL} if left out"
    )
    computed(command)
    stored(command)
    offline(command)
    trust(command)
    _heard(command.add_argument_group("what is heard"))
    _decoded(command.add_argument_group("how it is decoded"))
    _written(command.add_argument_group("what is written"))


def computed(command: argparse.ArgumentParser) -> None:
    """Add --backend and --plan."""
    command.add_argument(
        "--backend",
        metavar="NAME",
        type=values.backend,
        help="what computes: onnx, torch, jax, nnx or reference; the first of onnx, torch, jax here if left out",
    )
    plan(command)


def language(group: argparse._ActionsContainer) -> None:
    """Add --language."""
    group.add_argument(
        "--language", metavar="NAME", help="its name or code; a multilingual model detects it if left out"
    )


def no_vad(group: argparse._ActionsContainer) -> None:
    """Add --no-vad."""
    group.add_argument(
        "--no-vad", action="store_true", help="hear silence and music as well: detect no voice activity"
    )


def independent(group: argparse._ActionsContainer) -> None:
    """Add --no-condition-on-previous-text."""
    group.add_argument(
        "--no-condition-on-previous-text",
        action="store_true",
        help="each window knows nothing of what was said before it",
    )


def _heard(group: argparse._ArgumentGroup) -> None:
    language(group)
    group.add_argument(
        "--task",
        choices=("transcribe", "translate"),
        default="transcribe",
        help="what to write; 'translate' is into English",
    )
    group.add_argument(
        "--start",
        metavar="TIME",
        type=values.time,
        default=0.0,
        help="where to begin: seconds, or 1:02:03.5",
    )
    group.add_argument(
        "--duration", metavar="TIME", type=values.length, help="how much to hear; to the end if left out"
    )
    group.add_argument(
        "--channels", choices=("mix", "split"), default="mix", help="'split' hears each by itself"
    )


def _decoded(group: argparse._ArgumentGroup) -> None:
    no_vad(group)
    group.add_argument(
        "--batch-size",
        metavar="N",
        type=values.count,
        help="cut at silences and decode up to N windows at a time, none of which knows what was said before it: "
        "faster, in more memory; one after another if left out",
    )
    group.add_argument("--word-timestamps", action="store_true", help="when each word was said")
    group.add_argument("--initial-prompt", metavar="TEXT", help="a text as if said before: names, style")
    independent(group)
    group.add_argument(
        "--temperature",
        metavar="T",
        type=values.temperature,
        default=0.0,
        help="where to begin; a text that is not believed is decoded again, 0.2 higher each time up to 1",
    )
    _searched(group)
    group.add_argument(
        "--compression-ratio-threshold",
        metavar="X",
        type=values.threshold,
        default=2.4,
        help="over it, a text repeats itself; 2.4 if left out",
    )
    group.add_argument(
        "--logprob-threshold",
        metavar="X",
        type=values.threshold,
        default=-1.0,
        help="under it, a text is not believed; -1 if left out",
    )
    group.add_argument(
        "--no-speech-threshold",
        metavar="X",
        type=values.threshold,
        default=0.6,
        help="over it, a text that is not believed is none; 0.6 if left out",
    )


def _searched(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--beam-size",
        metavar="N",
        type=values.rows,
        help="at temperature 0, search N beams, such as 5; each token is the most likely if left out",
    )
    group.add_argument(
        "--patience",
        metavar="X",
        type=values.patience,
        help="search until X times as many texts as beams have ended; 1 if left out",
    )
    group.add_argument(
        "--best-of",
        metavar="N",
        type=values.rows,
        help="at temperatures over 0, draw N texts and take the likeliest; one is drawn if left out",
    )
    group.add_argument(
        "--length-penalty",
        metavar="X",
        type=values.penalty,
        help="from 0, which takes the likeliest of several texts as it is, to 1, which is for longer ones; by the mean "
        "log-probability of its tokens if left out",
    )


def _written(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-o", "--output-dir", metavar="DIR", help="where files are written; the working directory if left out"
    )
    group.add_argument(
        "-f",
        "--output-format",
        metavar="FORMAT",
        type=values.formats,
        help=f"{', '.join(FORMATS)} or all; several with commas. With neither of the two, text goes to standard output",
    )
    group.add_argument(
        "--max-line-width", metavar="N", type=values.count, help="letters in a line of a subtitle"
    )
    group.add_argument("--max-line-count", metavar="N", type=values.count, help="lines of a subtitle")
    existing = group.add_mutually_exclusive_group()
    existing.add_argument("--skip-existing", action="store_true", help="leave out what was written before")
    existing.add_argument("--overwrite", action="store_true", help="write what was written before anew")


def spelled(arguments: Iterable[str]) -> list[str]:
    """The arguments in this command's spelling: `--word_timestamps True` is `--word-timestamps`.

    The word after a switch is its value where it is one of those that switch; a recording of such a name is `./on`.
    Of a switch that is given twice the last value counts.

    Raises:
        ArgumentTypeError: a switch has a value that switches nothing.
    """
    given = list(arguments)
    found: list[str] = []
    while given:
        argument = given.pop(0)
        if argument == "--":  # only names of files follow
            return [*found, argument, *given]
        if not argument.startswith("--"):
            found.append(argument)
            continue
        name, equals, value = argument.partition("=")
        name = name.replace("_", "-")
        if name in _SWITCHES and (equals or (given and _switches(given[0]))):
            found = _switched(found, name, on=_value(name, value if equals else given.pop(0)))
        elif name == "--condition-on-previous-text":
            found = _switched(found, name, on=True)
        else:
            found.append(name + equals + value)
    return found


def _switches(word: str) -> bool:
    try:
        values.switch(word)
    except argparse.ArgumentTypeError:
        return False
    return True


def _value(name: str, word: str) -> bool:
    try:
        return values.switch(word)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"argument {name}: {error}") from None


def _switched(found: list[str], name: str, *, on: bool) -> list[str]:
    """What was found, with a switch set: what was said of it last counts."""
    written, wanted = (name, on) if name == "--word-timestamps" else (f"--no-{name[2:]}", not on)
    return [argument for argument in found if argument != written] + [written] * wanted
