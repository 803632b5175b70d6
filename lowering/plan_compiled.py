"""The searches of `plan_exhaust`, compiled by numba: the same nodes in the same order, many times as fast.

Optional (the extra `fast`). It takes over a search that has become long, table of failed states included, so that what
is found does not depend on whether numba is there. Sets of buffers are rows of 64-bit words, partial plans are rows of
preallocated arrays. The search mirrors `plan_exhaust`, where the reasons stand, and `plan_compiled_rules` the rest;
tests run both and compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .plan_canonical import branch_canonical
from .plan_compiled_rules import (
    ONE,
    ZERO,
    Ints,
    Tables,
    Words,
    canonical_steps,
    count_bits,
    njit,
    raise_floors,
    skyline,
)  # fmt: skip
from .plan_exhaust import Branch, Exhaustive
from .plan_problem import Problem

FOUND, REFUTED, UNDECIDED = 1, 0, -1
BUCKETS = 1 << 18
_MIX, _MIXED = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
_SHIFT = np.uint64(64 - 18)  # leaves the bits of a bucket


class Rows(NamedTuple):
    """Partial plans, one per row: waiting buffers, window, floors, slacks."""

    waiting: Words
    window: Ints
    floor: Ints
    slack: Ints


class Known(NamedTuple):
    """Failed states: chains of entries (next entry, waiting, floors) in one pool, `top[0]` words of which are taken;
    above `top[1]` it is emptied. `heads` of chains by hash."""

    heads: Ints
    pool: Ints
    top: Ints


class CompiledExhaustive:
    """Goes on where an `Exhaustive` has stopped; `run` is the same."""

    def __init__(self, before: Exhaustive) -> None:
        self.problem, self.target, self.nodes = before.problem, before.target, before.nodes
        self.words = (self.problem.count + 63) // 64
        self.tables = _tables(self.problem, self.words)
        entry = self.words + 1 + self.problem.sections
        top = np.array([0, before.table], np.int64)
        self.known = Known(np.full(BUCKETS, -1, np.int64), np.empty(before.table + 2 * entry, np.int64), top)
        for waiting, window, floors in before.failed():
            row = np.zeros(self.problem.sections + 2, np.int64)
            row[window[0] : window[1] + 1] = floors
            _fail(_row(waiting, self.words), row, window[0], window[1], self.known)

    def run(self, branch: Branch, weight: Sequence[float], limit: int) -> list[int] | bool:
        problem = self.problem
        if problem.lower_bound > self.target:
            return False
        slack = np.array([self.target - live for live in problem.live], np.int64)
        waiting = _row((1 << problem.count) - 1, self.words)
        weights = np.array(weight, np.float64)
        code, nodes, offsets = _run(branch is branch_canonical, weights, limit, waiting, slack, self.tables, self.known)
        self.nodes += int(nodes)
        return [int(offset) for offset in offsets] if code == FOUND else code == UNDECIDED


def _row(buffers: int, words: int) -> Words:
    return np.frombuffer(buffers.to_bytes(8 * words, "little"), np.dtype("<u8")).astype(np.uint64)


def _tables(problem: Problem, words: int) -> Tables:
    def numbers(values: Sequence[int]) -> Ints:
        return np.array(values, np.int64)

    def sets(values: Sequence[int]) -> Words:
        return np.array([_row(one, words) for one in values], np.uint64).reshape(len(values), words)

    return Tables(
        numbers(problem.size), numbers(problem.first), numbers(problem.last), numbers(problem.pin),
        numbers(problem.align), numbers([one.bit_length() - 1 for one in problem.twin]),
        sets(problem.cover), sets(problem.starts_from), sets(problem.ends_by),
        _row(problem.pinned, words), _row(problem.choosy, words),
    )  # fmt: skip


# --- failed states ------------------------------------------------------------------------------------------------


@njit(cache=True)
def _bucket(waiting: Any) -> Any:
    mixed = ZERO
    for w in range(len(waiting)):
        mixed = (mixed ^ waiting[w]) * _MIX
        mixed ^= mixed >> _MIXED
    return np.int64((mixed * _MIX) >> _SHIFT)


@njit(cache=True)
def _fail(waiting: Any, floor: Any, first: int, last: int, known: Any) -> None:
    if known.top[0] > known.top[1]:
        known.heads[:] = -1
        known.top[0] = 0
    bucket, at = _bucket(waiting), known.top[0]
    known.pool[at] = known.heads[bucket]
    known.heads[bucket] = at
    at += 1
    for w in range(len(waiting)):
        known.pool[at] = np.int64(waiting[w])
        at += 1
    for section in range(first, last + 1):
        known.pool[at] = floor[section]
        at += 1
    known.top[0] = at


@njit(cache=True)
def _is_known(waiting: Any, floor: Any, first: int, last: int, known: Any) -> bool:
    at = known.heads[_bucket(waiting)]
    while at >= 0:
        same = True
        for w in range(len(waiting)):
            if known.pool[at + 1 + w] != np.int64(waiting[w]):
                same = False
                break
        if same:
            floors = at + 1 + len(waiting) - first
            for section in range(first, last + 1):
                if floor[section] < known.pool[floors + section]:
                    same = False
                    break
            if same:
                return True
        at = known.pool[at]
    return False


# --- the search ---------------------------------------------------------------------------------------------------


@njit(cache=True)
def _after(step: Any, state: int, rows: Any, to: int, t: Any) -> bool:
    """Writes what a step leads to into row `to`; False if it leaves too little room in a section."""
    first, last = rows.window[state, 0], rows.window[state, 1]
    floor, slack = rows.floor[to], rows.slack[to]
    rows.window[to, 0], rows.window[to, 1] = first, last
    floor[first : last + 1] = rows.floor[state, first : last + 1]
    slack[first : last + 1] = rows.slack[state, first : last + 1]
    rows.waiting[to] = rows.waiting[state]
    b, height, others = step[0], step[2], step[3]
    if b < 0:
        slack[step[1]] -= height - floor[step[1]]
        floor[step[1]] = height
        return True
    if others:
        for section in range(first, last + 1):
            wasted = others - floor[section]
            if wasted > 0:
                slack[section] -= wasted
                if slack[section] < 0:
                    return False
                floor[section] = others
    for section in range(t.first[b], t.last[b] + 1):
        slack[section] -= height - floor[section]
        if slack[section] < 0:
            return False
        floor[section] = height + t.size[b]
    rows.waiting[to, b >> 6] &= ~(ONE << np.uint64(b & 63))
    return True


@njit(cache=True)
def _split(rows: Any, whole: int, t: Any, runs: Any) -> int:
    """Turns row `whole` into one row per independent window, from `whole` on; the smallest is the last."""
    waiting = rows.waiting[whole].copy()
    first, last = rows.window[whole, 0], rows.window[whole, 1]
    words, count, begin = len(waiting), 0, 0
    before = np.zeros(words, np.uint64)
    alive = np.zeros(words, np.uint64)
    for section in range(first, last + 1):
        carried, any_before = False, False
        for w in range(words):
            alive[w] = t.cover[section, w] & waiting[w]
            carried = carried or alive[w] & before[w] != ZERO
            any_before = any_before or before[w] != ZERO
        if not carried:
            if any_before:
                runs[count, 0], runs[count, 1] = begin, section - 1
                count += 1
            begin = section
        before[:] = alive
    for w in range(words):
        if before[w] != ZERO:
            runs[count, 0], runs[count, 1] = begin, last
            count += 1
            break
    if count == 1:
        rows.window[whole, 0], rows.window[whole, 1] = runs[0, 0], runs[0, 1]
        return 1
    for k in range(count):
        runs[k, 2] = 0
        for w in range(words):
            runs[k, 2] += count_bits(waiting[w] & t.starts_from[runs[k, 0], w] & t.ends_by[runs[k, 1], w])
    for i in range(1, count):
        j = i
        while j > 0 and runs[j, 2] > runs[j - 1, 2]:
            for c in range(3):
                runs[j, c], runs[j - 1, c] = runs[j - 1, c], runs[j, c]
            j -= 1
    # The first window goes to the row that holds the whole, when the others have been copied from it.
    for k in range(count - 1, -1, -1):
        low, high, to = runs[k, 0], runs[k, 1], whole + k
        for w in range(words):
            rows.waiting[to, w] = waiting[w] & t.starts_from[low, w] & t.ends_by[high, w]
        rows.window[to, 0], rows.window[to, 1] = low, high
        if k:
            rows.floor[to, low : high + 1] = rows.floor[whole, low : high + 1]
            rows.slack[to, low : high + 1] = rows.slack[whole, low : high + 1]
    return count


@njit(cache=True)
def _make_rows(count: int, words: int, sections: int) -> Any:
    return Rows(
        np.zeros((count, words), np.uint64), np.zeros((count, 2), np.int64),
        np.zeros((count, sections), np.int64), np.zeros((count, sections), np.int64),
    )  # fmt: skip


@njit(cache=True)
def _run(canonical: bool, weight: Any, limit: int, everything: Any, slack: Any, t: Any, known: Any) -> Any:
    words, sections, count = len(everything), len(slack), len(t.size)
    rows = _make_rows(2 * sections, words, sections)
    steps, keys = np.empty((4 * count, 4), np.int64), np.empty((4 * count, 2), np.float64)
    # Per frame: row, first step, end of the steps, placed, pending.
    frames = np.empty((sections, 5), np.int64)
    placed = np.empty((count, 2), np.int64)
    runs, valleys = np.empty((sections, 3), np.int64), np.empty((sections + 1, 4), np.int64)
    inner = np.empty((sections + 1, words), np.uint64)
    offsets = np.zeros(count, np.int64)
    rows.waiting[1], rows.slack[1] = everything, slack
    rows.window[1, 0], rows.window[1, 1] = 1, sections - 2
    frames[0] = 0
    frames[0, 4] = _split(rows, 1, t, runs)
    depth, done, nodes = 0, 0, 0
    while depth >= 0:
        if frames[depth, 4] == 0:
            depth -= 1
            continue
        if nodes >= limit:
            return UNDECIDED, nodes, offsets
        nodes += 1
        frames[depth, 4] -= 1
        state = frames[depth, 0] + 1 + frames[depth, 4]
        if state + sections + 2 > len(rows.window):
            larger = _make_rows(2 * len(rows.window), words, sections)
            half = len(rows.window)
            larger.waiting[:half], larger.window[:half] = rows.waiting, rows.window
            larger.floor[:half], larger.slack[:half] = rows.floor, rows.slack
            rows = larger
        waiting, floor, room = rows.waiting[state], rows.floor[state], rows.slack[state]
        first, last = rows.window[state, 0], rows.window[state, 1]
        found = raise_floors(waiting, first, last, floor, room, t, runs, valleys, inner)
        if found >= 0 and not _is_known(waiting, floor, first, last, known):
            top = frames[depth, 2]
            if top + count + 1 > len(steps):
                more, more_keys = np.empty((2 * len(steps), 4), np.int64), np.empty((2 * len(steps), 2), np.float64)
                more[: len(steps)], more_keys[: len(keys)] = steps, keys
                steps, keys = more, more_keys
            if depth + 2 > len(frames):
                deeper = np.empty((2 * len(frames), 5), np.int64)
                deeper[: len(frames)] = frames
                frames = deeper
            if canonical:
                end = canonical_steps(waiting, floor, weight, t, steps, keys, top)
            else:
                end = skyline(waiting, floor, room, weight, t, valleys, inner, found, steps, keys, top)
            depth += 1
            frames[depth, 0], frames[depth, 1], frames[depth, 2] = state, top, end
            frames[depth, 3], frames[depth, 4] = done, 0
        # The next step of the innermost state that has one.
        moved = False
        while depth > 0 and not moved:
            done = frames[depth, 3]
            state = frames[depth, 0]
            while frames[depth, 2] > frames[depth, 1] and not moved:
                frames[depth, 2] -= 1
                step = steps[frames[depth, 2]]
                if _after(step, state, rows, state + 1, t):
                    if step[0] >= 0:
                        placed[done, 0], placed[done, 1] = step[0], step[2]
                        done += 1
                    frames[depth, 4] = _split(rows, state + 1, t, runs)
                    moved = True
            if not moved:
                _fail(rows.waiting[state], rows.floor[state], rows.window[state, 0], rows.window[state, 1], known)
                depth -= 1
        if not moved:
            return REFUTED, nodes, offsets
    for i in range(done):
        offsets[placed[i, 0]] = placed[i, 1]
    return FOUND, nodes, offsets
