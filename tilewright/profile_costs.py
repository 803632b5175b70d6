"""What instructions cost together: engine cycles, off-chip bytes, and how long engines stood before them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.runtime.machine.profile import InstructionProfile, WaitProfile
from tilewright.runtime.report import Json


@dataclass(frozen=True)
class Costs:
    """Of some instructions, or of all of a class.

    cycles     their engines were occupied, all engines together; `engines`: each
    queued     their engines stood before the off-chip port
    waited     their engines stood at waits before them; `waits_for`: by the engine that waited and the one waited for
    bytes      moved off chip
    used       cycles that their engines would have needed at their full rate
    """

    cycles: int
    queued: int
    waited: int
    bytes: int
    used: float
    engines: dict[str, int]
    waits_for: dict[tuple[str, str], int]

    @staticmethod
    def of(instructions: Iterable[InstructionProfile], waits: Iterable[WaitProfile]) -> Costs:
        """Of instructions and the waits before them."""
        rows = list(instructions)
        engines: Counter[str] = Counter()
        waiting: Counter[tuple[str, str]] = Counter()
        for one in rows:
            engines[one.engine] += one.cycles
        for wait in waits:
            waiting[wait.engine, wait.source] += wait.cycles
        return Costs(
            engines.total(), sum(one.queued for one in rows), waiting.total(),
            sum(one.bytes for one in rows if one.offchip), sum((one.utilization or 0.0) * one.cycles for one in rows),
            dict(engines), dict(waiting),
        )  # fmt: skip

    def __add__(self, other: Costs) -> Costs:
        engines, waiting = Counter(self.engines), Counter(self.waits_for)
        engines.update(other.engines)
        waiting.update(other.waits_for)
        return Costs(
            self.cycles + other.cycles, self.queued + other.queued, self.waited + other.waited,
            self.bytes + other.bytes, self.used + other.used, dict(engines), dict(waiting),
        )  # fmt: skip

    @property
    def utilization(self) -> float:
        """Share of what the engines could have done in these cycles."""
        return self.used / self.cycles if self.cycles else 0.0

    @property
    def bound(self) -> str:
        """The engine that works longest, and whom it waits for where that takes longer than the work."""
        name = max(self.engines, key=lambda engine: self.engines[engine], default="")
        waits = {source: cycles for (engine, source), cycles in self.waits_for.items() if engine == name}
        longest = max(waits, key=lambda source: waits[source], default=None)
        if longest is not None and waits[longest] > self.engines[name]:
            return f"{name}, waits for {longest}"
        return name

    def json(self) -> dict[str, Json]:
        """Keys: cycles, queued, waited, bytes, utilization, engines, waits (engine, for, cycles), bound."""
        waits: list[Json] = [{"engine": a, "for": b, "cycles": n} for (a, b), n in self.waits_for.items()]
        return {
            "cycles": self.cycles, "queued": self.queued, "waited": self.waited, "bytes": self.bytes,
            "utilization": self.utilization, "engines": {**self.engines}, "waits": waits, "bound": self.bound,
        }  # fmt: skip


NOTHING = Costs(0, 0, 0, 0, 0.0, {}, {})
