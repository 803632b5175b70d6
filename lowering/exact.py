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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, permutations, product
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from ..dialects.errors import UserError
from ..dialects.graph_types import static_shape
from .bound import Bounder, Bounds, Numbers, Sizes, Totals
from .state import State
from .tile_sizes import all_sizes

if TYPE_CHECKING:
    from .search import Search

NEAREST = 6
"""With more structures than the search may make estimates, the space is too large to prove anything in time. It is
descended in, structure by structure; this is how many that begins with: those of the best states that are known."""
PERMUTED = 4
"""Loops of one kind of which every order is tried."""
POINTS = 10_000
"""For each estimate that the search may make: tile sizes, over all structures, that are bounded at most."""
STEPS = 1 << 16
"""Iterations of all loops that a candidate may have: simulating many more takes minutes where it finds no period. Where
the bytes of more could be fewer nothing is proved."""
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
        return int(self.bounds.bytes.ravel()[self.order[self.taken]])

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
    complete: bool = True
    points: int = 0
    visited: set[State] = field(default_factory=set[State])
    totals: Totals = field(default_factory=Totals)
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
        structures = list(islice(self.structures(), self.search.effort + 1))
        if len(structures) <= self.search.effort:
            found, proved = self.take(structures)
            self.proved = proved and self.complete
            return found
        found, _ = self.take(self.known())
        while self.points < POINTS * self.search.effort:
            best = found[0] if found else next(iter(self.known()), None)
            better = self.take(self.beside(best))[0] if best is not None else []
            if not better:
                break
            found = better
        return found

    def take(self, structures: Sequence[State]) -> tuple[list[State], bool]:
        """The states with the fewest bytes in these structures, if those are no more than what was known, and whether
        that is proved: candidates are estimated in turn of their bounds until none can be better."""
        parts: list[tuple[int, int, Part]] = []
        for state in structures:
            if state in self.visited:
                continue
            self.visited.add(state)
            self.points += prod(len(each) for each in self.sizes_of(state))
            if self.points > POINTS * self.search.effort:
                return [], False
            for part in self.parts(state):
                heapq.heappush(parts, (part.least, len(parts), part))
        found: list[State] = []
        number = len(parts)
        for _ in range(self.search.effort):
            if not parts or (self.best is not None and (parts[0][0], len(found)) >= (self.best, TIES)):
                return found, True
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
        return found, False

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

    def smallest(self, state: State) -> State:
        """A state's structure: the smallest tiles of the axes that it loops over."""
        extents = [axis.extent for axis in self.search.group.axes]
        tiles = tuple(s[0] if t < e else e for s, t, e in zip(self.sizes, state.tiles, extents, strict=True))
        return replace(state, tiles=tiles)

    def known(self) -> list[State]:
        """The structures of the best states that are known."""
        found: dict[State, None] = {}
        for state, _ in sorted(self.search.fits_by_state(), key=lambda pair: self.search.key(pair[1])):
            found.setdefault(self.smallest(replace(state, slots="one", skewed=0, pins=(), steps=2)))
            if len(found) == NEAREST:
                break
        return list(found)

    def beside(self, state: State) -> list[State]:
        """Structures that differ from one by the order of its loops over reduced axes, or of the others, and the level
        of one load, or by one axis that is looped over."""
        axes = self.search.group.axes
        looped = [a for a in state.order if state.tiles[a] < axes[a].extent]
        plain = replace(state, slots="one", skewed=0, pins=(), steps=2)
        found: dict[State, None] = {}
        for nest in self.orders(plain, looped):
            found.setdefault(nest)
            for load, level in enumerate(nest.levels):
                for other in self.search.levels(nest, load):
                    if other != level:
                        levels = (*nest.levels[:load], other, *nest.levels[load + 1 :])
                        found.setdefault(replace(nest, levels=levels))
        for axis, sizes in enumerate(self.sizes):
            if len(sizes) > 1:
                tiles = (
                    *plain.tiles[:axis],
                    sizes[0] if axis not in looped else axes[axis].extent,
                    *plain.tiles[axis + 1 :],
                )
                found.setdefault(replace(plain, tiles=tiles))
        return [self.smallest(each) for each in found]

    def orders(self, state: State, looped: Sequence[int]) -> Iterator[State]:
        """The state with its loops over reduced axes, or the others, in every order; loads stay at their loops."""
        reduced = self.search.reduced
        for kind in (False, True):
            mine = [a for a in looped if reduced[a] is kind]
            for order in permutations(mine) if len(mine) <= PERMUTED else [tuple(mine)]:
                moved = dict(zip(mine, order, strict=True))
                yield replace(state, order=tuple(moved.get(a, a) for a in state.order))

    def sizes_of(self, state: State) -> list[list[int]]:
        """The tile sizes of each axis in a structure."""
        axes = self.search.group.axes
        return [
            [size for size in sizes if size < axis.extent] if tile < axis.extent else [tile]
            for axis, sizes, tile in zip(axes, self.sizes, state.tiles, strict=True)
        ]

    def parts(self, state: State) -> Iterator[Part]:
        """The candidates of a structure that may fit and be as good as what is known, without and with pinned tiles."""
        loads = self.search.group.loads
        sizes = Sizes(dict(zip(self.search.group.axes, self.sizes_of(state), strict=True)))
        plain = self.bounds(state, sizes)
        if plain is None:
            return
        yield from self.part(state, None, sizes, plain, plain.fits)
        for number, load in enumerate(loads):
            if self.best is not None:  # at best everything that the load brings again is saved
                once = min(plain.reads[load].min(), prod(static_shape(self.search.group.inputs[load.arg])))
                if not (plain.fits & (plain.bytes - plain.reads[load] + once <= self.best)).any():
                    continue
            bounds = self.bounds(replace(state, pins=tuple(int(n == number) for n in range(len(loads)))), sizes)
            if bounds is not None:
                yield from self.part(state, number, sizes, bounds, bounds.fits & (bounds.pins > 0))

    def bounds(self, state: State, sizes: Sizes) -> Bounds | None:
        """None where the state is no schedule, or masks leave out tiles: then fewer bytes move than are counted."""
        search = self.search
        try:
            nest = search.place(search.schedule(state))
        except UserError:
            return None
        return None if nest.cuts else Bounder(nest, search.facts_of(nest), sizes, self.totals).run()

    def part(
        self, state: State, pinned: int | None, sizes: Sizes, bounds: Bounds, may: npt.NDArray[np.bool_]
    ) -> Iterator[Part]:
        if self.best is not None:
            may = may & (bounds.bytes <= self.best)
        steps = np.ones(sizes.shape, np.int64)
        for trips in sizes.trips.values():
            steps = steps * trips
        if (may & (steps > STEPS)).any():
            self.complete = False
        order = np.flatnonzero(may & (steps <= STEPS))
        if not len(order):
            return
        order = order[np.lexsort((steps.flat[order], bounds.bytes.flat[order]))]
        yield Part(state, pinned, sizes, bounds, order)

    # --- candidates -----------------------------------------------------------------------------------------------

    def fitting(self, state: State) -> Iterator[tuple[State, int]]:
        """The candidate as far as it fits, with its bytes: rows reduced in two steps or one, as many pins as fit."""
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
