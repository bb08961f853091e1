"""Generated source that was made before, kept by what it is made of.

Printing a module takes a third of a warm load, and importing what prints it a tenth.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import nest.backends.source
import nest.ir
from nest.ir.plan import Plan
from nest.ir.printer import digest
from nest.ir.program import Program
from nest.weights._files import atomic, forget_oldest
from nest.weights.cache import cache_root

__all__ = ["SourceText", "kept_source"]

_KEPT_BYTES = 16 << 20


@dataclass(frozen=True)
class SourceText:
    """The text of a module; its root class, and what that takes: numbers and names of element types."""

    text: str
    root: str
    takes: dict[str, str]


def kept_source(plan: Plan, make: Callable[[], SourceText], *, folder: Path | None = None) -> SourceText:
    """The source of a plan's program: what was kept of it, or what `make` gives, which is kept.

    Args:
        folder: `generated` in nest's cache if None. Where it cannot be written, nothing is kept.
    """
    folder = cache_root() / "generated" if folder is None else folder
    path = folder / f"{_key(plan)}.source"
    known = _read(path)
    if known is None:
        known = make()
        _write(path, known)
    return known


def _key(plan: Plan) -> str:
    """A hash of the program, of what prints it, and of the definition's files, whose names and comments it has."""
    found = hashlib.sha256(f"{plan.name}\n{digest(plan.program)}\n{_printer()}\n".encode())
    for path in sorted(_files(plan.program)):
        found.update(path.encode())
        with contextlib.suppress(OSError):
            found.update(Path(path).read_bytes())
    return found.hexdigest()


def _files(program: Program) -> set[str]:
    """The files of all methods, and of what they call."""
    nodes = {
        n.location.code.co_filename for f in program.functions() for n in f.nodes if n.location is not None
    }
    return nodes | {f.code.co_filename for f in program.functions()}


@cache
def _printer() -> str:
    """A hash of the code that prints, which includes the helpers that it copies."""
    folders = [Path(str(nest.backends.source.__file__)).parent, Path(str(nest.ir.__file__)).parent]
    paths = [p for folder in folders for p in sorted(folder.rglob("*.py"))]
    found = hashlib.sha256()
    for path in [*paths, *sorted(Path(__file__).parent.glob("*.py"))]:
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _read(path: Path) -> SourceText | None:
    """What is kept there; None where there is nothing, or it is damaged."""
    try:
        head, _, body = path.read_bytes().partition(b"\n")
        if json.loads(head)["sha256"] != hashlib.sha256(body).hexdigest():
            return None
        known = SourceText(**json.loads(body))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    with contextlib.suppress(OSError):
        path.touch()  # used last, for `forget_oldest`
    return known


def _write(path: Path, source: SourceText) -> None:
    body = json.dumps(asdict(source)).encode()
    head = json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode()
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic(path) as file:
            file.write(head + b"\n" + body)
        forget_oldest(path.parent.glob("*.source"), _KEPT_BYTES)
