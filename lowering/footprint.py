"""How many bytes of each memory a nest needs at its peak: lifetimes of its values in the order of its items.

Follows what `place` and `bufferize` do: where values lie, which elementwise results take over a dying operand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..dialects.dtypes import byte_width, element
from .facts import Facts
from .group import Node, Output
from .kept_types import kept_type
from .nest import Load, Loop, Nest, Pin
from .nest_stages import staged_loops
from .reduce_steps import piece
from .regions import region_of
from .roles import tile_bytes
from .state import Skewed

Path: TypeAlias = tuple[int, ...]


@dataclass(eq=False)
class Held:
    """One copy of a value in one memory: bytes of a slot, the loops it is made in, first and last position."""

    memory: str
    size: int
    path: Path
    start: int
    uses: list[tuple[int, Path]] = field(default_factory=list[tuple[int, Path]])
    end: int = 0
    slots: int = 1
    dropped: bool = False
    loaded: bool = False
    ahead: bool = False
    """Made in one iteration while the one before is used: the whole loop long."""


@dataclass(eq=False)
class Made:
    """An elementwise result and the operands whose bytes it may take."""

    result: Held
    operands: list[Held]
    position: int


class Footprint:
    def __init__(self, nest: Nest, facts: Facts, skewed: Skewed = 0) -> None:
        self.nest, self.facts, self.target, self.roles = nest, facts, facts.target, facts.roles
        self.staged = staged_loops(nest.items) if skewed else set[Loop]()
        self.slots = max(skewed, 1)
        self.loops: list[Loop] = []
        self.position = 0
        self.path: Path = ()
        self.ends: dict[int, int] = {}
        self.held: list[Held] = []
        self.scopes: list[dict[Node, list[Held]]] = [{}]
        self.made: list[Made] = []
        self.pins: dict[Node, list[Held]] = {}
        self.inner = dict(zip(nest.group.axes, nest.schedule.inner or nest.schedule.tiles, strict=True))

    # --- walking --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        self.position += 1

    def enter(self, loop: Loop) -> None:
        for node in loop.carried:
            if self.find(node) is None:
                self.hand_over(node, self.define(node, self.homes(node)))
        self.loops.append(loop)
        self.path = (*self.path, self.position)
        self.scopes.append({})

    def leave(self, loop: Loop) -> None:
        self.loops.pop()
        self.scopes.pop()
        self.step()
        self.ends[self.path[-1]] = self.position
        self.path = self.path[:-1]

    def load(self, item: Load | Pin, slots: int) -> list[str]:
        """Defines a loaded region; the memories it goes to."""
        for source in item.node.inputs:  # the indices of a gather
            self.use(source)
        memories = [memory for memory, _ in self.facts.nodes[item.node].homes]
        if not self.path:
            slots = 1
        sizes = [(memory, self.region(item, memory)) for memory in memories]
        if isinstance(item, Pin):
            self.pins[item.node] = [self.add(memory, size) for memory, size in sizes]
        else:
            for held in self.pins.get(item.node, []):
                held.uses.append((self.position, self.path))
            for held in self.define(item.node, sizes):
                held.slots, held.loaded = slots, True
        return memories

    def region(self, item: Load | Pin, memory: str) -> int:
        """Bytes of a loaded region."""
        pin = self.nest.pins[item.node] if isinstance(item, Pin) else None
        extents = [dim.extent for dim in region_of(self.nest, item.node, item.fixed, pin)]
        return tile_bytes(self.target.memories[memory], extents, byte_width(item.node.element))

    def compute(self, node: Node, accumulate: bool) -> None:
        operands = [held for source in node.inputs for held in self.use(source.source or source)]
        if node.kind == "contract":
            for source, memory in zip(node.inputs, (self.roles.lhs, self.roles.rhs), strict=True):
                if memory is not None and self.roles.subdivides:
                    self.add(memory, self.piece(source, memory)).slots = self.nest.schedule.move_slots
        rows = self.pieces(node) if node.kind == "reduce" else None
        if rows is not None:
            _, lanes = rows
            kept = [self.nest.tiles[a] for a in self.facts.nodes[node].axes]
            width = self.facts.nodes[node].summed
            self.add(self.roles.vector, tile_bytes(self.target.memories[self.roles.vector], [*kept, lanes], width))
        if accumulate:
            self.use(node)
            self.accumulate(node)
            return
        reduction = self.facts.carried.get(node)
        if reduction is not None:  # moved where it is kept
            self.scopes[-1][node] = self.use(reduction)
            return
        made = self.define(node, self.homes(node))
        self.hand_over(node, made)
        if node.kind in ("map", "expand"):
            for held in made:
                if held.memory == self.roles.vector:
                    self.made.append(Made(held, operands, self.position))

    def piece(self, source: Node, memory: str) -> int:
        """Bytes of one operand of the matrix engine."""
        known = self.facts.nodes[source]
        return tile_bytes(self.target.memories[memory], [self.inner[a] for a in known.axes], known.width)

    def hand_over(self, node: Node, made: list[Held]) -> None:
        """Slots for what one engine makes for another, if one runs ahead of the other."""
        if not self.loops or self.loops[-1] not in self.staged:
            return
        crosses = self.facts.nodes[node].crosses
        for held in made:
            taken = self.roles.vector if node.kind == "contract" else self.roles.lhs_stage
            if crosses and (held.memory == taken or self.roles.result == self.roles.vector):
                held.slots, held.ahead = self.slots, True

    def pieces(self, node: Node) -> tuple[int, int] | None:
        """Elements of the rows that a reduction combines and of their pieces, where it takes two steps."""
        source = node.inputs[0]
        axes = [a for a in self.facts.nodes[source].axes if self.nest.tiles[a] > 1]
        if self.nest.schedule.row_steps == 1 or not axes:
            return None
        if axes[-1] not in node.reduced:
            return None
        row, width = self.nest.tiles[axes[-1]], self.facts.nodes[node].summed
        lanes = piece(self.target, self.roles.vector, row, width, width)
        return None if lanes is None or axes[-1].extent % lanes else (row, lanes)

    def accumulate(self, node: Node) -> None:
        """The part that a step adds, where it is not added as it is made; a running value beside the one before."""
        width = self.facts.nodes[node].summed
        vector = self.tile(node, self.roles.vector, width)
        if self.facts.nodes[node].moved_apart:
            self.add(self.roles.result or "", self.tile(node, self.roles.result or "", width))
            part = self.add(self.roles.vector, vector)
            if self.loops[-1] in self.staged:
                part.slots, part.ahead = self.slots, True
        elif node.kind == "reduce":
            self.add(self.roles.vector, vector)
        if node.cascade and node.carry is None:
            self.add(self.roles.vector, vector)

    def store(self, output: Output) -> str:
        """The memory that a result leaves from. What is stored in loops has as many slots as the schedule says."""
        node, held = output.node, self.use(output.node)
        direct = {h.memory for h in held if self.target.move(h.memory, self.target.offchip) is not None}
        if node.kind == "contract" and self.roles.result in direct:
            return self.roles.result or ""
        leaving = [h for h in held if h.memory == self.roles.vector and not h.loaded]
        kept, wanted = kept_type(node, self.facts.uses(node)), element(self.nest.group.results[output.number]).attribute
        if node.kind != "contract" and kept != wanted:  # cast on its way, into a buffer of its own
            cast = self.add(self.roles.vector, self.tile(node, self.roles.vector, byte_width(wanted)))
            self.made.append(Made(cast, held, self.position))
            leaving = [cast]
        for each in leaving:
            if self.path:
                each.slots = max(each.slots, self.nest.schedule.store_slots)
        return self.roles.vector

    # --- values ---------------------------------------------------------------------------------------------------

    def tile(self, node: Node, memory: str, width: int) -> int:
        shape = [self.nest.tiles[a] for a in self.facts.nodes[node].axes]
        return tile_bytes(self.target.memories[memory], shape, width)

    def homes(self, node: Node) -> list[tuple[str, int]]:
        """Memories that hold a value, with the bytes of its tile there."""
        return [(memory, self.tile(node, memory, width)) for memory, width in self.facts.nodes[node].homes]

    def add(self, memory: str, size: int) -> Held:
        held = Held(memory, size, self.path, self.position, [(self.position, self.path)])
        self.held.append(held)
        return held

    def define(self, node: Node, sizes: list[tuple[str, int]]) -> list[Held]:
        made = [self.add(memory, size) for memory, size in sizes]
        self.scopes[-1][node] = made
        return made

    def find(self, node: Node) -> list[Held] | None:
        return next((scope[node] for scope in reversed(self.scopes) if node in scope), None)

    def use(self, node: Node) -> list[Held]:
        held = self.find(node) or []
        for each in held:
            each.uses.append((self.position, self.path))
        return held

    # --- peaks ----------------------------------------------------------------------------------------------------

    def lifetimes(self) -> None:
        """Settles where everything ends, and which results take over the bytes of an operand."""
        for held in self.held:
            depth = len(held.path)
            held.end = max(p if len(path) == depth else self.ends[path[depth]] for p, path in held.uses)
        for made in self.made:
            for operand in made.operands:
                result, here = made.result, operand.path == made.result.path and operand.end == made.position
                same = operand.memory == result.memory and not operand.dropped
                if here and same and self.takes_over(operand, result):
                    operand.end, operand.slots = result.end, max(operand.slots, result.slots)
                    operand.ahead = operand.ahead or result.ahead
                    result.dropped = True
                    self.redirect(result, operand)
                    break
        for held in self.held:
            if held.ahead:
                held.start, held.end = self.around(held)

    def around(self, held: Held) -> tuple[int, int]:
        """Where the loop begins and ends in which something is held."""
        return held.path[-1], self.ends[held.path[-1]]

    def peaks(self) -> tuple[dict[str, int], dict[str, int]]:
        """Greatest number of live bytes of each memory; and if what has several slots lives as long as its loop: with
        less, a slot is not filled while others are in use."""
        self.lifetimes()
        least, roomy = dict[str, int](), dict[str, int]()
        for held in self.held:
            if not held.dropped:
                least[held.memory] = roomy[held.memory] = 0
        for memory in least:
            here = [held for held in self.held if held.memory == memory and not held.dropped]
            least[memory] = peak((held.start, held.end, held.slots * held.size) for held in here)
            if any(held.slots > 1 and held.path for held in here):
                lives = (self.around(held) if held.slots > 1 and held.path else (held.start, held.end) for held in here)
                sizes = (held.slots * held.size for held in here)
                roomy[memory] = peak((start, end, size) for (start, end), size in zip(lives, sizes, strict=True))
            else:
                roomy[memory] = least[memory]
        return least, roomy

    def takes_over(self, operand: Held, result: Held) -> bool:
        """Whether a result takes the bytes of an operand: `bufferize` makes it replace one of its own size, except a
        load of several slots; the planner lays a narrower one over one where neither has several."""
        single = operand.slots == result.slots == 1
        if operand.loaded and operand.slots > 1:
            return False
        return operand.size == result.size or (operand.size > result.size and single)

    def redirect(self, old: Held, new: Held) -> None:
        """Later in-place results of `old` are results of `new`."""
        for made in self.made:
            made.operands = [new if operand is old else operand for operand in made.operands]


def peak(lives: Iterable[tuple[int, int, int]]) -> int:
    """The most bytes alive at a time, of first and last positions and sizes."""
    changes: list[tuple[int, int]] = []
    for start, end, size in lives:
        changes += [(start, size), (end + 1, -size)]
    live = most = 0
    for _, change in sorted(changes):
        live += change
        most = max(most, live)
    return most
