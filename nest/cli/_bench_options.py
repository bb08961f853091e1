"""Options of `nest bench`."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from nest.backends.installed import BACKENDS
from nest.bench.peers import PEERS
from nest.cli._shared_options import NAME, at_least, offline

__all__ = ["COMPILED", "bench"]

COMPILED = "transformers-compiled"
"""The reference library under torch.compile, as --peers calls it."""


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
        ("texts", 64, "sentences of an embedder's whole job"),
        ("rounds", 5, "how often each contender has its turn"),
    ):
        said = f"{words}; {default} by default"
        command.add_argument(f"--{name}", metavar="N", type=at_least(1), default=default, help=said)
    command.add_argument(
        "--batch", metavar="N[,N...]", type=_sizes, default=[1],
        help="rows beside each other, 1 by default; of several, one run each",
    )  # fmt: skip
    command.add_argument(
        "--only", metavar="TEXT", default="", help="contenders whose name has one of these texts, split by |"
    )
    command.add_argument("--no-library", action="store_true", help="leave the reference library out")
    _peers(command)
    command.add_argument(
        "--save",
        action="store_true",
        help="keep the run beside the entry, in bench.json, which its page shows",
    )
    command.add_argument(
        "--out", metavar="FILE", type=Path,
        help="keep the run in this file, as --save does beside the entry: for an entry that you may not write to",
    )  # fmt: skip
    command.add_argument("--json", action="store_true", help="write JSON")
    offline(command)


def _peers(command: ArgumentParser) -> None:
    known = (COMPILED, *PEERS)
    command.add_argument(
        "--peers", metavar="NAME[,NAME...]", type=_names, default=known,
        help=f"which of {', '.join(known)} take part, or none; all of the entry's task if left out",
    )  # fmt: skip
    command.add_argument(
        "--peers-from", metavar="VENV", type=Path, action="append", default=[],
        help="a virtual environment in which peers are installed; may be repeated, the first that has one counts",
    )  # fmt: skip
    command.add_argument(
        "--peer-weights", metavar="NAME=PATH", type=_named, action="append", default=[],
        help="the weights of a peer that cannot read the entry's own, as llama.cpp=model.gguf; may be repeated",
    )  # fmt: skip
    command.add_argument(
        "--beside", metavar="NAME",
        help="by whose time the others' are divided, part of its name; the reference library if left out",
    )  # fmt: skip


def _sizes(text: str) -> list[int]:
    number = at_least(1)
    return list(dict.fromkeys(number(part) for part in text.split(",")))


def _names(text: str) -> tuple[str, ...]:
    if text == "none":
        return ()
    found = tuple(dict.fromkeys(text.split(",")))
    for name in found:
        _check_peer(name, (COMPILED, *PEERS))
    return found


def _named(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise ArgumentTypeError(f"NAME=PATH is expected; came '{text:.80}'")
    _check_peer(name, tuple(PEERS))
    if not Path(path).exists():
        raise ArgumentTypeError(f"there is no '{path}'")
    return name, str(Path(path).absolute())


def _check_peer(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ArgumentTypeError(f"there is no peer '{name:.40}': there are {', '.join(known)}")
