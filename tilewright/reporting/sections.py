"""All sections of a report, in their order."""

from __future__ import annotations

from collections.abc import Callable

from .advice import advice_section
from .baseline import baseline_section
from .dataflow import dataflow_section
from .fusion import fusion_section
from .kernels import kernels_section
from .levels import levels_section
from .memory import memory_section
from .passes import passes_section
from .profile import profile_section
from .section import Section, Subject
from .traffic import traffic_section

SectionMaker = Callable[[Subject], "Section | None"]

SECTIONS: dict[str, SectionMaker] = {
    "traffic": traffic_section,
    "fusion": fusion_section,
    "kernels": kernels_section,
    "profile": profile_section,
    "dataflow": dataflow_section,
    "baseline": baseline_section,
    "advice": advice_section,
    "memory": memory_section,
    "levels": levels_section,
    "passes": passes_section,
}
"""Key of a section → what makes it, or None where it has nothing to say of a program."""
