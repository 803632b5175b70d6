"""What an affine expression can be, from what its dimensions can be."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TypeAlias

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

Range: TypeAlias = tuple[int, int]
"""Least and greatest value."""


def reach(expr: AffineExpr, ranges: Sequence[Range]) -> Range:
    """Bounds of an expression whose dimension n lies in ranges[n]; exact where each dimension occurs once."""
    match expr:
        case AffineConstantExpr(value=value):
            return value, value
        case AffineDimExpr(position=position):
            return ranges[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            (a, b), (c, d) = reach(lhs, ranges), reach(rhs, ranges)
            match kind:
                case AffineBinaryOpKind.Add:
                    return a + c, b + d
                case AffineBinaryOpKind.Mul:
                    products = (a * c, a * d, b * c, b * d)
                    return min(products), max(products)
                case AffineBinaryOpKind.FloorDiv:
                    return a // c, b // c
                case AffineBinaryOpKind.CeilDiv:
                    return -(-a // c), -(-b // c)
                case AffineBinaryOpKind.Mod:
                    return (a % c, b % c) if a // c == b // c else (0, c - 1)
        case _:
            pass
    raise ValueError(f"an index map has dimensions and constants only, got {expr}")


def counter_values(
    lower: Sequence[AffineExpr], lowers: Sequence[Range], upper: Sequence[AffineExpr], uppers: Sequence[Range]
) -> Range:
    """The values of the counter of a loop that runs from the greatest of `lower` to the least of `upper`, whose
    dimensions lie in `lowers` and `uppers`."""
    low = max(reach(expr, lowers)[0] for expr in lower)
    return low, max(low, min(reach(expr, uppers)[1] for expr in upper) - 1)


def is_multiple(expr: AffineExpr, of: int, ranges: Sequence[Range]) -> bool:
    """Whether an expression is sure to be a multiple of a number: 48·d0 + 16 of 16."""
    if of == 1:
        return True
    match expr:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            return is_multiple(lhs, of, ranges) and is_multiple(rhs, of, ranges)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=AffineConstantExpr(value=factor)):
            return is_multiple(lhs, of // gcd(of, factor), ranges)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=AffineConstantExpr(value=modulus)):
            return modulus % of == 0 and is_multiple(lhs, of, ranges)
        case _:
            low, high = reach(expr, ranges)
            return low == high and low % of == 0
