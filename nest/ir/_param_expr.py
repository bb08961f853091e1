"""Expressions over stored tensors: the nodes, what shape and dtype each yields, and how each prints.

An expression says how one parameter is made of named tensors. It holds no data and imports no array library;
`nest.weights` evaluates it, so that slices, transposes and reshapes stay views of a mapped file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from nest.errors import BindingError

__all__ = [
    "STORED_DTYPES",
    "Cast",
    "Concat",
    "Expr",
    "Quantized",
    "Reshape",
    "Slice",
    "Source",
    "TensorSpec",
    "Transpose",
    "Zeros",
]

STORED_DTYPES: Mapping[str, int] = {
    "bool": 1, "u8": 1, "i8": 1, "f8_e4m3": 1, "f8_e5m2": 1,
    "u16": 2, "i16": 2, "f16": 2, "bf16": 2,
    "u32": 4, "i32": 4, "f32": 4,
    "u64": 8, "i64": 8, "f64": 8,
}  # fmt: skip
"""Element types of stored tensors (more than definitions compute in), with their size in bytes."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Shape and dtype of a stored tensor."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        """How many bytes its values take."""
        return STORED_DTYPES[self.dtype] * math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


Types = Mapping[str, TensorSpec]


class Expr:
    """A tensor computed from stored tensors. Nodes are immutable and compare by structure."""

    __slots__ = ()

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The expressions that this one is computed from."""
        return ()

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        """This node over other operands."""
        return self

    def infer(self, types: Types) -> TensorSpec:
        """Shape and dtype of the result, given those of the stored tensors.

        Raises:
            BindingError: a source is not in `types`, or an operation does not fit its operand.
        """
        raise NotImplementedError

    def sources(self) -> Iterator[str]:
        """Names of the stored tensors that it reads, in order, repeats included."""
        for part in self.parts:
            yield from part.sources()

    def map(self, change: Callable[[Expr], Expr]) -> Expr:
        """Rebuild bottom-up, with `change` applied to every node."""
        return change(self.with_parts(tuple(part.map(change) for part in self.parts)))


@dataclass(frozen=True, slots=True)
class Source(Expr):
    """The stored tensor `name`, as it is."""

    name: str

    def infer(self, types: Types) -> TensorSpec:
        if self.name not in types:
            raise BindingError(f"no tensor '{self.name}'")
        return types[self.name]

    def sources(self) -> Iterator[str]:
        yield self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class _Unary(Expr):
    of: Expr

    @property
    def parts(self) -> tuple[Expr, ...]:
        return (self.of,)

    def _refuse(self, fault: str, operand: TensorSpec) -> BindingError:
        return BindingError(f"{self}: {fault}; the operand is {operand}")


@dataclass(frozen=True, slots=True)
class Slice(_Unary):
    """Elements `start` to `stop` (exclusive, both from the front) along `axis`."""

    axis: int
    start: int
    stop: int

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        return Slice(parts[0], self.axis, self.start, self.stop)

    def infer(self, types: Types) -> TensorSpec:
        operand = self.of.infer(types)
        shape = operand.shape
        if not 0 <= self.axis < len(shape):
            raise self._refuse(f"there is no axis {self.axis}", operand)
        if not 0 <= self.start <= self.stop <= shape[self.axis]:
            raise self._refuse(f"{self.start}:{self.stop} is outside axis {self.axis}", operand)
        size = self.stop - self.start
        return TensorSpec((*shape[: self.axis], size, *shape[self.axis + 1 :]), operand.dtype)

    def __str__(self) -> str:
        return f"{self.of}[{':, ' * self.axis}{self.start}:{self.stop}]"


@dataclass(frozen=True, slots=True)
class Transpose(_Unary):
    """Axes reordered: axis `i` of the result is axis `perm[i]` of the operand."""

    perm: tuple[int, ...]

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        return Transpose(parts[0], self.perm)

    def infer(self, types: Types) -> TensorSpec:
        operand = self.of.infer(types)
        if sorted(self.perm) != list(range(len(operand.shape))):
            raise self._refuse(f"{self.perm} does not name each of its axes once", operand)
        return TensorSpec(tuple(operand.shape[axis] for axis in self.perm), operand.dtype)

    def __str__(self) -> str:
        return f"{self.of}.transpose({', '.join(map(str, self.perm))})"


@dataclass(frozen=True, slots=True)
class Reshape(_Unary):
    """The same elements in row-major order under another shape."""

    shape: tuple[int, ...]

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        return Reshape(parts[0], self.shape)

    def infer(self, types: Types) -> TensorSpec:
        operand = self.of.infer(types)
        if min(self.shape, default=0) < 0 or math.prod(self.shape) != math.prod(operand.shape):
            raise self._refuse("the shapes hold different numbers of elements", operand)
        return TensorSpec(self.shape, operand.dtype)

    def __str__(self) -> str:
        return f"{self.of}.reshape({', '.join(map(str, self.shape))})"


@dataclass(frozen=True, slots=True)
class Cast(_Unary):
    """The same values in another dtype, rounded to nearest even where it is narrower."""

    dtype: str

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        return Cast(parts[0], self.dtype)

    def infer(self, types: Types) -> TensorSpec:
        operand = self.of.infer(types)
        if self.dtype not in STORED_DTYPES:
            raise self._refuse(f"unknown dtype '{self.dtype}' (known: {', '.join(STORED_DTYPES)})", operand)
        return TensorSpec(operand.shape, self.dtype)

    def __str__(self) -> str:
        return f"{self.of}.cast({self.dtype})"


@dataclass(frozen=True, slots=True)
class Concat(Expr):
    """Tensors joined along `axis`, in order."""

    of: tuple[Expr, ...]
    axis: int

    @property
    def parts(self) -> tuple[Expr, ...]:
        return self.of

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        return Concat(parts, self.axis)

    def infer(self, types: Types) -> TensorSpec:
        specs = [part.infer(types) for part in self.of]
        if not specs:
            raise BindingError(f"{self}: there is nothing to join")
        first = specs[0]
        if not 0 <= self.axis < len(first.shape):
            raise BindingError(f"{self}: there is no axis {self.axis}; the first part is {first}")
        for part, spec in zip(self.of, specs, strict=True):
            if spec.dtype != first.dtype or _without(spec, self.axis) != _without(first, self.axis):
                raise BindingError(f"{self}: the parts differ: {self.of[0]} is {first}, {part} is {spec}")
        total = sum(spec.shape[self.axis] for spec in specs)
        return TensorSpec((*first.shape[: self.axis], total, *first.shape[self.axis + 1 :]), first.dtype)

    def __str__(self) -> str:
        return f"concat({', '.join(map(str, self.of))}, axis={self.axis})"


@dataclass(frozen=True, slots=True)
class Quantized(_Unary):
    """A part of what a matrix W [Out, In] is in 8 bits: W[o, i] is about values[i, o] * scales[o] * columns[i].

    Attributes:
        part: `"values"`, i8 [In, Out]; `"columns"`, f32 [In], so that no column is much larger than another;
            `"scales"`, f32 [Out]; `"offsets"`, f32 [Out]: the sum of a row's values times 64 and its scale;
            `"lengths"`, f32 [2, Out]: the length of what a row loses, and of what is kept of it, over `columns`.
    """

    part: str

    def with_parts(self, parts: tuple[Expr, ...]) -> Expr:
        return Quantized(parts[0], self.part)

    def infer(self, types: Types) -> TensorSpec:
        operand = self.of.infer(types)
        if len(operand.shape) != 2:
            raise self._refuse("it takes a matrix", operand)
        out, width = operand.shape
        specs = {
            "values": TensorSpec((width, out), "i8"),
            "columns": TensorSpec((width,), "f32"),
            "scales": TensorSpec((out,), "f32"),
            "offsets": TensorSpec((out,), "f32"),
            "lengths": TensorSpec((2, out), "f32"),
        }
        if self.part not in specs:
            raise self._refuse(f"there is no part '{self.part}'; there are {', '.join(specs)}", operand)
        return specs[self.part]

    def __str__(self) -> str:
        return f"{self.of}.quantized({self.part})"


@dataclass(frozen=True, slots=True)
class Zeros(Expr):
    """Zeros that no file stores, such as the absent key bias of a packed projection."""

    shape: tuple[int, ...]
    dtype: str

    def infer(self, types: Types) -> TensorSpec:
        if min(self.shape, default=0) < 0 or self.dtype not in STORED_DTYPES:
            raise BindingError(f"{self}: not a shape and a dtype (known: {', '.join(STORED_DTYPES)})")
        return TensorSpec(self.shape, self.dtype)

    def __str__(self) -> str:
        return f"zeros({', '.join(map(str, self.shape))}, {self.dtype})"


def _without(spec: TensorSpec, axis: int) -> tuple[int, ...]:
    return (*spec.shape[:axis], -1, *spec.shape[axis + 1 :]) if axis < len(spec.shape) else spec.shape
