"""A report: sections about one program, or about the differences between two, and its three forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path

from rich.console import Console, Group

from tilewright.ir.diagnostics import did_you_mean
from tilewright.runtime.report import Json, target_name

from ..errors import plain_error
from ..module import Module
from ..program import Program
from ..render import PLAIN_WIDTH
from .advice import shapes_section
from .differences import DIFFERENCES
from .parts import page, terminal
from .section import Section, Subject
from .sections import SECTIONS


@dataclass(frozen=True)
class Report:
    """What `tilewright.report` and `tilewright.diff` give. `str()` is the terminal's text; notebooks show the page."""

    title: str
    sections: tuple[Section, ...] = field(repr=False)

    def renderable(self) -> Group:
        """For a rich console."""
        return Group(*(item for section in self.sections for item in (*terminal(section), "")))

    def html(self) -> str:
        """One page that needs nothing else: no script, style or picture from elsewhere."""
        title = self.title
        links = "".join(f'<a href="#{escape(s.key)}">{escape(s.title)}</a>' for s in self.sections)
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
            f'<link rel="icon" href="data:,">\n<style>\n{_asset("page.css")}</style>\n</head>\n<body>\n'
            f"<header><h1>{escape(title)}</h1><nav>{links}</nav></header>\n<main>\n"
            + "\n".join(page(section) for section in self.sections)
            + f"\n</main>\n<script>\n{_asset('page.js')}{_asset('timeline.js')}</script>\n</body>\n</html>\n"
        )

    def json(self) -> dict[str, Json]:
        """Key of each section → its data."""
        return {section.key: section.data for section in self.sections}

    def __str__(self) -> str:
        stream = StringIO()
        Console(file=stream, width=PLAIN_WIDTH, highlight=False, markup=False, emoji=False).print(
            self.renderable(), crop=False
        )
        return stream.getvalue()

    def __repr__(self) -> str:
        return f"<tilewright.Report on {self.title}: {', '.join(section.key for section in self.sections)}>"

    def _repr_html_(self) -> str:
        """A frame of its own: the styles of the page are not to reach the notebook."""
        return f'<iframe srcdoc="{escape(self.html())}" style="width: 100%; height: 40em; border: 0"></iframe>'


def report(program: Program, sections: Sequence[str] = ()) -> Report:
    """Everything there is to say of a compiled program, or the named sections of it, in the report's order.

    Raises SourceError for a section that does not exist.
    """
    for name in sections:
        if name not in SECTIONS:
            hint = did_you_mean(name, SECTIONS) or f"there are {', '.join(SECTIONS)}"
            raise plain_error(f"a report has no section '{name}'; {hint}")
    subject = Subject(program)
    made = [make(subject) for key, make in SECTIONS.items() if not sections or key in sections]
    return Report(title_of(program), tuple(section for section in made if section is not None))


def advice_of(module: Module) -> Report | None:
    """What keeps a program from being compiled as it is: dimensions without a size; None where nothing does."""
    section = shapes_section(module)
    return None if section is None else Report(Path(module.source.file).name, (section,))


def diff(a: Program, b: Program) -> Report:
    """How two compiled programs differ: figures, kernels, memory, and the IR level by level."""
    first, second = Subject(a), Subject(b)
    made = [make(first, second) for make in DIFFERENCES]
    title = f"{title_of(a)} and {title_of(b)}"
    return Report(title, tuple(section for section in made if section is not None))


def title_of(program: Program) -> str:
    """The file and the target of a program."""
    return f"{Path(program.source.source.file).name} on {target_name(program.module)}"


def _asset(name: str) -> str:
    return files("tilewright.reporting").joinpath(name).read_text(encoding="utf-8")
