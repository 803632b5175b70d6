"""What lies where in a memory: time to the right, offsets upwards, one rectangle for each buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.lowering.plan_interval import Interval
from tilewright.lowering.plan_report import MemoryPlan, Placed, plans_of
from tilewright.runtime.machine.trace import Use
from tilewright.runtime.report import Json

from ..profiling import Profile
from .picture import Picture
from .svg import INK, STRONG, Drawing, colour, distinct, fitting, stacked

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 260, 90, 26, 26
_HUES = {"input": 210, "output": 140, "constant": 45}
_LABELLED = (64, 12)
"""Pixels that a rectangle has at least if its name is written into it."""


def memory(profile: Profile) -> Picture:
    """The plans of a program. One that starts below the planning pass has none: its buffers are shown from the first
    cycle in which an instruction touches them to the last, a map per kernel and memory."""
    planned = [snapshot for snapshot in profile.program.snapshots if snapshot.name == "plan"]
    return map_of(plans_of(planned[-1].module) if planned else list(_used(profile)))


def map_of(plans: Sequence[MemoryPlan]) -> Picture:
    """Of plans, one below the other. `time` counts positions in list order, or cycles."""
    maps: list[Json] = [_json(plan) for plan in plans]
    return Picture("memory", "Memory map", {"maps": maps}, stacked([plan_drawing(plan) for plan in plans]))


def _used(profile: Profile) -> Iterator[MemoryPlan]:
    groups: dict[tuple[str, str], dict[str, Use]] = {}
    for use in profile.timeline.used:
        buffers = groups.setdefault((use.kernel, use.buffer.memory), {})
        buffers.setdefault(f"{use.buffer.name} at {use.buffer.offset}", use)  # of several launches the first
    memories = profile.program.target.memories
    for (kernel, where), uses in groups.items():
        placed = [
            Placed(use.buffer.name, Interval(use.start, use.end, use.buffer.size), use.buffer.offset or 0)
            for use in uses.values()
        ]
        yield MemoryPlan(kernel, where, tuple(placed), memories[where].bytes)


def _json(plan: MemoryPlan) -> dict[str, Json]:
    buffers: list[Json] = [
        {
            "name": one.name, "region": one.region, "offset": one.offset, "bytes": one.interval.size,
            "start": one.interval.start, "end": one.interval.end,
        }
        for one in plan.placed
    ]  # fmt: skip
    return {
        "owner": plan.owner, "memory": plan.memory, "capacity_bytes": plan.capacity, "peak_bytes": plan.peak,
        "lower_bound_bytes": plan.max_live, "buffers": buffers,
    }  # fmt: skip


def plan_drawing(plan: MemoryPlan) -> Drawing:
    """The dashed line is the most bytes alive at once; a rectangle's title says what it is, its bytes and its times."""
    times = [one.interval.start for one in plan.placed] + [one.interval.end for one in plan.placed]
    begin, end = min(times, default=0), max(times, default=1)
    top = max(plan.peak, 1)
    across, up = WIDTH / max(end - begin, 1), HEIGHT / top

    title = f"{plan.memory} of {plan.owner}: " if plan.owner else ""
    summary = f"{title}peak {plan.peak} bytes, at most {plan.max_live} alive at once"
    drawing = Drawing(LEFT + WIDTH + 10, TOP + HEIGHT + BOTTOM, summary)
    drawing.text(LEFT, 16, summary)
    for number, one in enumerate(plan.placed):
        _rectangle(drawing, number, one, begin, across, up)
    for x in (LEFT, LEFT + WIDTH):
        drawing.line(x, TOP, x, TOP + HEIGHT)
    for y in (TOP, TOP + HEIGHT):
        drawing.line(LEFT, y, LEFT + WIDTH, y)
    live = TOP + HEIGHT - plan.max_live * up
    drawing.line(LEFT, live, LEFT + WIDTH, live, STRONG, dashed=True)
    for byte in (0, plan.peak):
        drawing.text(LEFT - 6, TOP + HEIGHT - byte * up + 4, str(byte), "end")
    drawing.text(LEFT, TOP + HEIGHT + 16, str(begin))
    drawing.text(LEFT + WIDTH, TOP + HEIGHT + 16, str(end), "end")
    return drawing


def _rectangle(drawing: Drawing, number: int, one: Placed, begin: int, across: float, up: float) -> None:
    interval = one.interval
    x = LEFT + (interval.start - begin) * across
    width, height = (interval.end - interval.start) * across, interval.size * up
    high = TOP + HEIGHT - (one.offset + interval.size) * up
    fill = colour(_HUES.get(one.region, distinct(number)), 0.88 if one.region else 0.72)
    place = f"bytes {one.offset} to {one.offset + interval.size - 1}, time {interval.start} to {interval.end}"
    kind = f"{one.region} " if one.region else ""
    drawing.rect(x, high, width, height, fill, f"{kind}{one.name}: {interval.size} bytes, {place}", "#333")
    if width >= _LABELLED[0] and height >= _LABELLED[1]:
        drawing.text(x + 3, high + height / 2 + 4, fitting(one.name, width - 4), fill=INK)
