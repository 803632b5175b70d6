"""Software pipelining as data: ops in the body of a loop say how many iterations they run ahead.

`tilewright.ahead = 1` on an op directly in a loop: while the loop is at iteration i, the op works for i + 1. `stages`
sets it on ops in buffer form, `emit` hands it on to instructions, `skew` makes a prologue, a steady state and an
epilogue of it. The ops of one step of the loop keep their order, so that lifetimes in list order stay what they are,
but for buffers that are handed on from ops of one distance to ops of another (`crossing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ..dialects import tile
from ..dialects.errors import UserError
from .buffers import accesses

AHEAD = "tilewright.ahead"


def ahead_of(op: Operation) -> int:
    """How many iterations of the loop around it an op runs ahead."""
    found = op.attributes.get(AHEAD)
    return found.value.data if isinstance(found, IntegerAttr) else 0


def crossing(alloc: tile.AllocOp) -> int:
    """How many iterations apart the ops are that use a buffer allocated in a loop: it needs one slot more than that."""
    home = alloc.parent
    if not isinstance(alloc.parent_op(), tile.ForOp):
        return 0
    found: list[int] = []
    for op in accesses(alloc.res[0]):
        while op.parent is not home:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        found.append(ahead_of(op))
    return max(found) - min(found) if found else 0


def skewed_around(alloc: tile.AllocOp) -> tile.ForOp | None:
    """The loop around a buffer's allocation whose ops run ahead of one another."""
    loop = alloc.parent_op()
    while isinstance(loop, tile.ForOp):
        if any(AHEAD in op.attributes for op in loop.body.block.ops):
            return loop
        loop = loop.parent_op()
    return None


def handed_over(alloc: tile.AllocOp) -> bool:
    """Whether more than the vector engine touches a buffer."""
    own = (tile.MapOp, tile.ReduceOp, tile.FillOp, tile.IotaOp)
    return any(not isinstance(op, own) for op in accesses(alloc.res[0]))


@dataclass(frozen=True, eq=False)
class Access:
    """One op of a loop's body (or a loop in it) that touches a buffer. `local`: each iteration has its own."""

    op: Operation
    ahead: int
    buffer: SSAValue
    writes: bool
    local: bool


def check_order(found: Sequence[Access]) -> None:
    """Raises UserError, at an op, where running ahead would change what a loop computes. `found` is in list order.

    1. What an op hands to a later one of its iteration must not come after it: who is earlier is at least as far ahead.
    2. What an iteration leaves for the next (an accumulator) is touched by ops of one distance only.
    """
    groups: dict[SSAValue, list[Access]] = {}
    for access in found:
        groups.setdefault(access.buffer, []).append(access)
    for group in groups.values():
        if not any(access.writes for access in group):
            continue
        for first, second in combinations(group, 2):
            if not (first.writes or second.writes) or first.ahead == second.ahead:
                continue
            if not first.local:
                raise UserError(
                    "a buffer that one iteration leaves for the next is used "
                    f"{first.ahead} and {second.ahead} iterations ahead: the next iteration would change it too early",
                    first.op.location,
                    [("and here", second.op.location)],
                )
            if first.ahead < second.ahead:
                raise UserError(
                    f"'{second.op.name}' runs {second.ahead} iterations ahead and uses what is made only "
                    f"{first.ahead} ahead",
                    second.op.location,
                    [("made here", first.op.location)],
                )
