"""What is given up when the buffers of a memory do not fit: slots, where they gain least."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64

from ..dialects import tile
from .ahead import crossing
from .liveness import Lifetime
from .loop_range import loop_range
from .plan_interval import Interval, live_bytes


def drop_slot(lives: Sequence[Lifetime]) -> bool:
    """Takes one slot from a buffer of several; False if there is none.

    A second slot lets a transfer run ahead of what reads it, so it gains the time of that transfer once per iteration.
    Of the buffers alive when most bytes are (of all, if none there has several slots) the one loses a slot for which
    the bytes of a slot times the iterations are fewest. What hands data from an iteration to one that
    runs behind it keeps the slots that it needs for that.
    """
    many = [life for life in lives if life.slots > crossing(life.alloc) + 1]
    if not many:
        return False
    _, where = live_bytes([Interval(life.start, life.end + 1, life.size) for life in lives])
    at_peak = [life for life in many if life.start <= where <= life.end] or many
    least = min(at_peak, key=lambda life: (life.size // life.slots * iterations(life.alloc), life.start))
    least.alloc.slots = IntegerAttr(least.slots - 1, i64) if least.slots > 2 else None
    return True


def iterations(alloc: tile.AllocOp) -> int:
    """How often the loops around a buffer run, loops of varying length as their longest execution."""
    count, loop = 1, alloc.parent_op()
    while isinstance(loop, tile.ForOp):
        low, high = loop_range(loop)
        count *= high - low + 1
        loop = loop.parent_op()
    return count
