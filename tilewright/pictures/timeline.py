"""What each engine does when: a lane per engine, one for kernels.

The page draws the figures itself, to be zoomed into (reporting/timeline.js); the drawing here is for files. Both draw
what is narrower than a pixel together with its neighbours, so that the number of spans does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.runtime.machine.trace import KERNELS, Span
from tilewright.runtime.report import Json

from ..profiling import Profile
from .picture import Picture
from .svg import INK, Drawing, colour, distinct, fitting

WIDTH, LEFT, LANE, GAP, TOP, BOTTOM = 1000, 80, 20, 4, 26, 24
WAIT = "#8883"
KINDS = ("kernel", "instruction", "loop", "repeat", "wait")


@dataclass(frozen=True)
class Bar:
    """A span, or neighbours that are drawn as one (`span` is None): `busy` cycles of [start, end)."""

    start: int
    end: int
    busy: int
    count: int
    span: Span | None


def timeline(profile: Profile) -> Picture:
    """Spans of kernels and engines in cycles: [lane, start, end, step, bytes, counters…]; `steps` says what. Of several
    cores the first."""
    trace = profile.timeline
    lanes = [KERNELS, *trace.lanes]
    steps: dict[tuple[str, str, str, tuple[str, ...]], int] = {}
    spans: list[Json] = []
    shown = [span for span in trace.spans if span.core == 0]
    for span in shown:
        key = (span.name, span.kind, span.place, tuple(span.counters))
        step = steps.setdefault(key, len(steps))
        spans.append([span.lane, span.start, span.end, step, span.args.get("bytes", 0), *span.counters.values()])
    hues = hues_of(shown)
    data: dict[str, Json] = {
        "cycles": profile.result.cycles,
        "clock_hz": profile.program.target.clock_hz,
        "lanes": [*lanes],
        "steps": [
            {"name": name, "kind": kind, "place": place, "counters": [*counters], "hue": hues[place or name]}
            for name, kind, place, counters in steps
        ],
        "spans": spans,
    }
    title = f"{profile.result.cycles} cycles on {profile.program.target.name}"
    return Picture("timeline", "Timeline", data, _drawing(shown, lanes, profile.result.cycles, hues, title))


def hues_of(spans: Sequence[Span]) -> dict[str, int]:
    """A hue for each place in the source, or name where there is none."""
    keys = dict.fromkeys(span.place or span.name for span in spans)
    return {key: distinct(number) for number, key in enumerate(keys)}


def bars(spans: Sequence[Span], cycles: float) -> Iterator[Bar]:
    """Spans of one lane, in order; those shorter than `cycles` together, up to so many cycles each time."""
    group: list[Span] = []
    for span in spans:
        if group and (span.end - group[0].start > cycles or span.end - span.start >= cycles):
            yield _bar(group)
            group = []
        group.append(span)
    if group:
        yield _bar(group)


def _bar(group: Sequence[Span]) -> Bar:
    busy = sum(span.end - span.start for span in group)
    return Bar(group[0].start, group[-1].end, busy, len(group), group[0] if len(group) == 1 else None)


def _drawing(spans: Sequence[Span], lanes: Sequence[str], cycles: int, hues: dict[str, int], title: str) -> Drawing:
    height = TOP + len(lanes) * (LANE + GAP) + BOTTOM
    drawing = Drawing(LEFT + WIDTH + 10, height, title)
    drawing.text(LEFT, 16, title)
    scale = WIDTH / max(cycles, 1)
    for number, lane in enumerate(lanes):
        y = TOP + number * (LANE + GAP)
        drawing.text(LEFT - 6, y + LANE - 6, lane, "end")
        drawing.line(LEFT, y + LANE, LEFT + WIDTH, y + LANE)
        mine = sorted((span for span in spans if span.lane == number), key=lambda span: span.start)
        for waits in (True, False):  # waits apart: they are drawn fainter
            for bar in bars([span for span in mine if (span.kind == "wait") == waits], 1 / scale):
                _draw(drawing, bar, y, scale, hues, waits)
    base = TOP + len(lanes) * (LANE + GAP) + 14
    drawing.text(LEFT, base, "0")
    drawing.text(LEFT + WIDTH, base, f"{cycles} cycles", "end")
    return drawing


def _draw(drawing: Drawing, bar: Bar, y: float, scale: float, hues: dict[str, int], waits: bool) -> None:
    x, width = LEFT + bar.start * scale, max((bar.end - bar.start) * scale, 0.3)
    span = bar.span
    if span is None:
        share = bar.busy / (bar.end - bar.start)
        title = f"{bar.count} {'waits' if waits else 'instructions'}, {bar.busy} cycles"
        drawing.rect(x, y + LANE * (1 - share), width, LANE * share, WAIT if waits else "#8889", title)
        return
    fill = WAIT if waits else colour(hues[span.place or span.name], 0.85 if span.kind == "repeat" else 0.7)
    drawing.rect(x, y, width, LANE, fill, describe(span))
    label = fitting(span.name, width - 4)
    if label and not waits:
        drawing.text(x + 2, y + LANE - 6, label, fill=INK)


def describe(span: Span) -> str:
    """What a span is, in words."""
    at = ", ".join(f"{name}={value}" for name, value in span.counters.items())
    moved = f"{span.args['bytes']} bytes" if "bytes" in span.args else ""
    cycles = f"{span.end - span.start} cycles from {span.start}"
    return "\n".join(part for part in (span.name, span.place, at, cycles, moved) if part)
