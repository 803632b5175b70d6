"""Loads that can leave their source: which part of the tile is inside, as bounds that views can say.

A condition on one tile position bounds the active region of one dimension; one view can say one lower and one upper
bound per dimension, and the two views of a DMA say two. A condition without a position (a row of padding) becomes a
dimension of extent 1 that is empty where the condition fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.errors import UserError
from ..dialects.layout import Layout
from .affine_bounds import reach
from .bufferize_layout import linear
from .emit_views import Loops, Place, Valid, simplified, substituted
from .regions import add, scaled, total

Bound: TypeAlias = tuple[int, AffineExpr]
"""Dimension of the tile, and what its position is not below (lower) or stays below (upper)."""


class Edges:
    """The conditions under which positions of a load's tile lie inside its source."""

    def __init__(
        self, loops: Loops, op: tile.LoadOp, source: Place, place: Place, counters: Sequence[AffineExpr]
    ) -> None:
        self.op, self.place, self.first = op, place, loops.depth
        self.lower: list[Bound] = []
        self.upper: list[Bound] = []
        self.flat: list[AffineExpr] = []  # conditions ≥ 0 without a position
        if op.fill is None:
            return
        ranges = [*loops.ranges, *((0, max(extent - 1, 0)) for extent in place.shape)]
        positions = [AffineDimExpr(self.first + p) for p in range(len(place.shape))]
        conditions: list[AffineExpr] = []
        for expr, extent in zip(substituted(op.map.data, counters, positions), source.shape, strict=True):
            conditions += [expr, add(AffineConstantExpr(extent - 1), scaled_by(expr, -1))]
        if op.inside is not None:
            conditions += substituted(op.inside.data, counters, positions)
        for condition in conditions:
            if reach(condition, ranges)[0] < 0:
                self.condition(condition)
        self.lower = _tightest(self.lower, ranges, 1)
        self.upper = _tightest(self.upper, ranges, -1)

    @property
    def needed(self) -> bool:
        return bool(self.lower or self.upper or self.flat)

    def condition(self, expr: AffineExpr) -> None:
        """Adds expr ≥ 0."""
        found = linear(expr)
        if found is None:
            raise UserError("'tile.load' has a condition that is not linear", self.op.location)
        inner = {dim: c for dim, c in found[1].items() if dim >= self.first}
        if len(inner) > 1:
            raise UserError("'tile.load' has a condition on two positions of its tile", self.op.location)
        base = total(
            [AffineConstantExpr(found[0])]
            + [scaled(AffineDimExpr(dim), c) for dim, c in found[1].items() if dim < self.first]
        )
        if not inner:
            self.flat.append(base)
            return
        ((dim, coefficient),) = inner.items()
        position = dim - self.first
        if coefficient > 0:  # p ≥ ⌈-base ÷ c⌉ = -⌊base ÷ c⌋
            floor = base if coefficient == 1 else base // coefficient
            self.lower.append((position, scaled_by(floor, -1)))
        else:  # p ≤ ⌊base ÷ |c|⌋
            floor = base if coefficient == -1 else base // -coefficient
            self.upper.append((position, add(floor, AffineConstantExpr(1))))

    def clip(self, outside: Place, inside: Place) -> tuple[Place, Place]:
        """The two views of the DMA with their active regions cut to the inside."""
        places = [_open(outside), _open(inside)]
        for position, expr in self.lower:
            self.bound(places, "start", position, expr)
        for position, expr in self.upper:
            self.bound(places, "valid", position, expr)
        for expr in self.flat:
            places = [_with_unit(place) for place in places]
            # Active where start ≤ 0: the extent of 1 is skipped where expr < 0.
            self.bound(places, "start", len(places[0].shape) - 1, scaled_by(expr, -1))
        return places[0], places[1]

    def bound(self, places: list[Place], what: str, position: int, expr: AffineExpr) -> None:
        for number, place in enumerate(places):
            have: Valid = place.start if what == "start" else place.valid
            if have[position] is None:
                bound = tuple(simplified(expr) if d == position else e for d, e in enumerate(have))
                places[number] = replace(place, start=bound) if what == "start" else replace(place, valid=bound)
                return
        raise UserError("'tile.load' has too many conditions on one dimension of its tile", self.op.location)


def _tightest(bounds: Sequence[Bound], ranges: Sequence[tuple[int, int]], sign: int) -> list[Bound]:
    """The bounds without those that another one of the same dimension implies for all counters.

    Padding around padding says two lower bounds, of which one is never the greater. `sign` is 1 for lower bounds, -1
    for upper ones.
    """
    kept: list[Bound] = []
    for position, expr in bounds:

        def implies(first: AffineExpr, second: AffineExpr) -> bool:
            return reach(simplified(add(scaled_by(first, sign), scaled_by(second, -sign))), ranges)[0] >= 0

        same = [other for p, other in kept if p == position]
        if any(implies(other, expr) for other in same):
            continue
        kept = [(p, other) for p, other in kept if p != position or not implies(expr, other)]
        kept.append((position, expr))
    return kept


def scaled_by(expr: AffineExpr, factor: int) -> AffineExpr:
    return simplified(scaled(expr, factor))


def _open(place: Place) -> Place:
    return replace(place, start=place.start or (None,) * len(place.shape))


def _with_unit(place: Place) -> Place:
    width = place.layout.element_bytes
    layout = Layout((*place.layout.dims, ((1, width),)), width)
    return replace(
        place, shape=(*place.shape, 1), layout=layout, valid=(*place.valid, None), start=(*place.start, None)
    )
