"""Branch and bound over the schedules of one group: the fewest off-chip bytes, with a proof.

The space is divided into *structures*: which axes are looped over, in what order, the level at which each load is held,
the form of the reductions, and the load of which a fraction is pinned. For all tile sizes of a structure at once,
`bound` says how few bytes they can move and which cannot fit. Structures are taken in turn of the fewest bytes that are
left in them, and that candidate is estimated exactly; the search ends when no structure has a bound below what was
found.

Of the tile sizes with one number of tiles the smallest is enough: it moves no more bytes and needs no more memory.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, permutations, product
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..dialects.errors import UserError
from .bound import Bounder, Bounds, Numbers, Sizes
from .state import State
from .tile_sizes import all_sizes

if TYPE_CHECKING:
    from .search import Search

STRUCTURES = 400
"""With more structures than this the space is too large to prove anything in time: only the best few are looked at."""
NEAREST = 6
"""How many structures are looked at then: those of the best states that are known."""
POINTS = 4_000_000
"""Tile sizes, over all structures, that are bounded at most."""
ESTIMATES = 400
"""Candidates that are estimated exactly at most."""
TIES = 16
"""Of candidates with equally few bytes: how many are estimated, for the fewest cycles."""

Structure: TypeAlias = tuple[State, int | None]
"""Everything but the tile sizes of looped axes (in the state: the smallest) and the number of pinned tiles; the load
that is pinned."""


@dataclass(eq=False)
class Part:
    """What is left of a structure: positions of its tile sizes, fewest bytes first."""

    state: State
    pinned: int | None
    sizes: Sizes
    bounds: Bounds
    order: Numbers
    taken: int = 0

    @property
    def least(self) -> int:
        """The bound of the next candidate."""
        return int(self.bounds.bytes.flat[self.order[self.taken]])

    def take(self) -> State:
        """The next candidate."""
        index = int(self.order[self.taken])
        self.taken += 1
        state = replace(self.state, tiles=self.sizes.at(index))
        if self.pinned is None:
            return state
        count = int(self.bounds.pins.flat[index])
        return replace(state, pins=tuple(count * (load == self.pinned) for load in range(len(state.levels))))

    @property
    def left(self) -> bool:
        return self.taken < len(self.order)


@dataclass(eq=False)
class Exact:
    """Continues a search of which descents are over. `proved`: nothing in the space moves fewer bytes."""

    search: Search
    proved: bool = False
    sizes: list[list[int]] = field(init=False)
    best: int | None = field(init=False)

    def __post_init__(self) -> None:
        search = self.search
        self.sizes = [
            all_sizes(axis, block) if len(given) > 1 else given
            for axis, given, block in zip(search.group.axes, search.sizes, search.blocks, strict=True)
        ]
        self.best = min((choice.estimate.bytes for choice in search.fits()), default=None)

    def run(self) -> list[State]:
        """States with the fewest bytes that were found, if those are no more than what was known."""
        structures = list(islice(self.structures(), STRUCTURES + 1))
        complete = len(structures) <= STRUCTURES
        if not complete:
            structures = self.known()
        parts: list[tuple[int, int, Part]] = []
        points = 0
        for state in structures:
            points += prod(len(each) for each in self.sizes_of(state))
            if points > POINTS:
                complete = False
                break
            for pinned in (None, *range(len(state.levels))):
                part = self.part(state, pinned)
                if part is not None and part.left:
                    heapq.heappush(parts, (part.least, len(parts), part))
        return self.take(parts, complete)

    def take(self, parts: list[tuple[int, int, Part]], complete: bool) -> list[State]:
        """Estimates candidates in turn of their bounds, until none can be better."""
        found: list[State] = []
        number = len(parts)
        for _ in range(ESTIMATES):
            if not parts or (self.best is not None and (parts[0][0], len(found)) >= (self.best, TIES)):
                self.proved = complete
                break
            part = heapq.heappop(parts)[2]
            state = part.take()
            if part.left:
                number += 1
                heapq.heappush(parts, (part.least, number, part))
            for fitting, moved in self.fitting(state):
                if self.best is None or moved < self.best:
                    self.best, found = moved, []
                if moved == self.best:
                    found.append(fitting)
        return found

    # --- the space ------------------------------------------------------------------------------------------------

    def structures(self) -> Iterator[State]:
        """All structures."""
        group, reduced = self.search.group, self.search.reduced
        axes = range(len(group.axes))
        must = [a for a in axes if self.sizes[a][-1] < group.axes[a].extent]
        may = [a for a in axes if a not in must and len(self.sizes[a]) > 1]
        for count in range(len(may) + 1):
            for chosen in combinations(may, count):
                looped = sorted((*must, *chosen))
                tiles = tuple(self.sizes[a][0] if a in looped else group.axes[a].extent for a in axes)
                rest = [a for a in axes if a not in looped]
                inner = [a for a in looped if reduced[a]]
                for outside in permutations(a for a in looped if not reduced[a]):
                    for inside in permutations(inner):
                        order = (
                            *outside,
                            *(a for a in rest if not reduced[a]),
                            *inside,
                            *(a for a in rest if reduced[a]),
                        )
                        yield from self.held(State(tiles, order, (len(order),) * len(group.loads), "one"), bool(inner))

    def held(self, state: State, streams: bool) -> Iterator[State]:
        """The structures of one loop nest: every level for every load, every form of the reductions."""
        forms = (False, True) if self.search.cascades and streams else (False,)
        for levels in product(*(self.search.levels(state, load) for load in range(len(state.levels)))):
            for online in forms:
                yield replace(state, levels=levels, online=online)

    def known(self) -> list[State]:
        """The structures of the best states that are known."""
        found: dict[State, None] = {}
        for state, _ in sorted(self.search.fits_by_state(), key=lambda pair: self.search.key(pair[1])):
            extents = [axis.extent for axis in self.search.group.axes]
            tiles = tuple(s[0] if t < e else e for s, t, e in zip(self.sizes, state.tiles, extents, strict=True))
            found.setdefault(replace(state, tiles=tiles, slots="one", skewed=False, pins=(), steps=2))
            if len(found) == NEAREST:
                break
        return list(found)

    def sizes_of(self, state: State) -> list[list[int]]:
        """The tile sizes of each axis in a structure."""
        axes = self.search.group.axes
        return [
            [size for size in sizes if size < axis.extent] if tile < axis.extent else [tile]
            for axis, sizes, tile in zip(axes, self.sizes, state.tiles, strict=True)
        ]

    def part(self, state: State, pinned: int | None) -> Part | None:
        """The candidates of a structure that may fit and be as good as what is known; None where it is no schedule."""
        search, axes = self.search, self.search.group.axes
        first = state
        if pinned is not None:
            first = replace(state, pins=tuple(int(load == pinned) for load in range(len(state.levels))))
        try:
            nest = search.place(search.schedule(first))
        except UserError:
            return None
        if nest.cuts:
            return None
        sizes = Sizes(dict(zip(axes, self.sizes_of(state), strict=True)))
        bounds = Bounder(nest, search.target, search.roles, sizes).run()
        may = bounds.fits if pinned is None else bounds.fits & (bounds.pins > 0)
        if self.best is not None:
            may = may & (bounds.bytes <= self.best)
        order = np.flatnonzero(may)
        steps = np.ones(sizes.shape, np.int64)
        for trips in sizes.trips.values():
            steps = steps * trips
        order = order[np.lexsort((steps.flat[order], bounds.bytes.flat[order]))]
        return Part(state, pinned, sizes, bounds, order)

    # --- candidates -----------------------------------------------------------------------------------------------

    def fitting(self, state: State) -> Iterator[tuple[State, int]]:
        """The candidate as far as it fits, with its bytes: reducing rows in two steps or in one, and with fewer pins."""
        for steps in (2, 1):
            fitting = self.with_fewer_pins(replace(state, steps=steps))
            if fitting is None:
                continue
            choice = self.search.evaluate(fitting)
            assert choice is not None
            yield fitting, choice.estimate.bytes
            if fitting.pins == state.pins:
                return

    def with_fewer_pins(self, state: State) -> State | None:
        """The state with as many of its pins as fit; None if it does not fit at all."""
        count = max(state.pins, default=0)
        while True:
            choice = self.search.evaluate(state)
            if choice is None:
                return None
            if not choice.estimate.excess:
                return state
            if not count:
                return None
            count -= 1
            state = replace(state, pins=tuple(min(pins, count) for pins in state.pins))
