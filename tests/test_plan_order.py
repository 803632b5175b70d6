"""The order of launches: never above the given one's peak, the lowest there is, and the same results."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan import load, offset, plan
from tile_kernels import RAGGED_MAP
from tilewright.dialects import tile
from tilewright.lowering import plan_order
from tilewright.lowering.plan_names import WORKSPACE
from tilewright.lowering.plan_order import Launches, best_order
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp

T = "tensor<10x7xf32>"


def program(edges: list[tuple[str, str]], results: str) -> str:
    """Launches of the ragged kernel, one per edge: from a value to the value it makes."""
    names = results.split()
    head = RAGGED_MAP.split("    %o = ", 1)[0].replace(f") -> {T} {{", f") -> ({', '.join([T] * len(names))}) {{")
    calls = [f'    %{made} = "tile.launch"(%{of}) <{{callee = @k}}> : ({T}) -> {T}' for of, made in edges]
    last = f"    func.return {', '.join(f'%{name}' for name in names)} : {', '.join([T] * len(names))}"
    return "\n".join([head.rstrip(), *calls, last, "  }", "}"])


def test_launches_move_where_that_lowers_the_peak() -> None:
    text = program([("x", "a"), ("x", "b"), ("x", "c"), ("a", "p"), ("b", "q"), ("c", "r")], "p q r")
    module = plan(text)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    held = {offset(op) for op in function.body.block.ops if isinstance(op, tile.AllocOp)}
    assert len(held) == 1  # a, b and c one after another
    workspace = function.attributes[WORKSPACE]
    assert isinstance(workspace, IntegerAttr) and workspace.value.data == 288
    inputs = [np.random.default_rng(0).standard_normal((10, 7))]
    for one, other in zip(evaluate_tile(module, inputs), evaluate_tile(load(text, "davinci"), inputs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_an_order_that_is_as_good_stays() -> None:
    assert best_order(Launches((0, 1, 0, 4), ((5, 3), (5, 12)))) == [0, 1, 2, 3]


@st.composite
def programs(draw: st.DrawFn) -> Launches:
    count = draw(st.integers(1, 6))
    before = tuple(draw(st.integers(0, (1 << n) - 1)) for n in range(count))
    users = st.integers(1, (1 << count) - 1)
    return Launches(before, tuple(draw(st.lists(st.tuples(st.integers(1, 9), users), max_size=6))))


def is_legal(launches: Launches, order: list[int]) -> bool:
    done = 0
    for launch in order:
        if launches.before[launch] & ~done:
            return False
        done |= 1 << launch
    return sorted(order) == list(range(len(launches.before)))


@given(programs())
@settings(deadline=None, max_examples=150)
def test_no_legal_order_has_a_lower_peak(launches: Launches) -> None:
    order = best_order(launches)
    assert is_legal(launches, order)
    every = permutations(range(len(launches.before)))
    assert launches.peak(order) == min(launches.peak(one) for one in every if is_legal(launches, list(one)))


@given(programs())
@settings(deadline=None, max_examples=60)
def test_what_is_too_much_to_search_is_not_made_worse(launches: Launches) -> None:
    before, plan_order.STATES = plan_order.STATES, 0
    try:
        order = best_order(launches)
    finally:
        plan_order.STATES = before
    assert is_legal(launches, order)
    assert launches.peak(order) <= launches.peak(range(len(order)))
