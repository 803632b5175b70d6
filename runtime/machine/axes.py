"""The axes an instruction runs along, and which dimension of which view runs along which of them."""

from __future__ import annotations

from typing import TypeAlias

from ...dialects import hardware
from ...dialects.attributes import int_values
from ...dialects.errors import UserError

Axes: TypeAlias = tuple[tuple[int, ...], ...]

MATMUL_RULE = "the letters of a matmul are those of a two-operand contraction: each in two of its three views, or all"


def instruction_axes(op: hardware.InstructionOp) -> tuple[Axes, tuple[int, ...]]:
    """Per view the axis of each dimension (-1: one element for all positions), and the extents of the axes.

    vector 4x1, 4x8 → 4x8: ((0, -1), (0, 1), (0, 1)) and (4, 8). matmul "mk,kn->mn": axes in the order m, k, n.
    """
    shapes = [op.shape(view) for view in op.views]
    match op:
        case hardware.MatmulOp():
            names = op.letters()
            letters = list(dict.fromkeys("".join(names)))
            if any(len(set(part)) != len(part) or sum(c in p for p in names) < 2 for part in names for c in part):
                raise UserError(f"spec '{op.spec.data}': {MATMUL_RULE}", op.location)
            extents = {
                c: n for part, shape in zip(names, shapes, strict=True) for c, n in zip(part, shape, strict=True)
            }
            axes = tuple(tuple(letters.index(c) for c in part) for part in names)
            return axes, tuple(extents[c] for c in letters)
        case hardware.VectorOp():
            out = shapes[-1]
            return tuple(tuple(-1 if n == 1 != out[d] else d for d, n in enumerate(shape)) for shape in shapes), out
        case hardware.DmaOp() if op.gather is not None:
            out = shapes[-1]
            rows, *others = (
                tuple(-1 if n == 1 != out[d] else d for d, n in enumerate(shape[-len(out) :])) for shape in shapes
            )
            return ((-1, *rows), *others), out
        case hardware.ReduceOp():
            reduced = set(int_values(op.axes))
            rank = range(len(shapes[0]))
            return (tuple(rank), tuple(-1 if d in reduced else d for d in rank)), shapes[0]
        case _:
            return tuple(tuple(range(len(shape))) for shape in shapes), shapes[-1]
