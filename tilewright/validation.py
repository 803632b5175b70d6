"""Translation validation: every lowering step runs on the same inputs; the first one that goes wrong is named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy.typing as npt
from xdsl.passes import ModulePass

from tilewright.dialects.target import Target
from tilewright.ir.diagnostics import SourceError
from tilewright.runtime.machine import MachineOptions

from .api import Objective, compile
from .arrays import gather_inputs
from .errors import plain_error
from .module import Module
from .program import Program
from .tolerance import default_tolerance, relative_error


@dataclass(frozen=True)
class Step:
    """The program after one pass. `error` is None if it could not be run; `message` says why."""

    name: str
    level: str
    error: float | None
    message: str = ""


@dataclass(frozen=True)
class Validation:
    """The errors after each pass against float64, in order. True if all are within `tolerance`."""

    steps: tuple[Step, ...]
    tolerance: float
    program: Program = field(repr=False)

    @property
    def blame(self) -> str | None:
        """The first pass whose result is beyond the tolerance or does not run ("input": the program itself)."""
        return next((s.name for s in self.steps if s.error is None or not s.error <= self.tolerance), None)

    def __bool__(self) -> bool:
        return self.blame is None

    def __str__(self) -> str:
        return "\n".join([*self._lines(), f"blame: {self.blame or 'none'}"])

    def _lines(self) -> Iterator[str]:
        yield f"{'pass':<14}{'level':<10}max error (tolerance {self.tolerance:.2e})"
        for step in self.steps:
            yield f"{step.name:<14}{step.level:<10}" + (step.message if step.error is None else f"{step.error:.2e}")


def validate(
    source: Module | Program | str | Path,
    target: str | Target | None = None,
    pipeline: str | Sequence[ModulePass] | None = None,
    inputs: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    objective: Objective | None = None,
    dims: Mapping[str, int] | None = None,
) -> Validation:
    """Runs the program before and after every pass on the same inputs and compares with float64.

    `tolerance` bounds max|x − ref| / max|ref|; by default it follows element types and reduction lengths. Inputs not
    given are random by `seed`. Raises SourceError for a program that does not start at the graph level, and whatever
    `compile` raises.
    """
    program = source if isinstance(source, Program) else compile(source, target, pipeline, objective, dims=dims)
    arrays = gather_inputs(program.source, inputs, seed)
    reference = program.reference(arrays)
    if reference is None:
        raise plain_error("a program below the graph level has no reference to be validated against")
    steps: list[Step] = []
    synced = False
    for snapshot in program.snapshots:
        synced = synced or snapshot.name == "sync"
        try:
            # Engines have no order before `sync` gives them one; until then the listed order is what counts.
            outputs = program.run_arrays(arrays, snapshot, MachineOptions(check_order=synced)).outputs.values()
            error = max((relative_error(x, r) for x, r in zip(outputs, reference, strict=True)), default=0.0)
            steps.append(Step(snapshot.name, snapshot.level, error))
        except SourceError as failure:
            steps.append(Step(snapshot.name, snapshot.level, None, failure.diagnostics[0].message))
    limit = default_tolerance(program.source.op) if tolerance is None else tolerance
    return Validation(tuple(steps), limit, program)
