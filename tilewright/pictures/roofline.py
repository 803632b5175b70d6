"""The roofline of a program: a dot per kernel and computing engine, on logarithmic axes."""

from __future__ import annotations

from math import ceil, floor, log10

from ..profiling import Profile
from ..roofline import Point, Roofline
from .picture import Picture
from .svg import FAINT, Drawing, colour, distinct

WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 640, 320, 70, 26, 44, 150
MARGIN = 1.5
"""How far the axes reach beyond the outermost dot, as a factor."""


def roofline(profile: Profile) -> Picture:
    """Operations per cycle over operations per off-chip byte; `points` are below the roof or on it."""
    found = Roofline.of(profile)
    return Picture("roofline", "Roofline", found.json(), _drawing(found, profile.program.target.name))


def _drawing(found: Roofline, target: str) -> Drawing:
    title = f"operations per cycle over operations per byte off chip, {target}"
    drawing = Drawing(LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM, title)
    drawing.text(LEFT, 16, title)
    ridges = {engine: ceiling / found.slope for engine, ceiling in found.ceilings.items()}
    xs = [x for x in (*ridges.values(), *(p.intensity for p in found.points)) if x]
    ys = [y for y in (*found.ceilings.values(), *(p.rate for p in found.points)) if y]
    left, right = _decades(xs)
    low, high = _decades(ys)

    def x(value: float) -> float:
        return LEFT + (log10(value) - left) / (right - left) * WIDTH

    def y(value: float) -> float:
        return TOP + HEIGHT - (log10(value) - low) / (high - low) * HEIGHT

    for power in range(left, right + 1):
        drawing.line(x(10.0**power), TOP, x(10.0**power), TOP + HEIGHT, FAINT, 0.4)
        drawing.text(x(10.0**power), TOP + HEIGHT + 16, f"{10.0**power:g}", "middle")
    for power in range(low, high + 1):
        drawing.line(LEFT, y(10.0**power), LEFT + WIDTH, y(10.0**power), FAINT, 0.4)
        drawing.text(LEFT - 6, y(10.0**power) + 4, f"{10.0**power:g}", "end")
    drawing.text(LEFT + WIDTH / 2, TOP + HEIGHT + 34, "operations per byte off chip", "middle")
    hues = {engine: distinct(number) for number, engine in enumerate(found.ceilings)}
    for engine, ceiling in found.ceilings.items():
        ridge, shade = ridges[engine], colour(hues[engine], 0.5)
        start = max(10.0**left, 10.0**low / found.slope)
        drawing.line(x(start), y(start * found.slope), x(ridge), y(ceiling), shade, 1.5)
        drawing.line(x(ridge), y(ceiling), LEFT + WIDTH, y(ceiling), shade, 1.5)
        drawing.text(LEFT + WIDTH + 6, y(ceiling) + 4, f"{engine} {ceiling:.4g}/cycle")
    for point in found.points:
        place = x(point.intensity) if point.intensity else LEFT + WIDTH
        drawing.circle(place, y(point.rate), 5, colour(hues[point.engine], 0.6), _describe(point))
    return drawing


def _describe(point: Point) -> str:
    intensity = "nothing off chip" if point.intensity is None else f"{point.intensity:.4g} operations per byte"
    reached = f"{point.rate:.4g} operations per cycle, {point.rate / point.roof:.0%} of what {point.bound} allows"
    return f"{point.kernel} on {point.engine}\n{intensity}\n{reached}"


def _decades(values: list[float]) -> tuple[int, int]:
    """Powers of ten around values, with a margin."""
    low, high = floor(log10(min(values, default=1) / MARGIN)), ceil(log10(max(values, default=1) * MARGIN))
    return low, max(high, low + 1)
