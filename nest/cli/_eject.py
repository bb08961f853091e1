"""`nest eject`: a model as one file of a framework's source, which needs no nest."""

from __future__ import annotations

import argparse
import sys

from nest.cli._inspect import generics_of
from nest.errors import InputError
from nest.export import eject
from nest.weights._files import atomic, user_path

__all__ = ["main"]


def main(args: argparse.Namespace) -> int:
    source = eject(
        args.name, args.backend, trust_source=args.trust_source or None, **generics_of(args.generics)
    )
    if args.output is None:
        sys.stdout.write(source)
        return 0
    path = user_path(args.output, "--output")
    try:
        with atomic(path) as file:
            file.write(source.encode())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    print(f"{path}: {len(source.splitlines())} lines. Try: python {path} model.safetensors")
    return 0
