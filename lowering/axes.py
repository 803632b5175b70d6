"""Named axes: every dimension of every value of a group is an ordered list of atomic axes.

Elementwise ops unify aligned dimensions, a reshape that splits or merges dimensions splits axes into factors (as
in einops), so that it becomes nothing:

>>> space = AxisSpace()
>>> rows, heads, width = space.fresh(6), space.fresh(8), space.fresh(64)
>>> flat = space.fresh(512)                       # a dimension of 8 * 64 = 512 elements
>>> space.unify([flat], [heads, width])           # reshape (6, 8, 64) -> (6, 512)
>>> [leaf.extent for leaf, _ in space.leaves(flat)]
[8, 64]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


class NotFusable(Exception):
    """Why a set of ops cannot be one kernel; the fuse pass records the sentence."""


@dataclass(eq=False)
class Axis:
    """A range of `extent` positions. Merged into another axis by unification, or split into two factors."""

    extent: int
    serial: int
    merged: Axis | None = None
    factors: tuple[Axis, Axis] | None = None

    def root(self) -> Axis:
        axis = self
        while axis.merged is not None:
            axis = axis.merged
        return axis


class AxisSpace:
    """Makes, splits and unifies axes. What was split or unified since a `mark` can be undone."""

    def __init__(self) -> None:
        self._count = 0
        self._changed: list[Axis] = []

    def mark(self) -> int:
        """A point to `undo` to."""
        return len(self._changed)

    def undo(self, mark: int) -> None:
        """Takes back every split and unification since the mark."""
        while len(self._changed) > mark:
            axis = self._changed.pop()
            axis.merged = axis.factors = None

    def fresh(self, extent: int) -> Axis:
        self._count += 1
        return Axis(extent, self._count)

    def leaves(self, axis: Axis) -> list[tuple[Axis, int]]:
        """The atomic axes of an axis, outermost first, each with its multiplier in the axis' index."""
        root = axis.root()
        if root.factors is None:
            return [(root, 1)]
        outer, inner = root.factors
        scale = inner.root().extent
        return [(leaf, factor * scale) for leaf, factor in self.leaves(outer)] + self.leaves(inner)

    def atoms(self, dims: Iterable[Axis]) -> list[Axis]:
        """The atomic axes of a list of axes, outermost first, those of extent 1 left out."""
        return [leaf for axis in dims for leaf, _ in self.leaves(axis) if leaf.extent != 1]

    def split(self, axis: Axis, inner: int) -> tuple[Axis, Axis]:
        """Splits an atomic axis into (extent / inner, inner)."""
        axis.factors = (self.fresh(axis.extent // inner), self.fresh(inner))
        self._changed.append(axis)
        return axis.factors

    def unify(self, left: Sequence[Axis], right: Sequence[Axis]) -> None:
        """Makes two lists of axes with the same number of positions the same list of atomic axes.

        Raises NotFusable where no common refinement exists: (6, 4) against (8, 3).
        """
        a, b = self.atoms(left), self.atoms(right)
        while a and b:
            x, y = a[-1], b[-1]
            if x is y or x.extent == y.extent:
                a.pop()
                b.pop()
                if x is not y:
                    y.merged = x
                    self._changed.append(y)
            elif x.extent % y.extent == 0:
                a[-1:] = self.split(x, y.extent)
            elif y.extent % x.extent == 0:
                b[-1:] = self.split(y, x.extent)
            else:
                raise NotFusable(f"dimensions of {x.extent} and {y.extent} have no common refinement")
        if a or b:
            raise NotFusable("shapes have no common refinement")


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · axis + offset."""

    terms: Mapping[Axis, int] = field(default_factory=dict[Axis, int])
    offset: int = 0

    def substitute(self, axes: Mapping[Axis, Linear]) -> Linear:
        """Replaces axes by expressions."""
        terms: dict[Axis, int] = {}
        offset = self.offset
        for axis, coefficient in self.terms.items():
            expression = axes.get(axis)
            if expression is None:
                terms[axis] = terms.get(axis, 0) + coefficient
                continue
            offset += coefficient * expression.offset
            for inner, scale in expression.terms.items():
                terms[inner] = terms.get(inner, 0) + coefficient * scale
        return Linear(terms, offset)

    def resolved(self, space: AxisSpace) -> Linear:
        """The same expression over atomic axes of extent above 1."""
        terms: dict[Axis, int] = {}
        for axis, coefficient in self.terms.items():
            for leaf, scale in space.leaves(axis):
                if leaf.extent != 1 and coefficient:
                    terms[leaf] = terms.get(leaf, 0) + coefficient * scale
        return Linear({axis: c for axis, c in terms.items() if c}, self.offset)

    def shifted(self, by: int) -> Linear:
        return Linear(self.terms, self.offset + by)

    def negated(self) -> Linear:
        return Linear({axis: -c for axis, c in self.terms.items()}, -self.offset)

    def bounds(self) -> tuple[int, int]:
        """Least and greatest value over all positions."""
        low = high = self.offset
        for axis, coefficient in self.terms.items():
            reach = coefficient * (axis.root().extent - 1)
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high

    def multiple_of(self, other: Linear) -> tuple[int, Linear]:
        """This expression as k · (the terms of the other) + the rest, which shares no axis with it.

        Raises NotFusable where that cannot be: a condition on half of a window.
        """
        ratios = {divmod(self.terms.get(axis, 0), coefficient) for axis, coefficient in other.terms.items()}
        if len(ratios) != 1 or next(iter(ratios))[1]:
            raise NotFusable("a condition on a part of a windowed dimension")
        factor = next(iter(ratios))[0]
        return factor, Linear({a: c for a, c in self.terms.items() if a not in other.terms}, self.offset)

    def overlapping(self) -> bool:
        """Whether two different positions can give the same value (a window), by mixed radix."""
        reach = 0
        for axis, coefficient in sorted(self.terms.items(), key=lambda term: abs(term[1])):
            if abs(coefficient) <= reach:
                return True
            reach += abs(coefficient) * (axis.root().extent - 1)
        return False
