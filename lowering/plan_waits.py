"""What it costs to give the bytes of one buffer to another: engines that have to wait for each other.

Engines run by themselves, each through its instructions in order. Whoever first writes to bytes that another buffer had
must wait until the last access to that one is over. Where the same engine made it, or where it is over anyway because
the new buffer's contents come from it, nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from xdsl.ir import Block, Operation

from ..dialects import tile
from ..dialects.target import Target
from ..dialects.tile_types import BufferType
from .buffers import root, slots_of
from .liveness import Lifetime
from .plan_interval import IntArray, Interval, Placement
from .plan_slots import iterations

TOO_MANY = 400
"""Buffers above which a plan is taken as it is: each is tried beside each other one."""
ROUNDS = 4
"""Times that all buffers are looked at; few move in the second."""

Cost = Callable[[int, int], int]
"""Waits while a kernel runs if two intervals, by index, share bytes; symmetric."""


class Engines:
    """Which access is over before which other begins, whatever bytes buffers share.

    Loops are walked for two iterations: what one iteration leaves to the next shows in them. Accesses are numbered in
    that order; `before[n]` has the bit of each access that is over before access n begins.
    """

    def __init__(self, block: Block, target: Target) -> None:
        self.target = target
        self.engine: list[str] = []
        self.op: list[Operation] = []
        self.before: list[int] = []
        self.touched: dict[tile.AllocOp, list[int]] = {}
        self._last: dict[str, int] = {}
        self._written: dict[tuple[tile.AllocOp, int], int] = {}
        self._read: dict[tuple[tile.AllocOp, int], list[int]] = {}
        self._walk(block, {})

    def waits(self, left: tile.AllocOp, right: tile.AllocOp) -> int:
        """Waits per execution of their block if two buffers, not alive at the same time, have the same bytes."""
        steps = sorted((n, alloc) for alloc in (left, right) for n in self.touched.get(alloc, ()))
        runs: list[tuple[tile.AllocOp, list[int]]] = []
        for n, alloc in steps:
            if not runs or runs[-1][0] is not alloc:
                runs.append((alloc, []))
            runs[-1][1].append(n)
        found: set[tuple[str, Operation]] = set()
        for (_, old), (_, new) in pairwise(runs):
            first = new[0]
            last = {self.engine[n]: n for n in old}
            found |= {(engine, self.op[first]) for engine, n in last.items() if not self.before[first] >> n & 1}
        return len(found)

    def _walk(self, block: Block, count: dict[tile.AllocOp, int]) -> None:
        for op in block.ops:
            if isinstance(op, tile.ForOp):
                for _ in range(2):
                    self._walk(op.body.block, count)
            elif isinstance(op, tile.AllocOp):
                count[op] = count.get(op, -1) + 1
            elif not isinstance(op, tile.SliceOp | tile.AliasOp | tile.YieldOp):
                self._access(op, count)

    def _access(self, op: Operation, count: dict[tile.AllocOp, int]) -> None:
        engine, n = engine_of(op, self.target), len(self.op)
        known = 0
        if engine in self._last:
            known |= self._over(self._last[engine])
        self._last[engine] = n
        for position, value in enumerate(op.operands):
            alloc = root(value).owner
            if not isinstance(alloc, tile.AllocOp) or alloc not in count:
                continue
            slots = slots_of(alloc)
            key = alloc, count[alloc] % slots
            writes = position == len(op.operands) - 1 and not isinstance(op, tile.StoreOp)
            for other in (self._written.get(key), *(self._read.get(key, ()) if writes else ())):
                known |= 0 if other is None else self._over(other)
            if writes:
                self._written[key], self._read[key] = n, []
            else:
                self._read.setdefault(key, []).append(n)
            if not self.touched.get(alloc) or self.touched[alloc][-1] != n:
                self.touched.setdefault(alloc, []).append(n)
        self.engine.append(engine)
        self.op.append(op)
        self.before.append(known & ~(1 << n))

    def _over(self, n: int) -> int:
        return (self.before[n] if n < len(self.before) else 0) | 1 << n


def engine_of(op: Operation, target: Target) -> str:
    """The engine that carries out an op in buffer form; empty where there is none."""
    if isinstance(op, tile.ContractOp):
        return "" if target.matrix_engine is None else target.matrix_engine[0]
    if isinstance(op, tile.LoadOp | tile.StoreOp | tile.MoveOp):
        ends = [value.type for value in (op.operands[0], op.operands[-1])]
        if isinstance(op, tile.StoreOp):
            ends = [op.operands[0].type, op.destination.type]
        names = [kind.memory.data for kind in ends if isinstance(kind, BufferType)]
        move = target.move(names[0], names[1]) if len(names) == 2 else None
        return "" if move is None else move.engine
    return "" if target.vector_engine is None else target.vector_engine[0]


def cost_of(units: Sequence[Sequence[Lifetime]], engines: Engines) -> Cost:
    """Waits between units, each of which lies at one offset, times the iterations in which they arise."""
    known: dict[tuple[int, int], int] = {}

    def cost(i: int, j: int) -> int:
        key = min(i, j), max(i, j)
        if key not in known:
            known[key] = sum(
                engines.waits(one.alloc, other.alloc) * max(iterations(one.alloc), iterations(other.alloc))
                for one in units[i]
                for other in units[j]
            )
        return known[key]

    return cost


def with_fewer_waits(intervals: Sequence[Interval], placement: Placement, cost: Cost) -> Placement:
    """A placement of the same peak, or the given one, whose intervals share bytes at the least cost found.

    One interval at a time goes where it costs least, beside what lies anywhere now, as long as that gains. Pinned
    intervals stay.
    """
    count = len(intervals)
    if count > TOO_MANY:
        return placement
    start, end, size = (
        np.array([getattr(one, name) for one in intervals], np.int64) for name in ("start", "end", "size")
    )
    offsets = np.array(placement.offsets, np.int64)
    apart = (start[:, None] >= end) | (start >= end[:, None])
    costs = np.array([[cost(i, j) if i != j and apart[i, j] else 0 for j in range(count)] for i in range(count)])
    free = [i for i in range(count) if intervals[i].pinned is None and intervals[i].size and costs[i].any()]
    for _ in range(ROUNDS):
        moved = False
        for i in free:
            places = _places(offsets, size, intervals[i], i, placement.peak)
            shared = (places[:, None] < offsets + size) & (offsets < places[:, None] + size[i])
            shared[:, i] = False
            allowed = ~(shared & ~apart[i]).any(axis=1)
            price = np.where(allowed, shared @ costs[i], np.iinfo(np.int64).max)
            now = int(((offsets[i] < offsets + size) & (offsets < offsets[i] + size[i])) @ costs[i])
            best = int(price.argmin())
            if price[best] < now:
                offsets[i], moved = places[best], True
        if not moved:
            break
    return Placement(tuple(int(at) for at in offsets), placement.peak, placement.lower_bound)


def _places(offsets: IntArray, size: IntArray, one: Interval, i: int, peak: int) -> npt.NDArray[np.int64]:
    """Where an interval can lie without a gap to another: on it, below it, at the bottom, at the top; lowest first."""
    tops = -(-(offsets + size) // one.align) * one.align
    below = (np.append(offsets, peak) - one.size) // one.align * one.align
    found = np.unique(np.concatenate((np.zeros(1, np.int64), np.delete(tops, i), below)))
    return found[(found >= 0) & (found + one.size <= peak)]
