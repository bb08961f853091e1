"""Prompts of any length through few compiled shapes: padded up to a bucket, where padding changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nest.backends._buckets import bucket_of
from nest.ir.program import Function

__all__ = ["Padding"]


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
        sizes = {**self.generics, **session, **self._bound(arguments)}
        targets: dict[str, int] = {}
        for symbol in self.symbols:
            targets[symbol] = sizes[symbol] = self.bucket(symbol, sizes)
        return [
            _padded(x, [(axis, targets[s]) for axis, s in axes])
            for x, axes in zip(arguments, self.axes, strict=True)
        ]

    def _bound(self, arguments: Sequence[Any]) -> dict[str, int]:
        """The entry's symbols, as the shapes of its arguments have them."""
        parameters = self.function.signature.parameters
        return {
            name: size
            for x, p in zip(arguments, parameters, strict=True)
            for d, size in zip(p.type.shape, x.shape, strict=True)
            if (name := d.as_symbol()) is not None
        }

    def bucket(self, symbol: str, sizes: Mapping[str, int]) -> int:
        """The smallest bucket that holds the size of `symbol`, or the largest size that the rules admit.

        Rules are upper bounds, so the sizes that they admit have no gaps; where one is not, nothing is padded.
        """
        size = sizes[symbol]
        low, high = size, bucket_of(size)
        if self._admitted({**sizes, symbol: high}):
            return high
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._admitted({**sizes, symbol: middle}) else (low, middle - 1)
        return low

    def _admitted(self, sizes: Mapping[str, int]) -> bool:
        return all(
            rule.check(sizes) for rule in self.function.signature.rules if rule.symbols() <= sizes.keys()
        )


def _padded(x: Any, targets: Sequence[tuple[int, int]]) -> Any:
    widths = [(0, 0)] * x.ndim
    for axis, target in targets:
        widths[axis] = (0, target - x.shape[axis])
    if not any(after for _, after in widths):
        return x
    return jnp.pad(x, widths) if isinstance(x, jax.Array) else np.pad(x, widths)
