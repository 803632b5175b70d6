"""Named axes: unification by common refinement, linear index expressions."""

from __future__ import annotations

import pytest
from tilewright.lowering.axes import AxisSpace, Linear, NotFusable


def extents(space: AxisSpace, axis: object) -> list[int]:
    return [leaf.extent for leaf, _ in space.leaves(axis)]  # pyright: ignore


def test_a_merge_splits_the_merged_axis() -> None:
    space = AxisSpace()
    heads, width, flat = space.fresh(8), space.fresh(64), space.fresh(512)
    space.unify([flat], [heads, width])
    assert extents(space, flat) == [8, 64]
    assert [leaf for leaf, _ in space.leaves(flat)] == [heads.root(), width.root()]


def test_a_refinement_splits_both_sides() -> None:
    space = AxisSpace()
    left, right = [space.fresh(4), space.fresh(6)], [space.fresh(2), space.fresh(12)]
    space.unify(left, right)
    assert extents(space, left[0]) == [2, 2] and extents(space, right[1]) == [2, 6]
    assert space.atoms(left) == space.atoms(right)


def test_no_common_refinement_is_refused() -> None:
    space = AxisSpace()
    with pytest.raises(NotFusable, match="no common refinement"):
        space.unify([space.fresh(6), space.fresh(4)], [space.fresh(8), space.fresh(3)])


def test_extents_of_one_are_nothing() -> None:
    space = AxisSpace()
    one, axis, other = space.fresh(1), space.fresh(5), space.fresh(5)
    space.unify([one, axis], [other])
    assert axis.root() is other.root()


def test_linear_expressions_resolve_to_atoms() -> None:
    space = AxisSpace()
    flat = space.fresh(12)
    space.unify([flat], [space.fresh(3), space.fresh(4)])
    resolved = Linear({flat: 5}, 7).resolved(space)
    assert sorted(resolved.terms.values()) == [5, 20] and resolved.offset == 7
    assert resolved.bounds() == (7, 7 + 5 * 11)


def test_windows_overlap_and_mixed_radix_does_not() -> None:
    space = AxisSpace()
    rows, taps = space.fresh(8), space.fresh(3)
    assert Linear({rows: 1, taps: 1}).overlapping()
    assert Linear({rows: 2, taps: 1}).overlapping()
    assert not Linear({rows: 3, taps: 1}).overlapping()
    assert not Linear({rows: 1}).overlapping()
