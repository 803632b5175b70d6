"""One program on the machine: decoded once, checked and timed once, run as often as there are inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ...dialects.errors import UserError
from ..weights import weight_reader
from .balance import in_list_order
from .batch import Plan
from .cases import Cases
from .core_order import check_cores
from .data import Counted, DataRun, Loader
from .decode import decode
from .early import NEVER, Freed
from .early_order import EarlyCheck
from .options import MachineOptions
from .order import OrderCheck
from .plan import plan
from .profile import KernelProfile, kernel_profile
from .program import Instruction, Kernel, Launch, Program
from .reach import error_of
from .result import Array, KernelResult, MachineResult, MemoryResult
from .shares import kernel_time
from .time import KernelSimulation, KernelTime
from .trace import KernelRecorder, Place, Trace

TRACED = 50_000
"""Instructions of a program that a timeline shows one by one."""


class Machine:
    """A decoded hardware-level program and what has been found out about it without data.

    The module must not change afterwards. Raises what decoding raises (decode.py).
    """

    def __init__(self, module: ModuleOp) -> None:
        self.program: Program = decode(module)
        kernels = dict.fromkeys(launch.kernel for launch in self.program.launches)
        self.cases = {
            step: _cases(step, self.program, kernel.cores)
            for kernel in kernels
            for step in kernel.steps()
            if isinstance(step, Instruction)
        }
        self._ordered = False
        self._times: dict[tuple[Kernel, Freed], KernelTime] = {}
        self._plans: dict[Kernel, Plan | None] = {}

    def run(
        self, inputs: Sequence[Array], options: MachineOptions | None = None, loader: Loader | None = None
    ) -> MachineResult:
        """Executes the program on `inputs`, one array for each input buffer.

        `loader(file, key)` reads weights, by default from safetensors files in `options.weights_dir`. Raises
        MachineError for everything a machine may not do (docs/machine.md), UserError for inputs that do not fit.
        """
        options = options or MachineOptions()
        if options.order:
            self.check_order()
        times = self.times()
        data = DataRun(self.program, self.cases, self.plan, options)
        data.fill(inputs, loader or weight_reader(lambda file: options.weights_dir / file))
        launches = self.program.launches
        counted = [data.launch(launch, after) for launch, after in zip_longest(launches, launches[1:])]
        return self._result(times, counted, data.outputs())

    def analyze(self) -> MachineResult:
        """Traffic and cycles without data: the result of `run` with no outputs. Addresses are not checked."""
        times = self.times()
        return self._result(times, [Counted(time.links, time.instructions) for time in times], [])

    def profile(self) -> tuple[MachineResult, list[KernelProfile]]:
        """As `analyze`, and where the time goes, an entry per launch."""
        launched = zip(self.program.launches, self.times(), strict=True)
        profiles = [kernel_profile(launch.kernel, time, self.program.target) for launch, time in launched]
        return self.analyze(), profiles

    def timeline(self, place: Place, spans: int = TRACED) -> Trace:
        """What happens when (trace.py). `place` gives the text for a location.

        A program of more than `spans` instructions is not walked: repeating iterations are one span each.
        """
        target, made = self.program.target, Trace(self.program.target, place)
        walked = sum(time.instructions for time in self.times()) <= spans
        start, launched = 0, list[tuple[Launch, int, int]]()
        freed = NEVER
        for launch, time in zip(self.program.launches, self.times(), strict=True):
            for core, share in enumerate(launch.kernel.shares):
                made.on_core(core)
                recorder = KernelRecorder(made, share, start)
                recorder.finish(KernelSimulation(share, target, self.cases, not walked, recorder, freed).run().cycles)
            launched.append((launch, start, start + time.cycles))
            start, freed = start + time.cycles, time.freed
        made.on_core(0)
        made.count(f"intermediates in {target.offchip}", list(_intermediates(self.program, launched)))
        return made

    def trace(self, place: Place, spans: int = TRACED) -> dict[str, Any]:
        """The timeline as Perfetto reads it."""
        return self.timeline(place, spans).json()

    def check_order(self) -> None:
        """Raises MachineError for the first race, naming both instructions, for a deadlock and for left-over
        signals."""
        if not self._ordered:
            check = OrderCheck(self.cases)
            early = EarlyCheck(self.cases, self.program.target)
            before: Launch | None = None
            for launch in self.program.launches:
                check.check(launch)
                check_cores(launch, self.cases)
                if before is not None:
                    early.check(before, launch)
                before = launch
            self._ordered = True

    def times(self) -> list[KernelTime]:
        """One entry per launch."""
        found: list[KernelTime] = []
        for launch in self.program.launches:
            kernel = launch.kernel
            freed = found[-1].freed if found and kernel.early else NEVER
            if (kernel, freed) not in self._times:
                self._times[kernel, freed] = kernel_time(kernel, self.program.target, self.cases, freed)
            found.append(self._times[kernel, freed])
        return found

    def plan(self, kernel: Kernel) -> Plan | None:
        """How a kernel is executed many iterations at a time, None if it cannot be."""
        if kernel not in self._plans:
            self._plans[kernel] = plan(kernel, self.cases, self.program.peaks) if in_list_order(kernel) else None
        return self._plans[kernel]

    def _result(self, times: Sequence[KernelTime], counted: Sequence[Counted], outputs: list[Array]) -> MachineResult:
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


def _cases(step: Instruction, program: Program, cores: int) -> Cases:
    try:
        return Cases(step, program.target, cores)
    except UserError as error:
        raise error_of(step, error) from None


def _off_chip(links: Mapping[str, int], offchip: str) -> tuple[int, int]:
    read = sum(n for link, n in links.items() if link.split("->")[0] == offchip)
    return read, sum(n for link, n in links.items() if link.split("->")[1] == offchip)


def _intermediates(program: Program, launched: Sequence[tuple[Launch, int, int]]) -> Iterator[tuple[int, int]]:
    """When intermediates begin and cease to be held off chip, and the bytes that come or go then."""
    for external in program.role("workspace"):
        size = external.layout.size_bytes
        times = [(start, end) for launch, start, end in launched if external in launch.arguments]
        if times:
            yield times[0][0], size
            yield times[-1][1], -size
