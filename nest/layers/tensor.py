"""Tensor: what methods compute with while they are traced."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Never

from nest._suggest import aside
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Path, Value, path_text
from nest.ir.types import TensorType
from nest.layers._trace import current, fail

__all__ = ["Scalar", "Tensor", "as_tensor"]

Scalar = int | float | bool | Dim

# What PyTorch and numpy call attributes and methods, and what does it here.
_ELSEWHERE = {
    "T": "write x.permute(1, 0)",
    "transpose": "write x.permute(...) with all axes",
    "view": "write x.reshape(...), with every axis spelled",
    "flatten": "write x.reshape(...), with every axis spelled",
    "squeeze": "write x.reshape(...) without the axis",
    "unsqueeze": "write x.reshape(...) with a 1",
    "size": "unpack x.shape",
    "dim": "x.rank is the number of axes",
    "ndim": "x.rank is the number of axes",
    "to": "write x.cast(dtype)",
    "type": "write x.cast(dtype)",
    "float": "write x.cast('f32')",
    "half": "write x.cast('f16')",
    "astype": "write x.cast(dtype)",
    "expand": "write broadcast_to(x, shape)",
    "contiguous": "leave it out, layouts are the backend's business",
    "numpy": "a symbolic tensor has no data",
    "item": "a symbolic tensor has no data",
}


class Tensor:
    """A symbolic tensor: a type, and the node that makes it. It has no data.

    Arithmetic, comparison and `~`, `&`, `|` work elementwise with broadcasting; everything else is a function of
    `nest.layers.ops`, the commonest of which are methods too.
    """

    __slots__ = ("_state", "_value")

    def __init__(self, value: Value, state: tuple[Path, int] | None = None) -> None:
        self._value = value
        # Of a view of a state: which one, and the write it was taken after.
        self._state = state

    @property
    def type(self) -> TensorType:
        return self._value.type

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The symbolic shape; unpack it to name axes, as in `B, S = tokens.shape`."""
        return self._value.type.shape

    @property
    def dtype(self) -> DType:
        return self._value.type.dtype

    @property
    def rank(self) -> int:
        return self._value.type.rank

    def value(self) -> Value:
        """The value to compute with.

        Raises:
            DefinitionError: this is a view of a state that has been written since.
        """
        if self._state is not None:
            path, version = self._state
            if current().versions.get(path, 0) != version:
                raise fail(
                    f"A view of the state 'self.{path_text(path)}' is used after the state was written again.",
                    ("view", self.type),
                    hint="Use what the last update returned, or read() the state again.",
                )
        return self._value

    # -- methods that are ops ------------------------------------------------------------------------------

    def reshape(self, *shape: int | Dim) -> Tensor:
        """See `nest.layers.reshape`."""
        return _apply("reshape", self, shape)

    def permute(self, *axes: int) -> Tensor:
        """See `nest.layers.permute`."""
        return _apply("permute", self, axes)

    def cast(self, dtype: DType | str) -> Tensor:
        """See `nest.layers.cast`."""
        return _apply("cast", self, dtype)

    # -- operators -----------------------------------------------------------------------------------------

    def __add__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("add", self, other)

    def __radd__(self, other: Scalar) -> Tensor:
        return _apply("add", other, self)

    def __sub__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("sub", self, other)

    def __rsub__(self, other: Scalar) -> Tensor:
        return _apply("sub", other, self)

    def __mul__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("mul", self, other)

    def __rmul__(self, other: Scalar) -> Tensor:
        return _apply("mul", other, self)

    def __truediv__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("div", self, other)

    def __rtruediv__(self, other: Scalar) -> Tensor:
        return _apply("div", other, self)

    def __floordiv__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("floordiv", self, other)

    def __mod__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("mod", self, other)

    def __neg__(self) -> Tensor:
        return _apply("neg", self)

    def __lt__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("less", self, other)

    def __le__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("less_equal", self, other)

    def __gt__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("less", other, self)

    def __ge__(self, other: Tensor | Scalar) -> Tensor:
        return _apply("less_equal", other, self)

    def __eq__(self, other: Tensor | Scalar) -> Tensor:  # type: ignore[override]
        return _apply("equal", self, other)

    def __ne__(self, other: Tensor | Scalar) -> Tensor:  # type: ignore[override]
        return _apply("logical_not", _apply("equal", self, other))

    def __invert__(self) -> Tensor:
        return _apply("logical_not", self)

    def __and__(self, other: Tensor) -> Tensor:
        return _apply("logical_and", self, other)

    def __or__(self, other: Tensor) -> Tensor:
        return _apply("logical_or", self, other)

    __hash__ = None  # type: ignore[assignment]

    # -- what people reach for and must not have -----------------------------------------------------------

    def __bool__(self) -> Never:
        raise fail(
            "A tensor cannot decide a branch: a method is traced once, without data.",
            ("tensor", self.type),
            hint="Use where(condition, a, b), or a static field of the block.",
        )

    def __matmul__(self, other: object) -> Never:
        raise fail(
            "Tensors have no '@'.",
            ("tensor", self.type),
            hint="Use linear(x, weight) for x @ weight.T, or einsum with the axes spelled, as in 'bqd,bkd->bqk'.",
        )

    __rmatmul__ = __matmul__

    def __iter__(self) -> Never:
        raise fail(
            "A tensor cannot be iterated or unpacked.",
            ("tensor", self.type),
            hint="Use slice or reshape on an axis.",
        )

    def __getitem__(self, item: Any) -> Never:
        raise fail(
            f"Tensors are not indexed with [{item!r}].",
            ("tensor", self.type),
            hint="Use slice(x, axis, start, stop), take(x, indices, axis) or take_along(x, indices, axis).",
        )

    def __array__(self, *args: Any, **kwargs: Any) -> Never:
        raise fail(
            "A symbolic tensor has no data and cannot become a numpy array.",
            ("tensor", self.type),
            hint="Use constant(...) to bring numbers in, and ops to compute.",
        )

    __array_ufunc__ = None

    def __getattr__(self, name: str) -> Never:
        if name.startswith("__"):
            raise AttributeError(name)
        known = [n for n in dir(Tensor) if not n.startswith("_")]
        if name in _ops().__all__:
            raise fail(
                f"Tensors have no method '{name}': it is a function, {name}(x).", ("tensor", self.type)
            )
        if name in _ELSEWHERE:
            raise fail(f"Tensors have no attribute '{name}': {_ELSEWHERE[name]}.", ("tensor", self.type))
        raise fail(
            f"Tensors have no attribute '{name}'{aside(name, [*known, *_ops().__all__])}.",
            ("tensor", self.type),
            hint="Ops are functions of nest.layers, such as softmax(x, axis=-1).",
        )

    def __repr__(self) -> str:
        return f"<Tensor {self.type}>"


def as_tensor(value: Any, op: str, argument: str) -> Tensor:
    """The tensor given for an op's argument; a state stands for its whole content.

    Raises:
        DefinitionError: it is something else.
    """
    if isinstance(value, Tensor):
        return value
    read = getattr(value, "_read_state", None)
    if read is not None:
        tensor: Tensor = read()
        return tensor
    module = type(value).__module__.partition(".")[0]
    kind = f"{module}.{type(value).__name__}" if module != "builtins" else type(value).__name__
    hint = "Bring numbers in with constant(...)." if module == "numpy" else ""
    raise fail(f"{op} takes a tensor for '{argument}', and got {kind}.", hint=hint)


def _ops() -> ModuleType:
    # The ops build tensors, so they import this module; it asks for them when one is applied.
    from nest.layers import ops

    return ops


def _apply(op: str, *args: Any) -> Tensor:
    result: Tensor = getattr(_ops(), op)(*args)
    return result
