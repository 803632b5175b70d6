"""A plan as a picture: time to the right, offsets upwards, one rectangle for each buffer."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hls_to_rgb
from html import escape

from tilewright.lowering.plan_report import MemoryPlan, Placed

WIDTH, HEIGHT = 720, 260
LEFT, TOP, BOTTOM = 90, 26, 30
_HUES = {"input": 210, "output": 140, "constant": 45}
_LABELLED = (64, 12)
"""Pixels that a rectangle has at least if its name is written into it."""


def plan_svg(plan: MemoryPlan) -> str:
    """An SVG element, complete in itself. The dashed line is the most bytes alive at once; a rectangle's title says
    what it is, its bytes and its times."""
    times = [one.interval.start for one in plan.placed] + [one.interval.end for one in plan.placed]
    begin, end = min(times, default=0), max(times, default=1)
    top = max(plan.peak, 1)
    across, up = WIDTH / max(end - begin, 1), HEIGHT / top

    def y(byte: int) -> float:
        return TOP + HEIGHT - byte * up

    shown = [_rectangle(number, one, begin, across, up) for number, one in enumerate(plan.placed)]
    title = f"{plan.memory} of {plan.owner}: " if plan.owner else ""
    summary = f"{title}peak {plan.peak} bytes, at most {plan.max_live} alive at once"
    marks = [(0, "0"), (plan.peak, str(plan.peak))]
    axis = "".join(
        f'<text x="{LEFT - 6}" y="{y(byte) + 4:.1f}" text-anchor="end">{label}</text>' for byte, label in marks
    )
    live = y(plan.max_live)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 10} {TOP + HEIGHT + BOTTOM}" '
        f'font-family="sans-serif" font-size="11" role="img"><title>{escape(summary)}</title>\n'
        f'<text x="{LEFT}" y="16">{escape(summary)}</text>\n'
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>\n'
        + "\n".join(shown)
        + f'\n<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{live:.1f}" y2="{live:.1f}" stroke="#c00" '
        f'stroke-dasharray="6 4"/>\n{axis}'
        f'<text x="{LEFT}" y="{TOP + HEIGHT + 16}">{begin}</text>'
        f'<text x="{LEFT + WIDTH}" y="{TOP + HEIGHT + 16}" text-anchor="end">{end}</text>\n</svg>\n'
    )


def page_svg(plans: Sequence[MemoryPlan]) -> str:
    """One picture of all plans, one below the other."""
    if len(plans) == 1:
        return plan_svg(plans[0])
    height, width = TOP + HEIGHT + BOTTOM, LEFT + WIDTH + 10
    inner = "".join(
        plan_svg(plan).replace("<svg ", f'<svg y="{number * height}" width="{width}" height="{height}" ', 1)
        for number, plan in enumerate(plans)
    )
    size = f'viewBox="0 0 {width} {max(len(plans), 1) * height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{inner}</svg>\n'


def _rectangle(number: int, one: Placed, begin: int, across: float, up: float) -> str:
    low = one.offset
    interval = one.interval
    x = LEFT + (interval.start - begin) * across
    width, height = (interval.end - interval.start) * across, interval.size * up
    high = TOP + HEIGHT - (low + interval.size) * up
    hue = _HUES.get(one.region, number * 137 % 360)  # neighbours in the list differ clearly
    colour = _colour(hue, 0.88 if one.region else 0.72)
    place = f"bytes {low} to {low + interval.size - 1}, time {interval.start} to {interval.end}"
    kind = f"{one.region} " if one.region else ""
    title = escape(f"{kind}{one.name}: {interval.size} bytes, {place}")
    box = (
        f'<rect x="{x:.2f}" y="{high:.2f}" width="{width:.2f}" height="{height:.2f}" '
        f'fill="{colour}" stroke="#333" stroke-width="0.5"><title>{title}</title></rect>'
    )
    if width < _LABELLED[0] or height < _LABELLED[1]:
        return box
    fitting = escape(one.name[: int(width / 7)])
    return f'{box}<text x="{x + 3:.2f}" y="{high + height / 2 + 4:.2f}" pointer-events="none">{fitting}</text>'


def _colour(hue: int, lightness: float) -> str:
    """As six digits: not every program that shows SVG knows `hsl`."""
    return "#" + "".join(f"{round(part * 255):02x}" for part in hls_to_rgb(hue / 360, lightness, 0.6))
