"""How many bytes of each memory a nest needs at its peak: lifetimes of its values in the order of its items.

Follows what `place` and `bufferize` do: where values lie, which elementwise results take over a dying operand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ..dialects.dtypes import accumulator_type, byte_width
from ..dialects.graph_primitives import MapOp
from ..dialects.output_stage import can_do, output_stage
from ..dialects.target_model import Target
from .group import Node, Output
from .kept_types import kept_type, rounded_already
from .nest import Load, Loop, Nest, Pin
from .nest_stages import staged_loops
from .reduce_steps import piece
from .regions import region_of
from .roles import Roles, product_apart, tile_bytes
from .state import Skewed

Path: TypeAlias = tuple[int, ...]


@dataclass(eq=False)
class Held:
    """One copy of a value in one memory: bytes, the loops it is made in, first and last position."""

    memory: str
    size: int
    path: Path
    start: int
    uses: list[tuple[int, Path]] = field(default_factory=list[tuple[int, Path]])
    end: int = 0
    dropped: bool = False
    ahead: bool = False
    """Made in one iteration while the one before is used: the whole loop long."""


@dataclass(eq=False)
class Made:
    """An elementwise result and the operands whose bytes it may take."""

    result: Held
    operands: list[Held]
    position: int


class Footprint:
    def __init__(self, nest: Nest, target: Target, roles: Roles, skewed: Skewed = 0) -> None:
        self.nest, self.target, self.roles = nest, target, roles
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
        self.apart = product_apart(target)
        self.users: dict[Node, list[tuple[Node | Output, int]]] = {node: [] for node in nest.group.nodes}
        self.carried = {node.carry: node for node in nest.group.nodes if node.carry is not None}
        for node in nest.group.nodes:
            for operand, source in enumerate(node.inputs):
                self.users[source].append((node, operand))
        for output in nest.group.outputs:
            self.users[output.node].append((output, 0))

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
        memories = sorted({memory for memory, _ in self.homes(item.node)})
        if not self.path:
            slots = 1
        sizes = [(memory, slots * self.region(item, memory)) for memory in memories]
        if isinstance(item, Pin):
            self.pins[item.node] = [self.add(memory, size) for memory, size in sizes]
        else:
            for held in self.pins.get(item.node, []):
                held.uses.append((self.position, self.path))
            self.define(item.node, sizes)
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
                    self.add(memory, self.piece(source, memory) * self.nest.schedule.move_slots)
        rows = self.pieces(node) if node.kind == "reduce" else None
        if rows is not None:
            _, lanes = rows
            kept = [self.nest.tiles[a] for a in self.nest.group.axes if a in node.present]
            width = byte_width(accumulator_type(node.inputs[0].element))
            self.add(self.roles.vector, tile_bytes(self.target.memories[self.roles.vector], [*kept, lanes], width))
        if accumulate:
            self.use(node)
            self.accumulate(node)
            return
        reduction = self.carried.get(node)
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
        shape = [self.inner[a] for a in self.nest.group.axes if a in source.present]
        return tile_bytes(self.target.memories[memory], shape, byte_width(source.element))

    def hand_over(self, node: Node, made: list[Held]) -> None:
        """Slots for what one engine makes for another, if one runs ahead of the other."""
        if not self.loops or self.loops[-1] not in self.staged:
            return
        product = node.kind == "contract"
        crosses = any(isinstance(u, Node) and (u.kind == "contract") != product for u, _ in self.users[node])
        for held in made:
            taken = self.roles.vector if node.kind == "contract" else self.roles.lhs_stage
            if crosses and (held.memory == taken or self.roles.result == self.roles.vector):
                held.size, held.ahead = self.slots * held.size, True

    def pieces(self, node: Node) -> tuple[int, int] | None:
        """Elements of the rows that a reduction combines and of their pieces, where it takes two steps."""
        source = node.inputs[0]
        axes = [a for a in self.nest.group.axes if a in source.present and self.nest.tiles[a] > 1]
        if self.nest.schedule.row_steps == 1 or not axes:
            return None
        if axes[-1] not in node.reduced or axes[-1].extent % self.nest.tiles[axes[-1]]:
            return None
        row, width = self.nest.tiles[axes[-1]], byte_width(accumulator_type(source.element))
        lanes = piece(self.target, self.roles.vector, row, width, width)
        return None if lanes is None else (row, lanes)

    def accumulate(self, node: Node) -> None:
        """The part that a step adds, where it is not added as it is made; a running value beside the one before."""
        width = byte_width(accumulator_type(node.inputs[0].element))
        vector = self.tile(node, self.roles.vector, width)
        if self.moved_apart(node):
            self.add(self.roles.result or "", self.tile(node, self.roles.result or "", width))
            part = self.add(self.roles.vector, vector)
            if self.loops[-1] in self.staged:
                part.size, part.ahead = self.slots * part.size, True
        elif node.kind == "reduce":
            self.add(self.roles.vector, vector)
        if node.cascade and node.carry is None:
            self.add(self.roles.vector, vector)

    def moved_apart(self, node: Node) -> bool:
        """Whether a contraction is accumulated by the vector engine."""
        return node.kind == "contract" and bool(node.cascade) and self.apart

    def on_the_way(self, node: Node) -> bool:
        """Whether the move that brings a product to the vector engine does the work of an operator."""
        sources = [source for source in node.inputs if source.immediate is None]
        move = self.target.move(self.roles.result or "", self.roles.vector)
        if not isinstance(node.op, MapOp) or len(sources) != 1 or sources[0].kind != "contract" or move is None:
            return False
        alone = len(self.users[sources[0]]) == 1 and not any(isinstance(u, Output) for u, _ in self.users[node])
        numbers = [number for source in node.inputs if (number := source.immediate) is not None]
        stage = output_stage(node.op.fn.data, numbers, node.op.params)
        return stage is not None and alone and not self.moved_apart(sources[0]) and can_do(move, stage, False)

    def store(self, output: Output) -> str:
        """The memory that a result leaves from."""
        held = self.use(output.node)
        direct = {h.memory for h in held if self.target.move(h.memory, self.target.offchip) is not None}
        if output.node.kind == "contract" and self.roles.result in direct:
            return self.roles.result or ""
        return self.roles.vector

    # --- values ---------------------------------------------------------------------------------------------------

    def to_vector(self, node: Node) -> bool:
        """Whether a contraction's result is needed where the vector engine works."""
        direct = self.target.move(self.roles.result or "", self.target.offchip) is not None
        return any(
            (isinstance(user, Node) and user.kind != "contract") or (isinstance(user, Output) and not direct)
            for user, _ in self.users[node]
        )

    def uses(self, node: Node) -> list[Node | Output]:
        return [user for user, _ in self.users[node]]

    def done(self, node: Node) -> bool:
        """Whether an operator takes the vector engine no time: the move before it or its producer did its work."""
        return bool(node.inputs) and (self.on_the_way(node) or rounded_already(node, self.uses(node.inputs[0])))

    def homes(self, node: Node) -> list[tuple[str, int]]:
        """Memories that hold a value, with bytes."""
        roles, sizes = self.roles, dict[str, int]()
        stages = [roles.lhs_stage, roles.rhs_stage]
        for user, operand in self.users[node]:
            if isinstance(user, Node) and user.kind == "contract":
                stage = stages[operand]
                if stage is not None:
                    sizes[stage] = self.tile(node, stage, byte_width(node.element))
        if self.moved_apart(node):
            width = byte_width(accumulator_type(node.inputs[0].element))
            sizes[roles.vector] = self.tile(node, roles.vector, width)
        elif node.kind == "contract":
            width = byte_width(accumulator_type(node.inputs[0].element))
            result = roles.result or roles.vector
            sizes[result] = self.tile(node, result, width)
            if self.to_vector(node):
                sizes[roles.vector] = self.tile(node, roles.vector, width)
        elif node.kind != "load" or any(not isinstance(u, Node) or u.kind != "contract" for u, _ in self.users[node]):
            kind = node.element if node.kind == "load" else kept_type(node, self.uses(node))
            sizes[roles.vector] = self.tile(node, roles.vector, byte_width(kind))
        return sorted(sizes.items())

    def tile(self, node: Node, memory: str, width: int) -> int:
        shape = [self.nest.tiles[a] for a in self.nest.group.axes if a in node.present]
        return tile_bytes(self.target.memories[memory], shape, width)

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
                fits = operand.memory == made.result.memory and self.takes_over(operand, made.result)
                if fits and not operand.dropped and operand.path == made.result.path and operand.end == made.position:
                    operand.end = made.result.end
                    made.result.dropped = True
                    self.redirect(made.result, operand)
                    break
        for held in self.held:
            if held.ahead:
                held.start, held.end = held.path[-1], self.ends[held.path[-1]]

    def peaks(self) -> dict[str, int]:
        """Greatest number of live bytes of each memory."""
        self.lifetimes()
        peaks: dict[str, int] = {}
        for memory in {held.memory for held in self.held}:
            changes: list[tuple[int, int]] = []
            for held in self.held:
                if held.memory == memory and not held.dropped:
                    changes += [(held.start, held.size), (held.end + 1, -held.size)]
            live = peak = 0
            for _, change in sorted(changes):
                live += change
                peak = max(peak, live)
            peaks[memory] = peak
        return peaks

    def takes_over(self, operand: Held, result: Held) -> bool:
        """Whether a result has room in the bytes of an operand. A narrower one has a buffer of its own, which cannot
        lie in the slots of what is made ahead."""
        return operand.size >= result.size and not (operand.ahead and operand.size > self.slots * result.size)

    def redirect(self, old: Held, new: Held) -> None:
        """Later in-place results of `old` are results of `new`."""
        for made in self.made:
            made.operands = [new if operand is old else operand for operand in made.operands]
