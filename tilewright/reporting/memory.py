"""What lies where in each memory: how good the plans are, pictures, and what takes most at the peak."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from xdsl.dialects.builtin import FileLineColLoc

from tilewright.dialects.locations import parts
from tilewright.lowering.plan_report import MemoryPlan, Placed, plans_of
from tilewright.runtime.report import Json

from ..pictures.memory import map_of
from ..render import bytes_text, table
from .figures import figure
from .section import Part, Section, Subject

LARGEST = 5
"""Buffers named at the peak of a memory."""


def memory_section(subject: Subject) -> Section | None:
    """The plans of all memories; None where the program was not planned here."""
    planned = [snapshot for snapshot in subject.program.snapshots if snapshot.name == "plan"]
    if not planned:
        return None
    plans = plans_of(planned[-1].module)
    shown: list[Part] = [plans_table(plans), largest_table(plans), *(figure(map_of([plan])) for plan in plans)]
    return Section("memory", "What lies where in memory", shown, [plan_json(plan) for plan in plans])


def plans_table(plans: Sequence[MemoryPlan]) -> Table:
    """One row per plan: its peak against what any plan needs and what simpler ones would take."""
    columns = ("buffers", "peak", "alive at once", "fragmentation", "first fit", "one each")
    made = table("plan", "memory", *columns, right=columns)
    for plan in plans:
        counts = map(bytes_text, (plan.peak, plan.max_live))
        others = map(bytes_text, (plan.first_fit, plan.separate))
        made.add_row(plan.owner, plan.memory, str(len(plan.placed)), *counts, f"{plan.fragmentation:.1%}", *others)
    return made


def largest_table(plans: Sequence[MemoryPlan]) -> Table:
    """The largest buffers held when most bytes are."""
    made = table("largest at the peak", "plan", "memory", "bytes", "line", right=["bytes", "line"])
    for plan in plans:
        for one in plan.at_peak()[:LARGEST]:
            made.add_row(one.name, plan.owner, plan.memory, bytes_text(one.interval.size), _lines_of(one))
    return made


def _lines_of(one: Placed) -> str:
    """The lines of the program that a buffer stems from, as far as they are known."""
    places = parts(one.location) if one.location is not None else ()
    found = sorted({place.line.data for place in places if isinstance(place, FileLineColLoc)})
    return ", ".join(map(str, found))


def plan_json(plan: MemoryPlan) -> dict[str, Json]:
    """The figures of a plan as plain data, in bytes."""
    return {
        "owner": plan.owner,
        "memory": plan.memory,
        "buffers": len(plan.placed),
        "peak_bytes": plan.peak,
        "lower_bound_bytes": plan.max_live,
        "fragmentation": plan.fragmentation,
        "first_fit_bytes": plan.first_fit,
        "separate_bytes": plan.separate,
        "largest": [{"name": one.name, "bytes": one.interval.size} for one in plan.at_peak()[:LARGEST]],
    }
