"""Loads that begin before the launch before has ended: which ones, and from when on.

A load marked `early` that stands at the front of its engine's queue, behind other early loads and waits at most, need
not wait for the launch before. A wait is passed if its signals come before any instruction that has to wait: credits
at the front of another engine's queue, as nothing needs to happen for them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .program import EventKey, EventStep, Instruction, Kernel
from .queues import in_program_order


@dataclass(frozen=True)
class Freed:
    """How many cycles before its end a launch is done with the off-chip port and with each of its engines; `most` with
    those that it does not use, as the next launch comes `launch_cycles` after it has begun at the earliest."""

    port: int
    engines: tuple[tuple[str, int], ...]
    most: int

    def by(self, engine: str) -> int:
        """How many cycles before the end the next launch can load with an engine."""
        return min(self.port, dict(self.engines).get(engine, self.most), self.most)

    def later(self, cycles: int) -> Freed:
        """As seen from an end so many cycles later."""
        return Freed(
            self.port + cycles, tuple((name, free + cycles) for name, free in self.engines), self.most + cycles
        )

    @staticmethod
    def least(several: Sequence[Freed]) -> Freed:
        """What all cores are done with."""
        names = [name for name, _ in several[0].engines]
        engines = tuple((name, min(dict(each.engines)[name] for each in several)) for name in names)
        return Freed(min(each.port for each in several), engines, min(each.most for each in several))


NEVER = Freed(0, (), -(1 << 62))
"""Of what comes before the first launch: nothing can be early."""


def early_loads(kernel: Kernel) -> Iterator[tuple[Instruction, tuple[int, ...]]]:
    """Every execution of a load, with the counters around it, that may come before the launch before has ended; of each
    engine in order."""
    ahead = {step.engine for step in kernel.instructions() if step.early}
    held: set[str] = set()
    signals: dict[EventKey, deque[bool]] = {}
    for step, counters in in_program_order(kernel):
        if isinstance(step, EventStep):
            given = signals.setdefault(step.event, deque())
            if step.signals:
                given.extend([step.engine in held] * step.times)
            elif sum(given.popleft() for _ in range(step.times)):
                held.add(step.engine)
        elif step.early and step.engine not in held:
            yield step, tuple(counters)
        else:
            held.add(step.engine)
        if ahead <= held:
            return
