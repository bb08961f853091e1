"""Prompts of any length through few compiled shapes: padded up to a bucket, where padding changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nest.ir.dim import Dim
from nest.ir.program import Function

__all__ = ["Padding"]

_SMALLEST = 8


class Padding:
    """How the arguments of one entry are padded.

    An axis may be padded when some argument has `Fill` of its symbol: that argument says how much of each row counts,
    so places beyond it change no result, and what they put into a cache lies in slots that are written again before
    they are seen. A symbol that a result has stays as it is.

    Args:
        function: the entry.
        generics: the values of the program's generics.
    """

    def __init__(self, function: Function, generics: Mapping[str, int]) -> None:
        self.function = function
        self.generics = dict(generics)
        shown = {s for t in function.signature.results for d in t.shape for s in d.symbols()}
        filled = [p.fill.as_symbol() for p in function.signature.parameters if p.fill is not None]
        self.symbols = tuple(s for s in filled if s in function.signature.generics and s not in shown)
        self.axes = [
            [(axis, s) for axis, d in enumerate(p.type.shape) if (s := d.as_symbol()) in self.symbols]
            for p in function.signature.parameters
        ]

    def __call__(self, arguments: Sequence[Any], session: Mapping[str, int]) -> list[Any]:
        """The arguments with their padded axes as long as a bucket."""
        if not self.symbols:
            return list(arguments)
        sizes = {s: x.shape[axis] for x, axes in zip(arguments, self.axes, strict=True) for axis, s in axes}
        targets = {s: self.bucket(s, size, session) for s, size in sizes.items()}
        return [
            _padded(x, [(axis, targets[s]) for axis, s in axes])
            for x, axes in zip(arguments, self.axes, strict=True)
        ]

    def bucket(self, symbol: str, size: int, session: Mapping[str, int]) -> int:
        """The smallest power of two that holds `size`, or the largest size that the entry's rules admit."""
        bucket = max(_SMALLEST, 1 << max(0, size - 1).bit_length())
        limits = [bucket]
        for rule in self.function.signature.rules:
            if symbol not in rule.symbols():
                continue
            if rule.left.as_symbol() != symbol or rule.op != "<=" or symbol in rule.right.symbols():
                return size
            limits.append(self._value(rule.right, session))
        return max(size, min(limits))

    def _value(self, dim: Dim, session: Mapping[str, int]) -> int:
        return dim.evaluate({**self.generics, **session})


def _padded(x: Any, targets: Sequence[tuple[int, int]]) -> Any:
    widths = [(0, 0)] * x.ndim
    for axis, target in targets:
        widths[axis] = (0, target - x.shape[axis])
    if not any(after for _, after in widths):
        return x
    return jnp.pad(x, widths) if isinstance(x, jax.Array) else np.pad(x, widths)
