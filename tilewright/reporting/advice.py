"""What would make the program faster or more exact, the largest saving first; what keeps it from being compiled."""

from __future__ import annotations

from ..advice import Advice, advice, dynamic_shapes
from ..module import Module
from ..render import table
from .section import Section, Subject

TITLE = "What would help"


def advice_section(subject: Subject) -> Section | None:
    """The mistakes found at the hardware level, or that there are none."""
    profile = subject.profile
    if profile is None:
        return None
    found = advice(profile)
    if not found:
        return Section("advice", TITLE, ["Nothing worth changing was found."], [])
    return _listing(found, profile.result.cycles)


def shapes_section(module: Module) -> Section | None:
    """Of a program that cannot be compiled yet: the dimensions that have no size; None where all have one."""
    found = dynamic_shapes(module)
    return _listing(found, 1) if found else None


def _listing(found: list[Advice], cycles: int) -> Section:
    listing = table("saves", "what", "seen", "do", "at", right=["saves"])
    for one in found:
        saving = f"{one.saving / cycles:.0%}" if one.saving else ""
        listing.add_row(saving, one.rule, one.evidence, one.change, one.place.rpartition("/")[2])
    return Section("advice", TITLE, [listing], [one.json() for one in found])
