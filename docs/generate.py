"""The pages that follow from the code, made while the site is built (a hook of mkdocs): they are never stale."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from tilewright.dialects.graph import Graph
from tilewright.dialects.hardware import Hardware
from tilewright.dialects.tile import Tile
from tilewright.lowering.pipeline import LEVELS, PASSES
from xdsl.dialects.builtin import UnregisteredOp
from xdsl.irdl import IRDLOperation, OptAttributeDef, OptPropertyDef

CLASSES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "Primitives": (
        "What everything is decomposed into; passes below know only these.",
        ("graph_primitives",),
        "",
    ),
    "Elementwise": (
        "One scalar operator on every element; operands broadcast as in NumPy.",
        ("graph_elementwise",),
        "They cost bytes, not work: fused with what makes or reads their operands they are free of traffic. On a "
        "vector engine with start-up cycles, larger tiles pay.",
    ),
    "Reduction": (
        "Along axes that become 1 or go.",
        ("graph_norm:reduce",),
        "Whole rows in a tile (`resident`) read each element once; where they do not fit, the order of the passes "
        "counts (`online`, `multipass`).",
    ),
    "Normalisation": (
        "Reductions along an axis and what is done with their results.",
        ("graph_norm:",),
        "As for reductions: rows that fit are read once. The tile of the other axes is what is left to choose.",
    ),
    "Products": (
        "Matrix products and convolutions.",
        ("graph_linear",),
        "Tiles of all three axes against one another: a larger tile of m reads the right operand less often, one of n "
        "the left one; the accumulator takes m × n. Inner tiles are what the matrix engine's memories hold.",
    ),
    "Layout": (
        "The same elements in other places.",
        ("graph_shape",),
        "Most of them become index maps of what reads them and cost nothing; a move that transposes needs an engine "
        "that can.",
    ),
    "Indexing and scans": (
        "Elements by positions that are data, and running results.",
        ("graph_index",),
        "What is read depends on the data: bytes are counted at their upper bound.",
    ),
    "Windows": (
        "Reductions over windows that slide.",
        ("graph_window",),
        "Neighbouring windows overlap: a tile that holds more of them reads each element less often.",
    ),
    "Fused": (
        "A kernel to be; written by `fuse`, or by hand.",
        ("graph_fused",),
        "Its `schedule`: tile sizes, order of loops, what is held, copies of buffers.",
    ),
}


def operations_page() -> str:
    """Every operation of the three dialects."""
    parts = ["# Operations\n", "What each of them means exactly is in [semantics.md](semantics.md).\n"]
    left = [op for op in Graph.operations if issubclass(op, IRDLOperation)]
    parts.append("## Graph level\n")
    for title, (what, homes, focus) in CLASSES.items():
        members = [op for op in left if any(_belongs(op, home) for home in homes)]
        left = [op for op in left if op not in members]
        parts.append(f"### {title}\n\n{what}" + (f" *Tuning*: {focus}" if focus else "") + "\n")
        parts.append(_table(members))
    if left:  # of a module that no class above names
        parts += ["### Others\n", _table(left)]
    for title, dialect in (("Tile level", Tile), ("Hardware level", Hardware)):
        ops = [op for op in dialect.operations if issubclass(op, IRDLOperation) and not issubclass(op, UnregisteredOp)]
        parts += [f"## {title}\n", _table(ops)]
    return "\n".join(parts)


def _belongs(op: type[IRDLOperation], home: str) -> bool:
    module, _, prefix = home.partition(":")
    return op.__module__.endswith(f".{module}") and op.name.startswith(f"graph.{prefix}")


def _table(ops: list[type[IRDLOperation]]) -> str:
    rows = ["| operation | attributes | what it does |", "|---|---|---|"]
    for op in ops:
        doc = inspect.cleandoc(op.__doc__ or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        rows.append(f"| `{op.name}` | {', '.join(_attributes(op))} | {doc} |")
    return "\n".join(rows) + "\n"


def _attributes(op: type[IRDLOperation]) -> Iterator[str]:
    definition = op.get_irdl_definition()
    for name, attribute in {**definition.properties, **definition.attributes}.items():
        optional = isinstance(attribute, OptPropertyDef | OptAttributeDef)
        yield f"*{name}*" if optional else f"`{name}`"


def passes_page() -> str:
    """Every pass: its options and what its docstring says."""
    ends = {last: level for level, last in LEVELS.items()}
    parts = ["# Passes\n", "In the order of the pipeline. Each can be run alone: `tilewright opt FILE -p NAME`.\n"]
    for name, cls in PASSES.items():
        options = [f"`{f.name}` ({f.type}, {str(f.default).lower()})" for f in fields(cls)]
        end = f" The last of the {ends[name]} level." if name in ends else ""
        parts.append(f"## {name}\n\nOptions: {', '.join(options) or 'none'}.{end}\n")
        parts.append(f"```text\n{inspect.cleandoc(cls.__doc__ or '')}\n```\n")
    return "\n".join(parts)


PAGES = {"operations.md": operations_page, "passes.md": passes_page}


def on_files(files: Any, config: Any) -> Any:
    """mkdocs calls this with the pages it has found."""
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    return files
