"""Where the time goes: kernels, engines, operations of the source and their classes."""

from __future__ import annotations

from ..profile_tables import summary, tables
from ..profiling import Profile
from .section import Section, Subject


def profile_section(subject: Subject) -> Section | None:
    """What the simulation says of a program at the hardware level."""
    if subject.result is None:
        return None
    profile = Profile.of(subject.program)
    return Section("profile", "Where the time goes", [summary(profile), *tables(profile)], profile.json())
