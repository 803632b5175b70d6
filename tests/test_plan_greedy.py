"""The greedy planner against brute force and its own bound, also on many buffers."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.lowering.plan_greedy import place_greedily
from tilewright.lowering.plan_interval import Interval, live_bytes, pins_clash
from tilewright.lowering.plan_large import place_many

from tilewright.plan_csv import Problem, check_offsets

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


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(0, 3), st.integers(0, 9)), max_size=8))
def test_pins_that_clash(drawn: list[tuple[int, int, int, int]]) -> None:
    given_ = [Interval(start, start + length, size, at) for start, length, size, at in drawn]
    bytes_ = [
        {(time, byte) for time in range(one.start, one.end) for byte in range(at, at + one.size)}
        for one, (_, _, _, at) in zip(given_, drawn, strict=True)
    ]
    clashes = {(i, j) for i, j in combinations(range(len(given_)), 2) if bytes_[i] & bytes_[j]}
    found = pins_clash(given_)
    assert found in clashes if clashes else found is None


def test_nothing_to_place() -> None:
    assert place_greedily([]).peak == 0


def test_many_buffers_beside_one_that_lives_throughout() -> None:
    """What lives beside the highest buffer is then nearly everything: it is left where first fit put it."""
    long = [Interval(0, 8000, 3200), Interval(0, 8000, 32)]
    given_ = [*(replace(one, size=one.size % 4096 + 32) for one in many(4000)), *long]
    found = place_greedily(given_)
    check(given_, found.offsets, found.peak)
    assert found.peak <= 1.2 * found.lower_bound


def many(count: int, seed: int = 0) -> list[Interval]:
    rng = random.Random(seed)
    starts = (rng.randrange(count) for _ in range(count))
    return [Interval(start, start + 1 + int(rng.expovariate(0.05)), 32 * rng.randint(1, 1000)) for start in starts]


def test_many_buffers_are_placed_tightly() -> None:
    found = place_greedily(many(10_000))
    assert found.peak <= 1.03 * found.lower_bound
    check_offsets(Problem(tuple(map(str, range(10_000))), tuple(many(10_000))), found.offsets)


@given(st.lists(intervals, min_size=1, max_size=40), st.data())
@settings(deadline=None, max_examples=60)
def test_the_way_for_many_is_right_for_few(given_: list[Interval], data: st.DataObject) -> None:
    first = replace(given_[0], pinned=data.draw(st.integers(0, 20)) * 32)
    given_ = [first, *(replace(one, align=data.draw(st.sampled_from([1, 32, 96]))) for one in given_[1:])]
    found = place_many(given_, place_greedily)
    check_offsets(Problem(tuple(map(str, range(len(given_)))), tuple(given_)), found.offsets)
    assert found.offsets[0] == first.pinned
    assert found.lower_bound == live_bytes(given_)[0] <= found.peak
