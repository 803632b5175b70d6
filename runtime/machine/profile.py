"""Where the time of a program goes: per kernel, engine, instruction and wait. Needs no data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute

from ...dialects import hardware
from ...dialects.target_model import MatrixEngine, Target, VectorEngine
from .cases import Case
from .program import EventKey, EventStep, Instruction, Kernel
from .tally import Tally
from .time import KernelTime


@dataclass(frozen=True)
class InstructionProfile:
    """One instruction of a kernel, over all its executions.

    cycles       its engine was occupied, on average of the kernel's cores; queued: its engine stood before the
                 off-chip port besides
    bytes        moved over its link, of a transfer
    utilization  share of what the engine could have done in these cycles: multiply-adds, bytes of the widest operand,
                 bytes over the link
    operations   two for each multiply-add, one for each element of anything else but a transfer
    payload      bytes of the elements that a transfer moves, without what granules round up
    """

    step: Instruction
    what: str
    executed: int
    cycles: int
    queued: int
    bytes: int
    utilization: float | None
    offchip: bool
    operations: int
    payload: int

    @property
    def engine(self) -> str:
        return self.step.engine

    @property
    def location(self) -> Attribute:
        return self.step.op.location


@dataclass(frozen=True)
class WaitProfile:
    """How long an engine stood at a wait in all: `before` which of its instructions, and `after` which one of `source`
    the signal comes; None where the wait is the last of its engine, or the signal the first."""

    engine: str
    source: str
    event: int
    cycles: int
    location: Attribute
    before: InstructionProfile | None
    after: InstructionProfile | None


@dataclass(frozen=True)
class EngineProfile:
    """Cycles of a kernel, its launch apart, and those before in which the engine loads early for it: the engine works,
    stands at waits, before the port, or is through."""

    name: str
    busy: int
    stalled: int
    queued: int
    idle: int


@dataclass(frozen=True)
class KernelProfile:
    """One launch. `port_cycles` is how long the off-chip port was held, on average of the kernel's cores; `early`:
    how long before the kernel begins its early loads can."""

    name: str
    cycles: int
    launch_cycles: int
    port_cycles: int
    engines: tuple[EngineProfile, ...]
    instructions: tuple[InstructionProfile, ...]
    waits: tuple[WaitProfile, ...]
    early: int = 0

    @property
    def span(self) -> int:
        """From the first thing done for it to its end: more than its cycles where early loads begin before the launch
        before has ended."""
        return max(self.cycles, self.cycles - self.launch_cycles + self.early)

    @property
    def shares(self) -> dict[str, float]:
        """Of the kernel's cycles, those in which the port, the launch or an engine is occupied."""
        found = {"off-chip port": self.port_cycles, "launch": self.launch_cycles}
        found |= {engine.name: engine.busy for engine in self.engines}
        return {name: cycles / max(self.span, 1) for name, cycles in found.items()}

    @property
    def bound(self) -> str:
        """What is occupied most of the time; where that is less than BOUND of it, what it waits for too."""
        name, share = max(self.shares.items(), key=lambda item: item[1])
        waiting = [wait for wait in self.waits if wait.engine == name]
        if share >= BOUND or not waiting:
            return f"{name} {share:.0%}"
        longest = max(waiting, key=lambda wait: wait.cycles)
        return f"{name} {share:.0%}, waits for {longest.source} {longest.cycles / self.cycles:.0%}"


BOUND = 0.8
"""From this share of the time on, a resource counts as what bounds a kernel."""


def kernel_profile(kernel: Kernel, time: KernelTime, target: Target) -> KernelProfile:
    """What a simulation counted, put in order."""
    tally = time.tally
    instructions = tuple(_instructions(kernel, tally, target))
    waits = sorted(_waits(kernel, tally, instructions), key=lambda wait: -wait.cycles)
    engines: list[EngineProfile] = []
    whole, cores = time.cycles - target.launch_cycles, kernel.cores
    for name in (name for name in target.engines if name in kernel.engines):
        busy = time.busy.get(name, 0)
        stalled = sum(wait.cycles for wait in waits if wait.engine == name)
        queued = sum(one.queued for one in instructions if one.engine == name)
        idle = whole + time.early.get(name, 0) - busy - stalled - queued
        engines.append(EngineProfile(name, busy, stalled, queued, idle))
    port = sum(case.port_cycles * count for case, count in tally.executed.items()) // cores
    name = kernel.name
    early = max(time.early.values(), default=0)
    return KernelProfile(
        name, time.cycles, target.launch_cycles, port, tuple(engines), instructions, tuple(waits), early
    )


def _instructions(kernel: Kernel, tally: Tally, target: Target) -> Iterator[InstructionProfile]:
    cases: dict[Instruction, list[Case]] = {}
    for case in tally.executed:
        cases.setdefault(case.step, []).append(case)
    for step in kernel.steps():
        if step not in cases:
            continue
        assert isinstance(step, Instruction)
        counts = [(case, tally.executed[case]) for case in cases[step]]
        cycles = sum(case.cycles * count for case, count in counts)
        work = sum(_work(case) * count for case, count in counts)
        rate = _rate(step, target)
        yield InstructionProfile(
            step, what(step), sum(count for _, count in counts), cycles // kernel.cores,
            sum(tally.queued[case] for case, _ in counts) // kernel.cores,
            sum(case.link[1] * count for case, count in counts if case.link is not None),
            work / (cycles * rate) if cycles and rate else None,
            any(case.offchip for case, _ in counts),
            sum(_operations(case) * count for case, count in counts),
            sum(_elements(case) * case.step.views[0].element.bytes * count for case, count in counts if case.link),
        )  # fmt: skip


def what(step: Instruction) -> str:
    """`vector exp`, `dma gm->ub`, `matmul`: an instruction in two words."""
    name = step.op.name.removeprefix("hardware.")
    match step.op:
        case hardware.VectorOp():
            return f"{name} {step.op.fn.data}"
        case hardware.ReduceOp():
            return f"{name} {step.op.monoid.data}"
        case hardware.DmaOp():
            return f"{name} {step.views[0].memory}->{step.views[1].memory}"
        case _:
            return name


def _elements(case: Case) -> int:
    return 0 if case.empty else prod(high - low for low, high in case.region)


def _work(case: Case) -> int:
    """Multiply-adds of a product, link bytes of a transfer, bytes that a reduction reads, of the widest operand of
    anything else."""
    match case.step.op:
        case hardware.MatmulOp():
            return _elements(case)
        case hardware.DmaOp():
            return case.link[1] if case.link is not None else 0
        case hardware.ReduceOp():
            return _elements(case) * case.step.views[0].element.bytes
        case _:
            return _elements(case) * max(view.element.bytes for view in case.step.views)


def _operations(case: Case) -> int:
    if isinstance(case.step.op, hardware.DmaOp):
        return 0
    return _elements(case) * (2 if isinstance(case.step.op, hardware.MatmulOp) else 1)


def _rate(step: Instruction, target: Target) -> float:
    """The most work per cycle of the engine on such an instruction; 0 where that cannot be told."""
    engine = target.engines[step.engine]
    match step.op, engine:
        case hardware.MatmulOp(), MatrixEngine():
            entry = engine.type_of(step.views[0].element.name, step.views[1].element.name)
            return prod(entry.block) * float(entry.rate) if entry is not None else 0.0
        case hardware.DmaOp(), _:
            move = target.move(step.views[0].memory, step.views[1].memory)
            return float(target.move_rate(move)) if move is not None else 0.0
        case _, VectorEngine():
            return float(engine.bytes_per_cycle)
        case _:
            return 0.0


def _waits(kernel: Kernel, tally: Tally, profiles: Iterable[InstructionProfile]) -> Iterator[WaitProfile]:
    """Waits that took time; an event that stands at several places in the text is followed by its first signal."""
    known = {one.step: one for one in profiles}
    after: dict[EventKey, Instruction] = {}
    last: dict[str, Instruction] = {}
    before: dict[EventStep, Instruction] = {}
    standing: dict[str, list[EventStep]] = {}
    for step in kernel.steps():
        if isinstance(step, Instruction):
            last[step.engine] = step
            before.update(dict.fromkeys(standing.pop(step.engine, []), step))
        elif not step.signals:
            standing.setdefault(step.engine, []).append(step)
        elif step.engine in last:
            after.setdefault(step.event, last[step.engine])
    for step, cycles in tally.stalled.items():
        source, engine, number = step.event
        reason, held = after.get(step.event), before.get(step)
        yield WaitProfile(
            engine, source, number, cycles // kernel.cores, step.op.location,
            known.get(held) if held else None, known.get(reason) if reason else None,
        )  # fmt: skip


def merged(waits: tuple[WaitProfile, ...]) -> Counter[tuple[str, str]]:
    """Cycles by the engine that waits and the one that is waited for."""
    found: Counter[tuple[str, str]] = Counter()
    for wait in waits:
        found[wait.engine, wait.source] += wait.cycles
    return found
