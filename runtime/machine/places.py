"""Where views may lie: inside their buffers and, on chip, at multiples of the memory's alignment."""

from __future__ import annotations

from collections.abc import Sequence

from .access import Access
from .affine import Counters
from .program import Instruction, Kernel, View


def check_place(
    kernel: Kernel,
    bases: Sequence[int],
    step: Instruction,
    view: View,
    place: int,
    part: Access,
    counters: Counters,
) -> None:
    """Raises MachineError where a view at address `place` is not aligned or the part of it leaves its buffer."""
    if place % view.align:
        raise step.error(
            counters,
            f"{view.name} is used from byte {place} of '{view.memory}', which is not aligned to {view.align} bytes",
        )
    first, size = bases[view.buffer], kernel.buffers[view.buffer].size
    if place + part.low < first or place + part.high > first + size:
        raise step.error(
            counters,
            f"touches bytes [{place + part.low - first}, {place + part.high - first}) of {view.name}, which has "
            f"{size} (byte {first} of '{view.memory}')",
            ("the buffer", kernel.buffers[view.buffer].location),
        )
