"""The compiled search takes over from the pure one and finds the same, after the same number of nodes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan_search import GAPS, aligned, both, decide, problem_of, tight
from tilewright.lowering import plan_search
from tilewright.lowering.plan_exhaust import Exhaustive
from tilewright.lowering.plan_interval import Interval, live_bytes
from tilewright.lowering.plan_search import place

pytest.importorskip("numba", reason="the extra 'fast' is not installed")


def busy(seed: int, count: int = 90) -> list[Interval]:
    """More than 64 buffers, so that sets take several words; some aligned, one pinned."""
    rng = random.Random(seed)
    made: list[Interval] = []
    for number in range(count):
        start = rng.randrange(40)
        size, align = rng.randint(1, 30), rng.choice((1, 1, 1, 4))
        made.append(Interval(start, start + rng.randint(1, 12), size, 8 if number == 0 else None, align))
    return made


@both
@given(st.one_of(tight().filter(bool), aligned, st.sampled_from(GAPS)))
@settings(deadline=None, max_examples=60)
def test_it_decides_every_target(branch: plan_search.Branch, given_: list[Interval]) -> None:
    live = live_bytes(given_)[0]
    for target in range(live, live + 4):
        assert decide(branch, given_, target, compiled=True) == decide(branch, given_, target)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("handed_over", [0, 150])
@pytest.mark.parametrize("table", [6_000_000, 2000])
@both
def test_the_same_nodes_and_failed_states(branch: plan_search.Branch, table: int, handed_over: int, seed: int) -> None:
    problem = problem_of(busy(seed))
    weight = [random.Random(seed + b).random() for b in range(problem.count)]
    pure, before = (Exhaustive(problem, problem.lower_bound + 1, table) for _ in range(2))
    for search in (pure, before):
        search.run(branch, weight, handed_over)
    compiled = plan_search.compiler()
    assert compiled is not None
    after = compiled(before)
    for limit in (100, 400):
        assert pure.run(branch, weight, limit) == after.run(branch, weight, limit)
        assert pure.nodes == after.nodes
    held = sum(2 + len(floors) + (problem.count - 1) // 64 for _, _, floors in pure.failed())
    assert after.known.top[0] == held


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_does_not_depend_on_it(seed: int) -> None:
    given_ = busy(seed, 70)
    found = place(given_, None, 3000, seed, compiled=False)
    assert found == place(given_, None, 3000, seed, compiled=True)
    assert found.nodes > 0
