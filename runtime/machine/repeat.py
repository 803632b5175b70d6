"""Moves a simulation on by whole periods of a loop.

Looked for whenever an engine goes on: at the start of its transfer, or after a wait. What has to be equal for a period
is the state of everything that is in the loop, with exact distances in time: so waiting times repeat too. What is
outside the loop waits for it, and its time no longer matters but for how much of it lies ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .period import Periods, Seen, State
from .program import Loop

if TYPE_CHECKING:
    from .time import Engine, KernelSimulation


class Repeater:
    """Of one simulation."""

    def __init__(self, simulation: KernelSimulation, periods: Periods) -> None:
        self.simulation, self.periods = simulation, periods

    def look(self, first: Engine, runnable: Sequence[Engine], parked: Sequence[Engine]) -> None:
        """Moves on by whole periods of the outermost loop around `first`, which goes on next, that has one."""
        ready = (*runnable, *parked)
        now: int | None = None
        for frame in first.steps.frames[1:]:
            loop = frame.loop
            assert loop is not None
            outer = first.steps.counters[: loop.depth]
            instance = self.periods.instance(loop, outer, frame.lower, frame.upper)
            if instance is None or instance.looked.get(first.rank) == frame.value or frame.value + 1 == frame.upper:
                continue
            instance.looked[first.rank] = frame.value
            if now is None:
                now = min(self._next(engine) for engine in ready)
            state = self._state(first, loop, outer, frame.value, now, ready)
            if state is None:
                continue
            inside = [f.value for e in self.simulation.engines if (f := e.steps.inside(loop, outer)) is not None]
            seen = instance.states.get(state)
            if seen is not None:
                times = self.periods.repetitions(instance, loop, seen, frame.value, max(inside))
                if times:
                    self._repeat(loop, outer, seen, frame.value - seen.value, now, times)
                    instance.states.clear()
                    return
            instance.states[state] = Seen(frame.value, now, min(inside), self.simulation.tally.copy())

    def _next(self, engine: Engine) -> int:
        """When an engine that can go on will."""
        step = engine.blocked
        if step is None:
            return engine.free
        return max(engine.free, self.simulation.events.times[step.event][step.times - 1])

    def _state(
        self, first: Engine, loop: Loop, outer: list[int], value: int, now: int, ready: Sequence[Engine]
    ) -> State | None:
        """Everything that decides what happens next, relative to the iteration `value` and the time `now`.

        None where an engine that is not in the loop can go on.
        """
        simulation = self.simulation
        state: list[object] = [first.rank, max(simulation.port_free - now, 0)]
        inside: set[str] = set()
        for engine in simulation.engines:
            steps = engine.steps
            frame = steps.inside(loop, outer)
            if frame is not None:
                inside.add(engine.name)
                where = (frame.value - value, *steps.position(loop.depth))
                state.append(
                    (where, engine.blocked, engine.parked, engine in ready, engine.free - now, engine.done - now)
                )
            elif not steps.frames and engine not in ready:
                state.append(None)
            elif engine.blocked is None or engine in ready:
                return None
            else:
                where = (*steps.position(-1), *steps.counters)
                state.append((where, engine.blocked, max(engine.free - now, 0), max(engine.done - now, 0)))
        for event, times in simulation.events.times.items():
            if times:
                exact = event[1] in inside
                state.append((event, *(time - now if exact else max(time - now, 0) for time in times)))
        return tuple(state)

    def _repeat(self, loop: Loop, outer: list[int], seen: Seen, period: int, now: int, times: int) -> None:
        """What happened since `seen` happens `times` times more."""
        simulation = self.simulation
        shift = (now - seen.time) * times
        simulation.tally.repeat(seen.counts, times)
        inside: set[str] = set()
        for engine in simulation.engines:
            frame = engine.steps.inside(loop, outer)
            if frame is None:
                continue
            inside.add(engine.name)
            frame.value += period * times
            engine.steps.counters[loop.depth] = frame.value
            if simulation.recorder is not None:
                simulation.recorder.repeat(engine.name, loop, engine.free, engine.free + shift, period * times)
            engine.free += shift
            engine.done += shift
        simulation.port_free = max(simulation.port_free, now) + shift
        if simulation.port_end > seen.time:
            simulation.port_end += shift
        for event, waiting in simulation.events.times.items():
            if event[1] in inside:
                for number, time in enumerate(waiting):
                    waiting[number] = time + shift
