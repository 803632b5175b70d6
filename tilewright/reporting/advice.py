"""What would make the program faster or more exact, the largest saving first."""

from __future__ import annotations

from ..advice import advice
from ..profiling import Profile
from ..render import table
from .section import Section, Subject


def advice_section(subject: Subject) -> Section | None:
    """The mistakes found at the hardware level, or that there are none."""
    if subject.result is None:
        return None
    found = advice(Profile.of(subject.program))
    title = "What would help"
    if not found:
        return Section("advice", title, ["Nothing worth changing was found."], [])
    listing = table("saves", "what", "seen", "do", "at", right=["saves"])
    for one in found:
        saving = f"{one.saving / subject.result.cycles:.0%}" if one.saving else ""
        listing.add_row(saving, one.rule, one.evidence, one.change, one.place.rpartition("/")[2])
    return Section("advice", title, [listing], [one.json() for one in found])
