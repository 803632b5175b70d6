"""What the counter of a loop of the tile or of the hardware level can be."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ..dialects import hardware, tile
from .affine_bounds import Range, counter_values


def counter_range(counter: SSAValue) -> Range:
    """The least and the greatest value of a loop's counter."""
    loop = counter.owner.parent_op() if not isinstance(counter.owner, Operation) else None
    assert isinstance(loop, tile.ForOp | hardware.ForOp)
    return loop_range(loop)


def loop_range(loop: tile.ForOp | hardware.ForOp) -> Range:
    """The same of a loop; its longest execution has as many iterations as there are values."""
    lowers, uppers = ([counter_range(value) for value in group] for group in (loop.lower_operands, loop.upper_operands))
    return counter_values(loop.lower.data.results, lowers, loop.upper.data.results, uppers)
