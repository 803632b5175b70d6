"""Kernels that should be one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.runtime.machine.cases import Case
from tilewright.runtime.machine.program import External, Instruction
from tilewright.runtime.machine.what_if import scaled

from ..profiling import Profile, place
from ..render import bytes_text
from .base import Advice, external_of, label, launches, rows, saving


@dataclass
class _Moved:
    """The transfers of one intermediate."""

    bytes: int = 0
    steps: dict[int, set[Instruction]] = field(default_factory=dict[int, "set[Instruction]"])
    place: str = ""


def intermediates(profile: Profile) -> Iterator[Advice]:
    """Intermediates that go off chip though a memory on chip is large enough for them."""
    target = profile.program.target
    room = max((memory.bytes for name, memory in target.memories.items() if name != target.offchip), default=0)
    moved: dict[External, _Moved] = {}
    pairs = launches(profile)
    numbers = {launch: number for number, (launch, _) in enumerate(pairs)}
    for launch, _, one in rows(profile):
        external = external_of(launch, one)
        if external is not None and external.role == "workspace" and external.layout.size_bytes <= room:
            found = moved.setdefault(external, _Moved(place=place(one.location)))
            found.bytes += one.bytes
            found.steps.setdefault(numbers[launch], set()).add(one.step)
    for external, found in moved.items():
        total = 0
        for number, steps in found.steps.items():

            def change(case: Case, steps: set[Instruction] = steps) -> Case:
                return scaled(case, 0) if case.step in steps else case

            total += saving(profile, *pairs[number], change)
        names = " and ".join(dict.fromkeys(pairs[number][1].name for number in found.steps))
        yield Advice(
            "intermediate off chip",
            f"{label(profile, external)} ({bytes_text(external.layout.size_bytes)}) goes off chip between {names}: "
            f"{bytes_text(found.bytes)} moved",
            "let one kernel make and use it; `tilewright report --section fusion` says what keeps them apart",
            total,
            found.place,
        )


def tiny_kernels(profile: Profile) -> Iterator[Advice]:
    """Several kernels that work for less time than it takes to launch them."""
    small = [kernel for kernel in profile.kernels if kernel.cycles - kernel.launch_cycles < kernel.launch_cycles]
    if len(small) < 2:
        return
    work = sum(kernel.cycles - kernel.launch_cycles for kernel in small)
    launched = sum(kernel.launch_cycles for kernel in small)
    first = next((place(one.location) for one in small[0].instructions), "")
    yield Advice(
        "tiny kernels",
        f"{len(small)} kernels ({small[0].name} to {small[-1].name}) work for {work} cycles and launch for {launched}",
        "let fewer kernels do it: compile without 'unfused', or write the operations so that they share their axes",
        launched - small[0].launch_cycles,
        first,
    )
