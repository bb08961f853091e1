"""`nest diff`: the first block of a definition whose result on a backend is not what it should be."""

from __future__ import annotations

import argparse

from nest.cli._format import json_text
from nest.cli._verify import setting
from nest.verify import Divergence, diff

__all__ = ["main"]


def main(args: argparse.Namespace) -> int:
    one = setting(args.name, args, batches=(1,))
    found = []
    for divergence in diff(
        one, args.backend, against=args.against, entries=args.entry, dtype=args.dtype, above=args.above
    ):
        found.append(divergence)
        if not args.json:
            print(_text(divergence), flush=True)
    if args.json:
        print(json_text([divergence.facts() for divergence in found]))
    return int(any(divergence.at is not None for divergence in found))


def _text(found: Divergence) -> str:
    agreeing = f"up to {found.largest[0]:.1e} of the largest value, in {found.largest[1]}"
    if found.at is None or found.found is None:
        return f"{found.entry}: {found.values} values agree, {agreeing}"
    off = f"{found.found.largest:.1e} off where the largest is {found.found.scale:.3g}"
    lines = [
        f"{found.entry}: diverges first in {found.block}: {found.at.what} is {off}",
        f"  {found.values - 1} values before it agree" + (f", {agreeing}" if found.largest[1] else ""),
    ]
    if found.operation is not None:
        lines.append(f"  the first wrong operation is {found.operation.op}, {found.line}")
    return "\n".join(lines)
