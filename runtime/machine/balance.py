"""What is said of events that do not add up: waits that never return, signals that nothing waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from .affine import Counters
from .errors import MachineError
from .program import EventKey, EventStep, Instruction, Kernel


def deadlock(kernel: Kernel, heads: Sequence[tuple[Instruction | EventStep, Counters]]) -> MachineError:
    """No engine can go on, each standing at its step of `heads`: the first wait, the signals it lacks, other waits."""
    stuck = [(step, counters) for step, counters in heads if isinstance(step, EventStep)]
    step, counters = stuck[0]
    signals = _steps(kernel, step.event, True)
    notes: list[tuple[str, Attribute | None]] = [(f"signalled by {other.what}", other.op.location) for other in signals]
    notes += [(f"{other.place(at)} waits for {other.event_name}", other.op.location) for other, at in stuck[1:]]
    how = "is never signalled enough" if signals else "is never signalled"
    return step.error(counters, f"deadlock: {step.event_name} {how}", *notes)


def check_spent(kernel: Kernel, counts: Mapping[EventKey, int]) -> None:
    """Raises MachineError for the first event with signals left over at the end of a kernel."""
    for event, count in counts.items():
        if count:
            step, *_ = _steps(kernel, event, True)
            waits = [(f"waited for by {other.what}", other.op.location) for other in _steps(kernel, event, False)]
            left = f"{count} signal{'s' if count > 1 else ''} that nothing waited for"
            raise step.error((), f"{step.event_name}: kernel @{kernel.name} ends with {left}", *waits)


def _steps(kernel: Kernel, event: EventKey, signals: bool) -> list[EventStep]:
    found = [step for step in kernel.steps() if isinstance(step, EventStep)]
    return [step for step in found if step.event == event and step.signals == signals]
