"""What a nest costs, from the nest alone: off-chip bytes, bytes of every memory at the peak, cycles of every engine.

The search ranks schedules by it. Off-chip bytes count ragged tiles, granules and clipped windows; cycles are an
estimate of what the time simulation of the emitted program says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, prod

from ..dialects import cost
from ..dialects.dtypes import accumulator_type, byte_width, type_name
from ..dialects.graph_primitives import ReduceOp
from ..dialects.scalar import monoid
from ..dialects.target_model import Move
from .axes import Axis
from .cuts import Cut
from .facts import Facts
from .footprint import Footprint
from .group import Node, Output
from .nest import Accumulate, Compute, Item, Load, Loop, Nest, Pin, Slice, Store
from .reduce_steps import two_step_cycles
from .state import Skewed
from .transfers import load_bytes, store_bytes


@dataclass
class Estimate:
    """Bytes, cycles by engine, and cycles of the whole; `excess` is by how much the memories overflow, `roomy` whether
    they hold all slots throughout the loops: if not, some are filled late."""

    read_bytes: int = 0
    write_bytes: int = 0
    busy: Counter[str] = field(default_factory=Counter[str])
    peaks: dict[str, int] = field(default_factory=dict[str, int])
    excess: int = 0
    roomy: bool = True
    cycles: int = 0

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.write_bytes


def estimate(nest: Nest, facts: Facts, skewed: Skewed = 0, roomy: bool = False) -> Estimate:
    """Costs of a nest on the target of `facts`, which are those of its group; `skewed`: as if its stages ran ahead of
    one another as far as they may, with so many buffers for what they hand over; `roomy`: memories overflow if they do
    not hold all slots throughout the loops."""
    return _Estimator(nest, facts, skewed).run(roomy)


class _Estimator:
    def __init__(self, nest: Nest, facts: Facts, skewed: Skewed) -> None:
        self.nest, self.facts, self.target, self.roles = nest, facts, facts.target, facts.roles
        target = facts.target
        self.cores = prod(nest.cores.values())
        self.port, self.port_rate = 0, float(cost.port_rate(target, self.cores))  # cycles of one core's port
        self.shared = self.cores  # cores that do the same work where the walk is
        self.result = Estimate()
        self.path: list[Axis] = []
        self.times = 1  # executions of the body that is walked
        self.cut: Cut | None = None
        self.footprint = Footprint(nest, facts, skewed)
        self.inner = dict(zip(nest.group.axes, nest.schedule.inner or nest.schedule.tiles, strict=True))
        self.slots = dict(zip(nest.group.loads, nest.schedule.slots, strict=True))
        self.vector = target.vector_engine[0] if target.vector_engine else ""
        self.matrix = target.matrix_engine[0] if target.matrix_engine else ""
        self.stalls = 0
        self.turns = 0  # cycles of loads that take turns with what uses them: there is one buffer
        self.streams: list[tuple[int, int, int]] = []  # slots, iterations, cycles of each load of several slots
        # Cycles by engine: in each loop whose stages run ahead, and outside.
        self.parts: defaultdict[Loop | None, Counter[str]] = defaultdict(Counter)
        self.within: Loop | None = None

    def run(self, roomy: bool) -> Estimate:
        self.items(self.nest.items)
        result = self.result
        least, most = self.footprint.peaks()
        result.peaks = most if roomy else least
        result.excess += sum(max(0, peak - self.target.memories[m].bytes) for m, peak in result.peaks.items())
        result.roomy = all(peak <= self.target.memories[m].bytes for m, peak in most.items())
        result.cycles = self.total()
        return result

    def total(self) -> int:
        """Loads, stores and the chain of dependent engines overlap; inside the chain engines take turns, unless its
        stages run ahead of one another: then the busiest one decides, and filling and draining comes on top."""
        busy, target = self.result.busy, self.target
        loads = {m.engine for m in target.moves if m.source == target.offchip}
        stores = {m.engine for m in target.moves if m.destination == target.offchip and m.source == self.roles.vector}
        feeders = {m.engine for m in target.moves if m.destination in (self.roles.lhs, self.roles.rhs)} - loads
        side = loads | feeders | stores | {self.matrix}
        chain = self.turns
        for loop, part in self.parts.items():
            links = [max([part[self.matrix], *(part[e] for e in feeders)])]
            links += [cycles for engine, cycles in part.items() if engine not in side]
            longest = sum(links) if loop is None else max(links)
            chain += longest + (sum(links) - longest) // (1 if loop is None else self.trips(loop))
        memory = target.offchip_memory
        latency = target.launch_cycles + memory.write_latency + memory.read_latency * (1 + self.stalls)
        # With s slots, s iterations take as long as one from the start of its load to the end of its use.
        waits = [(count * memory.read_latency + own + chain) // slots for slots, count, own in self.streams]
        return max([chain, self.port, *waits, *(busy[e] for e in stores)]) + latency

    def spend(self, engine: str, cycles: int) -> None:
        self.result.busy[engine] += cycles
        self.parts[self.within][engine] += cycles

    def runs(self, node: Node) -> int:
        """How often a node is computed or loaded here."""
        if self.cut is None or not self.cut.leaves_out(node):
            return self.times
        everything, masked = (int(table.sum()) for table in self.cut.walked)
        return self.times * masked // everything

    # --- walking --------------------------------------------------------------------------------------------------

    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            self.footprint.step()
            match item:
                case Loop():
                    self.loop(item)
                case Load() | Pin():
                    self.load(item)
                case Slice():
                    pass
                case Compute():
                    self.compute(item.node)
                case Accumulate():
                    self.compute(item.node, accumulate=True)
                case Store():
                    self.store(item.output)

    def loop(self, item: Loop) -> None:
        before, outer, cut = self.times, self.cut, self.nest.cuts.get(item)
        self.times *= self.trips(item)
        if cut is not None:
            self.times, self.cut = before * int(cut.walked[0].sum()) // prod(cut.shape[:-1]), cut
        self.shared //= self.nest.divided(item)
        self.footprint.enter(item)
        self.path.append(item.axis)
        around = self.within
        self.within = item if item in self.footprint.staged else around
        self.items(item.body)
        self.within = around
        self.path.pop()
        self.footprint.leave(item)
        self.times, self.cut = before, outer
        self.shared *= self.nest.divided(item)

    def trips(self, loop: Loop) -> int:
        """Iterations of a loop on the core that has most of them."""
        return -(-self.nest.trips(loop.axis) // self.nest.divided(loop))

    def load(self, item: Load | Pin) -> None:
        node, slots = item.node, 1 if isinstance(item, Pin) else self.slots[item.node]
        homes, own = self.footprint.load(item, slots), 0
        for memory in homes:
            move = self.target.move(self.target.offchip, memory)
            if move is None:
                continue
            size = self.shared * load_bytes(self.nest, item, tuple(self.path), self.target, move, self.cut)
            self.result.read_bytes += size
            cycles = self.transfers(size, move, self.runs(node))
            self.spend(move.engine, cycles)
            own += cycles
            if self.within is not None and slots == 1:  # in turn with what uses it
                user = self.vector if memory == self.roles.vector != self.roles.lhs_stage else self.matrix
                self.parts[self.within][user] += cycles
            elif item.fixed and slots == 1:
                self.turns += cycles
        if item.fixed:
            if slots == 1:
                self.stalls += self.runs(node)
            else:
                self.streams.append((slots, self.runs(node), own))

    def store(self, output: Output) -> None:
        memory = self.footprint.store(output)
        move = self.target.move(memory, self.target.offchip)
        if move is None:
            self.result.excess += self.target.memories[memory].bytes
            return
        size = store_bytes(self.nest, output, tuple(self.path), self.target, move)
        self.result.write_bytes += size
        self.spend(move.engine, self.transfers(size, move, self.times))

    def transfers(self, size: int, move: Move, count: int) -> int:
        """Cycles of one core's part of `size` bytes in `count` transfers, each of which takes whole cycles of its
        engine and of the port: in a copy nothing else tells many small tiles from few large ones."""
        count = max(count, 1)
        each = size / (self.cores * count)
        self.port += count * ceil(each / self.port_rate)
        return count * ceil(each / self.target.move_rate(move))

    def elements(self, axes: frozenset[Axis]) -> int:
        return prod(self.nest.tiles[axis] for axis in axes)

    def compute(self, node: Node, accumulate: bool = False) -> None:
        self.footprint.compute(node, accumulate)
        if node.kind == "contract":
            self.contract(node)
            if accumulate and self.facts.nodes[node].moved_apart:
                size = self.elements(node.present)
                self.spend(self.vector, _vector_cycles(self.target, "add", size, 4) * self.runs(node))
        elif node.kind == "reduce":
            assert isinstance(node.op, ReduceOp)
            kind = accumulator_type(node.inputs[0].element)
            cycles = self.reduce(node, node.op.monoid.data)
            combine = monoid(node.op.monoid.data).combine.name
            if accumulate:
                cycles += _vector_cycles(self.target, combine, self.elements(node.present), byte_width(kind))
            self.spend(self.vector, cycles * self.runs(node))
        else:
            self.map(node)

    def reduce(self, node: Node, name: str) -> int:
        """Cycles of one reduction of a tile, in one step or two."""
        source = node.inputs[0]
        kind, elements = accumulator_type(source.element), self.elements(source.present)
        width = byte_width(kind)
        rows = self.footprint.pieces(node)
        if rows is not None:
            row, lanes = rows
            return _two_step_cycles(self.target, name, elements, row, lanes, type_name(kind), width, width)
        last = next((a for a in reversed(self.nest.group.axes) if a in source.present), None)
        return _reduce_cycles(self.target, name, elements, width, type_name(kind), last in node.reduced)

    def map(self, node: Node) -> None:
        known = self.facts.nodes[node]
        if known.done:
            return
        fn, width, kind = known.elementwise
        cycles = _vector_cycles(self.target, fn, self.elements(node.present), width, kind)
        self.spend(self.vector, cycles * self.runs(node))

    def contract(self, node: Node) -> None:
        lhs, rhs = node.inputs
        both = lhs.present & rhs.present & node.present
        m, n, k = (lhs.present - rhs.present), (rhs.present - lhs.present), node.reduced
        kind = type_name(lhs.element)
        trips, matrix = self.runs(node), self.target.matrix_engine
        pieces = prod(-(-self.nest.tiles[a] // self.inner[a]) for a in lhs.present | rhs.present)
        sizes = [prod(self.inner[a] for a in axes) for axes in (m, k, n)]
        cycles = cost.matmul_cycles(self.target, sizes[0], sizes[1], sizes[2], kind, type_name(rhs.element))
        batch = prod(self.inner[a] for a in both)
        assert matrix is not None
        self.spend(matrix[0], cycles * batch * pieces * trips)
        steps = [a for a in self.nest.group.axes if self.inner[a] < self.nest.tiles[a]]
        for source, stage, memory in (
            (lhs, self.roles.lhs_stage, self.roles.lhs),
            (rhs, self.roles.rhs_stage, self.roles.rhs),
        ):
            move = None if stage is None or memory is None else self.target.move(stage, memory)
            if move is None or stage == memory:
                continue
            # A piece is moved again in every inner loop around it, whether that changes it or not.
            repeats = prod(-(-self.nest.tiles[a] // self.inner[a]) for a in steps if a in lhs.present | rhs.present)
            size = prod(self.inner[a] for a in source.present) * byte_width(source.element)
            self.spend(move.engine, int(size * repeats / self.target.move_rate(move)) * trips)
        out = prod(self.nest.tiles[a] for a in node.present) * byte_width(accumulator_type(lhs.element))
        apart = self.facts.nodes[node].moved_apart
        own = [axis for axis in self.path if axis in node.reduced]
        outer = trips if apart or not own else prod(self.nest.trips(axis) for axis in self.path if axis not in own)
        move = self.target.move(self.roles.result or "", self.roles.vector)
        if move is not None and (apart or self.facts.nodes[node].to_vector):
            self.spend(move.engine, int(out / self.target.move_rate(move)) * outer)


_vector_cycles = lru_cache(maxsize=1 << 15)(cost.vector_cycles)
_reduce_cycles = lru_cache(maxsize=1 << 15)(cost.reduce_cycles)
_two_step_cycles = lru_cache(maxsize=1 << 15)(two_step_cycles)
