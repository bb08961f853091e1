"""Options of `nest bench`."""

from __future__ import annotations

from argparse import ArgumentParser

from nest.backends.installed import BACKENDS
from nest.cli._shared_options import NAME, at_least, offline

__all__ = ["bench"]


def bench(command: ArgumentParser) -> None:
    """Add what `nest bench` takes."""
    command.add_argument(
        "names", metavar="NAME", nargs="*", default=[], help=f"{NAME}; if none, this folder's entry"
    )
    command.set_defaults(more="names")
    command.add_argument("--all", action="store_true", help="every entry of the zoo and of NEST_ZOO")
    command.add_argument(
        "--backend", metavar="NAME", action="append", default=[], help="only this backend; may be repeated",
        choices=tuple(name for name in BACKENDS if name != "reference"),
    )  # fmt: skip
    command.add_argument(
        "--plan", metavar="NAME", action="append", default=[], choices=("exact", "fast"),
        help="only this plan, exact or fast; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--device", metavar="NAME", default="cpu", choices=("cpu", "cuda"), help="cpu or cuda"
    )
    command.add_argument(
        "--dtype", metavar="TYPE", action="append", default=[], choices=("f32", "f16", "bf16"),
        help="an element type: f32, the default, f16 or bf16; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--weights", metavar="KIND", choices=("real", "random"),
        help="real: the pinned ones, the default where they can be had; random: drawn",
    )  # fmt: skip
    for name, default, words in (
        ("threads", 2, "threads of each contender on a processor"),
        ("batch", 1, "rows beside each other"),
        ("rounds", 5, "how often each contender has its turn"),
    ):
        said = f"{words}; {default} by default"
        command.add_argument(f"--{name}", metavar="N", type=at_least(1), default=default, help=said)
    command.add_argument("--no-library", action="store_true", help="leave the reference library out")
    command.add_argument(
        "--save",
        action="store_true",
        help="keep the run beside the entry, in bench.json, which its page shows",
    )
    command.add_argument("--json", action="store_true", help="write JSON")
    offline(command)
