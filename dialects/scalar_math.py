"""NumPy meaning of the scalar operators that NumPy itself lacks or leaves undefined.

Each function takes arrays of one compute dtype (bool, i32, i64, f32, f64) and returns an array of that dtype; they
broadcast as NumPy does. Floating-point exceptions are silent: the caller holds `np.errstate(all="ignore")`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation 23 (1969) 631-637,
# with the coefficients of his netlib routine CALERF (specfun). Highest power first, as np.polyval wants them.
_CENTRE_P = (
    1.85777706184603153e-1,
    3.16112374387056560e0,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_CENTRE_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_P = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e0,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_MIDDLE_Q = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_TAIL_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_TAIL_Q = (
    1.0,
    2.56852019228982242e0,
    1.87295284992346725e0,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_CENTRE_END = 0.46875
_MIDDLE_END = 4.0
# erf rounds to ±1 in float64 beyond this; clamping keeps the tail formula finite.
_SATURATED = 6.0


def _ratio(p: tuple[float, ...], q: tuple[float, ...], x: Array) -> Array:
    return np.polyval(np.array(p), x) / np.polyval(np.array(q), x)


def erf(x: Array) -> Array:
    """The error function to float64 accuracy (a few units in the last place), rounded to the dtype of `x`.

    erf(x) = x·P(x²)/Q(x²) near 0; 1 − exp(−x²)·P(x)/Q(x) for middle x; a tail in 1/x² beyond 4.
    """
    wide = np.asarray(x, dtype=np.float64)
    y = np.minimum(np.abs(wide), _SATURATED)
    centre = wide * _ratio(_CENTRE_P, _CENTRE_Q, np.square(np.minimum(y, _CENTRE_END)))
    decay = np.exp(-np.square(y))
    middle = 1.0 - decay * _ratio(_MIDDLE_P, _MIDDLE_Q, np.clip(y, _CENTRE_END, _MIDDLE_END))
    far = np.maximum(y, _MIDDLE_END)
    inverse = 1.0 / np.square(far)
    tail = 1.0 - decay * (1.0 / np.sqrt(np.pi) - inverse * _ratio(_TAIL_P, _TAIL_Q, inverse)) / far
    outer = np.copysign(np.where(y <= _MIDDLE_END, middle, tail), wide)
    return np.where(y <= _CENTRE_END, centre, outer).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(−x)), without overflow: the exponent is never positive."""
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + decay), decay / (1 + decay)).astype(x.dtype)


def divide(a: Array, b: Array) -> Array:
    """a / b; integers truncate towards zero and x / 0 is 0."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    safe = np.where(b == 0, 1, b)
    floor = np.floor_divide(a, safe)
    truncated = floor + ((floor < 0) & (floor * safe != a))
    return np.where(b == 0, 0, truncated).astype(a.dtype)


def modulo(a: Array, b: Array) -> Array:
    """a − b·floor(a / b): the sign of the divisor; integers give 0 for b = 0."""
    if a.dtype.kind == "f":
        return np.mod(a, b)
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def remainder(a: Array, b: Array) -> Array:
    """a − b·trunc(a / b): the sign of the dividend; integers give 0 for b = 0."""
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def shift_left(a: Array, b: Array) -> Array:
    """Bits moved towards the higher ones, zeros from below; 0 for b outside of 0 … width − 1."""
    inside = (b >= 0) & (b < 8 * a.dtype.itemsize)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0).astype(a.dtype)


def shift_right(a: Array, b: Array) -> Array:
    """Bits moved towards the lower ones, the sign kept; as by the whole width for b outside of 0 … width − 1."""
    most = 8 * a.dtype.itemsize - 1
    return np.right_shift(a, np.where((b >= 0) & (b <= most), b, most)).astype(a.dtype)


def power(a: Array, b: Array) -> Array:
    """a ** b; integers with a negative exponent truncate towards zero (0 unless a is ±1)."""
    if a.dtype.kind == "f":
        return np.power(a, b)
    positive = np.power(a, np.maximum(b, 0))
    sign = np.where(b % 2 == 0, 1, a)
    return np.where(b >= 0, positive, np.where(np.abs(a) == 1, sign, 0)).astype(a.dtype)


def rsqrt(x: Array) -> Array:
    """1 / √x."""
    return np.reciprocal(np.sqrt(x))


def relu(x: Array) -> Array:
    """max(x, 0); NaN stays NaN."""
    return np.maximum(x, x.dtype.type(0))


def leaky_relu(x: Array, *, alpha: float) -> Array:
    """x for x ≥ 0, alpha·x below."""
    return np.where(x >= 0, x, x * x.dtype.type(alpha))


def same(x: Array) -> Array:
    """The value itself."""
    return x
