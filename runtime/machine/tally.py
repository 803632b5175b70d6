"""What a simulation counts: executions, waiting at events, waiting for the off-chip port. Counts of a period repeat."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from .cases import Case
from .program import EventStep

K = TypeVar("K")
Counts: TypeAlias = "tuple[Counter[Case], Counter[EventStep], Counter[Case]]"


@dataclass
class Tally:
    """executed   how often each instruction was executed on each of its regions
    stalled    cycles that an engine stood at a wait, having nothing else to do
    queued     cycles that an engine's next transfer stood at the off-chip port while it served others
    """

    executed: Counter[Case] = field(default_factory=Counter[Case])
    stalled: Counter[EventStep] = field(default_factory=Counter[EventStep])
    queued: Counter[Case] = field(default_factory=Counter[Case])

    def copy(self) -> Counts:
        """The counts as they are now."""
        return self.executed.copy(), self.stalled.copy(), self.queued.copy()

    def repeat(self, before: Counts, times: int) -> None:
        """Counts what has been counted since `before` so many times more."""
        _repeat(self.executed, before[0], times)
        _repeat(self.stalled, before[1], times)
        _repeat(self.queued, before[2], times)

    def add(self, other: Tally, times: int) -> None:
        """Counts what another simulation counted, so many times."""
        _add(self.executed, other.executed, times)
        _add(self.stalled, other.stalled, times)
        _add(self.queued, other.queued, times)

    @property
    def instructions(self) -> int:
        """Executions, events apart."""
        return self.executed.total()

    def links(self) -> Counter[str]:
        """Bytes on every link."""
        found: Counter[str] = Counter()
        for case, count in self.executed.items():
            if case.link is not None:
                found[case.link[0]] += case.link[1] * count
        return found

    def busy(self) -> dict[str, int]:
        """Cycles every engine was occupied."""
        found: Counter[str] = Counter()
        for case, count in self.executed.items():
            found[case.step.engine] += case.cycles * count
        return {engine: cycles for engine, cycles in found.items() if cycles}


def _add(counter: Counter[K], more: Counter[K], times: int) -> None:
    for key, count in more.items():
        counter[key] += count * times


def _repeat(counter: Counter[K], before: Counter[K], times: int) -> None:
    for key, count in counter.items():
        counter[key] = count + (count - before[key]) * times
