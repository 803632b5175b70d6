"""Tile sizes and slots: lanes that idle, memory that is left over, engines that could run ahead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.dialects import cost, hardware
from tilewright.runtime.machine.cases import Case
from tilewright.runtime.machine.profile import InstructionProfile
from tilewright.runtime.machine.program import Kernel
from tilewright.runtime.machine.what_if import cycles_with_larger_tiles, cycles_with_slot

from ..profiling import Profile, place
from ..render import bytes_text
from .base import Advice, launches, rows, saving

MOSTLY = 0.5
"""Share of an instruction's cycles that start-up takes at most without being mentioned: below it, tiles twice as large
would save less than a quarter of them."""

TWICE = 2
"""The least factor by which tiles grow: what an axis is cut into becomes half as many parts."""


def idle_lanes(profile: Profile) -> Iterator[Advice]:
    """Vector instructions on so few elements that the engine mostly starts up."""
    target = profile.program.target
    for launch, kernel, one in rows(profile):
        op = one.step.op
        if not isinstance(op, hardware.VectorOp) or one.executed < 2:
            continue
        out = one.step.output.element
        start = cost.vector_cycles(target, op.fn.data, 1, out.bytes, out.compute, one.engine) - 1
        if start * one.executed <= MOSTLY * one.cycles:
            continue

        def change(case: Case, one: InstructionProfile = one, start: int = start) -> Case:
            return replace(case, cycles=max(case.cycles - start, 0)) if case.step is one.step else case

        yield Advice(
            "idle vector lanes",
            f"'{one.what}' in {kernel.name} runs {one.executed} times on {one.operations // one.executed} elements; "
            f"starting up is {start} of {one.cycles // one.executed} cycles each time",
            "take larger tiles along the axes of the vector instructions",
            saving(profile, launch, kernel, change),
            place(one.location),
        )


def small_tiles(profile: Profile) -> Iterator[Advice]:
    """Loops over tiles of which twice as large ones would fit: latencies and start-up are paid half as often, and what
    each iteration loads again is loaded half as often."""
    target = profile.program.target
    for launch, kernel in launches(profile):
        used = held_bytes(launch.kernel)
        if not used or any(used[name] * TWICE > target.memories[name].bytes for name in used):
            continue
        found = [(cycles_with_larger_tiles(launch.kernel, target, loop), loop) for loop in launch.kernel.loops()]
        cycles, loop = min(((c, loop) for c, loop in found if c is not None), key=lambda row: row[0], default=(0, None))
        if loop is None or cycles >= kernel.cycles:
            continue
        held = ", ".join(
            f"{bytes_text(count)} of {bytes_text(target.memories[name].bytes)} in {name}"
            for name, count in used.items()
        )
        yield Advice(
            "tiles that leave memory unused",
            f"{kernel.name} walks tiles one by one in the loop over %{loop.name}, and holds no more than {held}",
            f"take tiles twice as large along %{loop.name}",
            kernel.cycles - cycles,
            place(loop.op.location),
        )


def double_buffers(profile: Profile) -> Iterator[Advice]:
    """Engines that stand until the tile before is let go, though another slot would let them go on."""
    target = profile.program.target
    for launch, kernel in launches(profile):
        used = held_bytes(launch.kernel)
        for wait in kernel.waits:
            if wait.before is None:
                continue
            written = wait.before.step.output
            buffer = launch.kernel.buffers[written.buffer]
            if written.buffer < launch.kernel.arguments:
                continue
            cycles = cycles_with_slot(launch.kernel, target, (wait.source, wait.engine, wait.event))
            slot = buffer.size // buffer.slots
            free = target.memories[buffer.memory].bytes - used[buffer.memory]
            # Where there are several slots, and no room for more, smaller tiles are no better than fewer slots.
            if cycles is None or cycles >= kernel.cycles or (slot > free and buffer.slots > 1):
                continue
            change = "give it another slot" if slot <= free else "make the tile smaller, so that another slot fits"
            yield Advice(
                "too few slots",
                f"'{wait.before.what}' into {_named(buffer.name)} of {kernel.name} ({buffer.slots} × "
                f"{bytes_text(slot)}) waits {wait.cycles} cycles for {wait.source} to let go of the tile before",
                f"{change}: {bytes_text(free)} of {buffer.memory} are free",
                kernel.cycles - cycles,
                place(wait.before.location),
            )


def held_bytes(kernel: Kernel) -> dict[str, int]:
    """The end of the highest buffer of a kernel in each memory that it has buffers in."""
    found: dict[str, int] = {}
    for buffer in kernel.buffers[kernel.arguments :]:
        found[buffer.memory] = max(found.get(buffer.memory, 0), (buffer.offset or 0) + buffer.size)
    return found


def _named(name: str) -> str:
    return name if name.startswith("%") else "a tile"
