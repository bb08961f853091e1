"""Sizes while a graph runs: dims as constants where they are known, else computed from the inputs' shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import onnx_ir as ir

from nest.backends.onnx.graph import Graph, Tensor
from nest.errors import DefinitionError
from nest.ir.dim import Dim

__all__ = ["Dims"]


class _Size:
    """An Int64 [1] of the graph under the integer operators that a dim is evaluated with."""

    def __init__(self, graph: Graph, value: ir.Value) -> None:
        self.graph = graph
        self.value = value

    def _other(self, x: int | _Size) -> ir.Value:
        return x.value if isinstance(x, _Size) else self.graph.integers(x)

    def _op(self, name: str, left: ir.Value, right: ir.Value) -> _Size:
        return _Size(self.graph, self.graph.op(name, left, right))

    def __add__(self, other: int | _Size) -> _Size:
        return self if other == 0 else self._op("Add", self.value, self._other(other))

    __radd__ = __add__

    def __mul__(self, other: int | _Size) -> _Size:
        return self if other == 1 else self._op("Mul", self.value, self._other(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: int | _Size) -> _Size:
        below = self._other(other)
        # Div rounds towards zero; what is left after Mod, whose sign is the divisor's, divides exactly.
        exact = self.graph.op("Sub", self.value, self.graph.op("Mod", self.value, below))
        return self._op("Div", exact, below)

    def __rfloordiv__(self, other: int) -> _Size:
        return _Size(self.graph, self._other(other)) // self

    def __lt__(self, other: int) -> bool:
        return False  # a denominator is at least 1, which the definition's rules say


class Dims:
    """The sizes of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._symbols: dict[str, tuple[Tensor, int]] = {}
        # What was reshaped, by the id of what came of it, which is held so that no other value gets its id.
        self._reshaped: dict[int, tuple[ir.Value, ir.Value, tuple[Dim, ...]]] = {}

    def bind(self, x: Tensor) -> None:
        """Take the bare symbols among an input's axes from it."""
        for axis, dim in enumerate(x.shape):
            name = dim.as_symbol()
            if name is not None and dim.value is None:
                self._symbols.setdefault(name, (x, axis))

    def release(self, *names: str) -> None:
        """Forget symbols whose tensors are no more, as those of a loop's body."""
        for name in names:
            self._symbols.pop(name, None)

    def size(self, dim: Dim) -> ir.Value:
        """Int64 [1]."""
        if dim.value is not None:
            return self.graph.integers(dim.value)
        sizes = {name: self._of_symbol(name) for name in dim.symbols()}
        return cast(_Size, dim.evaluate(cast(Any, sizes))).value

    def _of_symbol(self, name: str) -> _Size:
        if name not in self._symbols:
            raise DefinitionError(
                f"The size '{name}' is needed in the graph, and no input of the entry has an axis of that size."
            )
        x, axis = self._symbols[name]
        return _Size(self.graph, self.graph.op("Shape", x, start=axis, end=axis + 1))

    def scalar(self, dim: Dim, dtype: str) -> ir.Value:
        """A tensor of rank 0."""
        if dim.value is not None:
            return self.graph.constant(dim.value, dtype)
        flat = self.graph.op("Squeeze", self.size(dim), self.graph.integers(0))
        return flat if dtype == "i64" else self.graph.cast(flat, dtype)

    def shape(self, dims: Sequence[Dim]) -> ir.Value:
        """Int64 [rank]."""
        values = [d.value for d in dims]
        if None not in values:
            return self.graph.constant(values, "i64")
        return self.graph.op("Concat", *map(self.size, dims), axis=0)

    def reshape(self, x: ir.Value, before: Sequence[Dim], after: Sequence[Dim]) -> ir.Value:
        """x of the shape `before` as one of the shape `after`, with sizes computed only where they must be.

        What was reshaped before is reshaped from what it was at first.
        """
        x, before = self.unshaped(x, before)
        if _same(before, after):
            return x
        if any(d.value == 0 for d in after):
            return self.graph.op("Reshape", x, self.shape(after), allowzero=1)
        made = self.graph.op("Reshape", x, self._target(before, after))
        self._reshaped[id(made)] = made, x, tuple(before)
        return made

    def unshaped(self, x: ir.Value, shape: Sequence[Dim]) -> tuple[ir.Value, Sequence[Dim]]:
        """What a value of a shape was before it was reshaped, and that shape; both as given where it was not."""
        _, source, before = self._reshaped.get(id(x), (x, x, shape))
        return source, before

    def _target(self, before: Sequence[Dim], after: Sequence[Dim]) -> ir.Value:
        """In a target, 0 keeps the axis of x at that place, and one -1 takes what is left."""
        plan: list[int | None] = []
        for axis, dim in enumerate(after):
            kept = dim.value is None and axis < len(before) and before[axis].same(dim)
            plan.append(0 if kept else dim.value)
        if plan.count(None) > 1:
            return self.shape(after)
        return self.graph.integers(*(-1 if p is None else p for p in plan))


def _same(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    return len(a) == len(b) and all(x.same(y) for x, y in zip(a, b, strict=True))
