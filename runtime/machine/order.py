"""Happens-before on bytes: two engines that touch a common byte, one writing, must be ordered by events.

Every engine numbers its instructions; its clock says up to which number of every engine it has waited. The regions that
views touch are numbered as they come; each remembers, per engine, its last read and its last write. An access is
ordered after all earlier ones if its engine's clock has reached the last of each other engine in every region that
shares a byte with it: an engine's earlier accesses are before its last. No byte is approximated.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from ...dialects import hardware
from ...dialects.transfer import Region
from .access import access, byte_runs, runs_meet
from .affine import Counters
from .cases import Cases
from .errors import MachineError
from .places import check_place
from .program import EventKey, EventStep, Instruction, Kernel, Launch, View
from .queues import in_program_order
from .spaces import Place, Space, Use, touched


class OrderCheck:
    """Checks the launches of a program; a kernel is walked once per arrangement of what it shares off chip."""

    def __init__(self, cases: dict[Instruction, Cases]) -> None:
        self.cases = cases
        self.checked: set[tuple[Kernel, tuple[int, ...]]] = set()

    def check(self, launch: Launch) -> None:
        """Raises MachineError for the first race, and for events that deadlock or are left over."""
        kernel = launch.kernel
        shared = _shared_arguments(launch)
        key = (kernel, tuple(launch.bases[number] for number in sorted(shared)))
        if key not in self.checked:
            for share in kernel.shares:
                _KernelOrder(replace(launch, kernel=share), self.cases, shared).run()
            self.checked.add(key)


def _shared_arguments(launch: Launch) -> set[int]:
    """Arguments whose bytes one engine writes and another touches. Arguments that overlap count as one."""
    kernel, bases = launch.kernel, launch.bases
    spans = sorted((bases[n], bases[n] + kernel.buffers[n].size, n) for n in range(kernel.arguments))
    group: dict[int, int] = {}
    end, current = -1, -1
    for low, high, number in spans:
        current = current if low < end else number
        end = max(end, high)
        group[number] = current
    users: dict[int, set[str]] = {}
    written: set[int] = set()
    for step in kernel.steps():
        if isinstance(step, Instruction):
            for position, view in enumerate(step.views):
                if view.buffer in group:
                    users.setdefault(group[view.buffer], set()).add(step.engine)
                    if position == len(step.views) - 1:
                        written.add(group[view.buffer])
    return {n for n, g in group.items() if g in written and len(users[g]) > 1}


class _KernelOrder:
    def __init__(self, launch: Launch, cases: dict[Instruction, Cases], shared: set[int]) -> None:
        self.launch, self.kernel, self.bases, self.cases = launch, launch.kernel, launch.bases, cases
        self.ignored = set(range(launch.kernel.arguments)) - shared
        self.ranks = {engine: rank for rank, engine in enumerate(self.kernel.engines)}
        self.clocks = [[0] * len(self.ranks) for _ in self.ranks]
        self.signals: dict[EventKey, deque[list[int]]] = {}
        self.spaces: dict[str, Space] = {}
        self.places: dict[tuple[View, bool, Region | None, int], Place | None] = {}

    def run(self) -> None:
        for step, counters in in_program_order(self.kernel):
            if isinstance(step, EventStep):
                self.event(step)
            else:
                self.instruction(step, counters)

    def event(self, step: EventStep) -> None:
        clock, queue = self.clocks[self.ranks[step.engine]], self.signals.setdefault(step.event, deque())
        if step.signals:
            queue.extend([clock.copy()] * step.times)
            return
        given: list[int] = clock
        for _ in range(step.times):
            given = queue.popleft()
        for rank, time in enumerate(given):
            if time > clock[rank]:
                clock[rank] = time

    def instruction(self, step: Instruction, counters: Counters) -> None:
        rank = self.ranks[step.engine]
        clock = self.clocks[rank]
        clock[rank] += 1
        last: Use | None = None
        cases = self.cases[step]
        region = None if cases.only is not None else cases.at(counters).region
        output = len(step.views) - 1
        for number, view in enumerate(step.views):
            if view.buffer in self.ignored:
                continue
            writes = number == output
            base = self.bases[view.buffer] + view.offset.at(counters)
            key = (view, writes, region, base)
            place = self.places.get(key)
            if place is None:
                if key in self.places:
                    continue
                place = self.places[key] = self.place(step, number, base, counters)
                if place is None:
                    continue
            if last is None:
                last = (clock[rank], step, tuple(counters))
            does = "writes" if writes else "reads"
            for other in place.meets:  # an engine has waited for all that it did itself
                for engine, racing in other.writes.items():
                    if racing[0] > clock[engine]:
                        raise self.race(last, view, does, place, racing, "writes", other)
                for engine, racing in other.reads.items() if writes else ():
                    if racing[0] > clock[engine]:
                        raise self.race(last, view, does, place, racing, "reads", other)
            if writes:
                place.writes[rank] = last
                if isinstance(step.op, hardware.MatmulOp):
                    place.reads[rank] = last
            else:
                place.reads[rank] = last

    def place(self, step: Instruction, number: int, base: int, counters: Counters) -> Place | None:
        """The bytes of a view: its active region, or all of it where it is written afresh. None for no bytes."""
        view, part = step.views[number], touched(step, self.cases[step], number, counters)
        if part is None:
            return None
        check_place(self.launch, step, view, base, access(view.layout, part), counters)
        return self.spaces.setdefault(view.memory, Space()).place(base, byte_runs(view.layout, part))

    def race(self, last: Use, view: View, does: str, place: Place, racing: Use, did: str, other: Place) -> MachineError:
        """Names both instructions, what each does, and the first bytes that both touch."""
        shared = runs_meet(place.runs, other.runs, other.base - place.base)
        assert shared is not None
        low, high = place.base + shared[0], place.base + shared[1]
        return last[1].error(
            last[2],
            f"race: it {does} {view.name} in '{view.memory}' while {racing[1].place(racing[2])} {did} bytes "
            f"[{low}, {high}) of it, and nothing orders them",
            ("the other instruction", racing[1].op.location),
        )
