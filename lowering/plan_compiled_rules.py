"""What `plan_compiled` is made of: `plan_floors`, `plan_skyline` and `plan_canonical` over arrays, for numba.

The reasons for each step stand there. Sets of buffers are rows of 64-bit words. All numbers that meet them are 64-bit
words too: numba turns mixed signs into floating point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .plan_floors import NEVER
from .plan_problem import FREE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])

    def njit(**options: object) -> Callable[[_F], _F]: ...
else:
    from numba import njit

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

ZERO, ONE = np.uint64(0), np.uint64(1)
_M1, _M2, _M4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
_H1, _U1, _U2, _U4, _U56 = np.uint64(0x0101010101010101), np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


class Tables(NamedTuple):
    """A `Problem` as arrays; sets of buffers have one row of words each."""

    size: Ints
    first: Ints
    last: Ints
    pin: Ints
    align: Ints
    twin: Ints  # the twin's number, -1 where there is none
    cover: Words
    starts_from: Words
    ends_by: Words
    pinned: Words
    choosy: Words


# --- sets ---------------------------------------------------------------------------------------------------------


@njit(cache=True)
def count_bits(word: Any) -> Any:
    word = word - ((word >> _U1) & _M1)
    word = (word & _M2) + ((word >> _U2) & _M2)
    word = (word + (word >> _U4)) & _M4
    return np.int64((word * _H1) >> _U56)


@njit(cache=True)
def lowest_bit(word: Any) -> Any:
    """The number of the lowest bit of a word that is not 0."""
    return count_bits((word & (~word + ONE)) - ONE)


@njit(cache=True)
def _has(row: Any, b: int) -> bool:
    return (row[b >> 6] >> np.uint64(b & 63)) & ONE != ZERO


@njit(cache=True)
def _rest(b: int, height: int, t: Any) -> int:
    if t.pin[b] != FREE:
        return t.pin[b]
    return -(-height // t.align[b]) * t.align[b]


# --- floors -------------------------------------------------------------------------------------------------------


@njit(cache=True)
def raise_floors(
    waiting: Any, begin: int, end: int, floor: Any, slack: Any, t: Any, runs: Any, valleys: Any, inner: Any
) -> int:
    """Number of valleys (rows of `valleys`: first, last, left, right; insides in `inner`), -1 where nothing fits."""
    words = len(waiting)
    found, raised = 0, True
    while raised:
        raised, found = False, 0
        count = 0
        runs[0, 0], runs[0, 2] = begin, floor[begin]
        for section in range(begin + 1, end + 1):
            if floor[section] != runs[count, 2]:
                runs[count, 1] = section - 1
                count += 1
                runs[count, 0], runs[count, 2] = section, floor[section]
        runs[count, 1] = end
        count += 1
        for k in range(count):
            first, last, height = runs[k, 0], runs[k, 1], runs[k, 2]
            a, z = k - 1, k + 1
            while a >= 0 and runs[a, 2] <= height:
                a -= 1
            while z < count and runs[z, 2] <= height:
                z += 1
            left = runs[a, 1] if a >= 0 else begin - 1
            right = runs[z, 0] if z < count else end + 1
            inside = inner[found]
            for w in range(words):
                inside[w] = waiting[w] & t.starts_from[left + 1, w] & t.ends_by[right - 1, w]
            if a == k - 1 and z == k + 1:
                valleys[found, 0], valleys[found, 1] = first, last
                valleys[found, 2] = floor[left] if a >= 0 else NEVER
                valleys[found, 3] = floor[right] if z < count else NEVER
                found += 1
            for section in range(first, last + 1):
                to, rests = NEVER, False
                for w in range(words):
                    here = inside[w] & t.cover[section, w]
                    if here & t.choosy[w] == ZERO:
                        if here != ZERO:
                            rests = True
                            break
                        continue
                    while here != ZERO:
                        b = w * 64 + lowest_bit(here)
                        lowest = _rest(b, height, t)
                        if lowest <= height:
                            rests = True
                            break
                        to = min(to, lowest)
                        here &= here - ONE
                    if rests:
                        break
                if rests:
                    continue
                over_left, over_right = False, False
                for w in range(words):
                    over = waiting[w] & t.cover[section, w]
                    if a >= 0 and over & t.cover[left, w] != ZERO:
                        over_left = True
                    if z < count and over & t.cover[right, w] != ZERO:
                        over_right = True
                if over_left:
                    to = min(to, floor[left])
                if over_right:
                    to = min(to, floor[right])
                slack[section] -= to - height
                if slack[section] < 0:
                    return -1
                floor[section] = to
                raised = True
    for w in range(words):
        pinned = waiting[w] & t.pinned[w]
        while pinned != ZERO:
            b = w * 64 + lowest_bit(pinned)
            for section in range(t.first[b], t.last[b] + 1):
                if floor[section] > t.pin[b]:
                    return -1
            pinned &= pinned - ONE
    return found


# --- branching ----------------------------------------------------------------------------------------------------
# Steps are rows of an array: buffer (-1 for a gap), section, height, others; with the keys they are sorted by.


@njit(cache=True)
def _sort(steps: Any, keys: Any, begin: int, end: int) -> None:
    """By the first key, the second, then the buffer; the last is tried first."""
    for i in range(begin + 1, end):
        j = i
        while j > begin:
            lower = keys[j, 0] < keys[j - 1, 0]
            if keys[j, 0] == keys[j - 1, 0]:
                lower = keys[j, 1] < keys[j - 1, 1]
                if keys[j, 1] == keys[j - 1, 1]:
                    lower = steps[j, 0] < steps[j - 1, 0]
            if not lower:
                break
            for c in range(4):
                steps[j, c], steps[j - 1, c] = steps[j - 1, c], steps[j, c]
            for c in range(2):
                keys[j, c], keys[j - 1, c] = keys[j - 1, c], keys[j, c]
            j -= 1


@njit(cache=True)
def skyline(
    waiting: Any, floor: Any, slack: Any, weight: Any, t: Any, valleys: Any, inner: Any, found: int,
    steps: Any, keys: Any, top: int,
) -> int:  # fmt: skip
    words = len(waiting)
    best_choices, best_width, best_height = NEVER, 0, 0
    section, chosen = -1, 0
    for v in range(found):
        width, height = valleys[v, 1] - valleys[v, 0], floor[valleys[v, 0]]
        for s in range(valleys[v, 0], valleys[v, 1] + 1):
            choices = 1 if slack[s] > 0 else 0
            for w in range(words):
                choices += count_bits(inner[v, w] & t.cover[s, w])
            if choices < best_choices or (
                choices == best_choices and (-width < best_width or (-width == best_width and height < best_height))
            ):
                best_choices, best_width, best_height = choices, -width, height
                section, chosen = s, v
    height = floor[section]
    begin = top
    if slack[section]:
        above = _above_gap(waiting, height, section, valleys[chosen], inner[chosen], t)
        if above - height <= slack[section]:
            steps[top, 0], steps[top, 1], steps[top, 2], steps[top, 3] = -1, section, above, 0
            top += 1
            begin = top
    for w in range(words):
        here = inner[chosen, w] & t.cover[section, w]
        while here != ZERO:
            b = w * 64 + lowest_bit(here)
            here &= here - ONE
            if (t.twin[b] < 0 or not _has(waiting, t.twin[b])) and _rest(b, height, t) <= height:
                steps[top, 0], steps[top, 1], steps[top, 2], steps[top, 3] = b, section, height, 0
                keys[top, 0], keys[top, 1] = weight[b], 0.0
                top += 1
    _sort(steps, keys, begin, top)
    return top


@njit(cache=True)
def _above_gap(waiting: Any, height: int, section: int, valley: Any, inside: Any, t: Any) -> int:
    first, last, left, right = valley[0], valley[1], valley[2], valley[3]
    above = NEVER
    over_left, over_right = False, False
    support, outer = -1, -1
    for w in range(len(waiting)):
        over = waiting[w] & t.cover[section, w]
        over_left = over_left or over & t.cover[first - 1, w] != ZERO
        over_right = over_right or over & t.cover[last + 1, w] != ZERO
        beside = inside[w] & ~t.cover[section, w]
        if support < 0 and beside != ZERO:
            support = w * 64 + lowest_bit(beside)
        beside = waiting[w] & ~t.starts_from[last + 1, w] & ~t.ends_by[first - 1, w] & ~inside[w] & ~t.cover[section, w]
        if outer < 0 and beside != ZERO:
            outer = w * 64 + lowest_bit(beside)
        choosy = over & t.choosy[w]
        while choosy != ZERO:
            lowest = _rest(w * 64 + lowest_bit(choosy), height, t)
            if lowest > height:
                above = min(above, lowest)
            choosy &= choosy - ONE
    if over_left:
        above = min(above, left)
    if over_right:
        above = min(above, right)
    if support >= 0:
        above = min(above, height + t.size[support])
    if outer >= 0:
        above = min(above, min(left, right) + t.size[outer])
    return above


@njit(cache=True)
def canonical_steps(waiting: Any, floor: Any, weight: Any, t: Any, steps: Any, keys: Any, top: int) -> int:
    begin, limit = top, NEVER
    for w in range(len(waiting)):
        here = waiting[w]
        while here != ZERO:
            b = w * 64 + lowest_bit(here)
            here &= here - ONE
            height = t.pin[b]
            if height == FREE:
                for section in range(t.first[b], t.last[b] + 1):
                    height = max(height, floor[section])
                height = _rest(b, height, t)
                limit = min(limit, height + t.size[b])
            if t.twin[b] < 0 or not _has(waiting, t.twin[b]):
                steps[top, 0], steps[top, 1], steps[top, 2], steps[top, 3] = b, 0, height, height
                keys[top, 0], keys[top, 1] = -height, weight[b]
                top += 1
    kept = begin
    for i in range(begin, top):
        if steps[i, 2] < limit:
            for c in range(4):
                steps[kept, c] = steps[i, c]
            for c in range(2):
                keys[kept, c] = keys[i, c]
            kept += 1
    _sort(steps, keys, begin, kept)
    return kept
