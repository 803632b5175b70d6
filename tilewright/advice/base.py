"""What all rules share: what they give, and names for what they look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.runtime.machine import KernelProfile
from tilewright.runtime.machine.profile import InstructionProfile
from tilewright.runtime.machine.program import External, Launch
from tilewright.runtime.machine.what_if import Change, cycles_if
from tilewright.runtime.report import Json

from ..profiling import Profile
from ..tensors import name_of


@dataclass(frozen=True)
class Advice:
    """One mistake: `rule`, what was seen, what to do, cycles it may save (0: exactness), where in the source."""

    rule: str
    evidence: str
    change: str
    saving: int
    place: str = ""

    def json(self) -> Json:
        """As plain data."""
        return {**vars(self)}


Rule: TypeAlias = Callable[[Profile], Iterator[Advice]]


def launches(profile: Profile) -> list[tuple[Launch, KernelProfile]]:
    """Launches with their profiles, in order."""
    return list(zip(profile.machine.program.launches, profile.kernels, strict=True))


def rows(profile: Profile) -> Iterator[tuple[Launch, KernelProfile, InstructionProfile]]:
    """Every instruction of every launch."""
    return ((launch, kernel, one) for launch, kernel in launches(profile) for one in kernel.instructions)


def saving(profile: Profile, launch: Launch, kernel: KernelProfile, change: Change) -> int:
    """Cycles that a launch would take less."""
    return max(kernel.cycles - cycles_if(launch.kernel, profile.program.target, change), 0)


def external_of(launch: Launch, one: InstructionProfile) -> External | None:
    """The off-chip tensor that a transfer of a launch reads, or writes if it reads none."""
    if not one.offchip:
        return None
    numbers = [view.buffer for view in one.step.views if view.buffer < launch.kernel.arguments]
    return launch.arguments[numbers[0]] if numbers else None


def label(profile: Profile, external: External | None) -> str:
    """What to call a tensor."""
    if external is None:
        return "its operand"
    return f"'{name_of(profile.machine.program.externals.index(external), external)}'"
