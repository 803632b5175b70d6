"""The `skew` pass: loops whose parts run ahead of one another get a prologue, a steady state and an epilogue."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import hardware
from ..dialects.errors import UserError
from .affine_bounds import Range, reach
from .ahead import AHEAD, Access, ahead_of, check_order
from .cores import trips_by_core
from .emit_views import simplified
from .skew_counters import Linear, replace_counter


@dataclass(frozen=True)
class SkewPass(ModulePass):
    """Requires instructions without events; ensures that none is marked as running ahead.

    Step i of a loop whose ops run up to S iterations ahead does, in their order, what each op does in iteration
    i + its distance, as far as the loop has that iteration:

    1. steps before the first iteration → the prologue: copies of the ops that are ahead, before the loop;
    2. steps in which every op has an iteration → the loop, S shorter, `%i` → `%i + ahead` in views and bounds;
    3. steps after that → the epilogue: copies of the ops that are behind, after the loop.

        for %i = 0 to 8 { A %i {ahead = 1}; B %i }   →   A 0; for %i = 0 to 7 { A %i + 1; B %i }; B 7

    A loop of at most S iterations becomes its steps, without a loop. Of loops in one another the innermost comes first.

    Rejects (UserError) buffers with fewer slots than the iterations that they hold at a time, an order that would use
    what is not made yet, views that are not as far ahead as the instruction that takes them, and loops that may have
    fewer than S iterations if how many depends on outer counters.
    """

    name = "skew"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.ops if isinstance(k, hardware.KernelOp)]:
            if not any(AHEAD in inner.attributes for inner in kernel.walk()):
                continue
            for loop in [inner for inner in kernel.walk(region_first=True) if isinstance(inner, hardware.ForOp)]:
                if any(ahead_of(inner) for inner in loop.body.block.ops):
                    check(loop)
                    unfold(loop)
            for inner in kernel.walk():
                inner.attributes.pop(AHEAD, None)


# --- what is allowed --------------------------------------------------------------------------------------------------


def check(loop: hardware.ForOp) -> None:
    """Raises UserError where the marks of a loop's ops change what it computes."""
    found: list[Access] = []
    for op in loop.body.block.ops:
        for view, writes in views_of(op):
            if view.parent is loop.body.block and ahead_of(view) != ahead_of(op):
                raise UserError(
                    f"'{op.name}' runs {ahead_of(op)} iterations ahead, its view {ahead_of(view)}",
                    op.location,
                    [("the view", view.location)],
                )
            found.append(Access(op, ahead_of(op), view.buffer, writes, takes_turns(view, loop.counter)))
    check_order(found)
    for buffer in {access.buffer for access in found if any(a.writes for a in found if a.buffer is access.buffer)}:
        distances = [access.ahead for access in found if access.buffer is buffer]
        slots = 1
        if isinstance(buffer.owner, hardware.BufferOp) and buffer.owner.slots is not None:
            slots = buffer.owner.slots.value.data
        if max(distances) - min(distances) >= slots and min(distances) != max(distances):
            op = next(access.op for access in found if access.buffer is buffer)
            raise UserError(
                f"a buffer of {slots} slot{'s' * (slots > 1)} is used {max(distances)} and {min(distances)} iterations "
                f"ahead: it has to hold {max(distances) - min(distances) + 1} iterations at a time",
                op.location,
            )


def takes_turns(view: hardware.ViewOp, counter: SSAValue) -> bool:
    """Whether the slot of a view, a remainder, changes with a counter: each iteration then has a place of its own."""
    places = {n for n, other in enumerate(view.counters) if other is counter}
    slots = [
        part.lhs
        for expr in view.offset.data.results
        for part in expr.dfs()
        if isinstance(part, AffineBinaryOpExpr) and part.kind is AffineBinaryOpKind.Mod
    ]
    return any(isinstance(dim, AffineDimExpr) and dim.position in places for slot in slots for dim in slot.dfs())


def views_of(op: Operation) -> list[tuple[hardware.ViewOp, bool]]:
    """The views that an instruction, or those of a loop, read (False) or write (True)."""
    if isinstance(op, hardware.ForOp):
        return [pair for inner in op.body.block.ops for pair in views_of(inner)]
    if not isinstance(op, hardware.InstructionOp):
        return []
    found: list[tuple[hardware.ViewOp, bool]] = []
    for value in op.views:
        view = value.owner
        assert isinstance(view, hardware.ViewOp)
        found.append((view, value is op.output))
    return found


# --- the three parts --------------------------------------------------------------------------------------------------


def unfold(loop: hardware.ForOp) -> None:
    """Replaces a loop by prologue, steady state and epilogue."""
    body = list(loop.body.block.ops)
    nearest = min(ahead_of(op) for op in body)
    distance = {op: ahead_of(op) - nearest for op in body}
    depth = max(distance.values())
    if len(loop.lower.data.results) + len(loop.upper.data.results) > 2:
        raise UserError("a loop cannot run ahead of itself if its bounds are the least of several", loop.location)
    low, high = Linear.of(loop.lower, loop.lower_operands), Linear.of(loop.upper, loop.upper_operands)
    trips, same = fewest_trips(loop)
    if trips < depth and not same:
        raise UserError(
            f"a loop that may have only {max(trips, 0)} iterations cannot run {depth} ahead of itself", loop.location
        )
    before = InsertPoint.before(loop)

    def step(start: Linear, number: int, iterations: range) -> None:
        """One step outside the loop: of each op iteration `start + number + distance`, if it is one of `iterations`."""
        copies: dict[SSAValue, SSAValue] = {}
        for op in body:
            if number + distance[op] in iterations:
                at = start.plus(number + distance[op])
                made = copied(op, copies, loop.counter, at)
                if AHEAD in loop.attributes:  # in a loop that is skewed too, the copies run where the loop does
                    made.attributes[AHEAD] = loop.attributes[AHEAD]
                Rewriter.insert_op(made, before)

    if same and trips <= depth:
        for number in range(-depth, trips):
            step(low, number, range(trips))
        Rewriter.erase_op(loop)
        return
    for number in range(-depth, 0):
        step(low, number, range(depth))
    inside = Block(arg_types=[loop.counter.type])
    inside.args[0].name_hint = loop.counter.name_hint
    inside.args[0].location = loop.body.block.args[0].location
    copies: dict[SSAValue, SSAValue] = {}
    for op in body:
        here = Linear((inside.args[0],), AffineDimExpr(0)).plus(distance[op])
        inside.add_op(copied(op, copies, loop.counter, here))
    made = hardware.ForOp.build(
        operands=[loop.lower_operands, loop.upper_operands],
        properties={"lower": loop.lower, "upper": high.plus(-depth).attr(), "axis": loop.axis},
        regions=[Region(inside)],
    )
    made.attributes.update(loop.attributes)
    made.location = loop.location
    Rewriter.insert_op(made, before)
    for number in range(-depth, 0):  # counted from the end: iteration -1 is the last
        step(high, number, range(-depth, 0))
    Rewriter.erase_op(loop)


def copied(op: Operation, copies: dict[SSAValue, SSAValue], counter: SSAValue, value: Linear) -> Operation:
    """A copy of an op with `value` in the place of a counter; operands made by ops copied before are those copies."""
    made = op.clone(copies)
    made.attributes.pop(AHEAD, None)
    for inner in made.walk():
        replace_counter(inner, counter, value)
    for old, new in zip(op.walk(), made.walk(), strict=True):
        new.location = old.location
    return made


def fewest_trips(loop: hardware.ForOp) -> tuple[int, bool]:
    """The least number of iterations of a loop, over all values of the counters around it; whether it always has so
    many."""
    by_core = trips_by_core(loop)
    if by_core is not None:
        return min(by_core), min(by_core) == max(by_core)
    counters = list(dict.fromkeys([*loop.lower_operands, *loop.upper_operands]))
    low, high = Linear.of(loop.lower, loop.lower_operands), Linear.of(loop.upper, loop.upper_operands)
    difference = simplified(high.over(counters) - low.over(counters))
    return reach(difference, [range_of(counter) for counter in counters])[0], False


def range_of(counter: SSAValue) -> Range:
    """The values of a counter."""
    loop = counter.owner.parent_op() if isinstance(counter.owner, Block) else None
    assert isinstance(loop, hardware.ForOp)
    low = reach(loop.lower.data.results[0], [range_of(value) for value in loop.lower_operands])
    high = reach(loop.upper.data.results[0], [range_of(value) for value in loop.upper_operands])
    return low[0], max(low[0], high[1] - 1)
