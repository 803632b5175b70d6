"""What the cores of a kernel do, each kind of share once: its time, and what all of them count together.

All cores begin together and the kernel ends with the last of them. While it runs each has an equal part of the off-chip
pool, whether the others use theirs or not (dialects/cost.py: port_rate), so that none needs to know of another.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.target_model import Target
from .cases import Cases
from .early import NEVER, Freed
from .program import Instruction, Kernel, Loop, Node
from .tally import Tally
from .time import KernelSimulation, KernelTime


def kernel_time(kernel: Kernel, target: Target, cases: dict[Instruction, Cases], freed: Freed = NEVER) -> KernelTime:
    """Cycles of the slowest core, counts of all. Raises MachineError as the simulation of one core does."""
    counts: dict[object, int] = {}
    first: dict[object, Kernel] = {}
    for share in kernel.shares:
        kind = _kind(share)
        counts[kind] = counts.get(kind, 0) + 1
        first.setdefault(kind, share)
    tally = Tally()
    times: list[KernelTime] = []
    for kind, share in first.items():
        times.append(KernelSimulation(share, target, cases, freed=freed).run())
        tally.add(times[-1].tally, counts[kind])
    cycles = max(time.cycles for time in times)
    left = Freed.least([time.freed.later(cycles - time.cycles) for time in times])
    return KernelTime(cycles, tally, kernel.cores, left, times[0].early)


def _kind(share: Kernel) -> object:
    """Equal for cores that execute the same instructions on regions of the same sizes."""
    counters = [0] * share.depth
    found: list[object] = []
    body = share.body
    cores: list[int] = []
    while len(body) == 1 and isinstance(loop := body[0], Loop) and loop.op.core is not None:
        counters[loop.depth] = loop.lower.at(counters)
        cores.append(loop.depth)
        body = loop.body
    numbers = tuple(counters[depth] for depth in cores)
    return tuple(found) if _collect(body, frozenset(cores), frozenset(), counters, found) else numbers


def _collect(
    body: Sequence[Node], cores: frozenset[int], narrowed: frozenset[int], counters: list[int], found: list[object]
) -> bool:
    """Adds what tells a core's share of a body from those of others. False where that takes more than a look at each
    loop alone. `narrowed`: the loops around that have other iterations on other cores."""
    for node in body:
        if isinstance(node, Loop):
            bounds = node.lower.depends | node.upper.depends
            if bounds & narrowed:
                return False
            inner = narrowed
            if bounds & cores:
                lower, upper = node.lower.at(counters), node.upper.at(counters)
                found.append(upper - lower)
                inner = narrowed | {node.depth}
                counters[node.depth] = lower
            if not _collect(node.body, cores, inner, counters, found):
                return False
        elif isinstance(node, Instruction):
            if node.depends & narrowed:
                return False
            if node.depends & cores:
                if not node.depends <= cores:
                    return False
                found.append(node.region(counters))
    return True
