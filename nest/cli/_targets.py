"""What a measurement would stumble over at its end, found before it begins."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from nest.errors import NestError
from nest.registry import find

__all__ = ["check_targets"]


def check_targets(names: Sequence[str], args: argparse.Namespace, check: Callable[[Path, str], None]) -> None:
    """Whether every entry that was named is there, and with `--save` whether its file can be kept.

    Args:
        check: takes an entry's folder and name; raises for a file there that is not right or cannot be written.

    Raises:
        NestError: what `find` and `check` raise.
    """
    for name in names:
        try:
            entry = find(name)
        except NestError:
            if args.all:
                continue  # a broken entry among all is named when it is its turn
            raise
        if args.save:
            check(entry.directory, entry.name)
