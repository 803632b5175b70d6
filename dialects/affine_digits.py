"""Quasi-affine expressions as sums of digits of the dimensions they are made of.

A digit is (d floordiv divisor) mod extent of one dimension d, times a coefficient. Sums and constant multiples of
digits are digits again; floordiv and mod by c are where every digit falls cleanly on one side of c:

    (8·d0 + d1) floordiv 4,  d1 < 8:   8·d0 gives 2·d0;  d1 = 4·(d1 floordiv 4) + (d1 mod 4) gives d1 floordiv 4
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr


@dataclass(frozen=True)
class Digit:
    """coefficient · ((dimension floordiv divisor) mod extent)."""

    coefficient: int
    dim: int
    divisor: int
    extent: int


@dataclass(frozen=True)
class Sum:
    """A sum of digits and an offset."""

    digits: tuple[Digit, ...]
    offset: int

    def scaled(self, factor: int) -> Sum:
        """The sum times a constant."""
        digits = (Digit(d.coefficient * factor, d.dim, d.divisor, d.extent) for d in self.digits)
        return Sum(tuple(digits) if factor else (), self.offset * factor)

    def plus(self, other: Sum) -> Sum:
        """The sum of two sums; digits of the same place are joined."""
        places: dict[tuple[int, int, int], int] = {}
        for d in (*self.digits, *other.digits):
            place = (d.dim, d.divisor, d.extent)
            places[place] = places.get(place, 0) + d.coefficient
        return Sum(tuple(Digit(c, *place) for place, c in places.items() if c), self.offset + other.offset)


def normalize(expr: AffineExpr, shape: Sequence[int]) -> Sum | None:
    """`expr` over dimensions of `shape` as a sum of digits, or None if it has no such form."""
    match expr:
        case AffineConstantExpr(value=value):
            return Sum((), value)
        case AffineDimExpr(position=dim):
            return Sum((Digit(1, dim, 1, shape[dim]),) if shape[dim] > 1 else (), 0)
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = normalize(lhs, shape), normalize(rhs, shape)
            return None if left is None or right is None else _combine(kind, left, right)
        case _:
            return None


def _combine(kind: AffineBinaryOpKind, left: Sum, right: Sum) -> Sum | None:
    if kind is AffineBinaryOpKind.Add:
        return left.plus(right)
    if right.digits:
        left, right = right, left
    constant = right.offset
    if kind is AffineBinaryOpKind.Mul:
        return None if right.digits else left.scaled(constant)
    if right.digits or constant <= 0:
        return None
    if kind is AffineBinaryOpKind.CeilDiv:
        negated = _divide(left.scaled(-1), constant)
        return None if negated is None else negated[0].scaled(-1)
    divided = _divide(left, constant)
    if divided is None:
        return None
    return divided[0] if kind is AffineBinaryOpKind.FloorDiv else divided[1]


def _divide(total: Sum, c: int) -> tuple[Sum, Sum] | None:
    """Quotient and remainder of a sum by c > 0, or None if a digit straddles c."""
    quotient: list[Digit] = []
    rest: list[Digit] = []
    for digit in total.digits:
        k = digit.coefficient
        if k % c == 0:
            quotient.append(Digit(k // c, digit.dim, digit.divisor, digit.extent))
            continue
        step = c // k if k > 0 and c % k == 0 else 0
        if step and step < digit.extent:
            if digit.extent % step:
                return None
            quotient.append(Digit(1, digit.dim, digit.divisor * step, digit.extent // step))
            rest.append(Digit(k, digit.dim, digit.divisor, step))
        else:
            rest.append(digit)
    offset = total.offset % c
    low = offset + sum(min(0, d.coefficient * (d.extent - 1)) for d in rest)
    high = offset + sum(max(0, d.coefficient * (d.extent - 1)) for d in rest)
    if low < 0 or high >= c:
        return None
    return Sum((), total.offset // c).plus(Sum(tuple(quotient), 0)), Sum(tuple(rest), offset)


def atoms_of(dim: int, size: int, sums: Sequence[Sum]) -> tuple[int, ...] | None:
    """The extents of the digits of one dimension that all `sums` can share, outermost first; None if there are none.

    >>> atoms_of(0, 24, [Sum((Digit(1, 0, 4, 6),), 0), Sum((Digit(1, 0, 1, 4),), 0)])
    (6, 4)
    """
    cuts = {1, size}
    for total in sums:
        for digit in total.digits:
            if digit.dim == dim:
                cuts |= {digit.divisor, digit.divisor * digit.extent}
    places = sorted(cuts)
    if any(high % low for low, high in itertools.pairwise(places)):
        return None
    return tuple(high // low for low, high in itertools.pairwise(places))[::-1] or (1,)
