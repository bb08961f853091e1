"""Where rules are kept, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RULES", "Array", "rule", "wide"]

Array = npt.NDArray[Any]

RULES: dict[str, Callable[..., Any]] = {}


def rule(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a rule under its function's name; an underscore at the end keeps a builtin's name free.

    Infinities and NaN follow IEEE 754 without a warning, as on every other backend, and results are arrays
    also where numpy gives scalars.
    """

    @wraps(function)
    def run(*inputs: Any, **attrs: Any) -> Any:
        with np.errstate(all="ignore"):
            result = function(*inputs, **attrs)
        return tuple(map(np.asarray, result)) if isinstance(result, tuple) else np.asarray(result)

    RULES[function.__name__.rstrip("_")] = run
    return run


def wide(x: Array) -> Array:
    """Floats in the type that sums are made in: f32 at least."""
    return x.astype(np.float32) if x.dtype == np.float16 else x
