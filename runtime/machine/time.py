"""When everything happens: engines in order, events, one off-chip port, latencies. Needs no data.

An engine runs ahead until it must wait for a signal that has not been given, or wants the off-chip port. The port
serves one transfer at a time, in order of arrival, engines in the order of the target file where two arrive together.
No engine that still waits can arrive earlier than those that have arrived, so the earliest of them is always the next.

Loops whose iterations repeat are not walked to their ends (period.py); the result is the same.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from ...dialects.target_model import Target
from .affine import Counters
from .balance import check_spent, deadlock
from .cases import Case, Cases
from .cursor import Cursor
from .period import Periods, Seen, State
from .program import EventKey, EventStep, Instruction, Kernel, Loop
from .queues import engine_part, walk


@dataclass
class KernelTime:
    """Cycles from the end of the kernel before to the end of this one, and those each engine was occupied."""

    cycles: int
    busy: dict[str, int]
    links: Counter[str]
    instructions: int


@dataclass(eq=False)
class _Engine:
    """free: when its queue can go on; done: when all it has issued has completed; blocked: the wait it stands at."""

    name: str
    rank: int
    steps: Cursor
    free: int
    done: int
    busy: int = 0
    blocked: EventStep | None = None
    parked: Case | None = None


@dataclass
class _Events:
    """Times of signals that nothing has waited for yet, and which engine waits."""

    times: dict[EventKey, deque[int]] = field(default_factory=dict[EventKey, "deque[int]"])
    waiting: dict[EventKey, _Engine] = field(default_factory=dict[EventKey, _Engine])


class KernelSimulation:
    """One run of one kernel. It does not depend on addresses, so that every launch of a kernel takes as long."""

    def __init__(
        self, kernel: Kernel, target: Target, cases: dict[Instruction, Cases], extrapolate: bool = True
    ) -> None:
        self.kernel, self.target, self.cases = kernel, target, cases
        self.periods = Periods(kernel.loops(), walk) if extrapolate else None
        self.events = _Events()
        self.engines: list[_Engine] = []
        self.port_free = 0
        self.links: Counter[str] = Counter()
        self.instructions = 0

    def run(self) -> KernelTime:
        """Raises MachineError for a deadlock and for signals that nothing waits for."""
        start = self.target.launch_cycles
        self.port_free = start
        for rank, name in enumerate(n for n in self.target.engines if n in self.kernel.engines):
            steps = Cursor(engine_part(self.kernel.body, name), self.kernel.depth)
            self.engines.append(_Engine(name, rank, steps, start, start))
        runnable = list(self.engines)
        parked: list[_Engine] = []
        while runnable or parked:
            while runnable:
                engine = runnable.pop()
                self._advance(engine, runnable)
                if engine.parked is not None:
                    parked.append(engine)
            if parked:
                first = min(parked, key=lambda e: (e.free, e.rank))
                if self.periods is not None:
                    self._skip(first, self.periods)
                parked.remove(first)
                self._transfer(first)
                runnable.append(first)
        self._check_end()
        end = max((engine.done for engine in self.engines), default=start)
        return KernelTime(end, {e.name: e.busy for e in self.engines if e.busy}, self.links, self.instructions)

    def _advance(self, engine: _Engine, runnable: list[_Engine]) -> None:
        """Goes on until the engine waits, wants the port, or is through."""
        if engine.blocked is not None:
            step, engine.blocked = engine.blocked, None
            if not self._wait(engine, step):
                return
        counters: Counters = engine.steps.counters
        cases, events = self.cases, self.events
        for step in engine.steps:
            if isinstance(step, EventStep):
                if not step.signals:
                    if not self._wait(engine, step):
                        return
                    continue
                times = events.times.setdefault(step.event, deque())
                times.extend([engine.done] * step.times)
                waiter = events.waiting.get(step.event)
                if waiter is not None and waiter.blocked is not None and len(times) >= waiter.blocked.times:
                    del events.waiting[step.event]
                    runnable.append(waiter)
                continue
            case = cases[step].at(counters)
            self.instructions += 1
            if case.link is not None:
                self.links[case.link[0]] += case.link[1]
                if case.offchip:
                    engine.parked = case
                    return
            engine.busy += case.cycles
            engine.free += case.cycles
            if engine.free > engine.done:
                engine.done = engine.free

    def _wait(self, engine: _Engine, step: EventStep) -> bool:
        """Passes a wait whose signals have been given, or blocks the engine at it."""
        times = self.events.times.get(step.event)
        if times is None or len(times) < step.times:
            engine.blocked = step
            self.events.waiting[step.event] = engine
            return False
        time = 0
        for _ in range(step.times):
            time = times.popleft()  # an engine's signals come in order: the last is the latest
        engine.free = max(engine.free, time)
        engine.done = max(engine.done, engine.free)
        return True

    def _transfer(self, engine: _Engine) -> None:
        case, engine.parked = engine.parked, None
        assert case is not None
        start = max(engine.free, self.port_free)
        self.port_free = start + case.port_cycles
        engine.busy += case.cycles
        engine.free = start + case.cycles
        engine.done = max(engine.done, engine.free + case.latency)

    # --- repeating iterations (period.py) -------------------------------------------------------------------------

    def _skip(self, first: _Engine, periods: Periods) -> None:
        """Moves on by whole periods of the outermost loop around `first`, whose transfer is next, that has one."""
        for frame in first.steps.frames[1:]:
            loop = frame.loop
            assert loop is not None
            outer = first.steps.counters[: loop.depth]
            instance = periods.instance(loop, outer, frame.lower, frame.upper)
            if instance is None or instance.looked.get(first.rank) == frame.value or frame.value + 1 == frame.upper:
                continue
            instance.looked[first.rank] = frame.value
            state = self._state(first, loop, outer, frame.value)
            if state is None:
                continue
            inside = [found.value for e in self.engines if (found := e.steps.inside(loop, outer)) is not None]
            seen = instance.states.get(state)
            if seen is not None:
                times = periods.repetitions(instance, loop, seen, frame.value, max(inside))
                if times:
                    self._repeat(first, loop, seen, frame.value - seen.value, times)
                    instance.states.clear()
                    return
            instance.states[state] = Seen(frame.value, first.free, min(inside), self._counts())

    def _state(self, first: _Engine, loop: Loop, outer: list[int], value: int) -> State | None:
        """Everything that decides what happens next, relative to the iteration `value` and the time of `first`.

        None where an engine that is not in the loop is not waiting for one that is.
        """
        now = first.free
        state: list[object] = [first.rank, max(self.port_free - now, 0)]
        for engine in self.engines:
            steps = engine.steps
            if not steps.frames:
                state.append(None)
                continue
            frame = steps.inside(loop, outer)
            if frame is None and engine.blocked is None:
                return None
            where = steps.position(loop.depth) if frame is not None else (*steps.position(-1), *steps.counters)
            relative = None if frame is None else frame.value - value
            waits = (engine.blocked, engine.parked, max(engine.free - now, 0), max(engine.done - now, 0))
            state.append((relative, where, *waits))
        for event, times in self.events.times.items():
            if times:
                state.append((event, *(max(time - now, 0) for time in times)))
        return tuple(state)

    def _counts(self) -> tuple[int, ...]:
        return (self.instructions, *(engine.busy for engine in self.engines), *self.links.values())

    def _repeat(self, first: _Engine, loop: Loop, seen: Seen, period: int, times: int) -> None:
        """What happened since `seen` happens `times` times more."""
        now, outer = first.free, first.steps.counters[: loop.depth]
        shift = (now - seen.time) * times
        # A link or event that is new since then was counted from zero: its count then stands at the end, missing.
        before = (*seen.counts, *(0,) * (len(self._counts()) - len(seen.counts)))
        more = [(new - old) * times for new, old in zip(self._counts(), before, strict=True)]
        self.instructions += more[0]
        for engine, busy in zip(self.engines, more[1:], strict=False):
            engine.busy += busy
            frame = engine.steps.inside(loop, outer)
            if frame is not None:
                frame.value += period * times
                engine.steps.counters[loop.depth] = frame.value
                engine.free, engine.done = max(engine.free, now) + shift, max(engine.done, now) + shift
        for link, moved in zip(list(self.links), more[1 + len(self.engines) :], strict=True):
            self.links[link] += moved
        self.port_free = max(self.port_free, now) + shift
        for waiting in self.events.times.values():
            for number, time in enumerate(waiting):
                waiting[number] = max(time, now) + shift

    def _check_end(self) -> None:
        blocked = [(engine.blocked, engine.steps.counters) for engine in self.engines if engine.blocked is not None]
        if blocked:
            raise deadlock(self.kernel, blocked)
        check_spent(self.kernel, {event: len(times) for event, times in self.events.times.items()})
