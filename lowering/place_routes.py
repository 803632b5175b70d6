"""Which memory an op needs its operands in, and the moves that lead there on chip."""

from __future__ import annotations

from collections import deque
from functools import lru_cache

from xdsl.ir import Operation

from ..dialects import tile
from ..dialects.dtypes import common_compute_type, element, is_supported
from ..dialects.errors import UserError
from ..dialects.target import Move, Target


@lru_cache(maxsize=4096)
def route(target: Target, source: str, destination: str) -> tuple[Move, ...] | None:
    """Fewest moves from one on-chip memory to another without leaving the chip; None where there is no way."""
    ways: dict[str, tuple[Move, ...]] = {source: ()}
    queue = deque([source])
    while queue:
        here = queue.popleft()
        for move in sorted((m for m in target.moves if m.source == here), key=lambda m: 1 / target.move_rate(m)):
            if move.destination not in ways and move.destination != target.offchip:
                ways[move.destination] = (*ways[here], move)
                queue.append(move.destination)
    return ways.get(destination)


def needed_route(target: Target, source: str, destination: str, op: Operation) -> tuple[Move, ...]:
    """As `route`; raises UserError at `op` where the machine has no such way."""
    found = route(target, source, destination)
    if found is None:
        raise UserError(
            f"'{op.name}' needs in memory '{destination}' what lies in '{source}', and target '{target.name}' has no "
            f"way from {source} to {destination} on chip",
            op.location,
        )
    return found


def first_stop(target: Target, memory: str, op: Operation) -> str:
    """The on-chip memory in which a load lands on its way to `memory`."""
    path = target.path(target.offchip, memory)
    if not path:
        raise UserError(f"target '{target.name}' cannot load into memory '{memory}'", op.location)
    return path[0].destination


def vector_memory(target: Target, op: Operation) -> str:
    """Where the vector engine works. Raises UserError where there is none."""
    if target.vector_engine is None:
        raise UserError(f"'{op.name}' needs a vector engine; target '{target.name}' has none", op.location)
    return target.vector_engine[1].memories[0]


def matrix_memories(target: Target, op: Operation) -> tuple[str, str, str]:
    """Memories of the left operand, the right operand and the result of the matrix engine."""
    if target.matrix_engine is None:
        raise UserError(f"'{op.name}' needs a matrix engine; target '{target.name}' has none", op.location)
    engine = target.matrix_engine[1]
    return engine.lhs, engine.rhs, engine.result


def need(target: Target, op: Operation, operand: int) -> str | None:
    """The memory in which an engine reads operand `operand` of `op`; None where the op does not say."""
    match op:
        case tile.ContractOp():
            return matrix_memories(target, op)[operand]
        case tile.MapOp() | tile.ReduceOp():
            return vector_memory(target, op)
        case tile.LoadOp() if op.gather is not None and operand == 1:
            return vector_memory(target, op)
        case _:
            return None


def check_support(target: Target, op: Operation) -> None:
    """Raises UserError, at the op, for element types that its engine does not compute with."""
    match op:
        case tile.ContractOp():
            _check_contract(target, op)
        case tile.MapOp() | tile.ReduceOp() | tile.FillOp() | tile.IotaOp():
            vector_memory(target, op)
            assert target.vector_engine is not None
            name, engine = target.vector_engine
            kinds = [tile.element_of(value) for value in (*op.tiles, op.target)]
            computed = common_compute_type(kinds[:-1]) if op.tiles and all(map(is_supported, kinds)) else kinds[-1]
            for kind in (*kinds, computed):
                if not engine.supports(element(kind).name):
                    raise UserError(
                        f"engine '{name}' of target '{target.name}' does not compute with {element(kind).name}, "
                        f"which '{op.name}' needs",
                        op.location,
                    )
        case _:
            pass


def _check_contract(target: Target, op: tile.ContractOp) -> None:
    matrix_memories(target, op)
    assert target.matrix_engine is not None
    name, engine = target.matrix_engine
    lhs, rhs = (element(tile.element_of(value)).name for value in op.tiles[:2])
    result = element(tile.element_of(op.target)).name
    entry = engine.type_of(lhs, rhs)
    if entry is None or entry.result != result:
        known = ", ".join(f"{k} → {v.result}" for k, v in engine.types.items())
        raise UserError(
            f"engine '{name}' of target '{target.name}' does not multiply {lhs} by {rhs} into {result} "
            f"(it has {known})",
            op.location,
        )
