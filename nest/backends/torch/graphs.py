"""CUDA graphs for a session: entries are recorded once a shape and replayed, loops run a chunk of trips a replay.

A recorded graph reads and writes fixed memory: arguments are copied in, results are copied out, and the states of the
session are where they always are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["GraphRunner"]

_WARM_UP = 3

# A recording begins by waiting for the whole device, which another one would not survive.
_RECORDING = threading.Lock()


class _Recorded:
    """A function of tensors as a graph over memory of its own."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Tensor]) -> None:
        self.inputs = [a.clone() for a in arguments]
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UP):
                function(*(a.clone() for a in self.inputs))
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        # Other threads go on with their own sessions meanwhile.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            self.outputs = function(*self.inputs)

    def __call__(self, arguments: Sequence[Tensor]) -> Any:
        """The results, in memory that the next call overwrites."""
        for held, given in zip(self.inputs, arguments, strict=True):
            if held.data_ptr() != given.data_ptr():
                held.copy_(given)
        self.graph.replay()
        return self.outputs


class GraphRunner:
    """The graphs of one session. Generated source finds it as `state.runner`.

    Args:
        state: the session's tree of states.
        chunk: trips of a loop in one graph; the host looks at the condition once a chunk. The bodies of nest's loops
            are harmless when run past their end.

    Attributes:
        looks: how often the host has waited for a loop's condition.
    """

    def __init__(self, state: Any, chunk: int = 8) -> None:
        self.state = state
        self.chunk = chunk
        self.looks = 0
        self.recording = False
        self._recorded: dict[tuple[Any, ...], _Recorded] = {}

    def entry(self, name: str, method: Callable[..., Any], arguments: Sequence[Tensor]) -> Any:
        """Run an entry; its results are copies, so that they outlive the next call."""
        if self.recording:
            return method(*arguments, self.state)
        results = self._graph(name, lambda *a: method(*a, self.state), arguments)(arguments)
        return results.clone() if isinstance(results, Tensor) else tuple(r.clone() for r in results)

    def __call__(
        self,
        condition: Callable[..., Tensor],
        body: Callable[..., tuple[Tensor, ...]],
        carry: tuple[Tensor, ...],
        most: int,
    ) -> tuple[Tensor, ...]:
        """Repeat the body a chunk at a time while the condition holds."""

        def trips(*values: Tensor) -> tuple[Tensor, ...]:
            for _ in range(self.chunk):
                values = body(*values)
            return (*values, condition(*values))

        graph = self._graph(body.__code__, trips, carry)
        self.looks += 1
        going = bool(condition(*carry))
        for _ in range(0, most, self.chunk):
            if not going:
                break
            *values, flag = graph(carry)
            carry = tuple(values)
            self.looks += 1
            going = bool(flag)
        return tuple(c.clone() for c in carry)

    def _graph(self, name: object, function: Callable[..., Any], arguments: Sequence[Tensor]) -> _Recorded:
        """The graph for these shapes, recorded at their first use."""
        key = (name, *((tuple(a.shape), a.dtype) for a in arguments))
        known = self._recorded.get(key)
        if known is None:
            # Warming up writes states, and what they held matters to this very call.
            held = [t.clone() for t in _tensors(self.state)]
            self.recording = True
            try:
                with _RECORDING:
                    known = self._recorded[key] = _Recorded(function, arguments)
            finally:
                self.recording = False
            for tensor, before in zip(_tensors(self.state), held, strict=True):
                tensor.copy_(before)
        return known


def _tensors(tree: Any) -> list[Tensor]:
    """The tensors of a tree of states, in order."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, list):
        return [t for item in tree for t in _tensors(item)]
    return [t for name, item in sorted(vars(tree).items()) if name != "runner" for t in _tensors(item)]
