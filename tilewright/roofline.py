"""The roofline: what a kernel computes a cycle against the bytes it moves for that, and what bounds both.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore
architectures", CACM 52(4), 2009. A kernel of a machine with several kinds of engines has a point for each kind that
computes: matrix engines have another ceiling than vector engines, and their operations are others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.dialects.cost import chip_rate
from tilewright.runtime.report import Json

from .profiling import Profile


@dataclass(frozen=True)
class Point:
    """What one engine does in one launch: `rate` operations per cycle of the launch, `intensity` operations per byte
    that the launch moves off chip, None if it moves none. `roof` is the highest rate that its ceiling and the off-chip
    port allow, and what sets it is `bound`."""

    kernel: str
    engine: str
    operations: int
    bytes: int
    rate: float
    intensity: float | None
    roof: float
    bound: str


@dataclass(frozen=True)
class Roofline:
    """`slope`: bytes per cycle of the off-chip ports of all cores. `ceilings`: by engine, the most operations per cycle
    that it could do of those instructions of the program that it is best at."""

    slope: float
    ceilings: dict[str, float]
    points: tuple[Point, ...]

    @staticmethod
    def of(profile: Profile) -> Roofline:
        """Of a program at the hardware level."""
        slope = float(chip_rate(profile.program.target))
        ceilings: dict[str, float] = {}
        for kernel in profile.kernels:
            for one in kernel.instructions:
                if one.operations and one.cycles and one.utilization:
                    most = one.operations / (one.cycles * one.utilization)
                    ceilings[one.engine] = max(ceilings.get(one.engine, 0.0), most)
        return Roofline(slope, ceilings, tuple(_points(profile, slope, ceilings)))

    def json(self) -> dict[str, Json]:
        """Keys: port_bytes_per_cycle, ceilings, points."""
        points: list[Json] = [{**vars(point)} for point in self.points]
        return {"port_bytes_per_cycle": self.slope, "ceilings": {**self.ceilings}, "points": points}


def _points(profile: Profile, slope: float, ceilings: dict[str, float]) -> Iterator[Point]:
    for kernel, counted in zip(profile.kernels, profile.result.kernels, strict=True):
        moved = counted.read_bytes + counted.write_bytes
        for engine, ceiling in ceilings.items():
            done = sum(one.operations for one in kernel.instructions if one.engine == engine)
            if done:
                intensity = done / moved if moved else None
                under_port = intensity is not None and intensity * slope < ceiling
                roof = intensity * slope if intensity is not None and under_port else ceiling
                bound = "off-chip port" if under_port else engine
                yield Point(kernel.name, engine, done, moved, done / kernel.cycles, intensity, roof, bound)
