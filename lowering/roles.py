"""Which memories of a target hold what, read off its engines and moves; and how many bytes a tile takes there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from ..dialects.target_model import Memory, Target


@dataclass(frozen=True)
class Roles:
    """Memory names. Without a matrix engine (or a path to it) lhs, rhs and result are None.

    `vector`: where the vector engine works, or would (`Target.working_memory`). `lhs_stage`, `rhs_stage`: the first
    on-chip memory on the way to the matrix operand; equal to the operand's own memory where loads go there directly.
    """

    vector: str
    lhs: str | None
    rhs: str | None
    result: str | None
    lhs_stage: str | None
    rhs_stage: str | None

    @property
    def subdivides(self) -> bool:
        """Whether matrix operands are pieces of larger tiles that wait in another memory."""
        return self.lhs != self.lhs_stage or self.rhs != self.rhs_stage

    @staticmethod
    def of(target: Target) -> Roles:
        matrix = target.matrix_engine
        if matrix is None:
            return Roles(target.working_memory, None, None, None, None, None)
        engine = matrix[1]
        stages: list[str | None] = []
        for operand in (engine.lhs, engine.rhs):
            path = target.path(target.offchip, operand)
            stages.append(path[0].destination if path else None)
        return Roles(target.working_memory, engine.lhs, engine.rhs, engine.result, stages[0], stages[1])


def product_apart(target: Target) -> bool:
    """Whether the vector engine works elsewhere than where the matrix engine keeps what it adds to."""
    matrix, vector = target.matrix_engine, target.vector_engine
    return matrix is not None and vector is not None and matrix[1].result not in vector[1].memories


def tile_bytes(memory: Memory, shape: Sequence[int], element_bytes: int) -> int:
    """Bytes of a tile in a memory, padding included, rounded up to the memory's alignment."""
    extents = [extent for extent in shape if extent != 1] or [1]
    if len(extents) >= 2:
        if memory.layout == "fractal" and memory.fractal_rows and memory.fractal_bytes:
            rows = _round_up(prod(extents[:-1]), memory.fractal_rows)
            total = rows * _round_up(extents[-1] * element_bytes, memory.fractal_bytes)
        else:
            total = prod(extents[:-1]) * _round_up(extents[-1] * element_bytes, memory.align)
    else:
        total = extents[0] * element_bytes
    return _round_up(total, memory.align)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
