"""Loads at the front of a kernel that may begin before the launch before has ended.

Such a load reads what the launch before does not write, and fills bytes on chip that no buffer of the kernel before
takes. So that there are such bytes, the buffers of a kernel are moved behind those of the kernels launched before it as
far as the memory goes, all by as much, where that lets more be loaded early. Requires planned instructions without
events: `sync` does this before it orders them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import hardware
from ..dialects.target import target_of
from ..dialects.target_model import Target
from ..dialects.tile_types import BufferType
from .bufferize_layout import slot_bytes
from .sync_bytes import view_of


@dataclass(frozen=True)
class Span:
    """Bytes [low, high) of a memory."""

    memory: str
    low: int
    high: int

    def meets(self, other: Span) -> bool:
        return self.memory == other.memory and self.low < other.high and other.low < self.high

    def moved(self, by: int) -> Span:
        return Span(self.memory, self.low + by, self.high + by)


@dataclass(frozen=True, eq=False)
class Front:
    """Loads that can be early. `moved`: those that have to be brought before an instruction of their engine first."""

    loads: tuple[hardware.DmaOp, ...]
    moved: tuple[tuple[hardware.DmaOp, hardware.InstructionOp], ...]


def load_early(module: ModuleOp) -> None:
    """Marks loads as `early`, brings them to the front of their engine's queue, and makes room for them on chip."""
    target = target_of(module)
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, hardware.KernelOp)}
    for program in [op for op in module.ops if isinstance(op, hardware.ProgramOp)]:
        launches = [op for op in program.body.block.ops if isinstance(op, hardware.LaunchOp)]
        pairs: dict[hardware.KernelOp, list[tuple[hardware.LaunchOp, hardware.LaunchOp]]] = {}
        for before, launch in pairwise(launches):
            pairs.setdefault(kernels[launch.callee.string_value()], []).append((before, launch))
        for kernel, found in pairs.items():
            _Kernel(kernel, found, kernels, target).rewrite()


class _Kernel:
    def __init__(
        self,
        kernel: hardware.KernelOp,
        pairs: Sequence[tuple[hardware.LaunchOp, hardware.LaunchOp]],
        kernels: dict[str, hardware.KernelOp],
        target: Target,
    ) -> None:
        self.kernel, self.target = kernel, target
        self.written = [
            (launch, list(_written(before, kernels[before.callee.string_value()], target))) for before, launch in pairs
        ]
        self.taken = {
            span
            for name in dict.fromkeys(before.callee.string_value() for before, _ in pairs)
            for op in kernels[name].walk()
            if isinstance(op, hardware.BufferOp) and (span := local_span(op, target))
        }
        self.own = [op for op in kernel.walk() if isinstance(op, hardware.BufferOp)]
        self.instructions = [op for op in kernel.walk() if isinstance(op, hardware.InstructionOp)]
        # A kernel that follows itself meets its own buffers wherever they are.
        self.alone = all(kernels[before.callee.string_value()] is not kernel for before, _ in pairs)

    def rewrite(self) -> None:
        candidates = [op for op in self.instructions if isinstance(op, hardware.DmaOp) and self.reads_what_is_there(op)]
        if not candidates or not self.alone:
            return
        moves = self.room({local_of(op, self.target).memory for op in candidates})
        best, chosen = self.front(candidates, {}), dict[str, int]()
        other = self.front(candidates, moves)
        if self.bytes_of(other) > self.bytes_of(best):
            best, chosen = other, moves
        for buffer in self.own:
            by = chosen.get(_memory(buffer), 0)
            if by:
                buffer.properties["offset"] = IntegerAttr(buffer.offset.value.data + by, i64)
        for load, first in best.moved:
            for op in (*[view_of(view) for view in load.views], load):
                if op.parent is first.parent:
                    op.detach()
                    Rewriter.insert_op(op, InsertPoint.before(first))
        for load in best.loads:
            load.properties["early"] = UnitAttr()

    def reads_what_is_there(self, op: hardware.DmaOp) -> bool:
        """Whether an instruction loads from off chip bytes that no launch before it writes. Rows that indices choose
        wait for the indices."""
        if op.gather is not None:
            return False
        source, destination = (view_of(view).buffer for view in op.views)
        if not isinstance(source, BlockArgument) or not isinstance(destination.owner, hardware.BufferOp):
            return False
        if self.target.memories[_memory(destination.owner)].offchip:
            return False
        for launch, written in self.written:
            span = _external(launch.args[source.index], self.target)
            if any(span.meets(other) for other in written):
                return False
        return True

    def room(self, memories: set[str]) -> dict[str, int]:
        """How far the buffers of each memory can be moved, at most to behind what is taken."""
        found: dict[str, int] = {}
        for name in memories:
            memory = self.target.memories[name]
            own = [span for op in self.own if (span := local_span(op, self.target)) and span.memory == name]
            ends = [span.high for span in self.taken if span.memory == name]
            by = min(max(ends, default=0) - min(s.low for s in own), memory.bytes - max(s.high for s in own))
            if by >= memory.align:
                found[name] = by // memory.align * memory.align
        return found

    def front(self, candidates: Sequence[hardware.DmaOp], moves: dict[str, int]) -> Front:
        """What can be loaded early if buffers are moved so."""
        ready = {op for op in candidates if self.is_free(op, moves)}
        loads: list[hardware.DmaOp] = []
        moved: list[tuple[hardware.DmaOp, hardware.InstructionOp]] = []
        held: dict[str, hardware.InstructionOp] = {}
        for op in self.instructions:
            first = held.get(op.engine.data)
            if not isinstance(op, hardware.DmaOp) or op not in ready:
                held.setdefault(op.engine.data, op)
            elif first is None:
                loads.append(op)
            elif op.parent is first.parent and self.can_pass(op, first):
                loads.append(op)
                moved.append((op, first))
        return Front(tuple(loads), tuple(moved))

    def is_free(self, op: hardware.DmaOp, moves: dict[str, int]) -> bool:
        span = local_of(op, self.target)
        span = span.moved(moves.get(span.memory, 0))
        return not any(span.meets(other) for other in self.taken)

    def can_pass(self, load: hardware.DmaOp, first: hardware.InstructionOp) -> bool:
        """Whether a load can come before an earlier instruction of its block: nothing from there to it touches the
        bytes that it fills, writes off chip, or makes what its views are of."""
        span = local_of(load, self.target)
        for op in _between(first, load):
            if isinstance(op, hardware.BufferOp):
                return False
            if isinstance(op, hardware.InstructionOp):
                buffers = [view_of(view).buffer for view in op.views]
                if isinstance(buffers[-1], BlockArgument):
                    return False
                spans = [local_span(b.owner, self.target) for b in buffers if isinstance(b.owner, hardware.BufferOp)]
                if any(other is not None and span.meets(other) for other in spans):
                    return False
        return True

    def bytes_of(self, front: Front) -> int:
        spans = {local_of(op, self.target) for op in front.loads}
        return sum(span.high - span.low for span in spans)


def _between(first: Operation, last: Operation) -> Iterator[Operation]:
    """Everything from one operation of a block to before another, what is inside loops included."""
    op: Operation | None = first
    while op is not None and op is not last:
        yield from op.walk()
        op = op.next_op


def local_span(op: Operation | Block, target: Target) -> Span | None:
    """The bytes of a buffer on chip, all slots; None of others."""
    assert isinstance(op, hardware.BufferOp) and isinstance(op.res.type, BufferType)
    memory = target.memories[_memory(op)]
    if memory.offchip:
        return None
    slots = 1 if op.slots is None else op.slots.value.data
    low = op.offset.value.data
    return Span(_memory(op), low, low + slots * slot_bytes(op.res.type, memory))


def local_of(load: hardware.DmaOp, target: Target) -> Span:
    """The bytes that a load from off chip fills, those of the whole buffer."""
    span = local_span(view_of(load.output).buffer.owner, target)
    assert span is not None
    return span


def _memory(op: hardware.BufferOp) -> str:
    assert isinstance(op.res.type, BufferType)
    return op.res.type.memory.data


def _external(value: SSAValue, target: Target) -> Span:
    """The bytes of a program's buffer off chip."""
    while isinstance(value.owner, hardware.AliasOp):
        value = value.owner.source
    op = value.owner
    assert isinstance(op, hardware.BufferOp) and isinstance(op.res.type, BufferType)
    low = op.offset.value.data
    return Span(_memory(op), low, low + slot_bytes(op.res.type, target.memories[_memory(op)]))


def _written(launch: hardware.LaunchOp, kernel: hardware.KernelOp, target: Target) -> Iterator[Span]:
    """What a launch writes off chip."""
    for op in kernel.walk():
        if isinstance(op, hardware.InstructionOp):
            buffer = view_of(op.output).buffer
            if isinstance(buffer, BlockArgument):
                yield _external(launch.args[buffer.index], target)
