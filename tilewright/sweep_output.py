"""Points of a sweep as a table, CSV, JSON and a picture."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from tilewright.runtime.report import Json

from .errors import plain_error
from .render import bytes_text, count_text, table
from .sweeping import Point, pareto


def points_table(points: Sequence[Point]) -> Table:
    """Every point; those that nothing beats in both bytes and cycles are marked."""
    names = [name for name, _ in points[0].settings]
    left_out = any(point.without for point in points)
    best = pareto(points)
    made = table(
        *names,
        *(["without"] if left_out else []),
        "off-chip",
        "cycles",
        "kernels",
        "",
        right=("off-chip", "cycles", "kernels"),
    )
    for point in points:
        texts = [value for _, value in point.settings] + ([point.without] if left_out else [])
        if point.bytes is None or point.cycles is None:
            made.add_row(*texts, "", "", "", point.reason)
        else:
            mark = "best for its bytes" if point in best else ""
            made.add_row(*texts, bytes_text(point.bytes), count_text(point.cycles), str(point.kernels), mark)
    return made


def points_json(points: Sequence[Point]) -> Mapping[str, Json]:
    """Every point with its settings; `pareto`: whether nothing beats it in both bytes and cycles."""
    best = pareto(points)
    rows: list[Json] = [
        {
            "settings": dict(point.settings),
            "without": point.without,
            "bytes": point.bytes,
            "cycles": point.cycles,
            "kernels": point.kernels,
            "reason": point.reason,
            "pareto": point in best,
        }
        for point in points
    ]
    return {"points": rows}


def points_csv(points: Sequence[Point]) -> str:
    """One line for each point, with a header."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [name for name, _ in points[0].settings]
    writer.writerow([*names, "without", "bytes", "cycles", "kernels", "pareto", "reason"])
    best = pareto(points)
    for point in points:
        figures = ["" if figure is None else figure for figure in (point.bytes, point.cycles, point.kernels)]
        values = [value for _, value in point.settings]
        writer.writerow([*values, point.without, *figures, int(point in best), point.reason])
    return stream.getvalue()


def picture(points: Sequence[Point], kind: str) -> bytes:
    """Cycles over bytes, with the line of the points that nothing beats. `kind`: svg, png or pdf.

    Raises SourceError without matplotlib, or where no point has figures.
    """
    best = pareto(points)
    if not best:
        raise plain_error("there is nothing to draw: no point compiles")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise plain_error("a picture needs the package matplotlib: pip install 'tilewright[plots]'") from None
    figure: Any = Figure(figsize=(8, 5), layout="constrained")  # its own types are not known to the checker
    axes: Any = figure.add_subplot()
    known = [point for point in points if point.bytes is not None]
    axes.scatter([point.bytes or 0 for point in known], [point.cycles or 0 for point in known], color="0.6")
    axes.plot([point.bytes or 0 for point in best], [point.cycles or 0 for point in best], "o-")
    for point in best:
        settings = ", ".join(f"{name.split('.')[-1]}={value}" for name, value in point.settings)
        label = f"{settings} without {point.without}" if point.without else settings
        axes.annotate(label, (point.bytes or 0, point.cycles or 0), (4, 4), textcoords="offset points", fontsize=7)
    axes.set(xlabel="off-chip bytes", ylabel="cycles", xscale="log", yscale="log")
    stream = io.BytesIO()
    figure.savefig(stream, format=kind)
    return stream.getvalue()
