"""Index maps: the normal form says the same as the expressions it comes from, checked by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.dialects.index_map import (
    IndexMap,
    NotMixedRadix,
    evaluate_map,
    gather_box,
    map_stays_inside,
    reshape_affine,
)
from xdsl.ir.affine import AffineExpr, AffineMap

EXTENTS = st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 12]), min_size=1, max_size=3)


def enumerate_map(map_: AffineMap, shape: list[int]) -> list[tuple[int, ...]]:
    return [tuple(e.eval(index, []) for e in map_.results) for index in itertools.product(*map(range, shape))]


@settings(max_examples=150, deadline=None)
@given(EXTENTS, st.data())
def test_normal_forms_of_random_maps(shape: list[int], data: st.DataObject) -> None:
    def expr(depth: int) -> AffineExpr:
        kind = data.draw(st.sampled_from(["dim", "const"] if not depth else ["dim", "add", "mul", "div", "mod"]))
        constant = data.draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
        match kind:
            case "dim":
                return AffineExpr.dimension(data.draw(st.integers(0, len(shape) - 1)))
            case "const":
                return AffineExpr.constant(constant)
            case "add":
                return expr(depth - 1) + expr(depth - 1)
            case "mul":
                return expr(depth - 1) * constant
            case "div":
                return expr(depth - 1) // constant
            case _:
                return expr(depth - 1) % constant

    map_ = AffineMap(len(shape), 0, tuple(expr(3) for _ in range(2)))
    points = enumerate_map(map_, shape)
    arrays = [np.broadcast_to(i, shape).reshape(-1) for i in evaluate_map(map_, [(0, s) for s in shape])]
    assert list(zip(*(a.tolist() for a in arrays), strict=True)) == points
    normal = IndexMap.try_affine(map_, shape)
    if normal is None:
        return
    assert normal.out_shape == tuple(shape)
    assert normal.bounds() == [(min(c), max(c)) for c in zip(*points, strict=True)]
    assert enumerate_map(normal.to_affine(), shape) == points
    assert IndexMap.from_affine(normal.to_affine(), shape).bounds() == normal.bounds()


@settings(max_examples=100, deadline=None)
@given(EXTENTS, st.randoms())
def test_every_reshape_is_right_and_refinable_ones_have_a_normal_form(shape: list[int], random) -> None:
    factors = [f for size in shape for f in {4: [2, 2], 6: [2, 3], 8: [2, 2, 2], 12: [2, 2, 3]}.get(size, [size])]
    random.shuffle(factors)
    cuts = sorted(random.choices(range(len(factors) + 1), k=2))
    other = [int(np.prod(factors[a:b])) for a, b in itertools.pairwise([0, *cuts, len(factors)])]
    x = np.arange(np.prod(shape)).reshape(shape)
    map_ = reshape_affine(shape, other)
    box = [(0, size) for size in other]
    assert map_stays_inside(map_, box, shape)
    assert np.array_equal(gather_box(map_, box, x), x.reshape(other))
    normal = IndexMap.reshape(shape, other)
    if normal is not None:
        assert np.array_equal(normal.gather(x), x.reshape(other))


def test_the_worked_example() -> None:
    normal = IndexMap.reshape((6, 4), (3, 8))
    assert normal is not None
    assert normal.atoms == ((3,), (2, 4))
    assert normal.exprs == ((((2, 0, 0), (1, 1, 0)), 0), (((1, 1, 1),), 0))
    assert IndexMap.reshape((6, 4), (8, 3)) is None
    with pytest.raises(NotMixedRadix, match="no mixed-radix form"):
        IndexMap.from_affine(reshape_affine((6, 4), (8, 3)), (8, 3))


def test_constructors_against_numpy() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    assert np.array_equal(IndexMap.permutation(x.shape, (2, 0, 1)).gather(x), x.transpose(2, 0, 1))
    assert np.array_equal(IndexMap.slice((2, 2, 2), (1, 0, 3), (-1, 2, -2)).gather(x), x[::-1, ::2, 3::-2])
    assert np.array_equal(
        IndexMap.broadcast((3, 1), (2, 3, 4)).gather(x[0, :, :1]), np.broadcast_to(x[0, :, :1], x.shape)
    )
    line = np.arange(11)
    windows = IndexMap.window((4, 3), [(0, 2, 1, 1, 1)])
    assert windows.gather(line).tolist() == [[1, 2, 3], [3, 4, 5], [5, 6, 7], [7, 8, 9]]
    assert map_stays_inside(windows.to_affine(), [(0, 4), (0, 3)], (10,))
    assert not map_stays_inside(windows.to_affine(), [(0, 4), (0, 3)], (9,))
    with pytest.raises(IndexError, match="reaches 1 to 9"):
        windows.gather(line[:9])


def test_a_box_is_gathered_where_only_it_stays_inside() -> None:
    map_ = AffineMap(1, 0, (AffineExpr.dimension(0) - 2,))
    assert gather_box(map_, [(2, 5)], np.arange(3)).tolist() == [0, 1, 2]
    assert not map_stays_inside(map_, [(1, 5)], (3,))
