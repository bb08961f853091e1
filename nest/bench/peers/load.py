"""Make one peer ready, in the process and the Python in which it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module, metadata
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from nest.bench._loaded import Contender, Given
from nest.bench.peers import PEERS

__all__ = ["absent", "loaded", "versions"]


def absent(name: str, device: str, weights: str) -> str | None:
    """Why a peer is not measured; None where it is."""
    peer = PEERS[name]
    if find_spec(peer.module) is None:
        return "not installed"
    if device not in peer.devices:
        return f"not measured: nothing is known of it on {device}"
    if peer.weights and not weights:
        return f"not measured: it needs {peer.weights}, named by --peer-weights {name}=PATH"
    return None


def loaded(name: str, given: Mapping[str, Any]) -> Contender:
    """A peer with its job.

    Args:
        given: as `nest.bench._loaded.Given`, but `task` is the file of its arrays.
    """
    import numpy as np

    with np.load(given["task"]) as stored:
        task = dict(stored)
    peer = PEERS[name]
    import_module(peer.module)  # nobody's import is part of the load
    start = perf_counter()
    job = peer.load(Given(**{**given, "task": task}))
    taken = perf_counter() - start
    return Contender({"task": job}, lambda: {k: np.asarray(v) for k, v in job().items()}, taken)


def versions(name: str) -> dict[str, str]:
    """Of the packages that a peer is."""
    found = {}
    for package in PEERS[name].packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # a module without a distribution
            continue
    return found
