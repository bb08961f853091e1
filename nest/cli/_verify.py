"""`nest verify`: the parity matrix of entries, and an exit code that says whether all is within its bounds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from nest.backends.installed import BACKENDS
from nest.cli._check import chosen
from nest.cli._format import json_text
from nest.cli._inspect import generics_of
from nest.cli._targets import check_targets
from nest.errors import NestError
from nest.registry import find
from nest.registry.parity import check_parity
from nest.verify import Row, Setting, conditions, markdown, matrix, save, setting_of
from nest.verify.library import knows
from nest.verify.saving import check_kept
from nest.weights.quantizing import quantized

__all__ = ["main", "setting"]


def main(args: argparse.Namespace) -> int:
    rows: list[Row] = []
    unmeasured: dict[str, str] = {}
    names = chosen(args)
    check_targets(names, args, check_parity)
    for backend in args.backend:
        BACKENDS[backend].check(backend)
    for name in names:
        try:
            rows += _measured(name, args)
        except NestError as error:
            if len(names) == 1:
                raise
            # One entry among many whose weights cannot be had is named, and the others are still measured.
            sys.stderr.write(f"nest: error: {name}: {error}\n")
            unmeasured[name] = str(error)
    if args.json:
        facts = {"conditions": conditions(), "rows": [row.facts() for row in rows], "unmeasured": unmeasured}
        print(json_text(facts))
    else:
        print(markdown(rows))
        print(f"\n{_summary(rows)}")
    return int(bool(unmeasured) or any(row.status == "failed" for row in rows))


def setting(name: str, args: argparse.Namespace, **options: Any) -> Setting:
    """The setting that a command's options name."""
    fetching: dict[str, Any] = {"local_files_only": True} if args.offline else {}
    return setting_of(
        name,
        tiny=args.tiny,
        weights=args.weights,
        generics=generics_of(args.generics),
        seed=args.seed,
        trust_source=args.trust_source or None,
        **options,
        **fetching,
    )


def _measured(name: str, args: argparse.Namespace) -> list[Row]:
    options: dict[str, Any] = {"batches": args.batch} if args.batch else {}
    one = setting(name, args, quantize=args.quantize, **options)
    if args.quantize is not None:
        _told_quantization(one, args.quantize)
    if args.save:
        check_kept(one.configuration)  # before minutes of measuring
    dtypes = args.dtype or find(name).manifest.dtypes
    if not args.no_library and not knows(one.entry):
        sys.stderr.write(
            f"nest: '{name}' is compared with the oracle alone: the family '{one.entry.manifest.model.family}' has no "
            f"module in nest/verify/library.\n"
        )
    found = matrix(one, backends=args.backend, plans=args.plan, dtypes=dtypes, library=not args.no_library)
    rows = list(_told(found))
    if args.save:
        file = save(one.entry, one.program, rows, conditions())
        sys.stderr.write(f"nest: {file}\n")
    return rows


def _told_quantization(one: Setting, asked: str | dict[str, str]) -> None:
    """Say what becomes of the weights; a part or a scheme that there is not is refused, before anything is measured."""
    program, _ = quantized(one.program, asked, one.params, None, None)
    for part in program.quantization:
        sys.stderr.write(f"{part}\n")


def _told(found: Iterable[Row]) -> Iterable[Row]:
    """The rows, each with a line on standard error where that is a terminal: a matrix takes minutes."""
    for row in found:
        if sys.stderr.isatty():
            sys.stderr.write(
                f"{row.entry} {row.backend} {row.plan} {row.dtype} {row.batch} {row.output}: {row.status}\n"
            )
        yield row


def _summary(rows: list[Row]) -> str:
    failed = [row for row in rows if row.status == "failed"]
    left_out = sum(row.status == "left out" for row in rows)
    notes = f", {left_out} left out" if left_out else ""
    if not failed:
        return f"{len(rows) - left_out} rows, all within their bounds{notes}."
    where = ", ".join(dict.fromkeys(f"{row.output} on {row.backend}" for row in failed))
    return f"{len(failed)} of {len(rows) - left_out} rows failed{notes}: {where}."
