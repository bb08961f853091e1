"""Normal form of expressions: casts outermost, then axes, then joins, with slices at the stored tensors.

Composed maps shrink before any file is read: slices of slices merge, a slice of a concat reads only the parts
that it touches, and adjacent slices of one tensor join again. Each function takes operands in normal form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

from nest.ir._param_expr import Cast, Concat, Expr, Reshape, Slice, TensorSpec, Transpose, Zeros

__all__ = ["Simplifier", "lossless"]

_FLOATS = {
    "f64": (11, 52),
    "f32": (8, 23),
    "f16": (5, 10),
    "bf16": (8, 7),
    "f8_e4m3": (4, 3),
    "f8_e5m2": (5, 2),
}
"""Exponent and mantissa bits."""


def lossless(narrow: str, wide: str) -> bool:
    """Whether every value of the dtype `narrow` is a value of `wide`."""
    if narrow == wide or narrow == "bool":
        return True
    if wide in _FLOATS and narrow in _FLOATS:
        return all(few <= many for few, many in zip(_FLOATS[narrow], _FLOATS[wide], strict=True))
    if narrow in _FLOATS or wide == "bool":
        return False
    bits = int(narrow[1:]) - (narrow[0] == "i")
    if wide in _FLOATS:
        return bits <= _FLOATS[wide][1] + 1
    return bits <= int(wide[1:]) - (wide[0] == "i") and not (narrow[0] == "i" and wide[0] == "u")


class Simplifier:
    """Brings expressions over tensors of the given types to normal form."""

    def __init__(self, types: Mapping[str, TensorSpec]) -> None:
        self._types = types

    def simplify(self, expression: Expr) -> Expr:
        """The normal form of `expression`: the same tensor from no more work.

        Raises:
            BindingError: the expression does not fit the types.
        """
        expression.infer(self._types)
        return expression.map(self._node)

    def _node(self, node: Expr) -> Expr:
        match node:
            case Slice(of, axis, start, stop):
                return self.slice(of, axis, start, stop)
            case Transpose(of, perm):
                return self.transpose(of, perm)
            case Reshape(of, shape):
                return self.reshape(of, shape)
            case Cast(of, dtype):
                return self.cast(of, dtype)
            case Concat(parts, axis):
                return self.concat(list(parts), axis)
        return node

    def slice(self, of: Expr, axis: int, start: int, stop: int) -> Expr:
        """Slice, moved inwards as far as it goes."""
        spec = of.infer(self._types)
        if (start, stop) == (0, spec.shape[axis]):
            return of
        if start == stop and math.prod(spec.shape) > 0:
            return Zeros((*spec.shape[:axis], 0, *spec.shape[axis + 1 :]), spec.dtype)
        match of:
            case Zeros():
                return Zeros((*spec.shape[:axis], stop - start, *spec.shape[axis + 1 :]), spec.dtype)
            case Cast(inner, dtype):
                return self.cast(self.slice(inner, axis, start, stop), dtype)
            case Transpose(inner, perm):
                return self.transpose(self.slice(inner, perm[axis], start, stop), perm)
            case Slice(inner, other, first, _) if other == axis:
                return self.slice(inner, axis, first + start, first + stop)
            case Slice(inner, other, first, last) if other > axis:
                return Slice(self.slice(inner, axis, start, stop), other, first, last)
            case Concat(parts, along):
                return self._slice_concat(parts, along, axis, start, stop)
            case Reshape(inner, shape):
                return self._slice_reshape(inner, shape, axis, start, stop)
        return Slice(of, axis, start, stop)

    def _slice_concat(self, parts: tuple[Expr, ...], along: int, axis: int, start: int, stop: int) -> Expr:
        if axis != along:
            return self.concat([self.slice(part, axis, start, stop) for part in parts], along)
        sizes = [part.infer(self._types).shape[axis] for part in parts]
        kept = []
        for part, size, end in zip(parts, sizes, accumulate(sizes), strict=True):
            low, high = max(start, end - size), min(stop, end)
            if low < high:
                kept.append(self.slice(part, axis, low - end + size, high - end + size))
        return self.concat(kept or [self.slice(parts[0], axis, 0, 0)], axis)

    def _slice_reshape(self, of: Expr, shape: tuple[int, ...], axis: int, start: int, stop: int) -> Expr:
        """Slice the operand of a reshape where that cuts whole runs of one of its axes."""
        result = (*shape[:axis], stop - start, *shape[axis + 1 :])
        before, unit = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        stored = of.infer(self._types).shape
        for candidate in range(len(stored)):
            run = math.prod(stored[candidate + 1 :])
            if math.prod(stored[:candidate]) != before or math.prod(stored) == 0:
                continue
            if start * unit % run == 0 and stop * unit % run == 0:
                inner = self.slice(of, candidate, start * unit // run, stop * unit // run)
                return self.reshape(inner, result)
        return Slice(Reshape(of, shape), axis, start, stop)

    def transpose(self, of: Expr, perm: tuple[int, ...]) -> Expr:
        """Transpose; nothing where the order stays."""
        if perm == tuple(range(len(perm))):
            return of
        match of:
            case Transpose(inner, first):
                return self.transpose(inner, tuple(first[axis] for axis in perm))
            case Cast(inner, dtype):
                return self.cast(self.transpose(inner, perm), dtype)
            case Zeros(shape, dtype):
                return Zeros(tuple(shape[axis] for axis in perm), dtype)
        return Transpose(of, perm)

    def reshape(self, of: Expr, shape: tuple[int, ...]) -> Expr:
        """Reshape; nothing where the shape stays."""
        if of.infer(self._types).shape == shape:
            return of
        match of:
            case Reshape(inner, _):
                return self.reshape(inner, shape)
            case Cast(inner, dtype):
                return self.cast(self.reshape(inner, shape), dtype)
            case Zeros(_, dtype):
                return Zeros(shape, dtype)
        return Reshape(of, shape)

    def cast(self, of: Expr, dtype: str) -> Expr:
        """Cast; nothing where the dtype stays. A cast that widened before is passed over."""
        if of.infer(self._types).dtype == dtype:
            return of
        match of:
            case Cast(inner, middle) if lossless(inner.infer(self._types).dtype, middle):
                return self.cast(inner, dtype)
            case Zeros(shape, _):
                return Zeros(shape, dtype)
        return Cast(of, dtype)

    def concat(self, parts: list[Expr], axis: int) -> Expr:
        """Concat, with what the parts share moved outwards and neighbours joined."""
        flat: list[Expr] = []
        for part in parts:
            for piece in part.of if isinstance(part, Concat) and part.axis == axis else (part,):
                self._append(flat, piece, axis)
        if len(flat) == 1:
            return flat[0]
        first = flat[0]
        if isinstance(first, Cast) and all(self._casts_alike(part, first) for part in flat):
            return self.cast(self.concat([_operand(part) for part in flat], axis), first.dtype)
        perms = {part.perm if isinstance(part, Transpose) else None for part in flat}
        if isinstance(first, Transpose) and len(perms) == 1:
            joined = self.concat([_operand(part) for part in flat], first.perm[axis])
            return self.transpose(joined, first.perm)
        return Concat(tuple(flat), axis)

    def _casts_alike(self, part: Expr, first: Cast) -> bool:
        if not isinstance(part, Cast) or part.dtype != first.dtype:
            return False
        return part.of.infer(self._types).dtype == first.of.infer(self._types).dtype

    def _append(self, flat: list[Expr], piece: Expr, axis: int) -> None:
        """Add a piece, joined to the one before where both are neighbours in one tensor."""
        if piece.infer(self._types).shape[axis] == 0 and flat:
            return
        if flat and (joined := self._joined(flat[-1], piece, axis)) is not None:
            flat[-1] = joined
        elif flat and flat[-1].infer(self._types).shape[axis] == 0:
            flat[-1] = piece
        else:
            flat.append(piece)

    def _joined(self, left: Expr, right: Expr, axis: int) -> Expr | None:
        match left, right:
            case Slice(one, a, start, middle), Slice(other, b, again, stop) if (
                a == b == axis and one == other and middle == again
            ):
                return self.slice(one, axis, start, stop)
            case Zeros(one_shape, dtype), Zeros(other_shape, _):
                size = one_shape[axis] + other_shape[axis]
                return Zeros((*one_shape[:axis], size, *one_shape[axis + 1 :]), dtype)
        return None


def _operand(part: Expr) -> Expr:
    return part.parts[0]
