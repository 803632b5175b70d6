"""Each fused kernel by itself: on the values it is given in the program, against its own reference logic.

Validation of passes says which pass is wrong; this says in which kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_functions import entry_function
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.target import set_target
from tilewright.ir.diagnostics import Diagnostic, at_location, did_you_mean
from tilewright.lowering.handwritten import kernel_of
from tilewright.lowering.outline import kernel_alone, kernel_logic
from tilewright.lowering.pipeline import parse_pipeline, remaining, run_pipeline
from tilewright.runtime import machine
from tilewright.runtime.reference import evaluate

from .arrays import Array, random_inputs
from .errors import CheckError, diagnosed, plain_error
from .program import Program
from .reporting.fusion import fused_groups
from .tolerance import Deviation, errors, farthest, output_tolerances


def kernel_errors(
    program: Program, arrays: Sequence[Array], tolerance: float | None = None, by_hand_only: bool = False
) -> list[Deviation]:
    """Runs every scheduled group of a program alone, from its schedule down to the machine: per kernel, how far its
    farthest result is from its logic in float64. `by_hand_only`: those whose kernel is written by hand.

    `arrays` are inputs of the program; the groups get what its evaluation, in the program's types, gives them. A
    program without groups has none. Raises SourceError where a group cannot be lowered, CheckError where the machine
    finds one wrong.
    """
    groups = [snapshot for snapshot in program.snapshots if snapshot.level == "graph"]
    if not groups:
        return []
    module = groups[-1].module
    function = entry_function(module)
    given: dict[Operation, list[Array]] = {}

    def remember(op: Operation, values: Sequence[Array], _: object) -> list[Array]:
        assert isinstance(op, FusedOp)
        given[op] = list(values)
        return evaluate(kernel_logic(op), values, "native", loader)

    loader = program.source.weight_reader()
    found: list[Deviation] = []
    with diagnosed(program.source.texts):
        evaluate(function, arrays, "native", loader, {FusedOp.name: remember})
        for name, op in fused_groups(program).items():
            by_hand = kernel_of(op)
            if by_hand_only and by_hand is None:
                continue
            values = given[op]
            try:
                results = run_alone(op, program, values)
            except UserError as error:
                if by_hand is not None:  # otherwise it points at the program
                    error.location = error.location or by_hand.location
                    error.notes += ((f"in kernel @{by_hand.sym_name.data}", by_hand.location),)
                raise
            logic = kernel_logic(op)
            wanted = evaluate(logic, values, "f64", loader)
            limits: Sequence[float] = output_tolerances(logic) if tolerance is None else [tolerance] * len(wanted)
            rows = zip(results, wanted, limits, strict=True)
            shown = name if by_hand is None else f"{name} (@{by_hand.sym_name.data})"
            found.append(farthest(Deviation(shown, *errors(x, ref), limit) for x, ref, limit in rows))
    return found


def check_by_hand(program: Program) -> None:
    """Runs every kernel by hand of a program against its logic, on random values.

    Raises CheckError that names each one that computes something else, and whatever running them does.
    """
    groups = {name: op for name, op in fused_groups(program).items() if kernel_of(op) is not None}
    if not groups:
        return
    found = kernel_errors(program, random_inputs(program.inputs, 0), by_hand_only=True)
    wrong = [(op, one) for op, one in zip(groups.values(), found, strict=True) if one]
    errors: list[Diagnostic] = []
    for op, one in wrong:
        kernel = kernel_of(op)
        assert kernel is not None
        message = f"kernel @{kernel.sym_name.data} is {one.relative:.2e} from its logic, tolerance {one.tolerance:.2e}"
        diagnostic = at_location(message, kernel.location, program.source.texts)
        note = at_location("used here", op.location, program.source.texts, "note")
        errors.append(replace(diagnostic, notes=(*diagnostic.notes, replace(note, notes=()))))
    if errors:
        raise CheckError(errors)


def run_with_reference(program: Program, arrays: Sequence[Array], names: Sequence[str]) -> list[Array]:
    """Runs a program kernel by kernel on the machine, the named ones by their logic in the program's types instead.

    Where the result becomes right, a kernel that was swapped is wrong. Raises SourceError for a name that is none of a
    kernel, and whatever lowering and running the others does.
    """
    groups = fused_groups(program)
    for name in names:
        if name not in groups:
            hint = did_you_mean(name, groups) or f"there are {', '.join(groups) or 'none'}"
            raise plain_error(f"the program has no kernel '{name}' that was made from a group; {hint}")
    named = {op: name for name, op in groups.items()}
    loader = program.source.weight_reader()

    def swap(op: Operation, values: Sequence[Array], _: object) -> list[Array]:
        assert isinstance(op, FusedOp)
        if named[op] in names:
            return evaluate(kernel_logic(op), values, "native", loader)
        return run_alone(op, program, values)

    with diagnosed(program.source.texts):
        module = next(s.module for s in reversed(program.snapshots) if s.level == "graph")
        return evaluate(entry_function(module), arrays, "native", loader, {FusedOp.name: swap})


def run_alone(fused: FusedOp, program: Program, values: Sequence[Array]) -> list[Array]:
    """One group lowered to the end and run on the machine, on the program's target."""
    module = kernel_alone(fused)
    set_target(module, program.target)
    run_pipeline(module, parse_pipeline(",".join(_unscheduled(module))))
    outputs: list[Any] = machine.run(module, values).outputs
    return outputs


def _unscheduled(module: ModuleOp) -> Sequence[str]:
    """The passes left, without `schedule` where every group has one."""
    left = remaining(module)
    scheduled = all(op.schedule is not None for op in module.walk() if isinstance(op, FusedOp))
    return [name for name in left if not (scheduled and name == "schedule")]
