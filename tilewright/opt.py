"""Passes over the pieces of a file: what `tilewright opt` does, apart from its options.

The pipeline runs in xDSL's PassPipeline. xDSL's own driver (xDSLOptMain) is not used: it reads texts by its own
grammar, and prints diagnostics where here they are compared, located and counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline

from tilewright.dialects.target import set_target
from tilewright.dialects.target_use import verify_target_use
from tilewright.dialects.verify import verify_module
from tilewright.ir.diagnostics import Diagnostic, SourceError
from tilewright.ir.source import parse_module, print_module
from tilewright.lowering.options import set_objective
from tilewright.lowering.pipeline import logged
from tilewright.lowering.search import Objective

from .errors import diagnosed
from .expected import check_expected
from .ir_printing import IrPrinter
from .timing import Timer

_SEPARATOR = re.compile(r"(?m)^// -----[ \t]*$\n?")
SEPARATOR = "// -----\n"
"""Between the pieces of a file."""


def pieces(text: str) -> list[str]:
    """The parts of a text between its `// -----` lines, each on the lines where it stands in the whole."""
    found: list[str] = []
    start = 0
    for match in [*_SEPARATOR.finditer(text), None]:
        end = len(text) if match is None else match.start()
        found.append("\n" * text.count("\n", 0, start) + text[start:end])
        start = end if match is None else match.end()
    return found


@dataclass(frozen=True)
class Settings:
    """How a piece is read, lowered and printed."""

    file: str
    passes: Sequence[ModulePass]
    make_context: Callable[[], Context]
    target: str | None = None
    objective: Objective | None = None
    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    generic: bool = False
    locations: bool = False
    verify_diagnostics: bool = False


@dataclass(frozen=True)
class Optimized:
    """What became of one piece: its text, empty where it failed; what is to be reported."""

    text: str
    problems: Sequence[Diagnostic]


def optimize(
    piece: str,
    whole: str,
    settings: Settings,
    printer: IrPrinter,
    timer: Timer,
    seen: Callable[[ModuleOp], None],
) -> Optimized:
    """Takes one piece of a file through the pipeline. `seen` is given the program before each pass and at the end.

    With `verify_diagnostics`, the problems are what differs from the directives in its comments.
    """
    text, problems = "", list[Diagnostic]()
    try:
        with diagnosed({settings.file: whole}):
            text = _lowered(piece, settings, printer, timer, seen)
    except SourceError as error:
        problems = list(error.diagnostics)
    if settings.verify_diagnostics:
        problems = check_expected(piece, settings.file, problems)
    return Optimized(text, problems)


def _lowered(piece: str, settings: Settings, printer: IrPrinter, timer: Timer, seen: Callable[[ModuleOp], None]) -> str:
    context = settings.make_context()
    with timer.span("parse"):
        module = parse_module(piece, settings.file, settings.dims, context)
        verify_module(module)
    if settings.target is not None:
        set_target(module, settings.target)
        verify_target_use(module)
    if settings.objective is not None:
        set_objective(module, settings.objective)
    with timer.span("pipeline"):
        run_passes(module, settings.passes, context, printer, timer, seen)
    with timer.span("print"):
        return print_module(module, settings.generic, settings.locations)


@dataclass(frozen=True)
class _Timed(ModulePass):
    """A pass that measures another."""

    step: ModulePass
    timer: Timer

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with self.timer.span(self.step.name), logged(self.step, op):
            self.step.apply(ctx, op)
            with self.timer.span("verify"):
                verify_module(op)


def run_passes(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    context: Context,
    printer: IrPrinter,
    timer: Timer,
    seen: Callable[[ModuleOp], None],
) -> None:
    """Runs passes in place, verifies after each, and tells `printer` and `seen`. Raises what a pass raises."""
    reached = -1

    def between(before: ModulePass | None, op: ModuleOp, after: ModulePass | None) -> None:
        nonlocal reached
        if before is not None:
            printer.after(reached, op)
        seen(op.clone())
        if after is not None:
            reached += 1
            printer.before(reached, op)

    try:
        PassPipeline(tuple(_Timed(step, timer) for step in passes), between).apply(context, module)
    except Exception:
        printer.failed(reached, module)
        raise
