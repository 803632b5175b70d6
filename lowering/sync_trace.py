"""A short stand-in for a kernel's execution: the same bodies, each loop run a few times.

Every loop is clipped to as many iterations as it takes to see each slot of its buffers reused. The slot of a buffer is
`(linearised counter) mod N`, so that clipped trip counts keep the order of the slots if they equal the real ones
modulo N. A loop of 100 iterations around a buffer of two slots becomes one of 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import hardware
from ..dialects.affine_eval import evaluate
from ..dialects.errors import UserError

IntArray: TypeAlias = npt.NDArray[np.int64]


@dataclass(eq=False)
class Instruction:
    """One instruction: its number in text order, its body and the number of its engine."""

    op: hardware.InstructionOp
    body: Body
    number: int
    engine: int


@dataclass(eq=False)
class Body:
    """The kernel's block or that of a loop, with the iterations ("rows") of the clipped trace in order.

    `counters[v]` is the value of counter v in each row, `slack[v]` how many iterations of its loop were left out: the
    row stands for the iterations `counters[v]` to `counters[v] + slack[v]`. `parent_rows`: the row of the outer body.
    """

    block: Block
    loop: hardware.ForOp | None
    parent: Body | None
    counters: dict[SSAValue, IntArray]
    slack: dict[SSAValue, IntArray]
    parent_rows: list[int]
    items: list[Instruction | Body] = field(default_factory=list["Instruction | Body"])
    children: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Per row of the parent: the range of rows it has here."""

    @property
    def rows(self) -> int:
        return len(self.parent_rows)

    def chain(self) -> list[Body]:
        """This body and those around it, outermost first."""
        return [*(self.parent.chain() if self.parent else []), self]


@dataclass(frozen=True, eq=False)
class Trace:
    """A kernel's bodies and instructions; `engines` are the names of the engines by number."""

    root: Body
    instructions: tuple[Instruction, ...]
    engines: tuple[str, ...]

    def walk(self) -> Iterator[tuple[Instruction, int]]:
        """Instructions with their rows, in program order."""
        yield from _walk(self.root, 0)


def _walk(body: Body, row: int) -> Iterator[tuple[Instruction, int]]:
    for item in body.items:
        if isinstance(item, Instruction):
            yield item, row
        else:
            for inner in range(*item.children[row]):
                yield from _walk(item, inner)


def trace_of(kernel: hardware.KernelOp) -> Trace:
    """The clipped trace of a kernel."""
    clip = _Clip(kernel)
    instructions: list[Instruction] = []
    engines: dict[str, int] = {}

    def fill(body: Body) -> Body:
        for op in body.block.ops:
            if isinstance(op, hardware.InstructionOp):
                engine = engines.setdefault(op.engine.data, len(engines))
                made = Instruction(op, body, len(instructions), engine)
                instructions.append(made)
                body.items.append(made)
            elif isinstance(op, hardware.ForOp):
                body.items.append(fill(_iterate(op, body, clip)))
        return body

    root = fill(Body(kernel.body.block, None, None, {}, {}, [0]))
    return Trace(root, tuple(instructions), tuple(engines))


def _iterate(op: hardware.ForOp, parent: Body, clip: _Clip) -> Body:
    """The body of a loop with its clipped iterations."""
    lower = values_of(op.lower.data.results[0], op.lower_operands, parent)
    upper = values_of(op.upper.data.results[0], op.upper_operands, parent)
    parent_rows: list[int] = []
    values: list[int] = []
    left_out: list[int] = []
    children: list[tuple[int, int]] = []
    for row in range(parent.rows):
        first = len(values)
        low, trips = int(lower[row]), int(upper[row] - lower[row])
        kept = clip.trips(op, trips)
        values += range(low, low + kept)
        left_out += [trips - kept] * kept
        parent_rows += [row] * kept
        children.append((first, len(values)))
    index = np.array(parent_rows, np.int64)
    counters = {counter: column[index] for counter, column in parent.counters.items()}
    counters[op.counter] = np.array(values, np.int64)
    slack = {counter: column[index] for counter, column in parent.slack.items()}
    slack[op.counter] = np.array(left_out, np.int64)
    return Body(op.body.block, op, parent, counters, slack, parent_rows, children=children)


def values_of(expr: AffineExpr, operands: Sequence[SSAValue], body: Body) -> IntArray:
    """An expression of counters in every row of a body."""
    missing = [value for value in operands if value not in body.counters]
    if missing:
        raise UserError(
            "an index that is not a loop counter cannot be analysed",
            missing[0].owner.location if not isinstance(missing[0].owner, Block) else None,
        )
    found = evaluate(expr, [body.counters[value] for value in operands])
    return np.broadcast_to(np.asarray(found, np.int64), (body.rows,))


class _Clip:
    """How many iterations of each loop the trace needs."""

    def __init__(self, kernel: hardware.KernelOp) -> None:
        self.least: dict[hardware.ForOp, int] = {}
        self.modulus: dict[hardware.ForOp, int] = {}
        for op in kernel.walk():
            if isinstance(op, hardware.ViewOp):
                for expr in op.offset.data.results:
                    for part in expr.dfs():
                        if isinstance(part, AffineBinaryOpExpr) and part.kind is AffineBinaryOpKind.Mod:
                            self.slots(part, op.counters)

    def slots(self, expr: AffineBinaryOpExpr, counters: Sequence[SSAValue]) -> None:
        """Takes note of `… mod N`: N + 1 iterations, in the innermost loops that have as many."""
        if not isinstance(expr.rhs, AffineConstantExpr):
            return
        count = expr.rhs.value
        dims = {part.position for part in expr.lhs.dfs() if isinstance(part, AffineDimExpr)}
        loops = [loop for d in dims if isinstance(loop := _loop(counters[d]), hardware.ForOp)]
        loops.sort(key=_depth)
        for loop in loops:
            self.modulus[loop] = lcm(self.modulus.get(loop, 1), count)
        wanted = count + 1
        for loop in reversed(loops):
            self.least[loop] = max(self.least.get(loop, 2), wanted)
            wanted = -(-wanted // max(1, _constant_trips(loop)))

    def trips(self, loop: hardware.ForOp, trips: int) -> int:
        """The clipped number of iterations of a loop that has `trips`."""
        least, modulus = self.least.get(loop, 2), self.modulus.get(loop, 1)
        return max(0, min(trips, least + (trips - least) % modulus))


def _loop(counter: SSAValue) -> object:
    owner = counter.owner
    return owner.parent_op() if isinstance(owner, Block) else None


def _depth(loop: hardware.ForOp) -> int:
    depth = 0
    parent = loop.parent_op()
    while isinstance(parent, hardware.ForOp):
        depth += 1
        parent = parent.parent_op()
    return depth


def _constant_trips(loop: hardware.ForOp) -> int:
    """The trip count of a loop with constant bounds; 1, the cautious answer, for others."""
    lower, upper = loop.lower.data.results[0], loop.upper.data.results[0]
    if isinstance(lower, AffineConstantExpr) and isinstance(upper, AffineConstantExpr):
        return upper.value - lower.value
    return 1
