"""Options of the commands that measure: `verify` and `diff`."""

from __future__ import annotations

from argparse import ArgumentParser

from nest.backends.installed import BACKENDS
from nest.cli._shared_options import NAME, at_least, generics, offline, quantize, trust

__all__ = ["diff", "verify"]

_DTYPES = ("f32", "f16", "bf16")


def verify(command: ArgumentParser) -> None:
    """Add what `nest verify` takes."""
    command.add_argument(
        "names", metavar="NAME", nargs="*", default=[], help=f"{NAME}; if none, this folder's entry"
    )
    command.set_defaults(more="names")
    command.add_argument("--all", action="store_true", help="every entry of the zoo and of NEST_ZOO")
    command.add_argument(
        "--backend",
        metavar="NAME",
        action="append",
        default=[],
        choices=tuple(BACKENDS),
        help="only this backend; may be repeated. All that are installed if left out",
    )
    command.add_argument(
        "--plan",
        metavar="NAME",
        action="append",
        default=[],
        choices=("exact", "fast"),
        help="only this plan; may be repeated. All that a backend has if left out",
    )
    command.add_argument(
        "--dtype",
        metavar="TYPE",
        action="append",
        default=[],
        choices=_DTYPES,
        help="an element type: f32, f16 or bf16; may be repeated. Those that the entry lists if left out",
    )
    quantize(command)
    _setting(command)
    command.add_argument(
        "--batch",
        metavar="N",
        action="append",
        type=at_least(1),
        default=[],
        help="rows beside each other; may be repeated. 1 and 3 if left out",
    )
    command.add_argument("--no-library", action="store_true", help="leave the reference library out")
    command.add_argument(
        "--save",
        action="store_true",
        help="keep the rows beside the entry, in parity.json, which its page shows",
    )
    command.add_argument("--json", action="store_true", help="write JSON")


def diff(command: ArgumentParser) -> None:
    """Add what `nest diff` takes."""
    command.add_argument("name", metavar="NAME", help=NAME)
    command.add_argument(
        "--backend", metavar="NAME", required=True, choices=tuple(BACKENDS), help="the backend to look into"
    )
    command.add_argument(
        "--against",
        metavar="NAME",
        default="reference",
        choices=tuple(BACKENDS),
        help="what is right: reference, the f64 oracle, or another backend",
    )
    command.add_argument(
        "--entry", metavar="NAME", action="append", default=[], help="only this entry; may be repeated"
    )
    command.add_argument(
        "--above",
        metavar="NUMBER",
        type=float,
        help="the difference, over the largest value, from which a value diverges",
    )
    command.add_argument("--dtype", metavar="TYPE", default="f32", choices=_DTYPES, help="f32, f16 or bf16")
    _setting(command)
    command.add_argument("--json", action="store_true", help="write JSON")


def _setting(command: ArgumentParser) -> None:
    """Which weights at which size."""
    command.add_argument("--tiny", action="store_true", help="at the entry's tiny configuration")
    command.add_argument(
        "--weights",
        metavar="KIND",
        choices=("real", "random"),
        help="real: the pinned ones, the default at the entry's own size; random: drawn so that mistakes show",
    )
    generics(command, ", such as -D DecoderLayers=2")
    command.add_argument(
        "--seed", metavar="N", type=at_least(0), default=0, help="of random weights and drawn inputs"
    )
    offline(command)
    trust(command)
