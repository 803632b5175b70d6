"""Where the time goes: a timeline; kernels, engines, operations of the source and their classes; the roofline."""

from __future__ import annotations

from ..pictures.roofline import roofline
from ..pictures.timeline import timeline
from ..profile_tables import summary, tables
from .figures import figure, timeline_figure
from .section import Section, Subject


def profile_section(subject: Subject) -> Section | None:
    """What the simulation says of a program at the hardware level."""
    profile = subject.profile
    if profile is None:
        return None
    roof = roofline(profile)
    parts = [summary(profile), timeline_figure(timeline(profile)), *tables(profile), figure(roof)]
    return Section("profile", "Where the time goes", parts, {**profile.json(), "roofline_points": roof.data})
