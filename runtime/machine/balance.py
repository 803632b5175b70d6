"""Whether events add up, and what is said where they do not: waits that never return, signals left over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from xdsl.ir import Attribute

from .affine import Counters
from .errors import MachineError
from .program import EventKey, EventStep, Instruction, Kernel, Loop, Node


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


def in_list_order(kernel: Kernel) -> bool:
    """Whether every wait of a kernel comes behind its signals in list order, and none is left over."""
    lacking, left = _demand(kernel.body, [0] * kernel.depth)
    return not any(lacking.values()) and not any(left.values())


def _demand(body: Sequence[Node], counters: list[int]) -> tuple[Counter[EventKey], Counter[EventKey]]:
    """How many signals of each event must have been given before a body, and how many more there are after it."""
    lacking: Counter[EventKey] = Counter()
    left: Counter[EventKey] = Counter()

    def follow(part: tuple[Counter[EventKey], Counter[EventKey]], times: int = 1) -> None:
        for event, count in part[0].items():
            # Of all repetitions the last lacks most where each uses up more than it gives, else the first.
            lacking[event] = max(lacking[event], count - left[event] - min(part[1][event], 0) * (times - 1))
        for event, count in part[1].items():
            left[event] += count * times

    for node in body:
        if isinstance(node, EventStep):
            count = Counter({node.event: node.times})
            follow((Counter(), count) if node.signals else (count, Counter({node.event: -node.times})))
        elif isinstance(node, Loop):
            values = range(node.lower.at(counters), node.upper.at(counters))
            if values and not _depends(node.body, node.depth):
                counters[node.depth] = values[0]
                follow(_demand(node.body, counters), len(values))
                continue
            for value in values:
                counters[node.depth] = value
                follow(_demand(node.body, counters))
    return lacking, left


def _depends(body: Sequence[Node], depth: int) -> bool:
    """Whether the bounds of a loop inside depend on a counter."""
    loops = [node for node in body if isinstance(node, Loop)]
    return any(depth in loop.lower.depends | loop.upper.depends or _depends(loop.body, depth) for loop in loops)
