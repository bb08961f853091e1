"""`nest memory`: how much memory a model needs, and what fits into so much."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import asdict
from typing import Any

from nest.cli._format import columns, json_text
from nest.cli._inspect import generics_of
from nest.errors import InputError
from nest.footprint.limits import Limits, limits
from nest.footprint.report import Memory, Model
from nest.loading import program_of
from nest.registry import find

__all__ = ["binary_size", "main"]

USAGE = 2
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(I?)B?|B)?", re.IGNORECASE)


def main(args: argparse.Namespace) -> int:
    try:
        limit = None if args.limit is None else binary_size(args.limit)
    except InputError as error:  # an option's value: wrong usage
        sys.stderr.write(f"nest: error: {error} See: nest memory --help\n")
        return USAGE
    generics = generics_of(args.generics) | ({} if args.dtype is None else {"T": args.dtype})
    entry = find(args.name)
    program = program_of(entry, trust_source=args.trust_source or None, **generics)
    model = Model(program, args.backend, args.plan)
    found = model.memory(args.batch, args.context)
    fits = None if limit is None else limits(model, limit, batch=args.batch, context=args.context)
    if args.json:
        print(json_text(_facts(entry.name, found, fits)))
    else:
        print(_table(entry.name, found))
        if fits is not None:
            print(_fit(found, fits))
    return 0


def binary_size(text: str) -> int:
    """Bytes of `24GiB`, `24G` (powers of two both) and `24GB` (powers of ten).

    Raises:
        InputError: it is no size.
    """
    found = _SIZE.fullmatch(text.strip()) if len(text) < 40 else None
    if found is None:
        raise InputError(f"--limit takes a size such as 24GiB or 800MB; '{text:.40}' came.")
    number, unit, binary = found.groups()
    decimal = unit is not None and not binary and text.strip().upper().endswith("B")
    power = "KMGT".index(unit.upper()) + 1 if unit else 0
    return int(float(number) * (1000 if decimal else 1024) ** power)


def _table(name: str, found: Memory) -> str:
    rows = [("", "weights", _mib(sum(found.weights.values())), ", ".join(found.dtypes))]
    rows += [("", f"  {part}", _mib(size), "") for part, size in found.weights.items()]
    if found.made:
        rows.append(("", f"made by plan {found.plan}", _mib(found.made), "beside the weights"))
    if found.caches:
        rows.append(("", "caches", _mib(sum(found.caches.values())), "of one session"))
        rows += [("", f"  {part}", _mib(size), "") for part, size in found.caches.items()]
    rows.append(("", "activations", _mib(found.peak), "at the fullest moment of a call"))
    rows += [("", f"  {entry}", _mib(size), "") for entry, size in found.activations.items()]
    rows += [("", f"  {entry}", "?", "neither batch nor context decides its size") for entry in found.unknown]
    rows.append(("", "total", _mib(found.total), "without the framework itself"))
    context = "" if found.context is None else f", context {found.context}"
    head = f"{name} on {found.backend}, plan {found.plan}, batch {found.batch}{context}"
    return f"{head}\n{columns([row[1:] for row in rows], indent=2)}"


def _fit(found: Memory, fits: Limits) -> str:
    at = "" if found.context is None else f" at context {found.context}"
    lines = [f"Within {_mib(fits.limit)}: " + (f"batch {fits.batch}{at}" if fits.batch else f"no batch{at}")]
    if fits.context is not None:
        longest = f"context {fits.context}" if fits.context else "no context"
        lines.append(f"Within {_mib(fits.limit)}: {longest} at batch {found.batch}")
    return "\n".join(lines)


def _mib(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB"


def _facts(name: str, found: Memory, fits: Limits | None) -> dict[str, Any]:
    facts = {"entry": name, **asdict(found), "peak": found.peak, "total": found.total}
    return facts if fits is None else facts | {"fits": asdict(fits)}
