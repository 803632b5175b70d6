"""Libraries of custom operators: files whose private functions are looked for in programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_functions import has_graph_work
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.tile import KernelOp
from tilewright.dialects.verify import verify_module
from tilewright.ir.source import SourceMap, load_module
from tilewright.lowering.handwritten import check_kernels
from tilewright.lowering.inline import inline_calls
from tilewright.lowering.link import instantiate_calls, link, operators_of

from .errors import diagnosed


@dataclass(frozen=True)
class Library:
    """Operators, each a private function with its reference logic, and the tile-level kernels that they name."""

    op: ModuleOp = field(repr=False)
    source: SourceMap

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of its operators, in the order in which they are looked for."""
        return tuple(function.sym_name.data for function in operators_of(self.op))


def read_library(source: str | Path) -> Library:
    """Reads a library from a file, or from a text if the string looks like one.

    Raises SourceError for what cannot be read, holds no operator, or has operators that can never be used: one that
    calls itself, takes its values from a file, or names a kernel of other types.
    """
    op, source_map = load_module(source)
    with diagnosed(source_map.texts):
        verify_module(op)
        operators = operators_of(op)
        if not operators:
            raise UserError(f"there is no operator in '{source_map.file}': a private function with a body", op.location)
        for function in operators:
            for inner in function.walk():
                _check_op(inner)
        check_kernels(op)
        trial = op.clone()
        instantiate_calls(trial)
        inline_calls(trial, kernels=False)
    return Library(op, source_map)


def _check_op(op: Operation) -> None:
    if op.name == "graph.weight":
        raise UserError("an operator has no stored weights: it takes them as an argument", op.location)
    if isinstance(op, FusedOp):
        raise UserError("an operator says what to compute, not in which groups: write the operations", op.location)


def with_texts(source: SourceMap, libraries: Sequence[Library]) -> SourceMap:
    """Where a program comes from, and the texts of its libraries for messages about them."""
    texts = {name: text for library in libraries for name, text in library.source.texts.items()}
    return replace(source, texts={**texts, **source.texts})


def add_libraries(module: ModuleOp, libraries: Sequence[Library]) -> None:
    """Adds the operators of libraries to a program in place. Raises UserError for one below the graph level."""
    kernels = any(isinstance(op, KernelOp) for op in module.ops)
    grouped = any(isinstance(op, FusedOp) and op.schedule is not None for op in module.walk())
    if grouped or not has_graph_work(module):
        what = (
            "grouped into kernels already" if grouped else "below the graph level" if kernels else "without operations"
        )
        raise UserError(f"libraries of operators are for programs at the graph level; this one is {what}")
    link(module, [library.op for library in libraries])
    verify_module(module)
