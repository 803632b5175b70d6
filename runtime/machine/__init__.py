"""The machine: one decoded program, executed on data, simulated in time, checked for order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from xdsl.dialects.builtin import ModuleOp

from ...dialects.errors import UserError
from ..weights import weight_reader
from .balance import in_list_order
from .batch import Plan
from .cases import Cases
from .data import Counted, DataRun, Loader
from .decode import decode
from .errors import MachineError
from .options import Interleaving, MachineOptions
from .order import OrderCheck
from .plan import plan
from .profile import KernelProfile, kernel_profile
from .program import Instruction, Kernel, Program
from .reach import error_of
from .result import Array, KernelResult, MachineResult, MemoryResult
from .time import KernelSimulation, KernelTime
from .trace import KernelRecorder, Place, Trace

__all__ = [
    "Array", "Interleaving", "KernelProfile", "KernelResult", "MachineError", "MachineOptions", "MachineResult",
    "MemoryResult", "analyze", "check_order", "profile", "run", "trace",
]  # fmt: skip

TRACED = 50_000
"""Instructions of a program that a timeline shows one by one."""


def run(
    module: ModuleOp,
    inputs: Sequence[Array],
    options: MachineOptions | None = None,
    loader: Loader | None = None,
) -> MachineResult:
    """Executes a hardware-level module on `inputs`, one array for each input buffer.

    `loader(file, key)` reads weights, by default from safetensors files in `options.weights_dir`. Raises MachineError
    for everything a machine may not do (module docs), UserError for inputs that do not fit.
    """
    machine = _machine(module)
    options = options or MachineOptions()
    if options.order:
        machine.check_order()
    times = machine.times()
    data = DataRun(machine.program, machine.cases, machine.plan, options)
    data.fill(inputs, loader or weight_reader(lambda file: options.weights_dir / file))
    counted = [data.launch(launch) for launch in machine.program.launches]
    return machine.result(times, counted, data.outputs())


def analyze(module: ModuleOp) -> MachineResult:
    """Traffic and cycles without data: the result of `run` with no outputs. Addresses are not checked."""
    machine = _machine(module)
    times = machine.times()
    counted = [Counted(time.links, time.instructions) for time in times]
    return machine.result(times, counted, [])


def profile(module: ModuleOp) -> tuple[MachineResult, list[KernelProfile]]:
    """As `analyze`, and where the time goes, an entry per launch."""
    machine = _machine(module)
    times = machine.times()
    result = machine.result(times, [Counted(time.links, time.instructions) for time in times], [])
    target = machine.program.target
    launched = zip(machine.program.launches, times, strict=True)
    return result, [kernel_profile(launch.kernel, time, target) for launch, time in launched]


def trace(module: ModuleOp, place: Place, spans: int = TRACED) -> dict[str, Any]:
    """The timeline of a program for Perfetto (trace.py). `place` gives the text for a location.

    A program of more than `spans` instructions is not walked: repeating iterations are one span each.
    """
    machine = _machine(module)
    target, made = machine.program.target, Trace(machine.program.target, place)
    walked = sum(time.instructions for time in machine.times()) <= spans
    start = 0
    for launch in machine.program.launches:
        recorder = KernelRecorder(made, launch.kernel, start)
        simulation = KernelSimulation(launch.kernel, target, machine.cases, not walked, recorder)
        cycles = simulation.run().cycles
        recorder.finish(cycles, place(launch.kernel.op.location))
        start += cycles
    return made.json()


def check_order(module: ModuleOp) -> None:
    """Raises MachineError for the first race, naming both instructions, for a deadlock and for left-over signals."""
    _machine(module).check_order()


_MACHINES: WeakKeyDictionary[ModuleOp, tuple[list[object], _Machine]] = WeakKeyDictionary()


def _machine(module: ModuleOp) -> _Machine:
    """The machine of a module, made once for as long as nobody changes the module."""
    text = [(op, tuple(op.operands), tuple(op.properties.items()), tuple(op.attributes.items())) for op in module.walk()]
    known = _MACHINES.get(module)
    if known is None or known[0] != text:
        known = _MACHINES[module] = (text, _Machine(module))
    return known[1]


class _Machine:
    """A decoded program, what its three consumers share, and what has been found out about it: all but the data."""

    def __init__(self, module: ModuleOp) -> None:
        self.program: Program = decode(module)
        kernels = dict.fromkeys(launch.kernel for launch in self.program.launches)
        self.cases = {
            step: _cases(step, self.program)
            for kernel in kernels
            for step in kernel.steps()
            if isinstance(step, Instruction)
        }
        self.ordered = False
        self.known: dict[Kernel, KernelTime] = {}
        self.plans: dict[Kernel, Plan | None] = {}

    def check_order(self) -> None:
        if not self.ordered:
            check = OrderCheck(self.cases)
            for launch in self.program.launches:
                check.check(launch)
            self.ordered = True

    def times(self) -> list[KernelTime]:
        """One entry per launch."""
        for launch in self.program.launches:
            kernel = launch.kernel
            if kernel not in self.known:
                self.known[kernel] = KernelSimulation(kernel, self.program.target, self.cases).run()
        return [self.known[launch.kernel] for launch in self.program.launches]

    def plan(self, kernel: Kernel) -> Plan | None:
        """How a kernel is executed many iterations at a time, None if it cannot be."""
        if kernel not in self.plans:
            self.plans[kernel] = plan(kernel, self.cases, self.program.peaks) if in_list_order(kernel) else None
        return self.plans[kernel]

    def result(self, times: Sequence[KernelTime], counted: Sequence[Counted], outputs: list[Array]) -> MachineResult:
        target, program = self.program.target, self.program
        kernels: list[KernelResult] = []
        links: Counter[str] = Counter()
        busy: Counter[str] = Counter()
        for launch, time, count in zip(program.launches, times, counted, strict=True):
            read, written = _off_chip(count.links, target.offchip)
            links.update(count.links)
            busy.update(time.busy)
            kernels.append(
                KernelResult(
                    launch.kernel.name, read, written, dict(count.links), time.cycles, time.busy, count.instructions
                )
            )
        memory = {n: MemoryResult(program.peaks.get(n, 0), m.bytes) for n, m in target.memories.items()}
        cycles = sum(kernel.cycles for kernel in kernels)
        return MachineResult(outputs, dict(links), kernels, cycles, dict(busy), memory)


def _cases(step: Instruction, program: Program) -> Cases:
    try:
        return Cases(step, program.target)
    except UserError as error:
        raise error_of(step, error) from None


def _off_chip(links: Mapping[str, int], offchip: str) -> tuple[int, int]:
    read = sum(n for link, n in links.items() if link.split("->")[0] == offchip)
    return read, sum(n for link, n in links.items() if link.split("->")[1] == offchip)
