"""A timeline in the trace event format that Perfetto and chrome://tracing read.

One process per core; a lane per engine, one for kernels; arrows from the instruction that a signal follows to the one
that its wait lets go; counters of the off-chip port's bytes per cycle and of the bytes of each on-chip memory in use.
Spans of a lane follow one another. Source: "Trace Event Format", Google, 2016 (events X, C, s, f and M).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Attribute

from ...dialects.target_model import Target
from .affine import Counters
from .cases import Case
from .profile import what
from .program import EventKey, EventStep, Kernel, Loop

Event: TypeAlias = dict[str, Any]
Place: TypeAlias = "Callable[[Attribute], str]"
"""Text for a location, empty where it is unknown."""

_KERNELS = 0
"""Lane of the kernels; engines follow."""


@dataclass
class Trace:
    """Collects the events of a program's launches. `place` names the source of an operation."""

    target: Target
    place: Place
    events: list[Event] = field(default_factory=list[Event])
    flows: int = 0

    def __post_init__(self) -> None:
        self.lanes = {name: number + 1 for number, name in enumerate(self.target.engines)}
        self._meta("process_name", _KERNELS, "core 0")
        for name, lane in {"kernels": _KERNELS, **self.lanes}.items():
            self._meta("thread_name", lane, name)
            self.events.append(
                {"ph": "M", "pid": 0, "tid": lane, "name": "thread_sort_index", "args": {"sort_index": lane}}
            )

    def _meta(self, what: str, lane: int, name: str) -> None:
        self.events.append({"ph": "M", "pid": 0, "tid": lane, "name": what, "args": {"name": name}})

    def micros(self, cycle: float) -> float:
        """Microseconds of a cycle, the unit of the format."""
        return cycle / self.target.clock_hz * 1e6

    def span(self, lane: int, name: str, kind: str, start: int, end: int, **args: object) -> None:
        """A slice of a lane; empty ones are left out."""
        if end > start:
            self.events.append(
                {
                    "ph": "X", "pid": 0, "tid": lane, "name": name, "cat": kind, "ts": self.micros(start),
                    "dur": self.micros(end - start),
                    "args": {"cycles": end - start, **{key: value for key, value in args.items() if value != ""}},
                }
            )  # fmt: skip

    def counter(self, name: str, unit: str, time: int, value: float) -> None:
        """The value of a counter from a cycle on."""
        self.events.append({"ph": "C", "pid": 0, "name": name, "ts": self.micros(time), "args": {unit: value}})

    def flow(self, name: str, lane: int, time: float, to_lane: int, to_time: float) -> None:
        """An arrow between two slices."""
        common = {"pid": 0, "name": name, "cat": "event", "id": self.flows}
        self.events.append({**common, "ph": "s", "tid": lane, "ts": self.micros(time)})
        self.events.append({**common, "ph": "f", "bp": "e", "tid": to_lane, "ts": self.micros(to_time)})
        self.flows += 1

    def json(self) -> dict[str, Any]:
        """The whole file."""
        return {"displayTimeUnit": "ns", "traceEvents": self.events}


@dataclass
class KernelRecorder:
    """Records one launch, `start` being the cycle of the program at which its launch begins."""

    trace: Trace
    kernel: Kernel
    start: int
    signals: dict[EventKey, deque[tuple[int, float] | None]] = field(init=False)
    last: dict[str, tuple[int, float]] = field(init=False)
    waiting: dict[str, list[tuple[str, tuple[int, float]]]] = field(init=False)
    used: dict[int, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.signals, self.last, self.waiting, self.used = {}, {}, {}, {}

    def instruction(self, case: Case, counters: Counters, start: int, end: int, done: int) -> None:
        """A slice, the arrows that end at it, and what it moves through the port."""
        trace, step, begin = self.trace, case.step, self.start
        lane = trace.lanes[step.engine]
        args: dict[str, object] = dict(zip(step.loops, counters, strict=False))
        args["source"] = trace.place(step.op.location)
        if case.link is not None:
            args |= {"link": case.link[0], "bytes": case.link[1], "completed": self.start + done}
        trace.span(lane, what(step), "instruction", begin + start, begin + end, **args)
        for name, (source, time) in self.waiting.pop(step.engine, []):
            trace.flow(name, source, time, lane, begin + start)
        if end > start:
            self.last[step.engine] = (lane, begin + end - 0.5)  # inside the slice
        if case.offchip and case.port_cycles and case.link is not None:
            trace.counter("off-chip port", "bytes per cycle", begin + start, case.link[1] / case.port_cycles)
            trace.counter("off-chip port", "bytes per cycle", begin + start + case.port_cycles, 0)
        for view in step.views:
            first, last = self.used.get(view.buffer, (begin + start, begin + done))
            self.used[view.buffer] = min(first, begin + start), max(last, begin + done)

    def loop(self, engine: str, loop: Loop, counters: Counters, start: int, end: int) -> None:
        """A loop that was not walked is one slice."""
        lane, place = self.trace.lanes[engine], self.trace.place(loop.op.location)
        self.trace.span(lane, f"for %{loop.name}", "loop", self.start + start, self.start + end, source=place)

    def signal(self, step: EventStep, counters: Counters, time: int) -> None:
        """Where the arrow begins; a credit that precedes all instructions has none."""
        self.signals.setdefault(step.event, deque()).extend([self.last.get(step.engine)] * step.times)

    def wait(self, step: EventStep, counters: Counters, start: int, end: int) -> None:
        """A slice where the engine stands, and the arrow, which ends at the next instruction."""
        place = self.trace.place(step.op.location)
        lane, name = self.trace.lanes[step.engine], f"wait for {step.event[0]}"
        self.trace.span(lane, name, "wait", self.start + start, self.start + end, event=step.event[2], source=place)
        queue = self.signals.get(step.event)
        for _ in range(step.times if queue else 0):
            source = queue.popleft() if queue else None
            if source is not None:
                self.waiting.setdefault(step.engine, []).append((step.event_name, source))

    def repeat(self, engine: str, loop: Loop, start: int, end: int, iterations: int) -> None:
        """Iterations that were not walked are one slice; arrows across it are left out."""
        name = f"{iterations} iterations of %{loop.name} like those before"
        self.trace.span(self.trace.lanes[engine], name, "repeat", self.start + start, self.start + end)
        self.signals.clear()
        self.waiting.clear()

    def finish(self, cycles: int, location: str) -> None:
        """The slice of the kernel, and how many bytes of each memory its buffers take from first to last use."""
        trace, name = self.trace, self.kernel.name
        trace.span(_KERNELS, name, "kernel", self.start, self.start + cycles, source=location)
        changes: dict[str, list[tuple[int, int]]] = {}
        for number, (first, last) in self.used.items():
            buffer = self.kernel.buffers[number]
            if number >= self.kernel.arguments:
                changes.setdefault(buffer.memory, []).extend([(first, buffer.size), (last, -buffer.size)])
        for memory, steps in changes.items():
            _count(trace, f"{memory} in use", steps)


def _count(trace: Trace, name: str, steps: Sequence[tuple[int, int]]) -> None:
    total = 0
    for time, change in sorted(steps):
        total += change
        trace.counter(name, "bytes", time, total)
