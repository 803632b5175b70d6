"""The compulsory traffic: what any schedule of a program must move off chip."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from tilewright.dialects.dtypes import by_name, element, splat
from tilewright.dialects.graph_functions import entry_function
from tilewright.dialects.graph_index import GatherOp
from tilewright.dialects.graph_primitives import ConstantOp, MapOp, ReduceOp, TakeOp, ViewOp, WeightOp
from tilewright.dialects.graph_types import get_int, static_shape, tensor_type
from tilewright.dialects.registry import make_context
from tilewright.lowering.decompose import DecomposePass
from tilewright.runtime.reference_primitives import gather_box

Mask: TypeAlias = npt.NDArray[np.bool_]


def compulsory_bytes(module: ModuleOp) -> tuple[int, int]:
    """Bytes read and written at the least by a graph-level program, without granules.

    Each needed byte of inputs and stored constants is read once, as the source program stores it; each output byte is
    written once. What a view does not look at is not needed; a constant of one repeated value is part of the code. A
    lookup of n rows needs n different ones, the same as other lookups in that table.
    """
    copy = module.clone()
    for op in [op for op in copy.walk() if isinstance(op, GatherOp)]:
        _as_rows(op)
    DecomposePass(kernels=False).apply(make_context(), copy)
    function = entry_function(copy)
    block = function.body.block
    needs: dict[SSAValue, Mask] = {}
    written = 0
    for op in reversed(list(block.ops)):
        if op is block.last_op:
            for value in op.operands:
                written += _bytes(value, _all(value))
                _add(needs, value, _all(value))
        elif any(result in needs for result in op.results):
            for value, mask in zip(op.operands, _operand_needs(op, needs), strict=True):
                _add(needs, value, mask)
    stored = [op.results[0] for op in block.ops if _is_stored(op)]
    read = sum(_bytes(root, needs[root]) for root in (*block.args, *stored) if root in needs)
    return read, written


def _is_stored(op: Operation) -> bool:
    return isinstance(op, WeightOp) or (isinstance(op, ConstantOp) and splat(op.value) is None)


def _operand_needs(op: Operation, needs: dict[SSAValue, Mask]) -> list[Mask]:
    """Which elements of each operand the needed elements of the result depend on; all where nothing is known."""
    match op:
        case MapOp():
            return [_unbroadcast(needs[op.res], static_shape(arg.type)) for arg in op.args]
        case ReduceOp():
            return [np.broadcast_to(needs[op.res], static_shape(op.args[0].type))]
        case TakeOp():
            return _rows_needed(op, needs[op.res])
        case ViewOp():
            return _view_needs(op, needs[op.res])
        case _:
            return [_all(value) for value in op.operands]


def _as_rows(op: GatherOp) -> None:
    """Replaces a lookup by one that reads rows by address, whatever the machine can do."""
    indices, block = op.args[1], op.parent
    assert block is not None
    if element(indices.type).name != "i32":
        kind = tensor_type(by_name("i32").attribute, static_shape(indices.type))
        cast = MapOp.make([indices], kind, {"fn": StringAttr("cast")})
        block.insert_op_before(cast, op)
        indices = cast.res
    axis = get_int(op.properties, "axis", 0, op.what()) % len(static_shape(op.args[0].type))
    Rewriter.replace_op(op, TakeOp.make([op.args[0], indices], None, {"axis": IntegerAttr(axis, i64)}))


def _rows_needed(op: TakeOp, need: Mask) -> list[Mask]:
    """As many rows as there are indices, all different: the first ones stand for them."""
    table, indices = op.args
    axis, rank, shape = op.axis.value.data, len(static_shape(indices.type)), static_shape(table.type)
    looked = np.any(need, axis=(*range(axis), *range(axis + rank, need.ndim)))
    row = np.any(need, axis=tuple(range(axis, axis + rank)))
    some = np.arange(shape[axis]) < np.count_nonzero(looked)
    mask = np.expand_dims(row, axis) & some.reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return [np.asarray(mask, np.bool_), np.asarray(looked, np.bool_).reshape(static_shape(indices.type))]


def _view_needs(op: ViewOp, need: Mask) -> list[Mask]:
    masks: list[Mask] = []
    for map_, box, value in zip(op.affine_maps, op.boxes, op.args, strict=True):
        shape = static_shape(value.type)
        mask = np.zeros(shape, np.bool_)
        if all(low < high for low, high in box):
            positions: npt.NDArray[Any] = gather_box(map_, box, np.arange(mask.size).reshape(shape))
            inside = need[tuple(slice(low, high) for low, high in box)]
            mask.reshape(-1)[np.broadcast_to(positions, inside.shape)[inside]] = True
        masks.append(mask)
    return masks


def _unbroadcast(mask: Mask, shape: tuple[int, ...]) -> Mask:
    """The elements of an operand of this shape that the masked elements of a broadcast result stem from."""
    extra = mask.ndim - len(shape)
    ones = tuple(extra + d for d, extent in enumerate(shape) if extent == 1)
    kept = np.any(mask, axis=(*range(extra), *ones), keepdims=True)
    return np.asarray(kept, np.bool_).reshape(
        [1 if extent == 1 else mask.shape[extra + d] for d, extent in enumerate(shape)]
    )


def _all(value: SSAValue) -> Mask:
    return np.broadcast_to(np.True_, static_shape(value.type))


def _add(needs: dict[SSAValue, Mask], value: SSAValue, mask: Mask) -> None:
    earlier = needs.get(value)
    needs[value] = mask if earlier is None else np.asarray(np.logical_or(earlier, mask), np.bool_)


def _bytes(value: SSAValue, mask: Mask) -> int:
    return int(np.count_nonzero(mask)) * element(value.type).bytes
