"""Tables of loop bounds as affine expressions of the outer counters.

A table is fitted by a constant, by one quotient of a counter (a triangle), by one that is cut off at an end (a band:
`max((d0 * 128 - 255) floordiv 128, 0)`), and otherwise step by step: a value that changes from 3 to 7 at the fifth of
eight outer tiles is `3 + 4 * ((d0 + 4) floordiv 8)`. What is returned equals the table everywhere: that is how a fit is
accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from .cut_sections import IntArray
from .regions import add, scaled, total

Side: TypeAlias = Literal["lower", "upper"]


def bound_map(table: IntArray, side: Side, most: int, slope: Fraction) -> list[AffineExpr]:
    """Expressions of the outer counters (one for each dimension of the table) of which the greatest (`lower`) or the
    least (`upper`) is the bound. `most`: what no bound exceeds; `slope`: a likely rise from one outer tile to the next.
    """
    values, counter = _flat(table)
    if (values == values[0]).all():
        return [AffineConstantExpr(int(values[0]))]
    end = int(values.min() if side == "lower" else values.max())
    for clamp in (None, end):
        fitted = _quotient(values, counter, side, clamp, slope)
        if fitted is not None:
            return [fitted] if clamp is None else [fitted, AffineConstantExpr(end)]
    return [_steps(values, counter), AffineConstantExpr(0 if side == "lower" else most)]


def exact_map(table: IntArray, slope: Fraction) -> AffineExpr:
    """One expression that is the table."""
    values, counter = _flat(table)
    if (values == values[0]).all():
        return AffineConstantExpr(int(values[0]))
    return _quotient(values, counter, "lower", None, slope) or _steps(values, counter)


def _flat(table: IntArray) -> tuple[IntArray, AffineExpr]:
    """The table in one dimension, and the expression that counts along it; dimensions that do not matter are gone."""
    kept: list[tuple[int, int]] = []
    for d in reversed(range(table.ndim)):
        first = table.take([0], axis=d)
        if (table == first).all():
            table = first
        else:
            kept.append((d, table.shape[d]))
    counter: AffineExpr = AffineConstantExpr(0)
    for d, extent in reversed(kept):
        counter = add(scaled(counter, extent), AffineDimExpr(d))
    return table.ravel(), counter


def _quotient(
    values: IntArray, counter: AffineExpr, side: Side, clamp: int | None, slope: Fraction
) -> AffineExpr | None:
    """(p·counter + b) floordiv q, cut off at `clamp`, where that is the table."""
    at = np.arange(len(values))
    inside = np.ones(len(values), np.bool_) if clamp is None else values != clamp
    known = np.flatnonzero(inside)
    slopes = [slope]
    if len(known) > 1:
        rise = int(values[known[-1]] - values[known[0]])
        slopes.append(Fraction(rise, int(known[-1] - known[0])))
    for each in slopes:
        p, q = each.numerator, each.denominator
        least, greatest = q * values - p * at, q * values - p * at + q - 1
        low, high = int(least[inside].max()), int(greatest[inside].min())
        if clamp is not None and side == "upper":  # not below the clamp where the table is cut off
            low = max(low, int(least[~inside].max()))
        if clamp is not None and side == "lower":
            high = min(high, int(greatest[~inside].min()))
        if low <= high:
            round_ = -(-low // q) * q
            offset = round_ if round_ <= high else low
            return _divided(counter, p, offset, q)
    return None


def _divided(counter: AffineExpr, p: int, offset: int, q: int) -> AffineExpr:
    if offset % q == 0 and q > 1:
        inner = scaled(counter, p)
        return add(inner // q, AffineConstantExpr(offset // q))
    inner = add(scaled(counter, p), AffineConstantExpr(offset))
    return inner if q == 1 else inner // q


def _steps(values: IntArray, counter: AffineExpr) -> AffineExpr:
    """The first value, and what is added where it changes."""
    count = len(values)
    changes: Sequence[int] = (np.flatnonzero(np.diff(values)) + 1).tolist()
    parts: list[AffineExpr] = [AffineConstantExpr(int(values[0]))]
    for place in changes:
        reached = add(counter, AffineConstantExpr(count - place)) // count
        parts.append(scaled(reached, int(values[place] - values[place - 1])))
    while len(parts) > 1:  # in pairs: the depth of brackets is the logarithm of their number
        parts = [total(parts[n : n + 2]) for n in range(0, len(parts), 2)]
    return parts[0]
