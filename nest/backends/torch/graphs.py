"""CUDA graphs for a session: entries are recorded once a shape and replayed, loops run a chunk of trips a replay.

A recorded graph reads and writes fixed memory: arguments are copied in, results are copied out, and the states of the
session are where they always are. An entry that ends in a loop is two graphs: all that comes before with the first
trips, and the next trips, over memory that both share. The host takes a hundred microseconds to launch a graph of some
hundred kernels, so each has only a part of a chunk: the second is launched while the first one runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

__all__ = ["GraphRunner"]

_WARM_UP = 3

# A recording begins by waiting for the whole device, which another one would not survive.
_RECORDING = threading.Lock()

Condition = Callable[..., Tensor]
Body = Callable[..., tuple[Tensor, ...]]


class _Recorded:
    """A function of tensors as a graph over memory of its own.

    Args:
        copied: the arguments are copied into memory of the graph's own; elsewhere it reads and writes these very ones.
    """

    def __init__(
        self, function: Callable[..., Any], arguments: Sequence[Tensor], *, copied: bool = True
    ) -> None:
        self.inputs = [a.clone() for a in arguments] if copied else list(arguments)
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
        _take(self.inputs, arguments)
        self.graph.replay()
        return self.outputs


class _Look:
    """A condition that a graph leaves in memory of the host, which waits for nothing else."""

    def __init__(self) -> None:
        self._flag = torch.zeros((), dtype=torch.bool, pin_memory=True)
        self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]

    def leave(self, condition: Tensor) -> None:
        """Within a graph: copy the condition to the host."""
        self._flag.copy_(condition, non_blocking=True)

    def __call__(self) -> bool:
        """The condition that the graphs replayed so far have left."""
        self._done.record()
        self._done.synchronize()
        return bool(self._flag)


@dataclass
class _Seen:
    """A loop that was come upon while its entry was recorded, and what it carries after the first trips."""

    condition: Condition
    body: Body
    carry: tuple[Tensor, ...]
    most: int


class _Loop:
    """An entry that ends in a loop.

    Attributes:
        start: all that comes before the loop, with its first trips.
        more: the next trips, in place.
        results: which of the carried values the entry gives.
    """

    def __init__(
        self, start: _Recorded, more: _Recorded, look: _Look, seen: _Seen, results: Sequence[int]
    ) -> None:
        self.start = start
        self.more = more
        self.look = look
        self.carry = seen.carry
        self.most = seen.most
        self.results = list(results)


class GraphRunner:
    """The graphs of one session. Generated source finds it as `state.runner`.

    Args:
        state: the session's tree of states.
        chunk: trips of a loop in one graph; the host looks at the condition once a chunk. The bodies of nest's loops
            are harmless when run past their end.
        device: where the graphs run; arguments may be on the host.

    Attributes:
        looks: how often the host has waited for a loop's condition.
    """

    def __init__(self, state: Any, chunk: int = 8, device: torch.device | None = None) -> None:
        self.state = state
        self._device = device
        self.chunk = chunk
        # Trips of one graph of an entry that ends in a loop.
        self._part = max(1, chunk // 2)
        self.looks = 0
        self.recording = False
        self._recorded: dict[tuple[Any, ...], _Recorded] = {}
        self._loops: dict[tuple[Any, ...], _Loop | None] = {}
        self._seen: list[_Seen] = []

    def entry(self, name: str, method: Callable[..., Any], arguments: Sequence[Tensor]) -> Any:
        """Run an entry; its results are copies, so that they outlive the next call."""
        if self.recording:
            return method(*arguments, self.state)
        results = self._graph(name, lambda *a: method(*a, self.state), arguments)(arguments)
        return results.clone() if isinstance(results, Tensor) else tuple(r.clone() for r in results)

    def looping(self, name: str, method: Callable[..., Any], arguments: Sequence[Tensor]) -> Any:
        """Run an entry that has a loop. Where that is not its end, what comes before and after is not recorded."""
        key = _key(name, arguments)
        if key not in self._loops:
            self._loops[key] = self._recorded_loop(method, arguments)
        loop = self._loops[key]
        if loop is None:
            return method(*self._placed(arguments), self.state)
        loop.start(arguments)
        trips = self._part - 1
        # What comes before a loop gives its first token, so that a first chunk of tokens is a trip less than others.
        for chunk_ends in range(self.chunk - 1, loop.most + self.chunk, self.chunk):
            while trips < min(chunk_ends, loop.most):
                loop.more(loop.carry)
                trips += self._part
            self.looks += 1
            if trips >= loop.most or not loop.look():
                break
        results = tuple(torch.empty_like(loop.carry[i]) for i in loop.results)
        _put(results, [loop.carry[i] for i in loop.results])
        return results if len(results) > 1 else results[0]

    def __call__(
        self, condition: Condition, body: Body, carry: tuple[Tensor, ...], most: int
    ) -> tuple[Tensor, ...]:
        """Repeat the body a chunk at a time while the condition holds."""
        if self.recording:
            for _ in range(min(self._part - 1, most)):
                carry = body(*carry)
            self._seen.append(_Seen(condition, body, carry, most))
            return carry

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
        key = _key(name, arguments)
        known = self._recorded.get(key)
        if known is None:
            known = self._recorded[key] = self._record(function, arguments)
        return known

    def _record(
        self, function: Callable[..., Any], arguments: Sequence[Tensor], *, copied: bool = True
    ) -> _Recorded:
        """The graph of a function; states and arguments are as before."""
        # Warming up writes states, and what they held matters to this very call.
        touched = [*_tensors(self.state), *([] if copied else arguments)]
        held = [t.clone() for t in touched]
        self.recording = True
        try:
            with _RECORDING:
                made = _Recorded(function, self._placed(arguments), copied=copied)
        finally:
            self.recording = False
        for tensor, before in zip(touched, held, strict=True):
            tensor.copy_(before)
        return made

    def _placed(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        return [a if self._device is None else a.to(self._device) for a in arguments]

    def _recorded_loop(self, method: Callable[..., Any], arguments: Sequence[Tensor]) -> _Loop | None:
        """The graphs of an entry that gives what its one loop carries; None of any other."""
        look = _Look()
        results: list[Any] = []

        def start(*given: Tensor) -> None:
            self._seen.clear()
            found = method(*given, self.state)
            results[:] = [found] if isinstance(found, Tensor) else found
            for seen in self._seen[-1:]:
                look.leave(seen.condition(*seen.carry))

        before = self._record(start, arguments)
        if len(self._seen) != 1:
            return None
        (seen,) = self._seen
        places = [next((i for i, c in enumerate(seen.carry) if c is r), None) for r in results]
        known = [place for place in places if place is not None]
        if len(known) < len(places):
            return None
        # The memory of what is carried has nothing in it yet, and the next trips are tried on it.
        before(arguments)

        def more(*carry: Tensor) -> None:
            values = carry
            for _ in range(self._part):
                values = seen.body(*values)
            look.leave(seen.condition(*values))
            _put(carry, values)

        return _Loop(before, self._record(more, seen.carry, copied=False), look, seen, known)


def _take(held: Sequence[Tensor], given: Sequence[Tensor]) -> None:
    """Put a call's arguments, which may be on the host, into a graph's own memory."""
    for mine, theirs in zip(held, given, strict=True):
        if mine.data_ptr() != theirs.data_ptr():
            mine.copy_(theirs, non_blocking=True)


def _put(kept: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Write values over tensors, in few kernels; a value may be one of the tensors."""
    pairs = [(k, v) for k, v in zip(kept, values, strict=True) if k is not v]
    ready = [(k, v.clone() if any(v is other for other in kept) else v) for k, v in pairs]
    for dtype in dict.fromkeys(k.dtype for k, _ in ready):
        of_type = [(k, v) for k, v in ready if k.dtype == dtype]
        torch._foreach_copy_([k for k, _ in of_type], [v for _, v in of_type])


def _key(name: object, arguments: Sequence[Tensor]) -> tuple[Any, ...]:
    return name, *((tuple(a.shape), a.dtype) for a in arguments)


def _tensors(tree: Any) -> list[Tensor]:
    """The tensors of a tree of states, in order."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, list):
        return [t for item in tree for t in _tensors(item)]
    return [t for name, item in sorted(vars(tree).items()) if name != "runner" for t in _tensors(item)]
