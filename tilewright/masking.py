"""Writing masks into a program in primitives: the sizes of its inputs' true parts become inputs themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, FunctionType, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilewright.dialects.dtypes import by_name, element
from tilewright.dialects.graph_base import GraphOp
from tilewright.dialects.graph_functions import INPUT_NAMES, entry_function
from tilewright.dialects.graph_primitives import ConstantOp, IotaOp, MapOp, ReduceOp
from tilewright.dialects.graph_types import static_shape, tensor_type
from tilewright.dialects.scalar import monoid

from .padding import Mask

_I32 = by_name("i32").attribute


@dataclass(frozen=True)
class Masked:
    """A program whose padding is harmless. Further inputs, in order: the size of each dimension in `sizes`, and the
    constants that depend on the sizes, by their place in the program without masks."""

    module: ModuleOp
    sizes: tuple[str, ...]
    constants: tuple[int, ...]
    names: tuple[str, ...]
    """The names of the further inputs."""


def masked(module: ModuleOp, masks: Mapping[Mask, str], constants: Sequence[int], names: Sequence[str]) -> Masked:
    """A copy in which operands are masked, each by the size of the dimension that is named, and constants are inputs.

    `names` are those of the inputs there are.
    """
    copy = module.clone()
    function = entry_function(copy)
    block = function.body.block
    ops = list(block.ops)
    sizes = tuple(dict.fromkeys(masks[mask] for mask in sorted(masks)))
    added: list[str] = []
    lengths = {name: _argument(block, tensor_type(_I32, ()), f"size_{name}", names, added) for name in sizes}
    for place in constants:
        value = ops[place].results[0]
        value.replace_all_uses_with(_argument(block, value.type, "constant", names, added))
        block.erase_op(ops[place])
    for mask in sorted(masks):
        op, length = ops[mask.op], lengths[masks[mask]]
        op.operands[mask.operand] = _hidden(op, op.operands[mask.operand], mask.dim, length)
    function.function_type = FunctionType.from_lists([a.type for a in block.args], function.function_type.outputs.data)
    _name(function, [*names, *added])
    return Masked(copy, sizes, tuple(constants), tuple(added))


def _argument(block: Block, type_: Attribute, wanted: str, names: Sequence[str], added: list[str]) -> SSAValue:
    """A further argument under a name that no input has."""
    name, number = wanted, 0
    while name in names or name in added:
        number += 1
        name = f"{wanted}_{number}"
    added.append(name)
    return block.insert_arg(type_, len(block.args))


def _name(function: FuncOp, names: Sequence[str]) -> None:
    function.attributes[INPUT_NAMES] = ArrayAttr([StringAttr(name) for name in names])


def _hidden(op: Operation, value: SSAValue, dim: int, length: SSAValue) -> SSAValue:
    """The value with what stands behind `length` along a dimension replaced by what changes nothing."""
    row, shape = element(value.type), static_shape(value.type)
    line = tensor_type(_I32, [size if d == dim else 1 for d, size in enumerate(shape)])
    neutral = monoid(op.monoid.data if isinstance(op, ReduceOp) else "sum").identity(row)
    order = _insert(op, IotaOp.make([], line, {"dim": IntegerAttr(dim, i64)}))
    inside = _map(op, "lt", [order, length])
    if row.kind != "bool":
        fill = _insert(op, ConstantOp.of(np.asarray(neutral), row.attribute))
        return _map(op, "select", [inside, value, fill], value.type)
    if not neutral:
        return _map(op, "and", [value, inside])
    return _map(op, "or", [value, _map(op, "not", [inside])])


def _map(op: Operation, fn: str, operands: Sequence[SSAValue], type_: Attribute | None = None) -> SSAValue:
    return _insert(op, MapOp.make(operands, type_, {"fn": StringAttr(fn)}))


def _insert(before: Operation, made: GraphOp) -> SSAValue:
    made.location = before.location
    made.attributes.update(before.attributes)
    block = before.parent_block()
    assert block is not None
    block.insert_op_before(made, before)
    return made.res
