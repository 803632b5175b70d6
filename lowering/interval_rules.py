"""Interval arithmetic of the scalar operators that masks are written with.

Ends are float64 arrays. Both are not a number where nothing is known, as of a value that may be none itself (∞ − ∞);
every rule keeps it so, and comparisons with it are false both ways. Nothing is known of what has no rule: not of
functions that are rounded differently here than on chip, nor of integers that behave unlike floats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Condition: TypeAlias = npt.NDArray[np.bool_]
Interval: TypeAlias = tuple[Array, Array]
Unary: TypeAlias = Callable[[Interval], Interval]
Binary: TypeAlias = Callable[[Interval, Interval], Interval]


EXACT = 2**53
"""Integers up to here are exact as float64."""


def apply_intervals(fn: str, operands: Sequence[Interval], kind: str) -> Interval:
    """The interval of a scalar operator on intervals; `kind` ("float", "int" or "bool") is that of the result."""
    with np.errstate(all="ignore"):
        return where_known(np.array(True), _applied(fn, operands, kind))


def where_known(condition: Condition, interval: Interval) -> Interval:
    """The interval where a condition holds and both ends are numbers, nowhere else."""
    low, high = interval
    known = condition & ~(np.isnan(low) | np.isnan(high))
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


def _applied(fn: str, operands: Sequence[Interval], kind: str) -> Interval:
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


def _add(a: Interval, b: Interval) -> Interval:
    """∞ − ∞ is no number, and may lie between ends that are."""
    opposite = ((a[1] == np.inf) & (b[0] == -np.inf)) | ((a[0] == -np.inf) & (b[1] == np.inf))
    return where_known(~opposite, (a[0] + b[0], a[1] + b[1]))


def _mul(a: Interval, b: Interval) -> Interval:
    """Nor is 0 · ∞."""
    neither = ~(_has_zero(a) & _has_infinity(b)) & ~(_has_zero(b) & _has_infinity(a))
    return where_known(neither, _hull(*(x * y for x in a for y in b)))


def _has_zero(a: Interval) -> Condition:
    return (a[0] <= 0) & (a[1] >= 0)


def _has_infinity(a: Interval) -> Condition:
    return np.isinf(a[0]) | np.isinf(a[1])


def _mod(a: Interval, b: Interval) -> Interval:
    """The remainder of a constant positive divisor: exact where all of the interval lies in one period."""
    (low, high), (divisor, other) = a, b
    first, last = np.mod(low, divisor), np.mod(high, divisor)
    # Where the quotients are rounded to one number though they are not in one period, the remainders are not in order.
    within = (np.floor(low / divisor) == np.floor(high / divisor)) & (first <= last)
    usable = (divisor == other) & (divisor > 0) & np.isfinite(low) & np.isfinite(high)
    return where_known(usable, (np.where(within, first, 0.0), np.where(within, last, divisor)))


def _quotient(a: Interval, b: Interval) -> Interval:
    """Integers, towards zero, by a constant positive divisor."""
    (low, high), (divisor, other) = a, b
    return where_known((divisor == other) & (divisor > 0), (np.trunc(low / divisor), np.trunc(high / divisor)))


def _shifted_right(a: Interval, b: Interval) -> Interval:
    scale = np.exp2(b[0])
    usable = (b[0] == b[1]) & (b[0] >= 0) & (b[0] < 31)
    return where_known(usable, (np.floor(a[0] / scale), np.floor(a[1] / scale)))


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
    "add": _add,
    "sub": lambda a, b: _add(a, (-b[1], -b[0])),
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
