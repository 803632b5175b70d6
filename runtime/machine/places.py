"""Where views may lie: inside their buffers and memories, on chip at aligned bytes."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.target_model import Target
from .access import Access
from .affine import Counters
from .program import Instruction, Kernel, View


def check_place(
    target: Target,
    kernel: Kernel,
    bases: Sequence[int],
    step: Instruction,
    view: View,
    place: int,
    part: Access,
    counters: Counters,
) -> None:
    """Raises MachineError where a part of a view at address `place` leaves its buffer or starts unaligned.

    Transfers take any off-chip address; off chip only buffers are aligned.
    """
    first, size = bases[view.buffer], kernel.buffers[view.buffer].size
    if place + part.low < first or place + part.high > first + size:
        raise step.error(
            counters,
            f"touches bytes [{place + part.low - first}, {place + part.high - first}) of {view.name}, which has "
            f"{size} (byte {first} of '{view.memory}')",
            ("the buffer", kernel.buffers[view.buffer].location),
        )
    memory = target.memories[view.memory]
    if not memory.offchip and place % memory.align:
        raise step.error(
            counters,
            f"its operand {view.name} starts at byte {place} of '{view.memory}', not aligned to {memory.align}",
        )
