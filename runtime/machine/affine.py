"""Affine expressions of loop counters, compiled to Python functions.

`(d0 + d1 * 2) mod 2 * 512` over counters at depths (0, 2) becomes `lambda c: ((c[0] + (c[2] * 2)) % 2) * 512`, called
with the list of all counters. The text is made of integers and the operators below only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias, cast

import numpy as np
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from ...dialects.errors import UserError

Counters: TypeAlias = Sequence[int]
Choose: TypeAlias = Callable[[Iterable[int]], int]
"""`max` or `min`."""


@dataclass(frozen=True, eq=False)
class Affine:
    """One value. `constant` where it depends on no counter; `depends` are the depths of the counters it uses."""

    at: Callable[[Counters], int]
    constant: int | None
    depends: frozenset[int]


@dataclass(frozen=True, eq=False)
class AffineList:
    """Several values at once; `each` says of every one what it depends on."""

    at: Callable[[Counters], tuple[int, ...]]
    constant: tuple[int, ...] | None
    depends: frozenset[int]
    each: tuple[frozenset[int], ...]


def constant_affine(value: int) -> Affine:
    """A number."""
    return Affine(lambda counters: value, value, frozenset())


def compile_affine(expr: AffineExpr, depths: Sequence[int], location: Attribute | None = None) -> Affine:
    """`expr`, its dimension i being the counter at depths[i]. Raises UserError for what is not affine."""
    function, depends = _compiled(_text(expr, depths, location)), _depends([expr], depths)
    at = cast(Callable[[Counters], int], function)
    return Affine(at, None if depends else at(()), depends)


def compile_bound(
    exprs: Sequence[AffineExpr], depths: Sequence[int], choose: Choose, location: Attribute | None = None
) -> Affine:
    """A bound of a loop: the greatest (`choose` is max) or the least (min) of several values; works on arrays too."""
    if len(exprs) == 1:
        return compile_affine(exprs[0], depths, location)
    all_of = compile_affines(exprs, depths, location)
    elementwise = np.maximum if choose is max else np.minimum

    def at(counters: Counters) -> int:
        values = all_of.at(counters)
        if any(isinstance(value, np.ndarray) for value in values):
            return reduce(elementwise, values)
        return choose(values)

    return Affine(at, None if all_of.constant is None else choose(all_of.constant), all_of.depends)


def compile_affines(
    exprs: Sequence[AffineExpr], depths: Sequence[int], location: Attribute | None = None
) -> AffineList:
    """Several expressions as one function that gives a tuple."""
    text = "(" + "".join(_text(expr, depths, location) + "," for expr in exprs) + ")"
    at, depends = cast(Callable[[Counters], tuple[int, ...]], _compiled(text)), _depends(exprs, depths)
    return AffineList(at, None if depends else at(()), depends, tuple(_depends([expr], depths) for expr in exprs))


def _compiled(text: str) -> object:
    return eval(f"lambda c: {text}", {"__builtins__": {}})


def _depends(exprs: Sequence[AffineExpr], depths: Sequence[int]) -> frozenset[int]:
    return frozenset(depths[dim.position] for e in exprs for dim in e.dfs() if isinstance(dim, AffineDimExpr))


def _text(expr: AffineExpr, depths: Sequence[int], location: Attribute | None) -> str:
    match expr:
        case AffineConstantExpr(value=value):
            return f"({value})" if value < 0 else str(value)
        case AffineDimExpr(position=position):
            return f"c[{depths[position]}]"
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = _text(lhs, depths, location), _text(rhs, depths, location)
            if kind is AffineBinaryOpKind.Add:
                return f"({left} + {right})"
            if kind is AffineBinaryOpKind.Mul:
                return f"({left} * {right})"
            if not isinstance(rhs, AffineConstantExpr) or rhs.value <= 0:
                raise UserError(f"'{expr}' does not divide by a positive constant", location)
            if kind is AffineBinaryOpKind.Mod:
                return f"({left} % {right})"
            if kind is AffineBinaryOpKind.FloorDiv:
                return f"({left} // {right})"
            return f"(-(-{left} // {right}))"
        case _:
            raise UserError(f"'{expr}' has symbols, which hardware programs do not have", location)
