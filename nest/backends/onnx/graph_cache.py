"""Graphs that were made before, kept by what they are made of.

Making an entry's graph takes 60 to 190 ms, and importing what makes it half a second: a warm process does neither.
What is kept is the graph as it is given to ONNX Runtime, whose own optimisation takes 4 to 30 ms more and is done for
each session: its result could only be kept together with a copy of the weights.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from functools import cache
from pathlib import Path

from nest.backends.onnx.ports import Ports
from nest.weights._files import atomic, forget_oldest
from nest.weights.cache import cache_root

__all__ = ["GraphCache", "sources_digest"]

_KEPT_BYTES = 64 << 20


class GraphCache:
    """A folder of graphs. One that cannot be read or written is an empty one.

    Args:
        folder: `onnx` in nest's cache if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = cache_root() / "onnx" if folder is None else folder

    def get(self, key: str) -> tuple[Ports, bytes] | None:
        """A graph and its ports; None where there is none, or a damaged one, which is made again."""
        path = self._path(key)
        try:
            head, _, model = path.read_bytes().partition(b"\n")
            facts = json.loads(head)
            if facts["sha256"] != hashlib.sha256(model).hexdigest():
                return None
            ports = Ports.from_json(facts["ports"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        with contextlib.suppress(OSError):
            path.touch()  # used last, for `prune`
        return ports, model

    def put(self, key: str, ports: Ports, model: bytes) -> None:
        """Keep a graph; nothing is kept where the folder cannot be written."""
        facts = {"sha256": hashlib.sha256(model).hexdigest(), "ports": ports.to_json()}
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic(self._path(key)) as file:
                file.write(json.dumps(facts).encode() + b"\n" + model)
            self.prune()

    def prune(self, most: int = _KEPT_BYTES) -> None:
        """Forget the graphs that were used longest ago, where they are more than `most` bytes."""
        forget_oldest(self.folder.glob("*.graph"), most)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.graph"


@cache
def sources_digest() -> str:
    """A hash of the code that makes graphs, and of a plan's weights."""
    import nest.backends.packing
    import nest.ir

    found = hashlib.sha256()
    paths = [Path(str(nest.backends.packing.__file__))]
    for folder in (Path(__file__).parent, Path(str(nest.ir.__file__)).parent):
        paths += sorted(folder.rglob("*.py"))
    for path in paths:
        found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()
