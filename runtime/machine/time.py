"""When everything happens: engines in order, events, one off-chip port, latencies. Needs no data.

An engine runs ahead until it must wait for a signal that has not been given, or wants the off-chip port. The port
serves one transfer at a time, in order of arrival, engines in the order of the target file where two arrive together.
No engine that still waits can arrive earlier than those that have arrived, so the earliest of them is always the next.

Loops whose iterations repeat are not walked to their ends (period.py, repeat.py), loops that concern one engine alone
are added up (single.py); the result is the same.

Time 0 is the end of the launch before. Everything waits for `launch_cycles`, but loads marked `early` at the front of
their engine's queue: they begin when the launch before has done with the engine and the port (early.py).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...dialects.target_model import Target
from .affine import Counters
from .balance import check_spent, deadlock
from .cases import Case, Cases
from .cursor import Cursor
from .early import NEVER, Freed
from .period import Periods
from .program import EventKey, EventStep, Instruction, Kernel, Loop, Node
from .queues import engine_part
from .repeat import Repeater
from .single import Totals, single_loops
from .tally import Tally


class Recorder(Protocol):
    """Is told what happens when, in cycles from the start of the kernel, its launch included."""

    def instruction(self, case: Case, counters: Counters, start: int, end: int, done: int) -> None:
        """An instruction occupies its engine in [start, end) and has completed at `done`."""
        ...

    def loop(self, engine: str, loop: Loop, counters: Counters, start: int, end: int) -> None:
        """An engine executes a whole loop."""
        ...

    def signal(self, step: EventStep, counters: Counters, time: int) -> None:
        """A signal is given."""
        ...

    def wait(self, step: EventStep, counters: Counters, start: int, end: int) -> None:
        """An engine comes to a wait at `start` and goes on at `end`."""
        ...

    def repeat(self, engine: str, loop: Loop, start: int, end: int, iterations: int) -> None:
        """From `start` to `end` an engine does what it did before, for so many iterations more of a loop."""
        ...


@dataclass
class KernelTime:
    """Cycles from the end of the kernel before to the end of this one, and what was counted on all its cores; `busy` is
    the mean over them. `freed`: what early loads of the next one find. `early`: how long before this kernel begins its
    engines do, those that load early."""

    cycles: int
    tally: Tally
    cores: int = 1
    freed: Freed = NEVER
    early: dict[str, int] = field(default_factory=dict[str, int])
    busy: dict[str, int] = field(init=False)
    links: Counter[str] = field(init=False)
    instructions: int = field(init=False)

    def __post_init__(self) -> None:
        self.busy = {engine: cycles // self.cores for engine, cycles in self.tally.busy().items()}
        self.links, self.instructions = self.tally.links(), self.tally.instructions


def first_instruction(body: Sequence[Node]) -> Instruction | None:
    """The first instruction of a nest in list order."""
    for node in body:
        found = first_instruction(node.body) if isinstance(node, Loop) else node
        if isinstance(found, Instruction):
            return found
    return None


@dataclass(eq=False)
class Engine:
    """free: when its queue can go on; done: when all it has issued has completed; blocked: the wait it stands at;
    parked: its transfer that wants the port."""

    name: str
    rank: int
    steps: Cursor
    free: int
    done: int
    blocked: EventStep | None = None
    parked: Case | None = None


@dataclass
class Events:
    """Times of signals that nothing has waited for yet, and which engine waits."""

    times: dict[EventKey, deque[int]] = field(default_factory=dict[EventKey, "deque[int]"])
    waiting: dict[EventKey, Engine] = field(default_factory=dict[EventKey, Engine])


class KernelSimulation:
    """One run of one kernel. It does not depend on addresses, so that every launch of a kernel takes as long."""

    def __init__(
        self,
        kernel: Kernel,
        target: Target,
        cases: dict[Instruction, Cases],
        extrapolate: bool = True,
        recorder: Recorder | None = None,
        freed: Freed = NEVER,
    ) -> None:
        self.kernel, self.target, self.cases, self.recorder = kernel, target, cases, recorder
        self.events = Events()
        self.engines: list[Engine] = []
        self.port_free = self.port_end = 0
        self.begin, self.freed = target.launch_cycles, freed
        """What is not early waits for `begin`."""
        self.ahead = kernel.early
        self.tally = Tally()
        self.totals = Totals(cases) if extrapolate else None
        self.repeater = Repeater(self, Periods(kernel.loops())) if extrapolate else None

    def run(self) -> KernelTime:
        """Raises MachineError for a deadlock and for signals that nothing waits for."""
        early: dict[str, int] = {}
        for rank, name in enumerate(n for n in self.target.engines if n in self.kernel.engines):
            body = engine_part(self.kernel.body, name)
            whole = frozenset(single_loops(body, self.cases)) if self.totals is not None else frozenset[Loop]()
            start, first = self.begin, first_instruction(body)
            if first is not None and first.early:
                start = min(start, -self.freed.by(name))
                early[name] = self.begin - start
            self.engines.append(Engine(name, rank, Cursor(body, self.kernel.depth, whole), start, start))
        start = min((engine.free for engine in self.engines), default=self.begin)
        self.port_free = self.port_end = start
        for engine in self.engines:
            engine.done = start  # a signal before any instruction is given from the start
        runnable = list(self.engines)
        parked: list[Engine] = []
        while runnable or parked:
            while runnable:
                if self.repeater is not None and self._begun():
                    self.repeater.look(runnable[-1], runnable, parked)
                engine = runnable.pop()
                self._advance(engine, runnable)
                if engine.parked is not None:
                    parked.append(engine)
            if parked:
                first = min(parked, key=lambda e: (e.free, e.rank))
                if self.repeater is not None and self._begun():
                    self.repeater.look(first, runnable, parked)
                parked.remove(first)
                self._transfer(first)
                runnable.append(first)
        self._check_end()
        cycles = max(self.begin, *(engine.done for engine in self.engines)) if self.engines else self.begin
        free = tuple((engine.name, cycles - engine.free) for engine in self.engines)
        freed = Freed(cycles - self.port_end, free, cycles - 2 * self.begin)
        return KernelTime(cycles, self.tally, freed=freed, early=early)

    def _begun(self) -> bool:
        """Whether no engine can meet the beginning of the kernel any more: before, iterations are not alike."""
        if not self.ahead:
            return True
        self.ahead = any(engine.free < self.begin and engine.steps.frames for engine in self.engines)
        return not self.ahead

    def _advance(self, engine: Engine, runnable: list[Engine]) -> None:
        """Goes on until the engine waits, wants the port, or is through."""
        if engine.blocked is not None:
            step, engine.blocked = engine.blocked, None
            if not self._wait(engine, step):
                return
        counters: Counters = engine.steps.counters
        cases, executed, recorder, begin = self.cases, self.tally.executed, self.recorder, self.begin
        for step in engine.steps:
            if isinstance(step, Instruction):
                if engine.free < begin and not step.early:
                    engine.free = begin
                case = cases[step].at(counters)
                if case.offchip:
                    engine.parked = case
                    return
                executed[case] += 1
                if recorder is not None:
                    end = engine.free + case.cycles
                    recorder.instruction(case, counters, engine.free, end, end)
                engine.free += case.cycles
                if engine.free > engine.done:
                    engine.done = engine.free
            elif isinstance(step, Loop):
                self._loop(engine, step)
            elif step.signals:
                self._signal(engine, step, runnable)
            elif not self._wait(engine, step):
                return

    def _loop(self, engine: Engine, loop: Loop) -> None:
        """A loop that concerns this engine alone, at once."""
        assert self.totals is not None
        start = engine.free = max(engine.free, self.begin)
        for case, count in self.totals.of(loop, engine.steps.counters).items():
            self.tally.executed[case] += count
            engine.free += case.cycles * count
        engine.done = max(engine.done, engine.free)
        if self.recorder is not None:
            self.recorder.loop(engine.name, loop, engine.steps.counters, start, engine.free)

    def _signal(self, engine: Engine, step: EventStep, runnable: list[Engine]) -> None:
        events = self.events
        times = events.times.setdefault(step.event, deque())
        times.extend([engine.done] * step.times)
        if self.recorder is not None:
            self.recorder.signal(step, engine.steps.counters, engine.done)
        waiter = events.waiting.get(step.event)
        if waiter is not None and waiter.blocked is not None and len(times) >= waiter.blocked.times:
            del events.waiting[step.event]
            runnable.append(waiter)

    def _wait(self, engine: Engine, step: EventStep) -> bool:
        """Passes a wait whose signals have been given, or blocks the engine at it."""
        times = self.events.times.get(step.event)
        if times is None or len(times) < step.times:
            engine.blocked = step
            self.events.waiting[step.event] = engine
            return False
        time = 0
        for _ in range(step.times):
            time = times.popleft()  # an engine's signals come in order: the last is the latest
        start = engine.free
        if time > start:
            self.tally.stalled[step] += time - start
            engine.free = time
        engine.done = max(engine.done, engine.free)
        if self.recorder is not None:
            self.recorder.wait(step, engine.steps.counters, start, engine.free)
        return True

    def _transfer(self, engine: Engine) -> None:
        case, engine.parked = engine.parked, None
        assert case is not None
        start = max(engine.free, self.port_free)
        self.tally.executed[case] += 1
        if start > engine.free:
            self.tally.queued[case] += start - engine.free
        self.port_free = self.port_end = start + case.port_cycles
        engine.free = start + case.cycles
        engine.done = max(engine.done, engine.free + case.latency)
        if self.recorder is not None:
            self.recorder.instruction(case, engine.steps.counters, start, engine.free, engine.free + case.latency)

    def _check_end(self) -> None:
        blocked = [(engine.blocked, engine.steps.counters) for engine in self.engines if engine.blocked is not None]
        if blocked:
            raise deadlock(self.kernel, blocked)
        check_spent(self.kernel, {event: len(times) for event, times in self.events.times.items()})
