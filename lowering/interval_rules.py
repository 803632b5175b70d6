"""Interval arithmetic of the scalar operators that masks are written with.

Ends are float64 arrays; an end that is not a number says that nothing is known, and every rule keeps it so: comparisons
with it are false both ways. Nothing is known of what has no rule: not of functions that are rounded differently here
than on chip, nor of integers that behave unlike floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Interval: TypeAlias = tuple[Array, Array]
Unary: TypeAlias = Callable[[Interval], Interval]
Binary: TypeAlias = Callable[[Interval, Interval], Interval]


def apply_intervals(fn: str, operands: Sequence[Interval], kind: str) -> Interval:
    """The interval of a scalar operator on intervals; `kind` ("float", "int" or "bool") is that of the result."""
    with np.errstate(all="ignore"):
        match operands:
            case [a] if fn in UNARY:
                return UNARY[fn](a)
            case [a] if fn == "cast":
                return _cast(a, kind)
            case [a, b] if fn in BINARY:
                return BINARY[fn](a, b)
            case [a, b] if kind == "int" and fn in INTEGERS:
                return INTEGERS[fn](a, b)
            case [condition, a, b] if fn == "select":
                return _select(condition, a, b)
            case _:
                return np.array(np.nan), np.array(np.nan)


def _hull(*ends: Array) -> Interval:
    parts = np.broadcast_arrays(*ends)
    return np.minimum.reduce(parts), np.maximum.reduce(parts)


def _mul(a: Interval, b: Interval) -> Interval:
    return _hull(*(x * y for x in a for y in b))


def _mod(a: Interval, b: Interval) -> Interval:
    """The remainder of a constant positive divisor: exact where all of the interval lies in one period."""
    (low, high), (divisor, other) = a, b
    whole = np.floor(low / divisor)
    within = whole == np.floor(high / divisor)
    usable = (divisor == other) & (divisor > 0)
    first = np.where(within, low - whole * divisor, 0.0)
    last = np.where(within, high - whole * divisor, divisor)
    return np.where(usable, first + 0 * low, np.nan), np.where(usable, last + 0 * high, np.nan)


def _quotient(a: Interval, b: Interval) -> Interval:
    """Integers, towards zero, by a constant positive divisor."""
    (low, high), (divisor, other) = a, b
    usable = (divisor == other) & (divisor > 0)
    return np.where(usable, np.trunc(low / divisor), np.nan), np.where(usable, np.trunc(high / divisor), np.nan)


def _shifted_right(a: Interval, b: Interval) -> Interval:
    usable = (b[0] == b[1]) & (b[0] >= 0) & (b[0] < 31)
    scale = np.exp2(b[0])
    return np.where(usable, np.floor(a[0] / scale), np.nan), np.where(usable, np.floor(a[1] / scale), np.nan)


def _abs(a: Interval) -> Interval:
    low, high = a
    return np.maximum(np.maximum(low, -high), 0.0), np.maximum(np.abs(low), np.abs(high))


def _truth(certain: npt.NDArray[np.bool_], impossible: npt.NDArray[np.bool_]) -> Interval:
    return certain.astype(np.float64), (~impossible).astype(np.float64)


def _eq(a: Interval, b: Interval) -> Interval:
    return _truth((a[0] == b[1]) & (a[1] == b[0]), (a[1] < b[0]) | (a[0] > b[1]))


def _lt(a: Interval, b: Interval) -> Interval:
    return _truth(a[1] < b[0], a[0] >= b[1])


def _le(a: Interval, b: Interval) -> Interval:
    return _truth(a[1] <= b[0], a[0] > b[1])


def _not(a: Interval) -> Interval:
    return 1 - a[1], 1 - a[0]


def _select(condition: Interval, a: Interval, b: Interval) -> Interval:
    holds, fails = condition[0] == 1, condition[1] == 0
    low = np.where(holds, a[0], np.where(fails, b[0], np.minimum(a[0], b[0])))
    high = np.where(holds, a[1], np.where(fails, b[1], np.maximum(a[1], b[1])))
    return low, high


def _cast(a: Interval, kind: str) -> Interval:
    if kind == "bool":
        return _not(_eq(a, (np.array(0.0), np.array(0.0))))
    return (np.trunc(a[0]), np.trunc(a[1])) if kind == "int" else a


UNARY: dict[str, Unary] = {
    "neg": lambda a: (-a[1], -a[0]),
    "abs": _abs,
    "square": lambda a: (_abs(a)[0] ** 2, _abs(a)[1] ** 2),
    "relu": lambda a: (np.maximum(a[0], 0), np.maximum(a[1], 0)),
    "floor": lambda a: (np.floor(a[0]), np.floor(a[1])),
    "ceil": lambda a: (np.ceil(a[0]), np.ceil(a[1])),
    "identity": lambda a: a,
    "not": _not,
}
BINARY: dict[str, Binary] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _mul,
    "mod": _mod,
    "min": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "max": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "eq": _eq,
    "ne": lambda a, b: _not(_eq(a, b)),
    "lt": _lt,
    "le": _le,
    "gt": lambda a, b: _lt(b, a),
    "ge": lambda a, b: _le(b, a),
    "and": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "or": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
}
INTEGERS: dict[str, Binary] = {"div": _quotient, "shift_right": _shifted_right}
"""Rules that hold for integers only."""
