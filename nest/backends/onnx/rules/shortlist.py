"""The largest of a head's products by a short list: see `nest.ir.passes.shortlist`.

Rows are weighed by 8 bits, the likeliest again in full. How far off a weighed product may be follows from the lengths
of what was rounded off, by Cauchy and Schwarz: of a row w kept as w' and an input x taken as x' = x - f,

    |w.x - w'.x'| = |(w - w').x + w'.f| <= |w - w'| |x| + |w'| |f|.

Where the largest full product is not above all that may hide behind the list, or anything is no number, every product
is made; so it is of a head that is no longer than the list. Rows go one by one: of one row alone, the runtime's
product of bytes reads the matrix as it lies, and needs no copy of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import onnx_ir as ir

from nest.backends.onnx.graph import Tensor
from nest.backends.onnx.quantized import OFFSET, STEPS
from nest.backends.onnx.rules._registry import Lowering, rule
from nest.backends.onnx.rules.contraction import rows_of
from nest.backends.onnx.rules.reduction import largest_of
from nest.ir.dim import Dim

__all__: list[str] = []

_ONE = Dim.constant(1)
_DTYPES = ("i32", "f32", "f32")
"""Of the place, the largest and the sum."""

LENGTH = 32
"""How many products are made in full."""
_SLACK = 1e-5
"""Of the product of lengths, for what sums in f32 round off."""


@rule
def peak_of_product(
    low: Lowering,
    x: Tensor,
    head: Tensor,
    values: Tensor,
    columns: Tensor,
    scales: Tensor,
    offsets: Tensor,
    lengths: Tensor,
    bias: Tensor,
) -> tuple[ir.Value, ...]:
    rows, width = rows_of(x), x.shape[-1]
    flat = Tensor((rows, width), x.dtype, low.dims.reshape(x.value, x.shape, (rows, width)))
    parts = (values, columns, scales, offsets, lengths)
    if int(head.shape[0]) <= LENGTH:
        full = largest_of(low, _products(low, flat, head), bias)
        return tuple(low.dims.reshape(v, (rows,), low.out.shape) for v in full)

    def of_row(index: ir.Value) -> list[Tensor]:
        """What `peak` gives of one row, each [1]."""
        one = Tensor((_ONE, width), x.dtype, low.op("Gather", flat, index, axis=0))
        own = bias
        if bias.rank == 2:
            own = Tensor((_ONE, bias.shape[1]), bias.dtype, low.op("Gather", bias, index, axis=0))
        found = _ShortList(low, one, head, parts, own)

        def every() -> list[Tensor]:
            return _typed(_ONE, largest_of(low, _products(low, one, head), own))

        return _typed(_ONE, low.graph.branch(found.sure, lambda: _typed(_ONE, found.result), every))

    return tuple(low.dims.reshape(v, (rows,), low.out.shape) for v in _by_rows(low, rows, of_row))


def _by_rows(low: Lowering, rows: Dim, of_row: Callable[[ir.Value], list[Tensor]]) -> tuple[ir.Value, ...]:
    """What a function gives of each row, each [Rows]."""
    size = low.dims.size(rows)
    empty = [low.op("Expand", low.constant(0, dtype), size) for dtype in _DTYPES]
    start = [Tensor((_ONE,), "i64", low.integers(0)), *_typed(rows, tuple(empty))]
    index, *made = low.graph.begin(start)
    found = of_row(index.value)
    kept = [low.op("ScatterElements", x, index, one, axis=0) for x, one in zip(made, found, strict=True)]
    going = low.op("Add", index, low.integers(1))
    body = low.graph.end(
        low.constant(True, "bool"), [Tensor((_ONE,), "i64", going), *_typed(rows, tuple(kept))]
    )
    return low.graph.loop(body, low.dims.scalar(rows, "i64"), low.constant(True, "bool"), start)[1:]


def _typed(rows: Dim, found: tuple[ir.Value, ...]) -> list[Tensor]:
    return [Tensor((rows,), dtype, v) for dtype, v in zip(_DTYPES, found, strict=True)]


def _products(low: Lowering, x: Tensor, head: Tensor) -> Tensor:
    """All of them, [Rows, Out]."""
    turned = low.op("MatMul", head, low.op("Transpose", x, perm=(1, 0)))
    return Tensor((x.shape[0], head.shape[0]), x.dtype, low.op("Transpose", turned, perm=(1, 0)))


@dataclass(frozen=True)
class _ShortList:
    """The likeliest of the products of one row x [1, In], and whether the largest is among them.

    Attributes:
        parts: of the head, as `nest.ir.parammap.Quantized` names them: values, columns, scales, offsets, lengths.
    """

    low: Lowering
    x: Tensor
    head: Tensor
    parts: tuple[Tensor, ...]
    bias: Tensor

    @cached_property
    def even(self) -> ir.Value:
        """The input for columns that are made alike."""
        return self.low.op("Mul", self.x, self.parts[1])

    @cached_property
    def step(self) -> ir.Value:
        """What one step of the input's 8 bits is, [1, 1]."""
        low = self.low
        largest = low.reduce("ReduceMax", low.op("Abs", self.even), [1], keepdims=True)
        return low.op("Max", low.op("Div", largest, low.constant(STEPS, "f32")), low.constant(1e-30, "f32"))

    @cached_property
    def steps(self) -> tuple[ir.Value, ir.Value]:
        """The input in steps, and as it is taken: in whole ones, each [1, In]."""
        steps = self.low.op("Div", self.even, self.step)
        return steps, self.low.op("Round", steps)

    @cached_property
    def near(self) -> ir.Value:
        """Every product as weighed, with the bias, [1, Out]."""
        low, (values, _, scales, offsets, _) = self.low, self.parts
        raised = low.graph.cast(low.op("Add", self.steps[1], low.constant(OFFSET, "f32")), "u8")
        sums = low.graph.cast(low.op("MatMulInteger", raised, values), "f32")
        weighed = low.op("Sub", low.op("Mul", sums, scales), offsets)
        return low.op("Add", low.op("Mul", weighed, self.step), self.bias)

    @cached_property
    def _listed(self) -> tuple[ir.Value, ir.Value]:
        """What each of the likeliest may be at most, [1, LENGTH + 1], and their places."""
        low, (steps, taken) = self.low, self.steps
        # Of steps, since squares of what is very small or large are 0 or infinite.
        length, rounded = (
            low.op("Mul", low.reduce("ReduceL2", x, [1], keepdims=True), self.step)
            for x in (steps, low.op("Sub", steps, taken))
        )
        slack = low.op("Mul", length, low.constant(_SLACK, "f32"))
        both = low.op("Concat", low.op("Add", length, slack), low.op("Add", rounded, slack), axis=1)
        most = low.op("Add", self.near, low.op("MatMul", both, self.parts[4]))
        found = low.graph.ops("TopK", 2, most, low.integers(LENGTH + 1), axis=-1, largest=1, sorted=1)
        return found[0], found[1]

    @cached_property
    def places(self) -> ir.Value:
        """Of the list, [1, LENGTH]."""
        low = self.low
        return low.op("Slice", self._listed[1], low.integers(0), low.integers(LENGTH), low.integers(1))

    @cached_property
    def full(self) -> ir.Value:
        """The list's products in full, [1, LENGTH]."""
        low = self.low
        rows = low.op("Gather", self.head, self.places, axis=0)
        products = low.op("MatMul", rows, low.unsqueeze(self.x.value, 2))
        of_list = ("Gather", 0) if self.bias.rank == 1 else ("GatherElements", 1)
        added = low.op(of_list[0], self.bias, self.places, axis=of_list[1])
        return low.op("Add", low.op("Squeeze", products, low.integers(2)), added)

    @cached_property
    def largest(self) -> ir.Value:
        """The largest of them, [1, 1]."""
        return self.low.reduce("ReduceMax", self.full, [1], keepdims=True)

    @cached_property
    def mass(self) -> ir.Value:
        """sum(exp(y - largest)), of the list in full and of the rest as weighed, [1]; NaN where any is no number."""
        low = self.low
        # Put in place, not added to the sum of all as weighed: exp of one that is far too large would swallow the rest.
        best = low.op("ScatterElements", self.near, self.places, self.full, axis=1)
        return low.reduce("ReduceSum", low.op("Exp", low.op("Sub", best, self.largest)), [1], keepdims=False)

    @property
    def sure(self) -> ir.Value:
        """Whether nothing behind the list may be as large."""
        low = self.low
        ends = low.integers(LENGTH), low.integers(LENGTH + 1), low.integers(1)
        above = low.op("Greater", self.largest, low.op("Slice", self._listed[0], *ends))
        # Where there is a NaN, the order of the list means nothing.
        numbers = low.op("Less", self.mass, low.constant(float("inf"), "f32"))
        return low.op("And", low.op("Squeeze", above), low.op("Squeeze", numbers))

    @property
    def result(self) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The first place of the largest, the largest, and the mass, each [1]."""
        low = self.low
        here = low.op(
            "Where", low.op("Equal", self.full, self.largest), self.places, low.constant(2**31 - 1, "i64")
        )
        place = low.graph.cast(low.reduce("ReduceMin", here, [1], keepdims=False), "i32")
        return place, low.op("Squeeze", self.largest, low.integers(1)), self.mass
