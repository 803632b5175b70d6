"""The program beside its baseline: one kernel per named operation."""

from __future__ import annotations

from rich.table import Table

from ..pictures.timeline import timeline
from ..profile_costs import NOTHING, Costs
from ..profile_tables import kernel_class_table, summary
from ..profiling import Profile
from ..render import bytes_text, table
from .figures import timeline_figure
from .section import Heading, Section, Subject


def baseline_section(subject: Subject) -> Section | None:
    """Both profiles side by side; None where there is no other one."""
    profile, program = subject.profile, subject.program
    twin = None if program.is_unfused else program.unfused_program
    if profile is None or twin is None:
        return None
    base = Profile.of(twin)
    parts = [
        classes_side_by_side(base, profile, "unfused", "fused"),
        Heading("The unfused program"), summary(base), timeline_figure(timeline(base)), kernel_class_table(base),
    ]  # fmt: skip
    return Section(
        "baseline", "Beside one kernel per operation", parts, {"unfused": base.json(), "fused": profile.json()}
    )


def classes_side_by_side(first: Profile, second: Profile, one: str, other: str) -> Table:
    """Per class of operation: engine cycles, bytes and waiting of two programs; the time of both in the last row."""
    columns = [f"{name} {what}" for what in ("cycles", "bytes", "waiting") for name in (one, other)]
    made = table("class of operation", *columns, right=columns)
    for kind in dict.fromkeys([*first.classes, *second.classes]):
        both = [profile.classes.get(kind, NOTHING) for profile in (first, second)]
        made.add_row(kind, *_figures(both))
    whole = [sum(profile.classes.values(), NOTHING) for profile in (first, second)]
    made.add_row("all engines", *_figures(whole))
    made.add_row("time", *(str(profile.result.cycles) for profile in (first, second)), "", "", "", "")
    return made


def _figures(both: list[Costs]) -> list[str]:
    return [
        *(str(costs.cycles) for costs in both), *(bytes_text(costs.bytes) for costs in both),
        *(str(costs.waited + costs.queued) for costs in both),
    ]  # fmt: skip
