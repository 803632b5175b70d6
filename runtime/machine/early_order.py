"""Early loads against the launch before: they may touch no byte that it still uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...dialects.target_model import Target
from .access import access, byte_runs
from .affine import Counters
from .cases import Cases
from .early import early_loads
from .errors import MachineError
from .places import check_place
from .program import Instruction, Kernel, Launch, View
from .queues import in_program_order
from .spaces import Place, Space, touched


class EarlyCheck:
    """Checks pairs of launches, each pair of kernels once for the same off-chip bytes."""

    def __init__(self, cases: dict[Instruction, Cases], target: Target) -> None:
        self.cases, self.target = cases, target
        self.checked: set[tuple[Kernel, Kernel, tuple[int, ...], tuple[int, ...]]] = set()

    def check(self, before: Launch, launch: Launch) -> None:
        """Raises MachineError for the first early load of `launch` that writes what `before` touches, or reads what it
        writes, naming both instructions.

        What an engine did in `before` it has done before it loads. The engines of one core tell nothing of those of
        others, which share bytes off chip only.
        """
        key = (before.kernel, launch.kernel, before.bases, launch.bases)
        if not launch.kernel.early or key in self.checked:
            return
        self.checked.add(key)
        shared = Space()
        own: list[dict[str, Space]] = []
        for core, share in enumerate(launch.kernel.shares):
            own.append({})
            part = replace(launch, kernel=share)
            for step, counters in early_loads(share):
                for number, view in enumerate(step.views):
                    offchip = view.memory == self.target.offchip
                    space = shared if offchip else own[core].setdefault(view.memory, Space())
                    place = self._place(part, step, number, counters, space)
                    if place is not None:
                        # Off chip the load reads, on chip it writes.
                        (place.reads if offchip else place.writes)[core] = (core, step, counters)
        for core, share in enumerate(before.kernel.shares):
            spaces = {**(own[core] if core < len(own) else {}), self.target.offchip: shared}
            self._meet(replace(before, kernel=share), core, spaces)

    def _meet(self, before: Launch, core: int, spaces: dict[str, Space]) -> None:
        """Raises MachineError for the first byte of one core of the launch before."""
        known: dict[object, list[Place]] = {}
        for step, counters in in_program_order(before.kernel):
            if not isinstance(step, Instruction):
                continue
            case = self.cases[step]
            region = None if case.only is not None else case.at(counters).region
            for number, view in enumerate(step.views):
                space, writes = spaces.get(view.memory), number == len(step.views) - 1
                if space is None or not space.places:
                    continue
                base = before.bases[view.buffer] + view.offset.at(counters)
                key = (view, writes, region, base)
                if key not in known:
                    part = touched(step, case, number, counters)
                    known[key] = [] if part is None else space.meeting(base, byte_runs(view.layout, part))
                for place in known[key]:
                    for other, load, at in _in_the_way(place, writes):
                        if other != core or load.engine != step.engine:
                            raise _race(before, step, counters, view, writes, load, at, place)

    def _place(self, launch: Launch, step: Instruction, number: int, counters: Counters, space: Space) -> Place | None:
        view, part = step.views[number], touched(step, self.cases[step], number, counters)
        if part is None:
            return None
        base = launch.bases[view.buffer] + view.offset.at(counters)
        check_place(launch, step, view, base, access(view.layout, part), counters)
        return space.place(base, byte_runs(view.layout, part))


def _in_the_way(place: Place, writes: bool) -> Iterator[tuple[int, Instruction, tuple[int, ...]]]:
    yield from place.writes.values()
    if writes:
        yield from place.reads.values()


def _race(
    before: Launch, step: Instruction, counters: Counters, view: View, writes: bool, load: Instruction,
    at: tuple[int, ...], place: Place,
) -> MachineError:  # fmt: skip
    reads = view.memory == load.views[0].memory
    return load.error(
        at,
        f"race: an early load {'reads' if reads else 'writes'} {load.views[0 if reads else 1].name}, bytes "
        f"[{place.low}, {place.high}) of '{view.memory}', while the launch before, of @{before.kernel.name}, may not "
        f"have ended: {step.place(counters)} {'writes' if writes else 'reads'} some of them as {view.name}",
        ("the other instruction", step.op.location),
    )
