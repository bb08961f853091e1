"""States in a graph: what an entry reads comes in, what it writes goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from nest.backends.onnx.dims import Dims
from nest.backends.onnx.graph import Graph, Tensor, Type
from nest.backends.onnx.ports import StatePort
from nest.ir.dim import Dim

__all__ = ["StateValues"]


_HELD, _GROWN = Dim.symbol("Held"), Dim.symbol("Grown")
"""How many slots an iteration of a loop is given of states that grow, and how many it has with its own."""


@dataclass
class _State:
    type: Type
    input: Tensor | None = None
    current: Tensor | None = None
    written: bool = False
    axis: int | None = None
    """Along which it grows, while a loop carries a part of it."""


class StateValues:
    """The states of one graph while it is built.

    Args:
        types: every state of the program, by definition path, in the session's symbols.
        inside: states begin as zeros and end with the graph; else they come in and go out.
    """

    def __init__(self, graph: Graph, dims: Dims, types: dict[str, Type], *, inside: bool = False) -> None:
        self.graph = graph
        self.dims = dims
        self.inside = inside
        self._states = {path: _State(type_) for path, type_ in types.items()}

    def read(self, path: str) -> Tensor:
        state = self._states[path]
        if state.current is None and self.inside:
            shape, dtype = state.type.shape, state.type.dtype
            zeros = self.graph.op("Expand", self.graph.constant(0, dtype), self.dims.shape(shape))
            state.current = Tensor(shape, dtype, zeros)
        elif state.current is None:
            state.input = state.current = self.graph.input(f"past.{path}", state.type)
            self.dims.bind(state.input)
        return state.current

    def assign(self, path: str, value: Tensor) -> None:
        state = self._states[path]
        state.current, state.written = value, True

    def update(self, path: str, value: Tensor, pos: Tensor | int, *, axis: int, batch_axis: int) -> Tensor:
        """Write `value` at slots pos, pos+1, ... of each row; the whole state."""
        past = self.read(path)
        if self._states[path].axis is not None:
            past = self._grown(past, pos, axis)
        written = self._scattered(past, value, pos, axis, batch_axis)
        self.assign(path, Tensor(past.shape, past.dtype, written))
        self.dims.bind(self.read(path))
        return self.read(path)

    def _scattered(
        self, past: Tensor, value: Tensor, pos: Tensor | int, axis: int, batch_axis: int
    ) -> ir.Value:
        graph = self.graph
        if batch_axis == 0 and graph.opset >= 24:
            return graph.op("TensorScatter", past, value, self._starts(past, pos), axis=axis)
        # TensorScatter takes rows from axis 0 alone, and is there since opset 24.
        slots = graph.op("Range", *(self._number(n) for n in (0, value.shape[axis], 1)))
        if isinstance(pos, int):
            places = graph.op("Add", slots, graph.integers(pos))
            order = [a for a in range(past.rank) if a != axis]
        else:
            rows = graph.op("Unsqueeze", graph.cast(pos, "i64"), graph.integers(1))
            places = graph.op("Add", rows, slots)
            if batch_axis > axis:
                places = graph.op("Transpose", places, perm=(1, 0))
            order = [a for a in range(past.rank) if a not in (axis, batch_axis)]
        spread = graph.op("Unsqueeze", places, graph.integers(*order)) if order else places
        indices = graph.op("Expand", spread, self.dims.shape(value.shape))
        return graph.op("ScatterElements", past, indices, value, axis=axis)

    def _number(self, size: int | Dim) -> ir.Value:
        return self.dims.scalar(Dim.of(size), "i64")

    def _starts(self, past: Tensor, pos: Tensor | int) -> ir.Value | None:
        """The first slot of each row, Int64 [Batch]; left out, it is 0."""
        if isinstance(pos, Tensor):
            return self.graph.cast(pos, "i64")
        if pos == 0:
            return None
        return self.graph.op("Expand", self.graph.integers(pos), self.dims.size(past.shape[0]))

    def _grown(self, past: Tensor, pos: Tensor | int, axis: int) -> Tensor:
        """The slots that a loop carries, and zeros up to the last one of which `pos` is to be written."""
        graph, held = self.graph, past.shape[axis]
        end = graph.op("Add", self._furthest(pos), graph.integers(1))
        more = graph.op("Max", graph.op("Sub", end, self.dims.size(held)), graph.integers(0))
        sizes = [self.dims.size(d) if a != axis else more for a, d in enumerate(past.shape)]
        # One for all states of this shape, as equal nodes are one.
        zeros = graph.op("Expand", graph.constant(0, past.dtype), graph.op("Concat", *sizes, axis=0))
        longer = graph.op("Concat", past, zeros, axis=axis)
        return Tensor(_resized(past, axis, _GROWN), past.dtype, longer)

    def _furthest(self, pos: Tensor | int) -> ir.Value:
        """The last of some slots, Int64 [1]."""
        if isinstance(pos, int):
            return self.graph.integers(pos)
        return self.graph.op("ReduceMax", self.graph.cast(pos, "i64"), self.graph.integers(0), keepdims=1)

    def carry(self, paths: Sequence[str]) -> list[Tensor]:
        """States as a loop begins: what it carries of them."""
        return [self.read(path) for path in paths]

    def shorten(self, growing: Mapping[str, tuple[int, Tensor]]) -> dict[str, Tensor]:
        """Let a loop carry the slots alone that were written before it; what the states were in whole.

        Args:
            growing: of each of these states, along which axis, and where a row's next slot is, Int32 [Batch].
        """
        whole = {path: self.read(path) for path in growing}
        for path, (axis, pos) in growing.items():
            graph, past = self.graph, whole[path]
            ends = graph.integers(0), self._furthest(pos), graph.integers(axis)
            part = graph.op("Slice", past, *ends)
            self._states[path].axis = axis
            self.assign(path, Tensor(_resized(past, axis, _HELD), past.dtype, part))
        return whole

    def restore(self, whole: Mapping[str, Tensor]) -> None:
        """After a loop, put what it carried of states into what they were."""
        for path, past in whole.items():
            state = self._states[path]
            part, axis, state.axis = self.read(path), state.axis, None
            self.dims.release(str(_HELD), str(_GROWN))
            written = self.graph.op("TensorScatter", past, part, axis=axis)
            self.assign(path, Tensor(past.shape, past.dtype, written))

    def set(self, paths: Sequence[str], values: Sequence[Tensor]) -> None:
        """States inside a loop, or after it."""
        for path, value in zip(paths, values, strict=True):
            self.assign(path, value)

    def ports(self) -> tuple[StatePort, ...]:
        """Make the outputs; what the session needs to know, of the states that the entry uses."""
        if self.inside:
            return ()
        return tuple(self._port(p, s) for p, s in self._states.items() if s.current is not None)

    def _port(self, path: str, state: _State) -> StatePort:
        output = self._output(path, state)
        name = None if state.input is None else state.input.value.name
        return StatePort(path, name, output, state.written and self._safe_in_place(state))

    def _output(self, path: str, state: _State) -> str | None:
        if not state.written or state.current is None:
            return None
        return self.graph.output(f"present.{path}", state.current).name

    def _safe_in_place(self, state: _State) -> bool:
        """The runtime orders nodes by what they need, so that an old state must have no reader but its update."""
        if state.input is None:
            return True
        uses = [(node.op_type, index) for node, index in self.graph.consumers(state.input.value)]
        return [use for use in uses if use != ("Shape", 0)] == [("TensorScatter", 0)]


def _resized(x: Tensor, axis: int, size: Dim) -> tuple[Dim, ...]:
    return (*x.shape[:axis], size, *x.shape[axis + 1 :])
