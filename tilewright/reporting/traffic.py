"""The figures of the whole program against its bounds."""

from __future__ import annotations

from typing import cast

from rich.table import Table

from tilewright.dialects.cost import chip_rate
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import Target
from tilewright.runtime.report import Json, off_chip_bytes

from ..render import bytes_text, cycles_text, table, traffic_table
from .section import Section, Subject


def traffic_section(subject: Subject) -> Section | None:
    """Bytes and cycles, what they are bounded by, and how full the memories are."""
    figures = subject.figures
    if figures is None:
        return None
    bounds = cycle_bounds(subject, figures)
    unfused = subject.program.is_unfused
    parts = [
        traffic_table(figures, unfused),
        cycles_text(figures, unfused),
        *([_bounds(bounds)] if bounds else []),
        _memories(figures),
    ]
    return Section("traffic", "Traffic, time and memory against their bounds", parts, {**figures, "bounds": bounds})


def cycle_bounds(subject: Subject, figures: dict[str, Json]) -> dict[str, Json]:
    """What the cycles cannot go below, by what would have to be faster.

    The off-chip port: compulsory bytes, and the bytes moved, over its rate. Each engine: the cycles it is busy.
    """
    result, target = subject.result, subject.program.target
    assert result is not None
    busiest = max(result.engine_busy, key=lambda name: result.engine_busy[name], default=None)
    found: dict[str, Json] = {}
    rate = _rate(target)
    if rate is not None:
        if figures["compulsory_bytes"] is not None:
            found["compulsory bytes through the port"] = int(cast(int, figures["compulsory_bytes"]) / rate)
        found["bytes moved through the port"] = int(sum(off_chip_bytes(result.links, target)) / rate)
    if busiest is not None:
        found[f"work of the busiest engine, {busiest}"] = result.engine_busy[busiest]
    return found


def _rate(target: Target) -> float | None:
    try:
        return float(chip_rate(target))
    except UserError:
        return None


def _bounds(bounds: dict[str, Json]) -> Table:
    made = table("cycles cannot go below", "cycles", right=["cycles"])
    for name, cycles in bounds.items():
        made.add_row(name, str(cycles))
    return made


def _memories(figures: dict[str, Json]) -> Table:
    columns = ("highest byte used", "alive at once", "there are", "full")
    made = table("memory", *columns, right=columns)
    for name, counts in cast("dict[str, dict[str, int]]", figures["memory"]).items():
        peak, bound, capacity = (counts[f"{key}_bytes"] for key in ("peak", "lower_bound", "capacity"))
        made.add_row(name, *map(bytes_text, (peak, bound, capacity)), f"{peak / capacity:.0%}")
    return made
