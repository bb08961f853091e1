"""Many calls of which none needs another, each by one thread, as many at a time as there are threads.

A call of a small encoder is hundreds of short ops, and threads that share one wait for each other at the end of every
op. A call each, they do not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from nest.tasks._sessions import Sessions

__all__ = ["Calls", "budget_of"]

T = TypeVar("T")
R = TypeVar("R")

_CACHED = 512
"""Tokens of which the processor's cache holds what a layer passes on: with more, memory is what is waited for."""

_BUDGET = 4096


class Calls:
    """Calls on the sessions of one model.

    Args:
        model: what they are of.
        **options: of each new session.
    """

    def __init__(self, model: Any, **options: Any) -> None:
        self._whole = Sessions(model, **options)
        # Elsewhere threads are the whole process's, or a device has its own.
        self._threads = (
            int(model.threads) if getattr(model, "backend", None) == "onnx" and _on_cpu(model) else 1
        )
        self._single = Sessions(model, threads=1, **options) if self._threads > 1 else self._whole

    def each(self, items: Sequence[T], call: Callable[[Any, T], R]) -> list[R]:
        """`call(session, item)` of each item, in their order."""
        if self._threads == 1 or len(items) < 2 * self._threads:
            with self._whole.lend() as session:
                return [call(session, item) for item in items]

        def one(item: T) -> R:
            with self._single.lend() as session:
                return call(session, item)

        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(one, items))


def budget_of(model: Any) -> int:
    """How many tokens a call is best given: few on a CPU, many elsewhere."""
    return _CACHED if _on_cpu(model) else _BUDGET


def _on_cpu(model: Any) -> bool:
    providers = getattr(model, "providers", None)
    if providers is not None:
        return bool(next(iter(providers)) == "CPUExecutionProvider")
    if getattr(model, "backend", None) in ("jax", "nnx"):
        return bool(sys.modules["jax"].default_backend() == "cpu") if "jax" in sys.modules else True
    device = getattr(model, "device", None)
    return getattr(device, "type", "cpu") == "cpu"
