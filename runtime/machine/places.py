"""Where views may lie: inside one slot of their buffers and, on chip, at multiples of the memory's alignment."""

from __future__ import annotations

from .access import Access
from .affine import Counters
from .program import Instruction, Launch, View


def check_place(launch: Launch, step: Instruction, view: View, place: int, part: Access, counters: Counters) -> None:
    """Raises MachineError where a view at address `place` is not aligned, or the part of it leaves its buffer or lies
    in two slots of it."""
    if place % view.align:
        raise step.error(
            counters,
            f"{view.name} is used from byte {place} of '{view.memory}', which is not aligned to {view.align} bytes",
        )
    buffer, first = launch.kernel.buffers[view.buffer], launch.bases[view.buffer]
    low, high = place + part.low - first, place + part.high - first
    if low < 0 or high > buffer.size:
        raise step.error(
            counters,
            f"touches bytes [{low}, {high}) of {view.name}, which has {buffer.size} (byte {first} of '{view.memory}')",
            ("the buffer", buffer.location),
        )
    slot = buffer.size // buffer.slots
    if buffer.slots > 1 and low // slot != (high - 1) // slot:
        raise step.error(
            counters,
            f"touches bytes [{low}, {high}) of {view.name}, in two of its {buffer.slots} slots of {slot} bytes",
            ("the buffer", buffer.location),
        )
