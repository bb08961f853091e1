"""The oracle: the reference backend in double precision, whose results are kept on disk by content."""

from __future__ import annotations

import hashlib
import os
import uuid
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nest.backends import reference
from nest.backends.reference.model import ReferenceSession, build
from nest.ir.printer import digest
from nest.ir.program import Program
from nest.weights.cache import cache_root

__all__ = ["Oracle", "OracleSession", "parameters_digest"]

Array = np.ndarray[Any, Any]

_KEPT_BYTES = 4 << 30


class Oracle:
    """A program over parameters, in f64.

    Args:
        program: what to compute.
        params: definition path -> array.
        folder: where results are kept; nest's cache if None.
        keep: whether they are.
    """

    def __init__(
        self, program: Program, params: Mapping[str, Array], *, folder: Path | None = None, keep: bool = True
    ) -> None:
        self.program = program
        self.params = params
        self.folder = (folder or cache_root() / "oracle") if keep else None
        self.key = hashlib.sha256(
            f"{digest(program)} {parameters_digest(params)} {_rules_digest()}".encode()
        ).digest()

    @cached_property
    def model(self) -> Any:
        """The model itself, made where something has to be computed."""
        exact = {p: a.astype(np.float64) if a.dtype.kind == "f" else a for p, a in self.params.items()}
        return build(self.program, exact, precision="f64")

    def new_session(self, **symbols: int) -> OracleSession:
        """States of their own."""
        return OracleSession(self, symbols)

    def prune(self) -> None:
        """Forget the results that were used longest ago, where there are many."""
        if self.folder is None or not self.folder.is_dir():
            return
        files = sorted(self.folder.glob("*.npz"), key=lambda f: -f.stat().st_mtime)
        total = 0
        for file in files:
            total += file.stat().st_size
            if total > _KEPT_BYTES:
                file.unlink(missing_ok=True)


class OracleSession:
    """A session whose calls are looked up before they are computed.

    A call's key is made of everything before it, so that what was found needs no state; the states are made up for
    when a call is new.
    """

    def __init__(self, oracle: Oracle, symbols: Mapping[str, int]) -> None:
        self.oracle = oracle
        self.symbols = dict(symbols)
        self._live: ReferenceSession | None = None
        self._behind: list[tuple[str, list[Array]]] = []
        self._key = hashlib.sha256(oracle.key + repr(sorted(symbols.items())).encode()).digest()

    def call(self, name: str, arguments: Sequence[Array]) -> tuple[Array, ...]:
        """The results of an entry, in f64."""
        stateful = self.oracle.program.entries[name].uses_state
        key = _call_key(self._key, name, arguments)
        if stateful:
            self._key = key
        found = _load(self.oracle.folder, key)
        if found is not None:
            if stateful:
                self._behind.append((name, list(arguments)))
            return found
        session = self._caught_up()
        made = session.call(name, arguments, {})
        results = made if isinstance(made, tuple) else (made,)
        _save(self.oracle.folder, key, results)
        return results

    def _caught_up(self) -> ReferenceSession:
        if self._live is None:
            self._live = self.oracle.model.new_session(**self.symbols)
        for name, arguments in self._behind:
            self._live.call(name, arguments, {})
        self._behind.clear()
        return self._live


def parameters_digest(params: Mapping[str, Array]) -> str:
    """A hash of the names, types and bytes of arrays."""
    hashed = hashlib.sha256()
    for path, array in params.items():
        hashed.update(f"{path} {array.dtype} {array.shape}\n".encode())
        hashed.update(np.ascontiguousarray(array).data)
    return hashed.hexdigest()


@cache
def _rules_digest() -> str:
    """A hash of the reference backend's own source, so that a rule that is mended is not looked past."""
    (folder,) = reference.__path__
    hashed = hashlib.sha256(np.__version__.encode())
    for file in sorted(Path(folder).rglob("*.py")):
        hashed.update(file.read_bytes())
    return hashed.hexdigest()


def _call_key(before: bytes, name: str, arguments: Sequence[Array]) -> bytes:
    hashed = hashlib.sha256(before + name.encode())
    for array in arguments:
        hashed.update(f"{array.dtype} {array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).data)
    return hashed.digest()


def _load(folder: Path | None, key: bytes) -> tuple[Array, ...] | None:
    if folder is None:
        return None
    file = folder / f"{key.hex()}.npz"
    try:
        # Opened here, so that it is closed whatever numpy finds in it.
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            results = tuple(stored[f"{i}"] for i in range(len(stored.files)))
        os.utime(file)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None  # not there, or damaged: it is computed
    return results


def _save(folder: Path | None, key: bytes, results: Sequence[Array]) -> None:
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = folder / f".{uuid.uuid4().hex}.npz"
        stored: dict[str, Any] = {f"{i}": array for i, array in enumerate(results)}
        np.savez(scratch, **stored)
        scratch.replace(folder / f"{key.hex()}.npz")
    except OSError:
        return  # a cache that cannot be written costs time alone
