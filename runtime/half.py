"""Rounding to f16 without leaving f32: what `x.astype(float16).astype(float32)` gives, several times as fast."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_SIGN, _EXPONENT = np.uint32(0x80000000), np.uint32(0x7F800000)
_SMALLEST, _LARGE = np.float32(2.0**-14).view(np.uint32), np.float32(2.0**15).view(np.uint32)


def rounded_to_half(array: Array) -> Array:
    """f32 numbers rounded to the nearest f16, ties to even, as f32.

    A number in [2^e, 2^(e+1)) is rounded to a multiple of 2^(e-10), numbers below 2^-14 to one of 2^-24: the last place
    of f32 at 1.5 · 2^(e+13), so that adding that and taking it off again does it, up to the sign of zero. Where a
    number may be too large for f16, or is none, NumPy converts.
    """
    bits = array.view(np.uint32)
    exponents = bits & _EXPONENT  # powers of two, in the order of their bits
    if exponents.size == 0 or exponents.max() >= _LARGE:
        return array.astype(np.float16).astype(np.float32)
    power = np.maximum(exponents, _SMALLEST, out=exponents).view(np.float32)
    power *= np.float32(1.5 * 2.0**13)
    result = array + power
    result -= power
    if bits.max() >= _SIGN:
        result.view(np.uint32)[...] |= bits & _SIGN
    return result
