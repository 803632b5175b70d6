"""A compiled program: its IR after every pass, and what can be done with it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeAlias

import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_functions import has_graph_work
from tilewright.dialects.hardware import ProgramOp
from tilewright.dialects.target import Target, target_of
from tilewright.dialects.tile import KernelOp
from tilewright.ir.diagnostics import Diagnostic, at_location
from tilewright.ir.source import print_module
from tilewright.lowering.pipeline import LEVELS, PIPELINE
from tilewright.lowering.remarks import remarks_of
from tilewright.runtime.machine import Machine, MachineOptions, MachineResult
from tilewright.runtime.reference import evaluate
from tilewright.runtime.tile_eval import evaluate_tile

from .arrays import Array, gather_inputs
from .bounds import compulsory_bytes
from .errors import diagnosed, plain_error
from .module import Module, TensorSpec
from .notebook import folded, ir_block
from .result import Run, Unfused

_log = logging.getLogger(__name__)

Level: TypeAlias = Literal["graph", "tile", "hardware"]


def level_of(module: ModuleOp) -> Level:
    """The level a module has reached."""
    if any(isinstance(op, ProgramOp) for op in module.ops):
        return "hardware"
    kernels = any(isinstance(op, KernelOp) for op in module.ops)
    return "tile" if kernels and not has_graph_work(module) else "graph"


@dataclass(frozen=True)
class Snapshot:
    """The program after one pass; `name` is "input" before the first."""

    name: str
    module: ModuleOp = field(repr=False)

    @property
    def level(self) -> Level:
        return level_of(self.module)

    @cached_property
    def machine(self) -> Machine:
        """The program decoded for the machine: what needs no data is found out once."""
        return Machine(self.module)


@dataclass(frozen=True)
class Program:
    """A program that went through a pipeline. Made by `tilewright.compile`; nothing in it changes afterwards."""

    source: Module = field(repr=False)
    snapshots: tuple[Snapshot, ...] = field(repr=False)
    unfused_twin: Callable[[], Program] | None = field(default=None, repr=False)
    """Compiles the same source with one kernel per named op; None where the source is fused already."""
    is_unfused: bool = field(default=False, repr=False)
    """Whether it was compiled with one kernel per named op itself."""

    @property
    def module(self) -> ModuleOp:
        """The xDSL module after the last pass. It is not to be changed in place."""
        return self.snapshots[-1].module

    @property
    def level(self) -> Level:
        return self.snapshots[-1].level

    @property
    def target(self) -> Target:
        return target_of(self.module)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return self.source.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return self.source.outputs

    @property
    def passes(self) -> tuple[str, ...]:
        """Names of the passes that ran, in order."""
        return tuple(snapshot.name for snapshot in self.snapshots[1:])

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the passes have to say that is no error: kernels by hand that are not used, with the reason."""
        given, texts = remarks_of(self.snapshots[0].module), self.source.texts
        found: list[Diagnostic] = []
        for remark in remarks_of(self.module):
            if remark not in given:  # said when the dump was made from which this program goes on
                (message, at), notes = remark
                head = at_location(message, at, texts, "warning")
                places = tuple(replace(at_location(*note, texts, "note"), notes=()) for note in notes)
                found.append(replace(head, notes=places))
        return tuple(found)

    def snapshot(self, level: str | None = None, after: str | None = None) -> Snapshot:
        """The program after a pass, or at the last pass of a level; the end of the pipeline by default.

        Raises SourceError if the pipeline did not go there.
        """
        if after is not None:
            found = [s for s in self.snapshots if s.name == after]
            known = "'input'" + "".join(f", '{name}'" for name in self.passes)
            message = f"no pass '{after}' ran; there are {known}"
        elif level is not None:
            if level not in LEVELS:
                raise plain_error(f"unknown level '{level}'; there are {', '.join(LEVELS)}")
            found = [s for s in self.snapshots if s.level == level]
            message = f"the program was not compiled down to the {level} level; it is at the {self.level} level"
            own = [PIPELINE.index(name) for name in self.passes if name in PIPELINE]
            if PIPELINE.index(LEVELS[level]) < min(own, default=0):
                message = f"the program started below the {level} level"
        else:
            return self.snapshots[-1]
        if not found:
            raise plain_error(message)
        return found[-1]

    def ir(self, level: str | None = None, after: str | None = None, generic: bool = False) -> str:
        """The text of the program at a level (graph, tile, hardware) or after a pass, as `program.ir(after="fuse")`.

        By default at the end of the pipeline. `generic` gives MLIR's generic form.
        """
        return print_module(self.snapshot(level, after).module, generic)

    def run(
        self,
        inputs: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike] | None = None,
        seed: int | None = None,
        check: bool | MachineOptions = True,
        level: Level | None = None,
    ) -> Run:
        """Executes the program and returns results, traffic and cycles.

        inputs  arrays by name or in order, of the program's shapes and types; those not given are random by `seed`
        check   True: every check of the machine; False: none that costs time; or the machine's options
        level   "graph" and "tile" run the evaluator of that level instead of the machine (no traffic, no cycles)

        Raises SourceError for unfit inputs, CheckError for a race, poison in a result or another machine check.
        """
        arrays = gather_inputs(self.source, inputs, seed)
        return self.run_arrays(arrays, self.snapshot(level), check)

    def run_arrays(self, arrays: Sequence[Array], snapshot: Snapshot, check: bool | MachineOptions = True) -> Run:
        """As `run`, with checked inputs, on the program as it was after some pass."""
        loader = self.source.weight_reader()
        result: MachineResult | None = None
        start = time.perf_counter()
        with diagnosed(self.source.texts):
            match snapshot.level:
                case "graph":
                    outputs = evaluate(snapshot.module, arrays, "native", loader)
                case "tile":
                    outputs = evaluate_tile(snapshot.module, arrays, loader=loader)
                case "hardware":
                    options = check if isinstance(check, MachineOptions) else MachineOptions(check=check)
                    result = snapshot.machine.run(arrays, options, loader)
                    outputs = result.outputs
        _log.info("ran at the %s level: %.3f s", snapshot.level, time.perf_counter() - start)
        names = [spec.name for spec in self.outputs]
        return Run(self, snapshot.level, tuple(arrays), dict(zip(names, outputs, strict=True)), result)

    def reference(self, arrays: Sequence[Array]) -> list[Array] | None:
        """The results in float64, from the source program; None where the source is not at the graph level."""
        if level_of(self.source.op) != "graph":
            return None
        loader = self.source.weight_reader()
        with diagnosed(self.source.texts):
            return evaluate(self.source.op, arrays, "f64", loader)

    def analyze(self) -> MachineResult:
        """Traffic and cycles without data; the result has no outputs."""
        with diagnosed(self.source.texts):
            return self.snapshot("hardware").machine.analyze()

    def check_order(self) -> None:
        """Raises CheckError if two engines touch the same bytes without an order between them."""
        with diagnosed(self.source.texts):
            self.snapshot("hardware").machine.check_order()

    @cached_property
    def compulsory(self) -> tuple[int, int] | None:
        """Bytes that any schedule must read and write off chip; None where the source is not at the graph level."""
        if level_of(self.source.op) != "graph":
            return None
        try:
            return compulsory_bytes(self.source.op)
        except UserError:
            return None

    @cached_property
    def unfused_program(self) -> Program | None:
        """The same source with one kernel per named op; None where the source is fused already."""
        return self.unfused_twin() if self.unfused_twin is not None else None

    @cached_property
    def unfused(self) -> Unfused | None:
        """Traffic and cycles of one optimally scheduled kernel per named op; None where that cannot be told."""
        twin = self.unfused_program
        return None if twin is None else Unfused.of(twin.analyze(), twin.target)

    def __str__(self) -> str:
        return self.ir()

    def _repr_html_(self) -> str:
        """Every level in a notebook, folded."""
        last = {snapshot.level: snapshot for snapshot in self.snapshots}
        return folded(repr(self), [(level, ir_block(print_module(s.module))) for level, s in last.items()])

    def __repr__(self) -> str:
        kernels = sum(1 for op in self.module.walk() if op.name in ("graph.fused", "tile.kernel", "hardware.kernel"))
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        name = self.target.name
        return f"<tilewright.Program ({inputs}) -> ({outputs}) for {name}: {self.level} level, {kernels} kernels>"
