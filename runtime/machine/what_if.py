"""How long a kernel would take if something about it were otherwise: what advice is worth, by the simulation itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...dialects import hardware
from ...dialects.cost import port_rate
from ...dialects.target_model import Target
from ...dialects.transfer import Region
from .affine import Affine, Counters
from .cases import Case, Cases, cycles
from .program import EventKey, EventStep, Instruction, Kernel, Loop, Node
from .shares import kernel_time

Change: TypeAlias = Callable[[Case], Case]
"""What an instruction costs on a region → what it would cost."""


class _Changed(Cases):
    def __init__(self, step: Instruction, target: Target, cores: int, change: Change) -> None:
        self.change = change
        super().__init__(step, target, cores)

    def _case(self, region: Region, counters: Counters) -> Case:
        return self.change(super()._case(region, counters))


def cycles_if(kernel: Kernel, target: Target, change: Change) -> int:
    """Cycles of a launch, were its instructions to cost something else."""
    cases: dict[Instruction, Cases] = {
        step: _Changed(step, target, kernel.cores, change) for step in kernel.instructions()
    }
    return kernel_time(kernel, target, cases).cycles


def scaled(case: Case, share: float) -> Case:
    """A transfer of only a share of its bytes."""
    return replace(case, cycles=round(case.cycles * share), port_cycles=round(case.port_cycles * share))


def without_granules(case: Case, payload: int, target: Target, cores: int) -> Case:
    """A transfer whose off-chip runs are whole granules; `payload`: the bytes of its elements. `cores` share the port's
    pool."""
    port = -(-payload // port_rate(target, cores))
    return replace(case, cycles=min(case.cycles, max(port, case.cycles - case.port_cycles + port)), port_cycles=port)


def cycles_with_slot(kernel: Kernel, target: Target, event: EventKey) -> int | None:
    """Cycles of a launch, were `event` to say that one more slot is free from the start: its credits before a loop are
    one more, and so are the waits behind it. None where it has no credits."""
    steps = [step for step in kernel.steps() if isinstance(step, EventStep) and step.event == event]
    outer = min((len(step.loops) for step in steps), default=0)
    edges = {step for step in steps if len(step.loops) == outer}
    if not any(step.signals for step in edges) or not any(len(step.loops) > outer for step in steps):
        return None
    more: dict[Node, Node] = {step: replace(step, times=step.times + 1) for step in edges}
    return cycles_if(replace(kernel, body=_replaced(kernel.body, more)), target, lambda case: case)


def cycles_with_larger_tiles(kernel: Kernel, target: Target, loop: Loop) -> int | None:
    """Cycles of a launch, were tiles twice as large along a loop: it has half the iterations, and everything in it does
    twice the work at once. Only what it loads from off chip without regard to its counter, again in each iteration,
    stays as large. None where the loop moves nothing off chip or from there, has bounds that change, or no two
    iterations."""
    if loop.lower.constant is None or loop.upper.constant is None or loop.upper.constant - loop.lower.constant < 2:
        return None
    end = loop.upper.constant - (loop.upper.constant - loop.lower.constant) // 2
    inside = set(loop.instructions())
    if not any(view.memory == target.offchip for step in inside for view in step.views):
        return None
    again = {step for step in inside if _is_load(step, target) and loop.depth not in step.views[0].offset.depends}

    def change(case: Case) -> Case:
        if case.empty or case.step not in inside or case.step in again:
            return case
        if isinstance(case.step.op, hardware.DmaOp):
            return scaled(case, 2)
        start = cycles(case.step, ((0, 1),) * len(case.region), target) - 1
        return replace(case, cycles=2 * case.cycles - start)

    half = replace(loop, upper=Affine(lambda counters: end, end, frozenset()))
    return cycles_if(replace(kernel, body=_replaced(kernel.body, {loop: half})), target, change)


def _is_load(step: Instruction, target: Target) -> bool:
    return isinstance(step.op, hardware.DmaOp) and step.views[0].memory == target.offchip


def _replaced(body: Sequence[Node], by: Mapping[Node, Node]) -> list[Node]:
    """A nest with some of its nodes changed."""
    found = [by.get(node, node) for node in body]
    return [replace(node, body=_replaced(node.body, by)) if isinstance(node, Loop) else node for node in found]
