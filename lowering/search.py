"""The search for schedules of one group: tile sizes per memory level, loop order, what is held, slot counts.

A descent from several starts over a discrete space: in each step every change of one tile size, of two neighbouring
loops, of one held load or of the slots is estimated and the best taken. All estimates are kept, so that the pass can
fall back to the next one. Deterministic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from math import gcd, lcm, prod
from typing import Literal, TypeAlias, TypeVar

from ..dialects.dtypes import accumulator_type, byte_width, type_name
from ..dialects.errors import UserError
from ..dialects.schedule import Schedule
from ..dialects.target_model import Memory, Target
from .axes import Axis
from .estimate import Estimate, estimate
from .group import Group, Node
from .nest import Nest, default_hold, place_nest
from .nest_stages import staged_loops
from .online import derive
from .place_routes import route
from .roles import Roles, tile_bytes

_T = TypeVar("_T")
Slots: TypeAlias = Literal["one", "stream", "all"]
SLOT_MODES: tuple[Slots, ...] = ("one", "stream", "all")
"""Buffers with two slots: none, those of loads that change in the innermost loop, those of all loads in loops."""

Objective: TypeAlias = Literal["time", "traffic"]


@dataclass(frozen=True)
class State:
    """A point of the space. `order` lists all axes; `whole` marks loads held whole along reduced axes and taps;
    `online` asks for the derived form of reductions that wait for one another, `skewed` for stages that run ahead."""

    tiles: tuple[int, ...]
    order: tuple[int, ...]
    whole: tuple[bool, ...]
    slots: Slots
    online: bool = False
    skewed: bool = False


@dataclass(frozen=True)
class Choice:
    """A schedule and what it is estimated to cost; with stages that run ahead of one another if `skewed` (by how much
    is decided when they are known, see `measure.skews`)."""

    schedule: Schedule
    estimate: Estimate
    skewed: bool = False


def search(group: Group, target: Target, objective: Objective, effort: int = 400, skew: bool = True) -> list[Choice]:
    """Schedules that fit the memories by estimate, best first. `effort` bounds the number of estimates per start;
    `skew`: whether stages may run ahead of one another.

    Empty where nothing fits, not even the smallest tiles. Raises UserError for what the target cannot do at all.
    """
    return Search(group, target, objective, effort, skew).run()


class Search:
    def __init__(self, group: Group, target: Target, objective: Objective, effort: int, skew: bool = True) -> None:
        self.group, self.target, self.effort = group, target, effort
        self.objective: Objective = objective
        self.roles = Roles.of(target)
        if any(node.kind == "contract" for node in group.nodes) and self.roles.lhs_stage is None:
            raise UserError(f"target '{target.name}' has no way to multiply matrices")
        self.check_hand_over()
        self.sizes = [tile_sizes(group, axis, target) for axis in group.axes]
        self.blocks = [granularity(group, axis, target) for axis in group.axes]
        self.reduced = [axis in group.reduced for axis in group.axes]
        self.seen: dict[State, Choice | None] = {}
        self.rejection: UserError | None = None
        self.nests: dict[tuple[str, str, tuple[str, ...], str], Nest] = {}
        self.cascades = bool(derive(group, group.reduced - group.taps).cascades)
        products = [node.kind == "contract" for node in group.nodes if node.kind in ("contract", "map", "reduce")]
        self.staged = skew and any(products) and not all(products)

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

    def run(self) -> list[Choice]:
        fitting = self.fitting()
        if self.rejection is not None and all(choice is None for choice in self.seen.values()):
            raise self.rejection  # not a matter of sizes: the machine lacks an operator or a type
        if not fitting:
            self.sizes = [tile_sizes(self.group, axis, self.target, fine=True) for axis in self.group.axes]
            self.blocks = [1] * len(self.sizes)
            fitting = self.fitting()
        unique = {(choice.schedule, choice.skewed): choice for choice in fitting}
        return sorted(unique.values(), key=self.key)

    def fitting(self) -> list[Choice]:
        """What descending from all starts finds that fits."""
        for start in self.starts():
            self.descend(start)
        return [choice for choice in self.seen.values() if choice is not None and not choice.estimate.excess]

    def starts(self) -> Iterator[State]:
        count = len(self.group.axes)
        order = tuple(sorted(range(count), key=lambda a: (self.reduced[a], a)))
        none = tuple(bool(load.present & self.group.taps) for load in self.group.loads)
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
        for tiles in dict.fromkeys((walked, whole, single, rows, small)):
            yield State(tiles, order, none, "stream", self.cascades, self.staged and self.objective == "time")

    def descend(self, state: State) -> None:
        """Takes the best of each group of changes in turn until none improves."""
        spent, best, moved = 0, self.evaluate(state), True
        while moved and spent < self.effort:
            moved = False
            for group in range(self.groups):
                better: State | None = None
                for neighbour in self.neighbours(state, group):
                    spent += neighbour not in self.seen
                    found = self.evaluate(neighbour)
                    if found is not None and (best is None or self.key(found) < self.key(best)):
                        best, better = found, neighbour
                if better is not None:
                    state, moved = better, True

    @property
    def groups(self) -> int:
        return len(self.sizes) + 7

    def neighbours(self, state: State, group: int) -> Iterator[State]:
        """Changes of one kind: the tile of axis `group`, or (after the axes) loop order, held loads, slots,
        two tiles at once (by steps, then by one tile), the online form, stages that run ahead."""
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
            streamed = {self.group.axes[a] for a in looped if self.reduced[a]}
            for position, load in enumerate(self.group.loads):
                if (load.present & streamed) - load.taps:
                    yield replace(state, whole=_put(state.whole, position, not state.whole[position]))
        elif group == len(self.sizes) + 2:
            yield from (replace(state, slots=mode) for mode in SLOT_MODES if mode != state.slots)
        elif group == len(self.sizes) + 3:
            yield from self.trades(state)
        elif group == len(self.sizes) + 4:
            yield from self.fine_trades(state)
        elif group == len(self.sizes) + 5:
            if self.cascades:
                yield replace(state, online=not state.online)
        elif self.staged:
            yield replace(state, skewed=not state.skewed)

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
        found = [_round_up(-(-extent // count), self.blocks[axis]) for count in (parts - 1, parts + 1) if count > 0]
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
                schedule = nest.schedule.with_(strategy=nest.strategy)
                skewed = state.skewed and bool(staged_loops(nest.items))
                self.seen[state] = Choice(schedule, estimate(nest, self.target, self.roles, skewed), skewed)
            except UserError as error:
                self.seen[state] = None
                self.rejection = self.rejection or error
        return self.seen[state]

    def place(self, schedule: Schedule) -> Nest:
        """The nest of a schedule. Where loops stand depends on which axes are looped over, their order and the held
        loads; nests that agree in these differ in their tiles only."""
        key = (schedule.looped, schedule.order, schedule.hold, schedule.strategy)
        same = self.nests.get(key)
        if same is None:
            same = self.nests[key] = place_nest(self.group, schedule)
        tiles = dict(zip(self.group.axes, schedule.tiles, strict=True))
        return Nest(same.group, schedule, same.items, tiles, same.passes, same.cutter)

    def key(self, choice: Choice) -> tuple[int, ...]:
        found = choice.estimate
        if self.objective == "traffic":
            return (found.excess, found.bytes, found.cycles)
        return (found.excess, found.cycles, found.bytes)

    def schedule(self, state: State) -> Schedule:
        group, names = self.group, self.group.names
        looped = {axis for axis, tile in zip(group.axes, state.tiles, strict=True) if tile < axis.extent}
        streamed = looped & group.reduced
        order = [group.axes[a] for a in state.order if group.axes[a] in looped]
        doubled = 1 if state.slots == "one" else 2
        hold: list[str] = []
        slots: list[int] = []
        for load, whole in zip(group.loads, state.whole, strict=True):
            held = default_hold(load, looped) - (streamed if whole else frozenset())
            hold.append("".join(names[axis] for axis in group.axes if axis in held))
            streams = (bool(order) and order[-1] in held) or state.slots == "all"
            slots.append(2 if held and streams and state.slots != "one" else 1)
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
        )


def _put(values: tuple[_T, ...], position: int, value: _T) -> tuple[_T, ...]:
    return (*values[:position], value, *values[position + 1 :])


def tile_sizes(group: Group, axis: Axis, target: Target, fine: bool = False) -> list[int]:
    """Tile sizes worth trying, smallest first: whole, equal parts, powers of two, in multiples of the granularity.

    `fine`: of any granularity, for groups of which nothing coarser fits.
    """
    extent = axis.extent
    if axis in group.taps or any(expr.terms.get(axis, 0) < 0 for load in group.loads for expr in load.index):
        return [1]  # a transfer steps forward only: what is read backwards is read one index at a time
    block = 1 if fine else granularity(group, axis, target)
    sizes = {extent}
    for parts in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64):
        sizes.add(_round_up(-(-extent // parts), block))
    power = 1
    while power < extent:
        sizes.add(_round_up(power, block))
        power *= 2
    fitting = sorted(size for size in sizes if size <= extent)
    while len(fitting) > 12:  # thin out, keep both ends
        del fitting[1:-1:2]
    return fitting


def granularity(group: Group, axis: Axis, target: Target) -> int:
    """Elements that an axis is tiled by: the matrix engine's block where it is m, n or k of a contraction, else 1."""
    if target.matrix_engine is None or any(axis in load.taps or axis in _bases(load) for load in group.loads):
        return 1
    for node in group.nodes:
        if node.kind != "contract":
            continue
        lhs, rhs = node.inputs
        entry = target.matrix_engine[1].type_of(type_name(lhs.element), type_name(rhs.element))
        if entry is not None and ((axis in lhs.present) != (axis in rhs.present) or axis in node.reduced):
            return max(entry.block)
    return 1


def _bases(load: Node) -> frozenset[Axis]:
    return frozenset(window.base for window in load.windows if window is not None)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def inner_tiles(group: Group, tiles: dict[Axis, int], target: Target, roles: Roles) -> dict[Axis, int]:
    """Pieces of the matrix operands: tiles halved along their longest axis until two pieces of each operand fit, where
    they have memories of their own, and one instruction takes them."""
    inner = dict(tiles)
    for node in group.nodes:
        if node.kind != "contract":
            continue
        lhs, rhs = node.inputs
        block = _piece_block(node, target, roles)
        for source, name in ((lhs, roles.lhs), (rhs, roles.rhs)) if roles.subdivides else ():
            if name is not None:
                _shrink(group, source, inner, tiles, target.memories[name], block)
        entry = target.matrix_engine and target.matrix_engine[1].type_of(type_name(lhs.element), type_name(rhs.element))
        if entry and entry.max_shape is not None:
            sides = lhs.present - rhs.present, node.reduced, rhs.present - lhs.present
            for axes, most in zip(sides, entry.max_shape, strict=True):
                while prod(inner[axis] for axis in axes) > most and _halved(group, axes, inner, tiles, block):
                    pass
    return inner


def _piece_block(node: Node, target: Target, roles: Roles) -> int:
    """Elements that pieces are cut by, so that none begins inside a block of any memory of the matrix engine."""
    lhs, rhs = node.inputs
    block = 1
    for name, kind in (
        (roles.lhs, lhs.element),
        (roles.rhs, rhs.element),
        (roles.result, accumulator_type(lhs.element)),
    ):
        memory = target.memories.get(name or "")
        if memory is not None and memory.layout == "fractal":
            columns = (memory.fractal_bytes or 1) // byte_width(kind)
            block = lcm(block, columns, memory.fractal_rows or 1)
        elif memory is not None:
            block = lcm(block, memory.align // gcd(memory.align, byte_width(kind)))
    return block


def _shrink(
    group: Group, source: Node, inner: dict[Axis, int], tiles: dict[Axis, int], memory: Memory, block: int
) -> None:
    while True:
        axes = [axis for axis in group.axes if axis in source.present and inner[axis] > 1]
        size = tile_bytes(memory, [inner[axis] for axis in axes], byte_width(source.element))
        if 2 * size <= memory.bytes or not _halved(group, axes, inner, tiles, block):
            return


def _halved(group: Group, axes: Collection[Axis], inner: dict[Axis, int], tiles: dict[Axis, int], block: int) -> bool:
    """Halves the longest piece of some axes. False where none can be."""
    for axis in sorted((a for a in group.axes if a in axes), key=lambda a: -inner[a]):
        half = _half(axis, inner[axis], tiles[axis], block)
        if half < inner[axis]:
            inner[axis] = half
            return True
    return False


def _half(axis: Axis, inner: int, tile: int, block: int) -> int:
    """About half of a piece: a multiple of the block where it can be; of looped axes a divisor of the tile."""
    half = _round_up(-(-inner // 2), block) if inner > block else -(-inner // 2)
    if tile < axis.extent:
        divisors = [size for size in range(half, 0, -1) if tile % size == 0]
        return next((size for size in divisors if size % block == 0), divisors[0] if divisors else inner)
    return half
