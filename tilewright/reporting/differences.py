"""How two programs differ: the sections of `tilewright diff`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from tilewright.ir.source import print_module
from tilewright.runtime.report import Json

from ..program import Program
from ..render import bytes_text, table, tiles_text
from .passes import diff_html, text_diff
from .section import Heading, Html, Part, Section, Subject


def figures_difference(a: Subject, b: Subject) -> Section | None:
    """Bytes, cycles and memory of both, where both can be executed."""
    if a.figures is None or b.figures is None:
        return None
    made = table("figure", "first", "second", "change", right=["first", "second", "change"])
    data: dict[str, Json] = {}
    first, second = _flat(a.figures), _flat(b.figures)
    for name in dict.fromkeys([*first, *second]):
        one, two = first.get(name), second.get(name)
        show = str if "cycles" in name else bytes_text
        made.add_row(name, *("none" if n is None else show(n) for n in (one, two)), _change(one, two))
        data[name] = [one, two]
    return Section("figures", "Traffic, time and memory", [made], data)


def _flat(figures: dict[str, Json]) -> dict[str, int]:
    """The counts of a run by one name each. A target lacks the memories, links and engines that only another has."""
    traffic = cast("dict[str, int]", figures["traffic"])
    links = cast("dict[str, int]", cast("dict[str, Json]", figures["traffic"])["links"])
    memories = cast("dict[str, dict[str, int]]", figures["memory"])
    engines = cast("dict[str, dict[str, int]]", figures["engines"])
    return {
        "read off chip": traffic["read_bytes"],
        "written off chip": traffic["write_bytes"],
        "intermediates off chip": cast(int, figures["workspace_bytes"]),
        "cycles": cast(int, figures["cycles"]),
        **{f"moved {name}": count for name, count in sorted(links.items())},
        **{f"highest byte of {name}": memory["peak_bytes"] for name, memory in memories.items()},
        **{f"busy cycles of {name}": engine["busy_cycles"] for name, engine in engines.items()},
    }


def _change(one: int | None, two: int | None) -> str:
    if one is None or two is None:
        return ""
    if one == two:
        return "="
    return f"{two / one - 1:+.1%}" if one else "new"


def kernels_difference(a: Subject, b: Subject) -> Section | None:
    """Kernels of both side by side, those of one name in one row."""
    if a.figures is None or b.figures is None:
        return None
    first, second = _kernels(a.figures), _kernels(b.figures)
    made = table("kernel", "", "strategy", "tiles", "bytes", "cycles", right=["bytes", "cycles"])
    data: list[Json] = []
    for name in dict.fromkeys([*first, *second]):
        one, two = first.get(name), second.get(name)
        data.append({"kernel": name, "first": one, "second": two})
        if one == two and one is not None:
            made.add_row(name, "both", *_row(one))
            continue
        for which, kernel in (("first", one), ("second", two)):
            made.add_row(name if which == "first" else "", which, *(_row(kernel) if kernel else ("none", "", "", "")))
    return Section("kernels", "Kernels", [made], data)


def _kernels(figures: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """Name → figures; of kernels that are launched more than once the first launch."""
    found: dict[str, dict[str, Json]] = {}
    for kernel in cast("list[dict[str, Json]]", figures["kernels"]):
        found.setdefault(cast(str, kernel["name"]), kernel)
    return found


def _row(kernel: Mapping[str, Json]) -> tuple[str, str, str, str]:
    moved = cast(int, kernel["read_bytes"]) + cast(int, kernel["write_bytes"])
    strategy = cast("str | None", kernel["strategy"]) or ""
    return strategy, tiles_text(kernel["schedule"]), bytes_text(moved), str(kernel["cycles"])


def levels_difference(a: Subject, b: Subject) -> Section:
    """The text of each level that both have reached, as a unified diff."""
    parts: list[Part] = []
    data: dict[str, Json] = {}
    first, second = _texts(a.program), _texts(b.program)
    for level in (level for level in first if level in second):
        diff = text_diff(first[level].splitlines(), second[level].splitlines())
        data[level] = None if diff is None else [*diff]
        parts.append(Heading(f"{level} level"))
        if diff is None:
            parts.append("The texts differ, and are too long to be compared line by line.")
        elif not diff:
            parts.append("The same.")
        else:
            parts.append(Html(diff_html(diff), "\n".join(diff)))
    for level in sorted({*first} ^ {*second}):
        parts.append(f"Only the {'first' if level in first else 'second'} program has a {level} level.")
    return Section("levels", "IR by level", parts, data)


def _texts(program: Program) -> dict[str, str]:
    """Level → the text at its end."""
    return {snapshot.level: print_module(snapshot.module) for snapshot in program.snapshots}


DIFFERENCES: tuple[Callable[[Subject, Subject], Section | None], ...] = (
    figures_difference,
    kernels_difference,
    levels_difference,
)
"""What makes the sections, in their order."""
