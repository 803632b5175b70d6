"""What the machine counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class KernelResult:
    """One launch. Bytes are off-chip bus bytes; `links` maps "gm->l1" to bytes; `cycles` include the launch;
    `busy` maps engines to the cycles they were occupied; `instructions` counts what was executed, events apart."""

    name: str
    read_bytes: int
    write_bytes: int
    links: dict[str, int]
    cycles: int
    busy: dict[str, int]
    instructions: int


@dataclass(frozen=True)
class MemoryResult:
    """Of one memory: the end of the highest planned buffer, and what there is."""

    peak_bytes: int
    capacity_bytes: int


@dataclass(frozen=True)
class MachineResult:
    """A whole program. `outputs` are arrays in the program's element types and order, none where only time was asked.

    links: bytes on every link over all kernels; cycles: until the last kernel has completed.
    """

    outputs: list[Array]
    links: dict[str, int]
    kernels: list[KernelResult]
    cycles: int
    engine_busy: dict[str, int]
    memory: dict[str, MemoryResult] = field(default_factory=dict[str, MemoryResult])
