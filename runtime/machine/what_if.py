"""How long a kernel would take if something about it were otherwise: what advice is worth, by the simulation itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...dialects.cost import port_rate
from ...dialects.target_model import Target
from ...dialects.transfer import Region
from .affine import Counters
from .cases import Case, Cases
from .program import EventKey, EventStep, Instruction, Kernel, Loop, Node
from .time import KernelSimulation

Change: TypeAlias = Callable[[Case], Case]
"""What an instruction costs on a region → what it would cost."""


class _Changed(Cases):
    def __init__(self, step: Instruction, target: Target, change: Change) -> None:
        self.change = change
        super().__init__(step, target)

    def _case(self, region: Region, counters: Counters) -> Case:
        return self.change(super()._case(region, counters))


def cycles_if(kernel: Kernel, target: Target, change: Change) -> int:
    """Cycles of a launch, were its instructions to cost something else."""
    return (
        KernelSimulation(kernel, target, {s: _Changed(s, target, change) for s in kernel.instructions()}).run().cycles
    )


def scaled(case: Case, share: float) -> Case:
    """A transfer of only a share of its bytes."""
    return replace(case, cycles=round(case.cycles * share), port_cycles=round(case.port_cycles * share))


def without_granules(case: Case, payload: int, target: Target) -> Case:
    """A transfer whose off-chip runs are as long as granules, or longer; `payload`: the bytes of its elements."""
    port = -(-payload // port_rate(target))
    return replace(case, cycles=min(case.cycles, max(port, case.cycles - case.port_cycles + port)), port_cycles=port)


def cycles_with_slot(kernel: Kernel, target: Target, event: EventKey) -> int | None:
    """Cycles of a launch, were `event` to say that one more slot is free from the start: its credits before a loop are
    one more, and so are the waits behind it. None where it has no credits."""
    steps = [step for step in kernel.steps() if isinstance(step, EventStep) and step.event == event]
    outer = min((len(step.loops) for step in steps), default=0)
    edges = {step for step in steps if len(step.loops) == outer}
    if not any(step.signals for step in edges) or not any(len(step.loops) > outer for step in steps):
        return None
    more = {step: replace(step, times=step.times + 1) for step in edges}
    changed = replace(kernel, body=_replaced(kernel.body, more))
    return KernelSimulation(changed, target, {s: Cases(s, target) for s in kernel.instructions()}).run().cycles


def _replaced(body: Sequence[Node], more: dict[EventStep, EventStep]) -> list[Node]:
    made: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            made.append(replace(node, body=_replaced(node.body, more)))
        else:
            made.append(more.get(node, node) if isinstance(node, EventStep) else node)
    return made
