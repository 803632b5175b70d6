"""Translation validation: every lowering step runs on the same inputs; the first one that goes wrong is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilewright.dialects.target import Target
from tilewright.ir.diagnostics import SourceError
from tilewright.runtime.machine import MachineOptions

from .api import Objective, compile
from .arrays import Array, gather_inputs
from .errors import plain_error
from .module import Module
from .program import Program
from .reduction import Reduction
from .tolerance import Deviation, errors, farthest, output_tolerances

Compiler: TypeAlias = "Callable[[Module], Program]"


@dataclass(frozen=True)
class Step:
    """The program after one pass. `outputs` is None if it could not be run; `message` says why."""

    name: str
    level: str
    outputs: tuple[Deviation, ...] | None
    message: str = ""

    @property
    def worst(self) -> Deviation | None:
        """The output that is farthest from float64, measured by its tolerance; None if there is none."""
        return farthest(self.outputs) if self.outputs else None

    @property
    def error(self) -> float | None:
        """Its relative error; 0 for a program without outputs, None if it could not be run."""
        if self.outputs is None:
            return None
        return self.worst.relative if self.worst is not None else 0.0

    @property
    def fails(self) -> bool:
        """Whether it could not be run or is beyond a tolerance."""
        return self.outputs is None or any(self.outputs)


@dataclass(frozen=True)
class Validation:
    """The errors after each pass against float64, in order. True if all are within their tolerances."""

    steps: tuple[Step, ...]
    program: Program = field(repr=False)

    @property
    def blame(self) -> str | None:
        """The first pass whose result is beyond the tolerance or does not run ("input": the program itself)."""
        return next((step.name for step in self.steps if step.fails), None)

    @property
    def failure(self) -> str | None:
        """What is wrong after the pass that is to blame, in a sentence."""
        step = next((step for step in self.steps if step.fails), None)
        if step is None:
            return None
        where = "the program itself" if step.name == "input" else f"the program after '{step.name}'"
        worst = step.worst
        if worst is None:
            return f"{where} does not run: {step.message}"
        return f"output '{worst.name}' of {where} is {worst.relative:.2e} from float64, tolerance {worst.tolerance:.2e}"

    def __bool__(self) -> bool:
        return self.blame is None

    def __str__(self) -> str:
        return "\n".join([*self._lines(), f"blame: {self.blame or 'none'}"])

    def _lines(self) -> Iterator[str]:
        yield f"{'pass':<14}{'level':<10}{'absolute':<10}{'relative':<10}tolerance"
        for step in self.steps:
            worst = step.worst
            figures = step.message if worst is None else f"{worst.absolute:<10.2e}{worst.relative:<10.2e}"
            yield f"{step.name:<14}{step.level:<10}{figures}{'' if worst is None else f'{worst.tolerance:.2e}'}"


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

    `tolerance` bounds max|x − ref| / max|ref| of every output; by default it follows element types, accumulators and
    reduction lengths, per output. Inputs not given are random by `seed`. Raises SourceError for a program that does
    not start at the graph level, for a tolerance that is no number or negative, and whatever `compile` raises.
    """
    if tolerance is not None and not tolerance >= 0:
        raise plain_error(f"a tolerance is a number and not negative, got {tolerance}")
    program = source if isinstance(source, Program) else compile(source, target, pipeline, objective, dims=dims)
    arrays = gather_inputs(program.source, inputs, seed)
    reference = program.reference(arrays)
    if reference is None:
        raise plain_error("a program below the graph level has no reference to be validated against")
    limits = output_tolerances(program.source.op)
    if tolerance is not None:
        limits = [tolerance] * len(limits)
    return Validation(tuple(_steps(program, arrays, reference, limits)), program)


def reduced(validation: Validation, seed: int, tolerance: float | None, again: Compiler) -> ModuleOp | None:
    """A small graph-level program for which the same pass is to blame, on random inputs.

    `again` compiles a module as the validated program was compiled. None where random inputs do not show the failure.
    """
    blamed, source = validation.blame, validation.program.source

    def fails(module: ModuleOp) -> bool:
        return validate(again(Module(module, source.source)), seed=seed, tolerance=tolerance).blame == blamed

    if not fails(source.op):
        return None
    return Reduction(source.op.clone(), fails).run()


def _steps(
    program: Program, arrays: Sequence[Array], reference: Sequence[Array], limits: Sequence[float]
) -> Iterator[Step]:
    synced = False
    for snapshot in program.snapshots:
        synced = synced or snapshot.name == "sync"
        try:
            # Engines have no order before `sync` gives them one; until then the listed order is what counts.
            outputs = program.run_arrays(arrays, snapshot, MachineOptions(check_order=synced)).outputs
        except SourceError as failure:
            yield Step(snapshot.name, snapshot.level, None, failure.diagnostics[0].message)
            continue
        rows = zip(outputs.items(), reference, limits, strict=True)
        found = tuple(Deviation(name, *errors(x, ref), limit) for (name, x), ref, limit in rows)
        yield Step(snapshot.name, snapshot.level, found)
