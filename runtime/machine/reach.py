"""What an engine can do whatever the counters: memories it reaches, element types it computes, events it has."""

from __future__ import annotations

from ...dialects import hardware
from ...dialects.engine_limits import check_event_number
from ...dialects.errors import UserError
from ...dialects.output_stage import check_stage
from ...dialects.target_model import DmaEngine, MatrixEngine, Target, VectorEngine
from .program import EventStep, Instruction, View

_KINDS = {DmaEngine: "dma", MatrixEngine: "matrix", VectorEngine: "vector"}


def check_event(step: EventStep, target: Target) -> None:
    """Raises MachineError for engines or event numbers that the target does not have."""
    for name in step.event[:2]:
        if name not in target.engines:
            raise step.error((), f"target '{target.name}' has no engine '{name}'")
    try:
        check_event_number(target, *step.event)
    except UserError as error:
        raise step.error((), error.message) from None


def check_instruction(step: Instruction, target: Target) -> None:
    """Raises MachineError where the engine cannot execute the instruction at all."""
    engine = target.engines.get(step.engine)
    if engine is None:
        raise step.error(
            (), f"target '{target.name}' has no engine '{step.engine}' (it has {', '.join(target.engines)})"
        )
    match step.op, engine:
        case hardware.DmaOp(), DmaEngine():
            _check_move(step, target)
        case hardware.MatmulOp(), MatrixEngine():
            _check_matrix(step, engine)
        case hardware.VectorOp() | hardware.ReduceOp(), VectorEngine():
            _check_vector(step, engine)
        case hardware.FillOp() | hardware.IotaOp(), VectorEngine():
            _check_vector(step, engine)
        case hardware.FillOp() | hardware.IotaOp(), DmaEngine():
            memory = step.output.memory
            if not any(m.engine == step.engine and m.destination == memory and m.pad for m in target.moves):
                raise step.error((), f"the engine cannot write constants to memory '{memory}'")
        case _:
            raise step.error((), f"an engine of kind {_KINDS[type(engine)]} does not execute this instruction")


def _check_move(step: Instruction, target: Target) -> None:
    source, *indices, destination = step.views
    move = target.move(source.memory, destination.memory)
    if move is None:
        raise step.error((), f"target '{target.name}' has no move from '{source.memory}' to '{destination.memory}'")
    if move.engine != step.engine:
        raise step.error(
            (), f"the move from '{source.memory}' to '{destination.memory}' is one of engine '{move.engine}'"
        )
    if step.early and not (target.memories[source.memory].offchip and not target.memories[destination.memory].offchip):
        raise step.error((), f"only loads from off chip can be early, not a move from '{source.memory}'")
    if indices:
        if step.early:
            raise step.error((), "rows that indices choose cannot be early: the indices are loaded first")
        if move.gather is None:
            raise step.error(
                (), f"the move from '{source.memory}' to '{destination.memory}' cannot gather rows by indices"
            )
        if indices[0].memory != target.working_memory:
            raise step.error(
                (),
                f"its indices {indices[0].name} lie in '{indices[0].memory}', the engine reads them in "
                f"'{target.working_memory}'",
            )
    try:
        check_stage(step.op, move, source.element.attribute, destination.element.attribute)
    except UserError as error:
        raise step.error((), error.message) from None


def _check_matrix(step: Instruction, engine: MatrixEngine) -> None:
    lhs, rhs, out = step.views
    for view, memory, what in ((lhs, engine.lhs, "lhs"), (rhs, engine.rhs, "rhs"), (out, engine.result, "result")):
        if view.memory != memory:
            raise step.error((), f"its {what} {view.name} lies in '{view.memory}', the engine has it in '{memory}'")
    entry = engine.type_of(lhs.element.name, rhs.element.name)
    if entry is None:
        raise step.error((), f"the engine does not multiply {lhs.element.name} by {rhs.element.name}")
    if out.element.name != entry.result:
        raise step.error((), f"the engine adds up in {entry.result}, not in {out.element.name}")


def _check_vector(step: Instruction, engine: VectorEngine) -> None:
    for view in step.views:
        _reaches(step, view, engine)
        if not engine.supports(view.element.name):
            raise step.error((), f"the engine has no {view.element.name}")


def _reaches(step: Instruction, view: View, engine: VectorEngine) -> None:
    if view.memory not in engine.memories:
        reach = ", ".join(engine.memories)
        raise step.error((), f"its operand {view.name} lies in '{view.memory}', the engine reaches {reach}")


def error_of(step: Instruction, error: UserError) -> UserError:
    """The error of a rule of the target, at the instruction."""
    return step.error((), error.message) if error.location is None else error
