"""Options of `nest eval`."""

from __future__ import annotations

from argparse import ArgumentParser

from nest.cli import _transcribe_values as values
from nest.cli._shared_options import NAME, at_least, offline, trust
from nest.cli._transcribe_options import computed, independent, language, no_vad

__all__ = ["evaluation"]


def evaluation(command: ArgumentParser) -> None:
    """Add what `nest eval` takes."""
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument(
        "--data",
        metavar="DIR",
        required=True,
        help="recordings with transcripts: clip.txt beside clip.wav, *.trans.txt as LibriSpeech has them, or "
        "transcripts.tsv, .csv or .jsonl with 'file' and 'text'",
    )
    command.add_argument(
        "--data-name",
        metavar="TEXT",
        type=values.line,
        help="what the recordings are called; the folder's name if left out",
    )
    command.add_argument(
        "--limit", metavar="N", type=at_least(1), help="only the first N recordings, by name"
    )
    computed(command)
    language(command)
    command.add_argument(
        "--task",
        choices=("transcribe", "translate"),
        default="transcribe",
        help="what the transcripts are; 'translate': into English",
    )
    no_vad(command)
    command.add_argument(
        "--batch-size",
        metavar="N",
        type=values.count,
        help="cut at silences and decode up to N windows at a time; one after another if left out",
    )
    independent(command)
    command.add_argument(
        "--save",
        action="store_true",
        help="keep the run beside the entry, in eval.json, which its page shows",
    )
    command.add_argument("--json", action="store_true", help="write JSON, with the text of each recording")
    command.add_argument("-o", "--output", metavar="FILE", help="write that JSON into a file as well")
    offline(command)
    trust(command)
