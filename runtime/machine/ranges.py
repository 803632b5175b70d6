"""What affine expressions can be over the iterations of the loops around them; bounds that never bind are left out.

Emitted views say their valid extents everywhere. Where tiles divide the extents, `min(-64·i + 512, 64)` is 64 in all
eight iterations; without it the region is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

Range: TypeAlias = tuple[int, int]
"""Least and greatest value, both possible or beyond what is possible."""


def range_of(expr: AffineExpr, dims: Sequence[Range]) -> Range | None:
    """Bounds on the value of `expr`, dimension i lying in dims[i]; None for products of dimensions and symbols.

    >>> range_of(AffineDimExpr(0) * -64 + 512, [(0, 7)])
    (64, 512)
    """
    match expr:
        case AffineConstantExpr(value=value):
            return value, value
        case AffineDimExpr(position=position):
            return dims[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = range_of(lhs, dims), range_of(rhs, dims)
            return None if left is None or right is None else _combined(kind, left, right)
        case _:
            return None


def _combined(kind: AffineBinaryOpKind, left: Range, right: Range) -> Range | None:
    if kind is AffineBinaryOpKind.Add:
        return left[0] + right[0], left[1] + right[1]
    if kind is AffineBinaryOpKind.Mul:
        products = [a * b for a in left for b in right]
        return min(products), max(products)
    divisor = right[0]
    if divisor != right[1] or divisor <= 0:
        return None
    if kind is AffineBinaryOpKind.FloorDiv:
        return left[0] // divisor, left[1] // divisor
    if kind is AffineBinaryOpKind.CeilDiv:
        return -(-left[0] // divisor), -(-left[1] // divisor)
    within = left[0] // divisor == left[1] // divisor
    return (left[0] % divisor, left[1] % divisor) if within else (0, divisor - 1)


def without_idle(
    exprs: Sequence[AffineExpr], idle: Sequence[int], dims: Sequence[Range], at_most: bool
) -> list[AffineExpr]:
    """Bounds with those that never bind replaced by constants that do not.

    `idle[d]` is a bound that does not bind: the extent, where a bound that is never less does not either; 0 for starts
    (`at_most`), where a bound that is never greater does not.
    """
    kept: list[AffineExpr] = []
    for expr, value in zip(exprs, idle, strict=True):
        found = range_of(expr, dims)
        binds = found is None or (found[1] > value if at_most else found[0] < value)
        kept.append(expr if binds else AffineConstantExpr(value))
    return kept
