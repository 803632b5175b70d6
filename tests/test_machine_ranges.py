"""Ranges of affine expressions hold every value, and bounds that never bind are found."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from tilewright.dialects.affine_eval import evaluate
from tilewright.runtime.machine.ranges import range_of, without_idle
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

NUMBERS = st.integers(-9, 9)
DIVISORS = st.integers(1, 7)


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> AffineExpr:
    kind = draw(st.integers(0, 6 if depth else 1))
    if kind == 0:
        return AffineConstantExpr(draw(NUMBERS))
    if kind == 1:
        return AffineDimExpr(draw(st.integers(0, 1)))
    inner = draw(expressions(depth - 1))
    match kind:
        case 2:
            return inner + draw(expressions(depth - 1))
        case 3:
            return inner * draw(NUMBERS)
        case 4:
            return inner % draw(DIVISORS)
        case 5:
            return inner // draw(DIVISORS)
        case _:
            return inner.ceil_div(draw(DIVISORS))


@given(expressions(), st.tuples(NUMBERS, st.integers(0, 5)), st.tuples(NUMBERS, st.integers(0, 5)))
def test_every_value_lies_in_the_range(expr: AffineExpr, first: tuple[int, int], second: tuple[int, int]) -> None:
    dims = [(low, low + length) for low, length in (first, second)]
    found = range_of(expr, dims)
    assert found is not None
    for point in product(*(range(low, high + 1) for low, high in dims)):
        assert found[0] <= evaluate(expr, point) <= found[1]


def test_bounds_that_never_bind() -> None:
    i = AffineDimExpr(0)
    exact, ragged = i * -64 + 512, i * -64 + 500
    assert without_idle([exact, ragged], [64, 64], [(0, 7)], False) == [AffineConstantExpr(64), ragged]
    assert without_idle([i * -1, i + -1], [0, 0], [(0, 7)], True) == [AffineConstantExpr(0), i + -1]
