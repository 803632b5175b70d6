"""The search for schedules of one group: tile sizes per memory level, loop order, what is held, slot counts.

A descent from several starts over a discrete space: in each step every change of one tile size, of two neighbouring
loops, of one held load or of the slots is estimated and the best taken. All estimates are kept, so that the pass can
fall back to the next one. Deterministic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, permutations, product
from typing import Literal, TypeAlias, TypeVar

from ..dialects.errors import UserError
from ..dialects.graph_primitives import MapOp
from ..dialects.schedule import Schedule
from ..dialects.target_model import Target
from .core_grids import core_grids
from .estimate import Estimate, estimate
from .exact import Exact
from .facts import Facts
from .group import Group
from .matrix_sums import summed_by_products
from .nest import Nest, default_hold
from .nest_build import place_nest
from .nest_stages import staged_loops
from .online import derive
from .place_routes import route
from .roles import Roles
from .state import MOST_SLOTS, SKEWS, SLOT_MODES, Skewed, State
from .tile_sizes import granularity, inner_tiles, known_tiles, round_up, tile_sizes

_T = TypeVar("_T")
BOUNDED_STARTS = 2
"""Starts of descents that are followed by branch and bound, if something that they find fits."""

Objective: TypeAlias = Literal["time", "traffic"]
Kind: TypeAlias = tuple[str, Skewed, bool]
"""A strategy, how stages run ahead of one another, and whether all slots fit through their loops."""


@dataclass(frozen=True)
class Choice:
    """A schedule and what it is estimated to cost; with stages that run ahead of one another if `skewed` (by how much
    is decided when they are known, see `measure.skews`; the buffers are what the estimate assumes)."""

    schedule: Schedule
    estimate: Estimate
    skewed: Skewed = 0

    @property
    def kind(self) -> Kind:
        """What estimates compare well within."""
        return self.schedule.strategy, self.skewed, self.estimate.roomy


def search(
    group: Group, target: Target, objective: Objective, effort: int = 400, skew: bool = True, kinds: bool = True
) -> list[Choice]:
    """Schedules that fit the memories by estimate, best first. `effort` bounds the number of estimates per start;
    `skew`: whether stages may run ahead of one another; `kinds`: also the best schedules of every kind, for those who
    measure what estimates do not say.

    Empty where nothing fits, not even the smallest tiles. Raises UserError for what the target cannot do at all.
    """
    return Search(group, target, objective, effort, skew).run(kinds)


class Search:
    def __init__(self, group: Group, target: Target, objective: Objective, effort: int, skew: bool = True) -> None:
        self.group, self.target, self.effort = group, target, effort
        self.objective: Objective = objective
        self.roles = Roles.of(target)
        self.facts: dict[Group, Facts] = {}
        if any(node.kind == "contract" for node in group.nodes) and self.roles.lhs_stage is None:
            raise UserError(f"target '{target.name}' has no way to multiply matrices")
        self.check_vector()
        self.check_hand_over()
        self.sizes = [tile_sizes(group, axis, target) for axis in group.axes]
        self.blocks = [granularity(group, axis, target) for axis in group.axes]
        self.reduced = [axis in group.reduced for axis in group.axes]
        self.seen: dict[State, Choice | None] = {}
        self.rejection: UserError | None = None
        self.proved = False
        self.nests: dict[tuple[str, str, tuple[str, ...], str, tuple[int, ...], str], Nest] = {}
        derived = derive(group, group.reduced - group.taps)
        self.cascades = bool(derived.cascades)
        products = [node.kind == "contract" for node in group.nodes if node.kind in ("contract", "map", "reduce")]
        self.summable = any(summed_by_products(each.reductions) for each in (group, derived.group))
        self.staged = skew and any(products) and not all(products)

    def check_vector(self) -> None:
        """Raises UserError for what only a vector engine computes, where there is none."""
        for node in self.group.nodes if self.target.vector_engine is None else ():
            if node.kind in ("map", "reduce", "iota") and node.op is not None:
                fn = node.op.fn.data if isinstance(node.op, MapOp) else node.op.name
                raise UserError(f"target '{self.target.name}' has no vector engine, which '{fn}' needs", node.location)

    def check_hand_over(self) -> None:
        """Raises UserError where one engine needs what another makes, and no move on chip leads there."""
        roles = self.roles
        for node in self.group.nodes:
            for place, source in enumerate(node.inputs):
                if source.kind == "load":
                    continue
                made = roles.result if source.kind == "contract" else roles.vector
                needed = (roles.lhs, roles.rhs)[place] if node.kind == "contract" else roles.vector
                if made and needed and route(self.target, made, needed) is None:
                    raise UserError(
                        f"target '{self.target.name}' has no way on chip from '{made}' to '{needed}'", node.location
                    )

    def run(self, kinds: bool = True) -> list[Choice]:
        fitting = self.fitting(kinds)
        if self.rejection is not None and all(choice is None for choice in self.seen.values()):
            raise self.rejection  # not a matter of sizes: the machine lacks an operator or a type
        if not fitting:
            self.sizes = [tile_sizes(self.group, axis, self.target, fine=True) for axis in self.group.axes]
            self.blocks = [1] * len(self.sizes)
            fitting = self.fitting(kinds)
        unique = {(choice.schedule, choice.skewed): choice for choice in fitting}
        return sorted(unique.values(), key=self.key)

    def fitting(self, kinds: bool) -> list[Choice]:
        """What descending from all starts finds that fits."""
        for number, start in enumerate(self.starts()):
            if self.objective == "traffic" and number >= BOUNDED_STARTS and self.fits():
                break
            end = self.descend(start)
            if self.objective == "traffic":
                for state in self.pinned(end):
                    self.evaluate(state)
        if self.objective == "traffic":
            self.improve()
        elif kinds:
            self.each_kind()
        return self.fits()

    def each_kind(self) -> None:
        """Descends once more among the schedules of each kind, from the best of them: estimates do not say how one
        kind compares with another, so the best of each is to be measured. Where the best does not hold all slots
        throughout the loops, also among those that do."""
        found = sorted(((choice, state) for state, choice in self.fits_by_state()), key=lambda pair: self.key(pair[0]))
        forms = (True, False) if self.cascades else (False,)
        skews: tuple[Skewed, ...] = (1, 2) if self.staged else (0,)
        for online, skewed in product(forms, skews) if found else ():
            same = [(choice, s) for choice, s in found if (s.online, s.skewed) == (online, skewed)]
            end = same[0][1] if same else replace(found[0][1], online=online, skewed=skewed)
            if len(forms) * len(skews) > 1:
                end = self.descend(end, kinds=False)
            reached = self.evaluate(end)
            if reached is not None and not reached.estimate.roomy:
                held = next((s for choice, s in same if choice.estimate.roomy), end)
                self.descend(replace(held, roomy=True), kinds=False)

    def improve(self) -> None:
        """The fewest bytes, and among schedules that move as many the fewest cycles."""
        exact = Exact(self)
        best = exact.run()
        # The estimate can be a buffer short where pinned tiles fill the memory: also with fewer of them, and none.
        fewer = [replace(state, pins=tuple(p * part // 2 for p in state.pins)) for state in best for part in (0, 1)]
        states = [replace(state, slots=mode) for state in dict.fromkeys((*best, *fewer)) for mode in SLOT_MODES]
        self.proved = exact.proved
        found = [(choice, state) for state in states if (choice := self.evaluate(state)) is not None]
        if found:
            self.descend(min(found, key=lambda pair: self.key(pair[0]))[1])

    def fits(self) -> list[Choice]:
        """What was found that fits."""
        return [choice for _, choice in self.fits_by_state()]

    def fits_by_state(self) -> list[tuple[State, Choice]]:
        return [(s, choice) for s, choice in self.seen.items() if choice is not None and not choice.estimate.excess]

    def starts(self) -> Iterator[State]:
        count = len(self.group.axes)
        order = tuple(sorted(range(count), key=lambda a: (self.reduced[a], a)))
        outer = count - sum(self.reduced)
        levels = tuple(outer if load.present & self.group.taps else count for load in self.group.loads)
        whole = tuple(sizes[-1] for sizes in self.sizes)
        small = tuple(sizes[0] for sizes in self.sizes)
        written = frozenset(axis for output in self.group.outputs for axis in output.node.present)
        batch = written - frozenset(a for node in self.group.reductions for a in node.reduced)
        batch = frozenset(a for a in batch if all(a in load.present for load in self.group.loads))
        single = tuple(s[0] if a in batch else s[-1] for s, a in zip(self.sizes, self.group.axes, strict=True))
        rows = tuple(s[-1] if r else s[0] for s, r in zip(self.sizes, self.reduced, strict=True))
        chained = [n for n in self.group.reductions if any(source.kind != "load" for source in n.inputs)]
        shared = frozenset(axis for node in chained for axis in node.reduced)
        walked = tuple(s[0] if a in shared else t for s, t, a in zip(self.sizes, single, self.group.axes, strict=True))
        skewed: Skewed = 2 if self.staged and self.objective == "time" else 0
        known = known_tiles(self.group, walked, self.sizes)
        for tiles in dict.fromkeys((known, walked, whole, single, rows, small)):
            yield State(tiles, order, levels, "stream", self.cascades, skewed)
        yield from self.balanced(State(small, order, levels, "stream", self.cascades, skewed))

    def balanced(self, state: State) -> Iterator[State]:
        """The largest tiles that fit and have about the same length along all axes: descents from one axis to the next
        end in tiles that are long along the first."""
        for length in sorted({size for sizes in self.sizes for size in sizes}, reverse=True):
            tiles = tuple(max([s for s in sizes if s <= length] or sizes[:1]) for sizes in self.sizes)
            found = self.evaluate(replace(state, tiles=tiles))
            if found is not None and not found.estimate.excess:
                yield replace(state, tiles=tiles)
                return

    def descend(self, state: State, kinds: bool = True) -> State:
        """Takes the best of each group of changes in turn until none improves; `kinds`: also of those that make another
        kind of schedule."""
        spent, best, moved = 0, self.evaluate(state), True
        while moved and spent < self.effort:
            moved = False
            for group in range(self.groups):
                if group in self.kinds and not kinds:
                    continue
                better: State | None = None
                for neighbour in self.neighbours(state, group):
                    spent += neighbour not in self.seen
                    found = self.evaluate(neighbour)
                    if found is not None and (best is None or self.key(found) < self.key(best)):
                        best, better = found, neighbour
                if better is not None:
                    state, moved = better, True
        return state

    @property
    def kinds(self) -> tuple[int, int]:
        """The groups of changes between the online form and several walks, and of how stages run ahead."""
        return len(self.sizes) + 5, len(self.sizes) + 6

    @property
    def groups(self) -> int:
        return len(self.sizes) + 9

    def neighbours(self, state: State, group: int) -> Iterator[State]:
        """Changes of one kind: the tile of axis `group`, or (after the axes) loop order, held loads, slots,
        two tiles at once (by steps, then by one tile), the online form, stages that run ahead, cores, sums."""
        if group < len(self.sizes):
            for size in dict.fromkeys((*self.sizes[group], *self.near(state, group))):
                if size != state.tiles[group]:
                    yield replace(state, tiles=_put(state.tiles, group, size))
            return
        looped = [a for a in state.order if state.tiles[a] < self.group.axes[a].extent]
        if group == len(self.sizes):
            for first, second in pairwise(looped):
                if self.reduced[first] == self.reduced[second]:
                    swapped = [second if a == first else first if a == second else a for a in state.order]
                    yield replace(state, order=tuple(swapped))
        elif group == len(self.sizes) + 1:
            for load, level in enumerate(state.levels):
                yield from (
                    replace(state, levels=_put(state.levels, load, other), pins=())
                    for other in self.levels(state, load)
                    if other != level
                )
        elif group == len(self.sizes) + 2:
            yield from (replace(state, slots=mode) for mode in SLOT_MODES if mode != state.slots)
            depths = (n for n in (state.depth - 1, state.depth + 1) if 2 <= n <= MOST_SLOTS)
            yield from (replace(state, depth=n) for n in depths if state.slots != "one")
        elif group == len(self.sizes) + 3:
            yield from self.trades(state)
        elif group == len(self.sizes) + 4:
            yield from self.fine_trades(state)
        elif group == self.kinds[0]:
            if self.cascades:
                yield replace(state, online=not state.online)
        elif group == len(self.sizes) + 7:
            if self.summable:
                yield replace(state, sums="matrix" if state.sums == "vector" else "vector")
        elif group == self.kinds[1]:
            if self.staged:
                yield from (replace(state, skewed=n) for n in SKEWS if n != state.skewed)
        elif self.target.cores > 1:
            yield from (replace(state, cores=n) for n in range(self.divisions(state)) if n != state.cores)

    def levels(self, state: State, load: int) -> list[int]:
        """The levels at which a load can be held, that differ in these loops. Of these only two, inside the loops over
        reduced axes or around them, where cycles are minimised: the estimate does not see what one long load stalls."""
        present = self.group.loads[load].present - self.group.loads[load].taps
        looped = [a for a in state.order if state.tiles[a] < self.group.axes[a].extent]
        if self.objective == "time":
            streamed = any(self.reduced[a] and self.group.axes[a] in present for a in looped)
            return [*([len(state.order) - sum(self.reduced)] if streamed else []), len(state.order)]
        return [*(state.order.index(a) for a in looped if self.group.axes[a] in present), len(state.order)]

    def pinned(self, state: State) -> Iterator[State]:
        """As many tiles of one load pinned as fit."""
        found = self.evaluate(state)
        if found is None or found.estimate.excess:
            return
        for load in range(len(self.group.loads)):
            one = self.evaluate(replace(state, pins=_put((0,) * len(self.group.loads), load, 1)))
            if one is None:
                continue
            for memory, peak in one.estimate.peaks.items():
                left = self.target.memories[memory].bytes - found.estimate.peaks[memory]
                if peak > found.estimate.peaks[memory]:
                    fitting = left // (peak - found.estimate.peaks[memory])
                    yield replace(state, pins=_put((0,) * len(self.group.loads), load, max(0, fitting)))

    def trades(self, state: State) -> Iterator[State]:
        """One axis a size up and another down: what a full memory allows."""
        for up, down in permutations(range(len(self.sizes)), 2):
            larger = [size for size in self.sizes[up] if size > state.tiles[up]]
            smaller = [size for size in self.sizes[down] if size < state.tiles[down]]
            for size in smaller[-2:]:
                if larger:
                    yield replace(state, tiles=_put(_put(state.tiles, up, larger[0]), down, size))

    def near(self, state: State, axis: int) -> list[int]:
        """Sizes with one tile fewer and one more."""
        extent, fixed = self.group.axes[axis].extent, len(self.sizes[axis]) == 1
        parts = -(-extent // state.tiles[axis])
        found = [round_up(-(-extent // count), self.blocks[axis]) for count in (parts - 1, parts + 1) if count > 0]
        return [] if fixed else [size for size in found if size <= extent]

    def fine_trades(self, state: State) -> Iterator[State]:
        """One axis a tile fewer, another a size down or every buffer once."""
        for axis in range(len(self.sizes)):
            for size in self.near(state, axis):
                if size > state.tiles[axis] and state.slots != "one":
                    yield replace(state, tiles=_put(state.tiles, axis, size), slots="one")
        for up, down in permutations(range(len(self.sizes)), 2):
            smaller = [size for size in self.sizes[down] if size < state.tiles[down]]
            for larger in (size for size in self.near(state, up) if size > state.tiles[up]):
                for size in smaller[-2:]:
                    yield replace(state, tiles=_put(_put(state.tiles, up, larger), down, size))

    def evaluate(self, state: State) -> Choice | None:
        if state not in self.seen:
            try:
                nest = self.place(self.schedule(state))
                if self.target.cores > 1:
                    grids = self.grids(nest)
                    nest = self.place(nest.schedule.with_(cores=grids[min(state.cores, len(grids) - 1)]))
                schedule = nest.schedule.with_(strategy=nest.strategy)
                skewed = state.skewed if staged_loops(nest.items) else 0
                costs = estimate(nest, self.facts_of(nest), skewed, state.roomy)
                self.seen[state] = Choice(schedule, costs, skewed)
            except UserError as error:
                self.seen[state] = None
                self.rejection = self.rejection or error
        return self.seen[state]

    def grids(self, nest: Nest) -> list[tuple[int, ...]]:
        """The ways to divide a nest's loops among cores, first one core where bytes are what counts."""
        found = core_grids(nest, self.target.cores)
        return found if self.objective == "time" else found[::-1]

    def divisions(self, state: State) -> int:
        """How many ways there are to divide a state's loops among cores."""
        try:
            return len(self.grids(self.place(self.schedule(state))))
        except UserError:
            return 1

    def place(self, schedule: Schedule) -> Nest:
        """The nest of a schedule. Where loops stand depends on which axes are looped over, their order and the held
        loads; nests that agree in these differ in their tiles only."""
        key = (schedule.looped, schedule.order, schedule.hold, schedule.strategy, schedule.pins, schedule.sums)
        same = self.nests.get(key)
        if same is None:
            same = self.nests[key] = place_nest(self.group, schedule)
        tiles = dict(zip(self.group.axes, schedule.tiles, strict=True))
        return Nest(same.group, schedule, same.items, tiles, same.passes, same.cutter, same.pins)

    def facts_of(self, nest: Nest) -> Facts:
        """Of the group of a nest: the online form is a group of its own."""
        if nest.group not in self.facts:
            self.facts[nest.group] = Facts(nest.group, self.target)
        return self.facts[nest.group]

    def key(self, choice: Choice) -> tuple[int, ...]:
        found = choice.estimate
        if self.objective == "traffic":
            return (found.excess, found.bytes, found.cycles)
        return (found.excess, found.cycles, found.bytes)

    def schedule(self, state: State) -> Schedule:
        group, names = self.group, self.group.names
        looped = {axis for axis, tile in zip(group.axes, state.tiles, strict=True) if tile < axis.extent}
        order = [group.axes[a] for a in state.order if group.axes[a] in looped]
        doubled = 1 if state.slots == "one" else 2
        hold: list[str] = []
        slots: list[int] = []
        for load, level in zip(group.loads, state.levels, strict=True):
            held = default_hold(load, looped) & {group.axes[a] for a in state.order[:level]}
            hold.append("".join(names[axis] for axis in group.axes if axis in held))
            streams = (bool(order) and order[-1] in held) or state.slots == "all"
            slots.append(state.depth if held and streams and state.slots != "one" else 1)
        tiles = dict(zip(group.axes, state.tiles, strict=True))
        inner = inner_tiles(group, tiles, self.target, self.roles)
        return Schedule(
            axes="".join(names.values()),
            extents=tuple(axis.extent for axis in group.axes),
            tiles=state.tiles,
            order="".join(names[axis] for axis in order),
            strategy="online" if state.online else "multipass",
            inner=tuple(inner[axis] for axis in group.axes) if inner != tiles else (),
            hold=tuple(hold),
            slots=tuple(slots),
            move_slots=doubled if self.roles.subdivides else 1,
            store_slots=doubled if looped else 1,
            pins=state.pins if any(state.pins) else (),
            row_steps=state.steps,
            sums=state.sums,
        )


def _put(values: tuple[_T, ...], position: int, value: _T) -> tuple[_T, ...]:
    return (*values[:position], value, *values[position + 1 :])
