"""What a section is, and what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from rich.table import Table

from tilewright.runtime.machine import MachineResult
from tilewright.runtime.report import Json, machine_figures

from ..profiling import Profile
from ..program import Program


@dataclass(frozen=True)
class Html:
    """A fragment of HTML. `text` stands for it in a terminal; the fragment is trusted: escape what goes into it."""

    html: str = field(repr=False)
    text: str = ""


@dataclass(frozen=True)
class Heading:
    """Begins a part of a section that is about one thing, a kernel say."""

    text: str


Part: TypeAlias = "str | Heading | Table | Html"
"""A paragraph, a heading, a table, or a fragment."""


@dataclass(frozen=True)
class Section:
    """`key` names it on the command line, in the JSON and in the page; `data` are its figures as plain data."""

    key: str
    title: str
    parts: Sequence[Part]
    data: Json = None


@dataclass(frozen=True)
class Subject:
    """What a report is about. Costly figures are worked out once, when a section first asks."""

    program: Program

    @cached_property
    def result(self) -> MachineResult | None:
        """What the machine counts without data; None where the program was not compiled to the hardware level."""
        return self.profile.result if self.profile is not None else None

    @cached_property
    def profile(self) -> Profile | None:
        """Where the time goes; None where the program was not compiled to the hardware level."""
        return Profile.of(self.program) if self.program.level == "hardware" else None

    @cached_property
    def figures(self) -> dict[str, Json] | None:
        """What `tilewright run --json` says, but for outputs; None where the program is not at the hardware level."""
        if self.result is None:
            return None
        unfused, bounds = self.program.unfused, self.program.compulsory
        figures = machine_figures(self.program.module, self.result)
        figures["unfused"] = None if unfused is None else unfused.json()
        figures["compulsory_bytes"] = None if bounds is None else sum(bounds)
        return figures
