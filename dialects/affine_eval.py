"""Affine expressions evaluated on whole arrays of indices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

Indices: TypeAlias = npt.NDArray[Any] | int


def lower_bound(results: Sequence[AffineExpr], dims: Sequence[Indices]) -> Indices:
    """Where a loop begins: the greatest of the results of its `lower` map."""
    return reduce(np.maximum, [evaluate(expr, dims) for expr in results])


def upper_bound(results: Sequence[AffineExpr], dims: Sequence[Indices]) -> Indices:
    """Where a loop ends: the least of the results of its `upper` map."""
    return reduce(np.minimum, [evaluate(expr, dims) for expr in results])


def evaluate(expr: AffineExpr, dims: Sequence[Indices]) -> Indices:
    """`expr` with dimension i standing for dims[i], elementwise; floordiv and mod round towards minus infinity.

    Raises ValueError for symbols, which index maps do not have.
    """
    match expr:
        case AffineConstantExpr(value=value):
            return value
        case AffineDimExpr(position=position):
            return dims[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = evaluate(lhs, dims), evaluate(rhs, dims)
            match kind:
                case AffineBinaryOpKind.Add:
                    return left + right
                case AffineBinaryOpKind.Mul:
                    return left * right
                case AffineBinaryOpKind.FloorDiv:
                    return left // right
                case AffineBinaryOpKind.CeilDiv:
                    return -(-left // right)
                case AffineBinaryOpKind.Mod:
                    return left % right
        case _:
            pass
    raise ValueError(f"an index map has dimensions and constants only, got {expr}")
