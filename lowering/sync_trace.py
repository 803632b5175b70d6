"""A short stand-in for a kernel's execution: the same bodies, long loops cut (see sync_clip)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects import hardware
from ..dialects.affine_eval import evaluate
from ..dialects.errors import UserError
from .cores import core_loops
from .sync_clip import Clip, Roots

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
    """A kernel's bodies and instructions; `engines` are the names of the engines by number.

    The root is what one core executes. It has a row for each kind of core; these know nothing of one another.
    """

    root: Body
    instructions: tuple[Instruction, ...]
    engines: tuple[str, ...]

    def walk(self, core: int) -> Iterator[tuple[Instruction, int]]:
        """Instructions of one row of the root with their rows, in program order."""
        yield from _walk(self.root, core)


def _walk(body: Body, row: int) -> Iterator[tuple[Instruction, int]]:
    for item in body.items:
        if isinstance(item, Instruction):
            yield item, row
        else:
            for inner in range(*item.children[row]):
                yield from _walk(item, inner)


def trace_of(kernel: hardware.KernelOp, roots: Roots) -> Trace:
    """The clipped trace of a kernel."""
    clip = Clip(kernel, roots)
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

    root = fill(_root(kernel, clip))
    return Trace(root, tuple(instructions), tuple(engines))


def _root(kernel: hardware.KernelOp, clip: Clip) -> Body:
    """The block of the kernel, or that of its loops over cores with the cores that differ."""
    loops = core_loops(kernel)
    rows = clip.cores(loops)
    values = np.array(rows, np.int64).reshape(len(rows), len(loops))
    counters = {loop.counter: values[:, place] for place, loop in enumerate(loops)}
    slack = {loop.counter: np.zeros(len(rows), np.int64) for loop in loops}
    block = loops[-1].body.block if loops else kernel.body.block
    return Body(block, None, None, counters, slack, [0] * len(rows))


def _iterate(op: hardware.ForOp, parent: Body, clip: Clip) -> Body:
    """The body of a loop with its clipped iterations."""
    lower = np.max([values_of(expr, op.lower_operands, parent) for expr in op.lower.data.results], axis=0)
    upper = np.min([values_of(expr, op.upper_operands, parent) for expr in op.upper.data.results], axis=0)
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
