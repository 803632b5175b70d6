"""The order in which a function launches its kernels: one with fewer bytes of intermediates alive at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile
from .buffers import root

STATES = 20_000
"""Sets of launches that are looked at; a chain of n has n, n independent launches have 2^n."""


@dataclass(frozen=True)
class Launches:
    """Launches by number. `before`: the launches that one has to wait for; `buffers`: the size of each intermediate and
    the launches that touch it. Sets are the bits of integers."""

    before: tuple[int, ...]
    buffers: tuple[tuple[int, int], ...]

    def alive_during(self, done: int, launch: int) -> int:
        """Bytes held while `launch` runs after those in `done`."""
        touched = done | 1 << launch
        return sum(size for size, users in self.buffers if users & touched and users & ~done)

    def held(self, done: int) -> int:
        """Bytes held between those in `done` and the others."""
        return sum(size for size, users in self.buffers if users & done and users & ~done)

    def peak(self, order: Sequence[int]) -> int:
        done = peak = 0
        for launch in order:
            peak = max(peak, self.alive_during(done, launch))
            done |= 1 << launch
        return peak


def best_order(launches: Launches) -> list[int]:
    """An order with the lowest peak of bytes alive, the given one where none is lower. Complete up to `STATES` sets,
    then one launch after another that leaves the fewest bytes."""
    count = len(launches.before)
    given, whole = list(range(count)), (1 << count) - 1
    ready: list[tuple[int, int, int]] = [(0, 0, 0)]
    came_from: dict[int, tuple[int, int]] = {0: (0, -1)}
    closed: set[int] = set()
    while ready and len(closed) < STATES:
        peak, _, done = heappop(ready)
        if done == whole:
            order: list[int] = []
            while done:
                done, launch = came_from[done]
                order.append(launch)
            return order[::-1] if launches.peak(order[::-1]) < launches.peak(given) else given
        if done in closed:
            continue
        closed.add(done)
        for launch in _ready(launches, done):
            after = done | 1 << launch
            if after not in closed:
                higher = max(peak, launches.alive_during(done, launch))
                if after not in came_from or higher < _peak_to(launches, came_from, after):
                    came_from[after] = (done, launch)
                    heappush(ready, (higher, -after.bit_count(), after))
    order = _greedy(launches)
    return order if launches.peak(order) < launches.peak(given) else given


def _ready(launches: Launches, done: int) -> list[int]:
    return [n for n, before in enumerate(launches.before) if not done >> n & 1 and not before & ~done]


def _peak_to(launches: Launches, came_from: Mapping[int, tuple[int, int]], done: int) -> int:
    peak = 0
    while done:
        done, launch = came_from[done]
        peak = max(peak, launches.alive_during(done, launch))
    return peak


def _greedy(launches: Launches) -> list[int]:
    order: list[int] = []
    done = 0
    while len(order) < len(launches.before):
        chosen = min(
            _ready(launches, done), key=lambda n: (launches.held(done | 1 << n), launches.alive_during(done, n), n)
        )
        order.append(chosen)
        done |= 1 << chosen
    return order


def launches_of(function: FuncOp, kernels: Mapping[str, tile.KernelOp], sizes: Mapping[Operation, int]) -> Launches:
    """What orders the launches of a function in buffer form: one that writes a buffer and others that touch it.
    `sizes`: bytes of the intermediates, by the op that allocates them."""
    ops = [op for op in function.body.block.ops if isinstance(op, tile.LaunchOp)]
    touching: dict[SSAValue, int] = {}
    writing: dict[SSAValue, int] = {}
    before = [0] * len(ops)
    for number, op in enumerate(ops):
        kernel = kernels[op.callee.root_reference.data]
        written = len(op.args) - len(kernel.outputs)
        for position, value in enumerate(op.args):
            held = root(value)
            before[number] |= (touching if position >= written else writing).get(held, 0)
        for position, value in enumerate(op.args):
            held = root(value)
            touching[held] = touching.get(held, 0) | 1 << number
            if position >= written:
                writing[held] = writing.get(held, 0) | 1 << number
        before[number] &= ~(1 << number)
    owners = [(held.owner, users) for held, users in touching.items()]
    buffers = tuple((sizes[op], users) for op, users in owners if isinstance(op, Operation) and op in sizes)
    return Launches(tuple(before), buffers)


def reorder(function: FuncOp, order: Sequence[int]) -> None:
    """Moves the launches of a function, and before each what its operands are made by."""
    block = function.body.block
    ops = [op for op in block.ops if isinstance(op, tile.LaunchOp)]
    last = block.last_op
    assert last is not None
    moved: set[Operation] = set()

    def move(op: Operation) -> None:
        for value in op.operands:
            if isinstance(value.owner, Operation) and value.owner not in moved:
                move(value.owner)
        moved.add(op)
        op.detach()
        Rewriter.insert_op(op, InsertPoint.before(last))

    for number in order:
        move(ops[number])
