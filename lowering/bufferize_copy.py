"""A kernel that copies a tensor, for results of a function that no kernel makes."""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import (
    AffineMapAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.graph_types import Tensor, static_shape, tensor_type
from ..dialects.target import Target
from ..dialects.tile_types import TileType

SHARE = 4
"""A piece takes at most one part in this many of its memory: two slots fill half of it."""


def copied(value: SSAValue, function: FuncOp, number: int, target: Target, before: Operation) -> SSAValue:
    """A copy of a tensor, made by a kernel of its own: its elements in a line, piece by piece through one memory.

    Raises UserError, at `before`, where nothing can be loaded into an on-chip memory and stored from it.
    """
    kind = value.type
    line = tensor_type(tile.element_of(value), [prod(tile.shape_of(value))])
    name = f"{function.sym_name.data}_copy_{number}"
    Rewriter.insert_op(_kernel(name, line, target, before), InsertPoint.before(function))
    flat = tile.AliasOp.create(operands=[value], result_types=[line])
    launch = tile.LaunchOp.create(
        operands=[flat.res[0]], result_types=[line], properties={"callee": SymbolRefAttr(name)}
    )
    shaped = tile.AliasOp.create(operands=[launch.res[0]], result_types=[kind])
    for op in (flat, launch, shaped):
        op.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))
    return shaped.res[0]


def _kernel(name: str, kind: Tensor, target: Target, like: Operation) -> tile.KernelOp:
    element, (count,) = kind.element_type, static_shape(kind)
    memory = _memory(target, like)
    align = target.memories[memory].align
    most = max(target.memories[memory].bytes // SHARE // align * align // byte_width(element), 1)
    piece = min(count, most)
    body = Block(arg_types=[IndexType()])
    top = Block(arg_types=[kind, kind])
    position = AffineDimExpr(0) * piece + AffineDimExpr(1)
    index = AffineMapAttr(AffineMap(2, 0, (position,)))
    valid = AffineMapAttr(AffineMap(1, 0, (AffineDimExpr(0) * -piece + AffineConstantExpr(count),)))
    counter = body.args[0]
    load = tile.LoadOp.create(
        operands=[top.args[0], counter],
        result_types=[TileType([piece], element, memory)],
        properties={"map": index, "valid": valid, "slots": IntegerAttr(2, i64)},
    )
    store = tile.StoreOp.create(operands=[load.res[0], top.args[1], counter], properties={"map": index, "valid": valid})
    body.add_ops([load, store, tile.YieldOp.create()])
    top.add_op(tile.ForOp(-(-count // piece), [], Region(body), "a", "grid"))
    properties = {"sym_name": StringAttr(name), "function_type": FunctionType.from_lists([kind], [kind])}
    made = tile.KernelOp.create(properties=properties, regions=[Region(top)])
    for op in made.walk():
        op.location = like.location
    return made


def _memory(target: Target, like: Operation) -> str:
    """The largest on-chip memory that is loaded from off chip and stored to it directly."""
    names = [
        name
        for name in target.memories
        if target.move(target.offchip, name) is not None and target.move(name, target.offchip) is not None
    ]
    if not names:
        raise UserError(f"target '{target.name}' has no memory to copy a tensor through", like.location)
    return max(names, key=lambda name: target.memories[name].bytes)
