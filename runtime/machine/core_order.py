"""Cores do not wait for one another inside a kernel: no byte off chip that one writes may another read or write."""

from __future__ import annotations

from .access import access, byte_runs
from .cases import Cases
from .places import check_place
from .program import EventStep, Instruction, Kernel, Launch
from .queues import part_of, walk
from .spaces import Place, Space, Use, touched


def check_cores(launch: Launch, cases: dict[Instruction, Cases]) -> None:
    """Raises MachineError for the first byte that a core writes and another touches, naming both instructions."""
    kernel = launch.kernel
    if kernel.cores < 2:
        return
    shared = _written(launch)

    def concerned(step: Instruction | EventStep) -> bool:
        return isinstance(step, Instruction) and any(view.buffer in shared for view in step.views)

    space = Space()
    counters = [0] * kernel.depth
    for step in walk(part_of(kernel.body, concerned), counters):
        assert isinstance(step, Instruction)
        use = (_number(kernel, counters), step, tuple(counters))
        for number, view in enumerate(step.views):
            part = touched(step, cases[step], number, counters) if view.buffer in shared else None
            if part is not None:
                base = launch.bases[view.buffer] + view.offset.at(counters)
                check_place(launch, step, view, base, access(view.layout, part), counters)
                _meet(space.place(base, byte_runs(view.layout, part)), use, number == len(step.views) - 1)


def _written(launch: Launch) -> set[int]:
    """Arguments whose bytes the kernel writes, by that name or another."""
    kernel, bases = launch.kernel, launch.bases
    spans = [(bases[n], bases[n] + kernel.buffers[n].size) for n in range(kernel.arguments)]
    written = {step.output.buffer for step in kernel.instructions()} & set(range(kernel.arguments))
    return {n for n, (low, high) in enumerate(spans) if any(low < spans[w][1] and spans[w][0] < high for w in written)}


def _number(kernel: Kernel, counters: list[int]) -> int:
    """The core of an iteration."""
    core = 0
    for loop in kernel.core_loops:
        core = core * loop.cores + counters[loop.depth]
    return core


def _meet(place: Place, use: Use, writes: bool) -> None:
    """Remembers an access, by core. Raises MachineError where another core is in its way."""
    core, step, counters = use
    for other in place.meets:
        for what, uses in (("writes", other.writes), ("reads", other.reads if writes else {})):
            for racing in uses.values():
                if racing[0] != core:
                    raise step.error(
                        counters,
                        f"race: core {core} {'writes' if writes else 'reads'} bytes of [{place.low}, {place.high}) off "
                        f"chip that core {racing[0]} {what} ({racing[1].place(racing[2])}); cores meet at the end of a "
                        "kernel only",
                        ("the other instruction", racing[1].op.location),
                    )
    (place.writes if writes else place.reads)[core] = use
