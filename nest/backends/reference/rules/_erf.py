"""The error function in double precision, which numpy lacks.

Rational approximations on three intervals: W. J. Cody, "Rational Chebyshev approximations for the error
function", Mathematics of Computation 23 (1969), 631-637.
"""

from __future__ import annotations

import numpy as np

from nest.backends.reference.rules._registry import Array

__all__ = ["erf"]

# |x| <= 0.46875: erf(x) = x * P(x^2) / Q(x^2). Highest power first.
_NEAR_P = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
           3.20937758913846947e3)  # fmt: skip
_NEAR_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
# 0.46875 < x <= 4: erfc(x) = exp(-x^2) * P(x) / Q(x).
_MIDDLE_P = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
             2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
             1.23033935479799725e3)  # fmt: skip
_MIDDLE_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
             3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
             1.23033935480374942e3)  # fmt: skip
# 4 < x: erfc(x) = exp(-x^2) / x * (1/sqrt(pi) - P(1/x^2) / Q(1/x^2) / x^2).
_FAR_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
          1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_FAR_Q = (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
          2.33520497626869185e-3)  # fmt: skip
_ONE_OVER_SQRT_PI = 5.6418958354775628695e-1
_SATURATED = 6.0  # erfc(6) is 2e-17: erf is 1 in double precision from here on.


def _ratio(p: tuple[float, ...], q: tuple[float, ...], x: Array) -> Array:
    ratio: Array = np.polyval(p, x) / np.polyval(q, x)
    return ratio


def _complement(x: Array) -> Array:
    """erfc(x) for 0.46875 < x."""
    y = np.clip(x, 0.46875, _SATURATED)
    inverse = 1.0 / (y * y)
    far = (_ONE_OVER_SQRT_PI - inverse * _ratio(_FAR_P, _FAR_Q, inverse)) / y
    # exp(-y^2) in two factors: the first exponent is exact, so that rounding y*y does not spoil the result.
    head = np.floor(y * 16.0) / 16.0
    decay = np.exp(-head * head) * np.exp(-(y - head) * (y + head))
    tail: Array = decay * np.where(y <= 4.0, _ratio(_MIDDLE_P, _MIDDLE_Q, y), far)
    return tail


def erf(x: Array) -> Array:
    """erf of each element, within 2e-16 of the exact value in double precision; in x's own type."""
    double = np.asarray(x, dtype=np.float64)
    size = np.abs(double)
    small = np.minimum(size, 0.46875)
    near = double * _ratio(_NEAR_P, _NEAR_Q, small * small)
    beyond = np.copysign((0.5 - _complement(size)) + 0.5, double)
    result: Array = np.where(size <= 0.46875, near, beyond)
    return np.where(np.isnan(double), double, result).astype(x.dtype)
