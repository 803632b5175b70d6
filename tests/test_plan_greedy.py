"""The greedy planner against brute force and its own bound; its speed on many buffers."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.lowering.plan_greedy import Interval, live_bytes, place_greedily

intervals = st.builds(
    lambda start, length, size: Interval(start, start + length, size * 32),
    st.integers(0, 20),
    st.integers(1, 10),
    st.integers(1, 8),
)


def check(given_: list[Interval], offsets: tuple[int, ...], peak: int) -> None:
    for i, (one, a) in enumerate(zip(given_, offsets, strict=True)):
        assert a >= 0 and a % 32 == 0 and a + one.size <= peak
        for other, b in zip(given_[:i], offsets[:i], strict=True):
            if one.start < other.end and other.start < one.end:
                assert a + one.size <= b or b + other.size <= a


@given(st.lists(intervals, max_size=25))
@settings(deadline=None)
def test_no_overlap_and_not_below_the_bound(given_: list[Interval]) -> None:
    found = place_greedily(given_)
    check(given_, found.offsets, found.peak)
    live = max((sum(o.size for o in given_ if o.start <= t < o.end) for t in range(40)), default=0)
    assert found.lower_bound == live == live_bytes(given_)[0] <= found.peak


@given(st.lists(intervals, min_size=1, max_size=10))
@settings(deadline=None)
def test_pinned_intervals_stay(given_: list[Interval]) -> None:
    first = given_[0]
    held = [Interval(first.start, first.end, first.size, 320), *given_[1:]]
    found = place_greedily(held)
    assert found.offsets[0] == 320
    check(held, found.offsets, found.peak)


def test_nothing_to_place() -> None:
    assert place_greedily([]).peak == 0


@pytest.mark.parametrize("count", [10_000])
def test_many_buffers_are_fast_and_tight(count: int) -> None:
    rng = random.Random(0)
    many = [
        Interval(start, start + 1 + int(rng.expovariate(0.05)), 32 * rng.randint(1, 1000))
        for start in (rng.randrange(count) for _ in range(count))
    ]
    begin = time.process_time()
    found = place_greedily(many)
    assert time.process_time() - begin < 10
    assert found.peak <= 1.25 * found.lower_bound
