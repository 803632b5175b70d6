"""How many iterations of each loop of a kernel show all that the others can do.

A loop goes on until every buffer has been through all its slots and one iteration further, and then to an iteration in
which the slots are those of the real last one: the order of the slots stays what it is, from one iteration to the next
of the same loop as from the last to the first of an outer one. 100 iterations around a buffer of two slots become 4.

A loop that *walks* through bytes that several engines touch, piece by piece, is kept whole: which pieces meet other
bytes depends on every iteration. If that is too long, the longest of these loops are cut all the same, and an iteration
then stands for the bytes of those left out as well.

A loop whose counter bounds inner loops (a triangle) goes on until every run of iterations that differ in what they
begin inside has been seen: how many iterations of the trace, from which slot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import gcd, lcm

import numpy as np
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import hardware
from ..dialects.affine_eval import lower_bound, upper_bound
from .bufferize_layout import linear
from .cores import core_count
from .loop_range import loop_range

Roots = Mapping[SSAValue, object]
"""What the off-chip buffers are the bytes of, where two of them may be the same; others are apart."""

BUDGET = 6000
"""Instructions executed in the trace of a kernel above which loops that walk are cut: some tenths of a second."""


def place_of(buffer: SSAValue, roots: Roots) -> tuple[object, int]:
    """The space a buffer lies in (a memory, or bytes off chip), and its address there."""
    owner = buffer.owner
    if isinstance(owner, Block):
        return roots.get(buffer, buffer), 0
    assert isinstance(owner, hardware.BufferOp)
    return owner.res.type.memory.data, owner.offset.value.data


class Clip:
    """The trip counts of a kernel's trace."""

    def __init__(self, kernel: hardware.KernelOp, roots: Roots) -> None:
        self.period: dict[hardware.ForOp, int] = {}
        self.walks: set[hardware.ForOp] = set()
        instructions = [op for op in kernel.walk() if isinstance(op, hardware.InstructionOp)]
        shared = _shared(instructions, roots)
        for op in instructions:
            for value in op.views:
                view = value.owner
                assert isinstance(view, hardware.ViewOp)
                if place_of(view.buffer, roots)[0] in shared:
                    self.offset(view.offset.data.results[0], view.counters)
        self.bounding = _bounding(kernel)
        self.fit(instructions)

    def offset(self, expr: AffineExpr, counters: Sequence[SSAValue]) -> None:
        """Takes note of how an offset depends on counters."""
        match expr:
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add | AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
                self.offset(lhs, counters)
                self.offset(rhs, counters)
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=AffineConstantExpr(value=count)):
                self.slots(lhs, count, counters)
            case _:
                self.walks.update(loop_of(counters[d]) for d in _dims(expr))

    def slots(self, expr: AffineExpr, count: int, counters: Sequence[SSAValue]) -> None:
        """`(8·i + 3·j + k) mod 2`: j and k change the slot with every iteration, i never does."""
        form = linear(expr)
        for d in _dims(expr):
            coefficient = 1 if form is None else form[1].get(d, 0)
            loop = loop_of(counters[d])
            self.period[loop] = lcm(self.period.get(loop, 1), count // gcd(count, coefficient))

    def fit(self, instructions: Sequence[hardware.InstructionOp]) -> None:
        """Cuts loops that walk, the longest first, until the trace is within its budget."""
        around = {op: [loop for loop in loops_around(op) if loop.core is None] for op in instructions}
        trips = {loop: _trips(loop) for loops in around.values() for loop in loops}

        def length() -> int:
            total = 0
            for op in instructions:
                count = 1
                for loop in around[op]:
                    count *= self.trips(loop, trips[loop])
                total += count
            return total

        while length() > BUDGET:
            longest = max((loop for loop in self.walks if loop in trips), key=lambda loop: trips[loop], default=None)
            if longest is None:
                break
            self.walks.remove(longest)

    def trips(self, loop: hardware.ForOp, trips: int) -> int:
        """The iterations in the trace of a loop that has `trips`."""
        if loop in self.walks:
            return max(0, trips)
        inner = self.bounding.get(loop)
        if inner is not None:
            return self.until_seen(loop, inner)
        period = self.period.get(loop, 1)
        return max(0, min(trips, period + 1 + (trips - period - 1) % period))

    def cores(self, loops: Sequence[hardware.ForOp]) -> list[tuple[int, ...]]:
        """The cores, by their number in each of the loops over them, that are not like one before.

        Cores are alike if the loops that are divided among them have as many iterations in the trace and begin in the
        same slots.
        """
        found: dict[object, tuple[int, ...]] = {}
        divided = [inner for loop in loops for inner in self.bounding.get(loop, ())]
        counters = [loop.counter for loop in loops]
        narrow = all(_outer(inner) <= set(counters) for inner in divided)
        for numbers in product(*(range(core_count(loop)) for loop in loops)):
            known = dict(zip(counters, numbers, strict=True))
            state: list[object] = [] if narrow else [numbers]
            for loop, number in zip(loops, numbers, strict=True):
                state.append(number if loop in self.walks else number % self.period.get(loop, 1))
            for inner in divided if narrow else ():
                low = lower_bound(inner.lower.data.results, [known[value] for value in inner.lower_operands])
                high = upper_bound(inner.upper.data.results, [known[value] for value in inner.upper_operands])
                start = int(low) if inner in self.walks else int(low) % self.period.get(inner, 1)
                state += [start, self.trips(inner, int(high) - int(low))]
            found.setdefault(tuple(state), numbers)
        return list(found.values())

    def until_seen(self, loop: hardware.ForOp, inner: Sequence[hardware.ForOp]) -> int:
        """The fewest iterations that show every run of different iterations, and end as the last ones do.

        An iteration is what it begins in `inner` loops: iterations of the trace, and the slot of the first one.
        """
        low, high = loop_range(loop)
        if loop.lower_operands or loop.upper_operands or any(_outer(one) != {loop.counter} for one in inner):
            return high - low + 1
        values = np.arange(low, high + 1)
        period = self.period.get(loop, 1)
        columns = [values % period]
        for one in inner:
            first = lower_bound(one.lower.data.results, [values] * len(one.lower_operands))
            last = upper_bound(one.upper.data.results, [values] * len(one.upper_operands))
            first, last = (np.broadcast_to(np.asarray(each, np.int64), values.shape) for each in (first, last))
            columns.append(first % self.period.get(one, 1))
            columns.append(np.array([self.trips(one, int(trips)) for trips in last - first]))
        states = list(zip(*(column.tolist() for column in columns), strict=True))
        length = min(period + 2, len(states))
        runs = [tuple(states[end - length : end]) for end in range(length, len(states) + 1)]
        missing = set(runs)
        for position, run in enumerate(runs):
            missing.discard(run)
            if not missing and run == runs[-1]:
                return position + length
        return len(states)


def _shared(instructions: Sequence[hardware.InstructionOp], roots: Roots) -> set[object]:
    """Spaces that several engines touch, one of them writing."""
    users: dict[object, set[str]] = {}
    written: set[object] = set()
    for op in instructions:
        for value in op.views:
            view = value.owner
            assert isinstance(view, hardware.ViewOp)
            space, _ = place_of(view.buffer, roots)
            users.setdefault(space, set()).add(op.engine.data)
            if value is op.output:
                written.add(space)
    return {space for space in written if len(users[space]) > 1}


def _bounding(kernel: hardware.KernelOp) -> dict[hardware.ForOp, list[hardware.ForOp]]:
    """Loops whose counters bound loops inside them, each with those."""
    found: dict[hardware.ForOp, list[hardware.ForOp]] = {}
    for op in kernel.walk():
        if isinstance(op, hardware.ForOp):
            for counter in _outer(op):
                found.setdefault(loop_of(counter), []).append(op)
    return found


def _outer(loop: hardware.ForOp) -> set[SSAValue]:
    return {*loop.lower_operands, *loop.upper_operands}


def loop_of(counter: SSAValue) -> hardware.ForOp:
    """The loop that a counter is of."""
    owner = counter.owner
    loop = owner.parent_op() if isinstance(owner, Block) else None
    assert isinstance(loop, hardware.ForOp)
    return loop


def loops_around(op: hardware.InstructionOp | hardware.ForOp) -> Iterator[hardware.ForOp]:
    """Loops around an op, innermost first."""
    parent = op.parent_op()
    while isinstance(parent, hardware.ForOp):
        yield parent
        parent = parent.parent_op()


def _dims(expr: AffineExpr) -> set[int]:
    return {part.position for part in expr.dfs() if isinstance(part, AffineDimExpr)}


def _trips(loop: hardware.ForOp) -> int:
    """The trip count; the greatest, of a loop with bounds that depend on counters."""
    low, high = loop_range(loop)
    return high - low + 1
