"""Tokens a second of a text decoder on the CPU, each backend beside transformers, eager and compiled.

    python -m nest.bench.decoder_cpu [--entry NAME] [--tokens 64] [--rounds 9] [--threads 2] [--dtype bf16]

Work: a chat of one message (38 tokens of SmolLM2's), then 64 greedy tokens, batch 1, f32, through `nest.pipeline`, so
that template, tokenizer and text are part of it; transformers is given the ids. How contenders take turns says
`nest.bench._turns`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict

from nest.bench._decoder_contenders import CONTENDERS
from nest.bench._turns import Row, measure

__all__ = ["table"]

_PEERS = ("transformers, cached loop", "transformers, compiled loop")


def table(rows: list[Row], tokens: int) -> str:
    """The rows as a table in Markdown; tokens a second are those of the median."""
    lines = [
        "| | tokens/s | median ms | least ms | busy ms | peak MiB | of eager | of compiled | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        speed = None if r.median_ms is None else 1e3 * tokens / r.median_ms
        numbers = [
            (speed, ".1f"),
            (r.median_ms, ".0f"),
            (r.low_ms, ".0f"),
            (r.busy_ms, ".0f"),
            (r.peak_mib, ".0f"),
        ]
        numbers += [(r.of.get(peer), ".2f") for peer in _PEERS]
        cells = " | ".join("" if x is None else format(x, form) for x, form in numbers)
        lines.append(f"| {r.contender} | {cells} | {r.note} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nest.bench.decoder_cpu")
    parser.add_argument("--entry", default="smollm2-135m-instruct", metavar="NAME")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="contenders whose name has one of these texts, split by |")
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32", help="of everyone")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    module, rest = "nest.bench._decoder_contenders", [
        str(given.threads), given.entry, str(given.tokens), given.dtype,
    ]  # fmt: skip
    names = [n for n in CONTENDERS if any(text in n for text in given.only.split("|"))]
    rows = measure({n: [module, n, *rest] for n in names}, given.rounds, given.threads, _PEERS)
    if given.json:
        print(json.dumps([asdict(r) for r in rows], indent=1))
        return 0
    load = f", load average {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else ""
    print(f"{platform.machine()}, {given.threads} threads, median of {given.rounds} rounds in turn{load}\n")
    print(table(rows, given.tokens))
    return 0


if __name__ == "__main__":
    sys.exit(main())
