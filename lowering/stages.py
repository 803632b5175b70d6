"""The `stages` pass: which parts of a loop's body run ahead of the others, as the schedule's `skew` says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr
from xdsl.passes import ModulePass

from ..dialects import tile
from ..dialects.attributes import int_values
from ..dialects.errors import UserError
from .ahead import AHEAD, Access, check_order, crossing
from .buffers import slots_of
from .stage_kinds import Kind, kind_of, touched
from .stage_order import reorder


@dataclass(frozen=True)
class StagesPass(ModulePass):
    """Requires buffer form; ensures that loops are as skewed as their kernel's schedule asks for.

    A *stage* is a maximal run of a loop's body that one engine computes: products, or elementwise ops and reductions.
    Stores and moves belong to the stage that made what they carry; loads, fills, and moves of what was loaded or moved
    before, to the first that uses it. A loop in the body that both engines compute in is a stage of its own. The loops
    that count are those of several stages without another such loop inside; `skew` lists their stages in text order.

    0. the ops of such a loop are put into the order with the fewest stages (see stage_order)
    1. op of a stage that is n iterations ahead → the op with `tilewright.ahead = n`
    2. `tile.alloc {slots = s}` used by stages n iterations apart → `slots = s + n`

    Rejects (UserError) a `skew` of another length and one that would let a stage use what is not made yet.
    Kernels whose ops say it already stay as they are.
    """

    name = "stages"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, tile.KernelOp)]:
            skew = kernel.schedule.data.get("skew") if kernel.schedule is not None else None
            if skew is None or any(AHEAD in inner.attributes for inner in kernel.walk()):
                continue
            apply_skew(kernel, int_values(skew))


def apply_skew(kernel: tile.KernelOp, skew: Sequence[int]) -> None:
    """Sets AHEAD and slots. Raises UserError for a skew that does not fit the kernel."""
    reorder_loops(kernel)
    loops = staged_loops(kernel)
    count = sum(len(loop.kinds) for loop in loops)
    if len(skew) != count:
        have = "; ".join(str(loop) for loop in loops) or "no loop has several"
        raise UserError(
            f"schedule 'skew' has an entry for each of {count} stages, got {len(skew)} ({have})", kernel.location
        )
    rest = list(skew)
    for loop in loops:
        taken, rest = rest[: len(loop.kinds)], rest[len(loop.kinds) :]
        check_order(loop.accesses(taken))
        for op, stage in loop.stages.items():
            if taken[stage]:
                op.attributes[AHEAD] = IntegerAttr(taken[stage], i64)
        for op in loop.op.body.block.ops:
            apart = crossing(op) if isinstance(op, tile.AllocOp) else 0
            if isinstance(op, tile.AllocOp) and apart:
                slots = slots_of(op)
                op.slots = IntegerAttr(slots + apart, i64)


def proposals(kernel: tile.KernelOp) -> list[tuple[int, ...]]:
    """Skews worth trying for a kernel in buffer form, one for each of these patterns, the one of most distance first.

    Between two stages that need not keep pace there may be one iteration or none. Everywhere one: no engine waits
    within a step. Every other time, from the first or from the second on: half the slots, and engines still alternate.
    """
    reorder_loops(kernel)
    found: list[tuple[int, ...]] = []
    for gaps in ((True, True), (True, False), (False, True)):
        skew: list[int] = []
        for loop in staged_loops(kernel):
            first, distance, part = loop.bound(), 0, [0]
            if not loop.constant:
                first = [0] * len(first)
            free = 0
            for stage in range(1, len(loop.kinds)):
                if first[stage] == stage:
                    distance += gaps[free % 2]
                    free += 1
                part.append(distance)
            skew += [part[-1] - behind for behind in part]
        found.append(tuple(skew))
    return found


@dataclass(frozen=True, eq=False)
class StagedLoop:
    """A loop, what computes each of its stages, and the stage of each op directly in it that becomes instructions."""

    op: tile.ForOp
    kinds: tuple[Kind, ...]
    stages: dict[Operation, int]

    def __str__(self) -> str:
        axis = self.op.axis.data if self.op.axis is not None else "?"
        return f"loop '{axis}': {', '.join(self.kinds)}"

    @property
    def constant(self) -> bool:
        """Whether the bounds are numbers."""
        bounds = (*self.op.lower.data.results, *self.op.upper.data.results)
        return len(bounds) == 2 and all(isinstance(bound, AffineConstantExpr) for bound in bounds)

    def accesses(self, skew: Sequence[int]) -> list[Access]:
        """What the ops touch, were the stages as far ahead as `skew` says."""
        body = self.op.body.block
        found: list[Access] = []
        for op, stage in self.stages.items():
            for buffer, writes in touched(op):
                local = not isinstance(buffer.owner, Block) and buffer.owner.parent is body
                inside = isinstance(buffer.owner, Operation) and is_within(buffer.owner, op)
                if not inside:
                    found.append(Access(op, skew[stage], buffer, writes, local))
        return found

    def bound(self) -> list[int]:
        """Per stage, the first of the stages that it must keep pace with, since they share what lives from one
        iteration to the next."""
        first = list(range(len(self.kinds)))
        users: dict[SSAValue, list[tuple[int, bool]]] = {}
        for access in self.accesses(range(len(self.kinds))):
            if not access.local:
                users.setdefault(access.buffer, []).append((access.ahead, access.writes))
        for found in users.values():
            if any(writes for _, writes in found):
                low, high = min(stage for stage, _ in found), max(stage for stage, _ in found)
                for stage in range(low, high + 1):
                    first[stage] = min(first[stage], first[low])
        return first


def staged_loops(kernel: tile.KernelOp) -> list[StagedLoop]:
    """The loops of a kernel that have several stages, in text order; of loops within one another the innermost."""
    return list(_staged(kernel.body.block))


def reorder_loops(kernel: tile.KernelOp) -> None:
    """Brings the bodies of the loops that may have several stages into the order that has the fewest."""
    for loop in staged_loops(kernel):
        reorder(loop.op)


def _staged(block: Block) -> Iterator[StagedLoop]:
    for op in block.ops:
        if isinstance(op, tile.ForOp):
            inside = list(_staged(op.body.block))
            found = stages_of(op) if not inside else None
            yield from inside
            if found is not None and len(found.kinds) > 1:
                yield found


def stages_of(loop: tile.ForOp) -> StagedLoop:
    """Cuts the body of a loop in buffer form into stages."""
    kinds: list[Kind] = []
    stages: dict[Operation, int] = {}
    waiting: list[Operation] = []  # ops that belong to the first that uses what they bring
    computed: dict[SSAValue, int] = {}  # buffer → the stage that made what it holds

    def put(op: Operation, stage: int) -> None:
        stages[op] = stage
        computed.update((buffer, stage) for buffer, writes in touched(op) if writes)

    for op in loop.body.block.ops:
        if isinstance(op, tile.AllocOp | tile.SliceOp | tile.YieldOp):
            continue
        kind = kind_of(op)
        read = [buffer for buffer, writes in touched(op) if not writes]
        if kind is None:
            made = [computed[buffer] for buffer in read if buffer in computed]
            if made:
                stages[op] = max(made)
            else:
                waiting.append(op)
            continue
        if not kinds or kinds[-1] != kind or kind == "both":
            kinds.append(kind)
        stage = len(kinds) - 1
        for early in claimed(waiting, op):
            waiting.remove(early)
            stages[early] = stage
        put(op, stage)
    for op in waiting:  # what brings nothing to a computation, such as a copy
        stages[op] = max(len(kinds) - 1, 0)
    order = [op for op in loop.body.block.ops if op in stages]
    return StagedLoop(loop, tuple(kinds), {op: stages[op] for op in order})


def claimed(waiting: Sequence[Operation], op: Operation) -> list[Operation]:
    """Of the ops that wait for a user, those whose results `op` uses, directly or through one another."""
    wanted = {buffer for buffer, _ in touched(op)}
    found: list[Operation] = []
    for early in reversed(waiting):
        if any(writes and buffer in wanted for buffer, writes in touched(early)):
            found.append(early)
            wanted.update(buffer for buffer, _ in touched(early))
    return found[::-1]


def is_within(op: Operation, outer: Operation) -> bool:
    """Whether an op is in the regions of another."""
    parent = op.parent_op()
    while parent is not None:
        if parent is outer:
            return True
        parent = parent.parent_op()
    return False
