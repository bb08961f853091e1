"""The inverse of a map: stored tensors as expressions over parameters, so that what was loaded can be saved.

Each parameter is undone from the outside in. A slice gives only a box of what it was cut from; boxes of one
operand are collected until they tile it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

from nest.errors import BindingError
from nest.ir._param_expr import Cast, Concat, Expr, Reshape, Slice, Source, TensorSpec, Transpose, Zeros
from nest.ir._param_simplify import lossless

__all__ = ["invert"]

Box = tuple[tuple[int, int], ...]
"""Start and stop along each axis."""


def invert(expressions: Mapping[str, Expr], types: Mapping[str, TensorSpec]) -> dict[str, Expr]:
    """Every stored tensor that `expressions` (in normal form) read, over the parameters.

    Raises:
        BindingError: part of a tensor is in no parameter, or a cast loses values.
    """
    solver = _Solver(types)
    for name, expression in expressions.items():
        solver.solve(expression, Source(name))
    return solver.finish()


class _Solver:
    def __init__(self, types: Mapping[str, TensorSpec]) -> None:
        self._types = types
        self._pieces: dict[Expr, dict[Box, Expr]] = defaultdict(dict)

    def solve(self, expression: Expr, value: Expr) -> None:
        """Note that `expression` has the value `value`."""
        match expression:
            case Zeros():
                return
            case Transpose(of, perm):
                self.solve(of, Transpose(value, tuple(perm.index(axis) for axis in range(len(perm)))))
            case Reshape(of, _):
                self.solve(of, Reshape(value, of.infer(self._types).shape))
            case Cast(of, dtype):
                stored = of.infer(self._types).dtype
                if not lossless(stored, dtype):
                    raise BindingError(f"{expression} cannot be undone: {dtype} does not hold every {stored}")
                self.solve(of, Cast(value, stored))
            case Concat(parts, axis):
                stops = list(accumulate((part.infer(self._types).shape[axis] for part in parts), initial=0))
                for part, (start, stop) in zip(parts, pairwise(stops), strict=True):
                    self.solve(part, Slice(value, axis, start, stop))
            case _:
                self._piece(expression, value)

    def _piece(self, expression: Expr, value: Expr) -> None:
        """A box of the operand under a chain of slices, each of another axis."""
        box = {}
        while isinstance(expression, Slice):
            box[expression.axis] = (expression.start, expression.stop)
            expression = expression.of
        shape = expression.infer(self._types).shape
        whole = tuple(box.get(axis, (0, size)) for axis, size in enumerate(shape))
        self._pieces[expression].setdefault(whole, value)

    def finish(self) -> dict[str, Expr]:
        """Assemble operands from their boxes, until only stored tensors are left."""
        # Deepest first: an operand inside another gets its last boxes when the other is undone.
        while any(not isinstance(of, Source) for of in self._pieces):
            deepest = max(self._pieces, key=_depth)
            self.solve(deepest, self._assembled(deepest, self._pieces.pop(deepest)))
        stored = {of.name: of for of in self._pieces if isinstance(of, Source)}
        return {name: self._assembled(of, self._pieces[of]) for name, of in stored.items()}

    def _assembled(self, of: Expr, boxes: Mapping[Box, Expr]) -> Expr:
        shape = of.infer(self._types).shape
        value = _tile(list(boxes.items()), shape)
        if value is None:
            listed = ", ".join(_box_text(box) for box in boxes)
            raise BindingError(f"the parameters hold {listed} of {of}{list(shape)}, not the whole of it")
        return value


def _tile(boxes: Sequence[tuple[Box, Expr]], shape: tuple[int, ...]) -> Expr | None:
    """Join boxes that fill `shape`, axis by axis; None where they leave a gap or overlap."""
    full = tuple((0, size) for size in shape)
    for box, value in boxes:
        if box == full:
            return value
    for axis, size in enumerate(shape):
        ranges = sorted({box[axis] for box, _ in boxes})
        if [start for start, _ in ranges] != [0, *(stop for _, stop in ranges[:-1])] or ranges[-1][1] != size:
            continue
        if len(ranges) == 1:
            continue
        parts = [_tile(_within(boxes, axis, part), _cut(shape, axis, part)) for part in ranges]
        if None not in parts:
            return Concat(tuple(part for part in parts if part is not None), axis)
    return None


def _within(boxes: Sequence[tuple[Box, Expr]], axis: int, part: tuple[int, int]) -> list[tuple[Box, Expr]]:
    """The boxes of one range along `axis`, measured from its start."""
    size = part[1] - part[0]
    return [((*box[:axis], (0, size), *box[axis + 1 :]), value) for box, value in boxes if box[axis] == part]


def _cut(shape: tuple[int, ...], axis: int, part: tuple[int, int]) -> tuple[int, ...]:
    return (*shape[:axis], part[1] - part[0], *shape[axis + 1 :])


def _depth(expression: Expr) -> int:
    return 1 + max((_depth(part) for part in expression.parts), default=0)


def _box_text(box: Box) -> str:
    return f"[{', '.join(f'{start}:{stop}' for start, stop in box)}]"
