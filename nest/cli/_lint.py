"""`nest lint`: the contract of an entry's folder."""

from __future__ import annotations

import argparse

from nest.checking import lint
from nest.cli._check import chosen, write


def main(args: argparse.Namespace) -> int:
    return write((lint(name) for name in chosen(args)), as_json=args.json)
