"""A timeline in the trace event format that Perfetto and chrome://tracing read.

One process per core; a lane per engine, one for kernels; arrows from the instruction that a signal follows to the one
that its wait lets go; counters of the off-chip port's bytes per cycle and of the bytes of each on-chip memory in use.
Spans of a lane follow one another. Source: "Trace Event Format", Google, 2016 (events X, C, s, f and M).

The format counts microseconds; Perfetto keeps whole nanoseconds. Starts and ends of spans are rounded to those, not
their lengths, so that spans which touch on the machine touch there too, whatever the clock.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Attribute

from ...dialects.target_model import Target
from .affine import Counters
from .cases import Case
from .profile import what
from .program import Buffer, EventKey, EventStep, Kernel, Loop

Event: TypeAlias = dict[str, Any]
Place: TypeAlias = "Callable[[Attribute], str]"
"""Text for a location, empty where it is unknown."""

_KERNELS = 0
"""Lane of the kernels; engines follow."""

KERNELS = "kernels"
"""Name of that lane."""


@dataclass(frozen=True, slots=True)
class Span:
    """A slice of a lane in [start, end) cycles. `kind`: kernel, instruction, loop (one engine's, executed as a whole),
    repeat (iterations that were not walked) or wait. `place`: in the source, empty where that is unknown; `counters`:
    of the loops around it; `args`: bytes and the like."""

    lane: int
    name: str
    kind: str
    start: int
    end: int
    place: str
    counters: dict[str, int]
    args: dict[str, int | str]
    core: int = 0


@dataclass
class Trace:
    """Collects the spans, arrows and counters of a program's launches. `place` names the source of an operation."""

    target: Target
    place: Place
    events: list[Event] = field(default_factory=list[Event])
    spans: list[Span] = field(default_factory=list[Span])
    used: list[Use] = field(default_factory=list["Use"])
    flows: int = 0
    core: int = 0
    """Whose events come next."""

    def __post_init__(self) -> None:
        self.lanes = {name: number + 1 for number, name in enumerate(self.target.engines)}
        self.known: set[int] = set()
        self.on_core(0)

    def on_core(self, core: int) -> None:
        """What follows happens on this core."""
        self.core = core
        if core in self.known:
            return
        self.known.add(core)
        self._meta("process_name", _KERNELS, {"name": f"core {core}"})
        for name, lane in {KERNELS: _KERNELS, **self.lanes}.items():
            self._meta("thread_name", lane, {"name": name})
            self._meta("thread_sort_index", lane, {"sort_index": lane})

    def _meta(self, what: str, lane: int, args: dict[str, object]) -> None:
        self.events.append({"ph": "M", "pid": self.core, "tid": lane, "name": what, "args": args})

    def nanos(self, cycle: float) -> int:
        """The whole nanosecond nearest to a cycle."""
        return round(cycle / self.target.clock_hz * 1e9)

    def span(
        self,
        lane: int,
        name: str,
        kind: str,
        start: int,
        end: int,
        location: Attribute | None = None,
        counters: dict[str, int] | None = None,
        **args: int | str,
    ) -> None:
        """A slice of a lane; empty ones are left out."""
        if end > start:
            place = self.place(location) if location is not None else ""
            self.spans.append(Span(lane, name, kind, start, end, place, counters or {}, args, self.core))

    def counter(self, name: str, unit: str, time: int, value: float) -> None:
        """The value of a counter from a cycle on."""
        at = micros(self.nanos(time))
        self.events.append({"ph": "C", "pid": self.core, "name": name, "ts": at, "args": {unit: value}})

    def count(self, name: str, steps: Sequence[tuple[int, int]]) -> None:
        """A counter of bytes, by the times at which they change and by how many."""
        total = 0
        for time, change in sorted(steps):
            total += change
            self.counter(name, "bytes", time, total)

    def flow(self, name: str, source: Span, to_lane: int, to_time: int) -> None:
        """An arrow from the end of a slice, a moment inside of it, to another one."""
        common = {"pid": self.core, "name": name, "cat": "event", "id": self.flows}
        begin = max(self.nanos(source.end) - 1, self.nanos(source.start))
        self.events.append({**common, "ph": "s", "tid": source.lane, "ts": micros(begin)})
        self.events.append({**common, "ph": "f", "bp": "e", "tid": to_lane, "ts": micros(self.nanos(to_time))})
        self.flows += 1

    def json(self) -> dict[str, Any]:
        """The whole file."""
        return {"displayTimeUnit": "ns", "traceEvents": [*self.events, *self._slices()]}

    def _slices(self) -> Iterator[Event]:
        for span in self.spans:
            start, end = self.nanos(span.start), self.nanos(span.end)
            yield {
                "ph": "X", "pid": span.core, "tid": span.lane, "name": span.name, "cat": span.kind, "ts": micros(start),
                "dur": micros(end - start),
                "args": {"cycles": span.end - span.start, **span.counters, **span.args}
                | ({"source": span.place} if span.place else {}),
            }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Use:
    """A buffer of a launch from the start of the first instruction that touches it to the completion of the last, in
    cycles."""

    kernel: str
    buffer: Buffer
    start: int
    end: int


def micros(nanos: int) -> float:
    """Nanoseconds as microseconds, such that a reader who cuts off what is behind the nanoseconds finds the same."""
    found = nanos / 1000
    return found if int(found * 1000) >= nanos else math.nextafter(found, math.inf)


@dataclass
class KernelRecorder:
    """Records one launch, `start` being the cycle of the program at which its launch begins."""

    trace: Trace
    kernel: Kernel
    start: int
    signals: dict[EventKey, deque[Span | None]] = field(init=False)
    last: dict[str, Span] = field(init=False)
    waiting: dict[str, list[tuple[str, Span]]] = field(init=False)
    used: dict[int, tuple[int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self.signals, self.last, self.waiting, self.used = {}, {}, {}, {}

    def instruction(self, case: Case, counters: Counters, start: int, end: int, done: int) -> None:
        """A slice, the arrows that end at it, and what it moves through the port."""
        trace, step, begin = self.trace, case.step, self.start
        lane = trace.lanes[step.engine]
        args: dict[str, int | str] = {}
        if case.link is not None:
            args = {"link": case.link[0], "bytes": case.link[1], "completed": self.start + done}
        at = dict(zip(step.loops, counters, strict=False))
        trace.span(lane, what(step), "instruction", begin + start, begin + end, step.op.location, at, **args)
        for name, source in self.waiting.pop(step.engine, []):
            trace.flow(name, source, lane, begin + start)
        if end > start:
            self.last[step.engine] = trace.spans[-1]
        if case.offchip and case.port_cycles and case.link is not None:
            trace.counter("off-chip port", "bytes per cycle", begin + start, case.link[1] / case.port_cycles)
            trace.counter("off-chip port", "bytes per cycle", begin + start + case.port_cycles, 0)
        for view in step.views:
            first, last = self.used.get(view.buffer, (begin + start, begin + done))
            self.used[view.buffer] = min(first, begin + start), max(last, begin + done)

    def loop(self, engine: str, loop: Loop, counters: Counters, start: int, end: int) -> None:
        """A loop that was not walked is one slice."""
        lane, begin = self.trace.lanes[engine], self.start
        self.trace.span(lane, f"for %{loop.name}", "loop", begin + start, begin + end, loop.op.location)

    def signal(self, step: EventStep, counters: Counters, time: int) -> None:
        """Where the arrow begins; a credit that precedes all instructions has none."""
        self.signals.setdefault(step.event, deque()).extend([self.last.get(step.engine)] * step.times)

    def wait(self, step: EventStep, counters: Counters, start: int, end: int) -> None:
        """A slice where the engine stands, and the arrow, which ends at the next instruction."""
        lane, name, begin = self.trace.lanes[step.engine], f"wait for {step.event[0]}", self.start
        self.trace.span(lane, name, "wait", begin + start, begin + end, step.op.location, event=step.event[2])
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

    def finish(self, cycles: int) -> None:
        """The slice of the kernel, and how many bytes of each memory its buffers take from first to last use."""
        trace, name = self.trace, self.kernel.name
        trace.span(_KERNELS, name, "kernel", self.start, self.start + cycles, self.kernel.op.location)
        changes: dict[str, list[tuple[int, int]]] = {}
        for number, (first, last) in self.used.items():
            buffer = self.kernel.buffers[number]
            if number >= self.kernel.arguments:
                if trace.core == 0:  # all cores have the same buffers
                    trace.used.append(Use(name, buffer, first, last))
                changes.setdefault(buffer.memory, []).extend([(first, buffer.size), (last, -buffer.size)])
        for memory, steps in changes.items():
            trace.count(f"{memory} in use", steps)
