"""What is given up when the buffers of a memory do not fit: slots, where they gain least."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64

from ..dialects import tile
from .ahead import crossing
from .liveness import Lifetime
from .loop_range import loop_range
from .plan_interval import Interval, live_bytes


def drop_slots(lives: Sequence[Lifetime], capacity: int) -> int:
    """Takes slots from a buffer of several, as many as have to go if all go from it, and at least one; how many.

    A second slot lets a transfer run ahead of what reads it, so it gains the time of that transfer once per iteration.
    Of the buffers alive when most bytes are (of all, if none there has several slots) the one loses slots for which
    the bytes of a slot times the iterations are fewest. What hands data from an iteration to one that
    runs behind it keeps the slots that it needs for that.
    """
    many = [life for life in lives if life.slots > crossing(life.alloc) + 1]
    if not many:
        return 0
    peak, where = live_bytes([Interval(life.start, life.end + 1, life.size) for life in lives])
    at_peak = [life for life in many if life.start <= where <= life.end] or many
    least = min(at_peak, key=lambda life: (life.size // life.slots * iterations(life.alloc), life.start))
    needed = -(-(peak - capacity) // (least.size // least.slots))
    count = min(max(needed, 1), least.slots - crossing(least.alloc) - 1)
    left = least.slots - count
    least.alloc.slots = IntegerAttr(left, i64) if left > 1 else None
    return count


def iterations(alloc: tile.AllocOp) -> int:
    """How often the loops around a buffer run, loops of varying length as their longest execution."""
    count, loop = 1, alloc.parent_op()
    while isinstance(loop, tile.ForOp):
        low, high = loop_range(loop)
        count *= high - low + 1
        loop = loop.parent_op()
    return count
