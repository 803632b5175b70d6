"""A function from tensors to off-chip buffers: outputs are trailing arguments, intermediates are allocated."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile
from ..dialects.errors import UserError
from ..dialects.graph_functions import OUTPUTS
from ..dialects.graph_primitives import ConstantOp, WeightOp
from ..dialects.target import Target
from ..dialects.tile_types import BufferType
from .bufferize_copy import copied
from .bufferize_layout import tensor_buffer


def is_program(function: FuncOp) -> bool:
    """Whether a function launches kernels and is in value form; others are the logic of custom ops."""
    return OUTPUTS not in function.attributes and any(isinstance(op, tile.LaunchOp) for op in function.body.block.ops)


def copy_results(function: FuncOp, target: Target) -> None:
    """Gives a copy of its own to each result that is an argument, a constant, or (as an alias, say) returned before."""
    last = _return(function)
    made: set[SSAValue] = set()
    for number, value in enumerate(last.arguments):
        source = _source(value)
        if source in made or not isinstance(source.owner, tile.LaunchOp):
            last.operands[number] = copied(value, function, number, target, last)
        made.add(source)


def _return(function: FuncOp) -> ReturnOp:
    last = function.body.block.last_op
    if not isinstance(last, ReturnOp):
        raise UserError("a function ends with func.return", function.location)
    return last


def bufferize_function(function: FuncOp, target: Target) -> None:
    """Rewrites a function of launches, whose results are made by kernels of their own, in place."""
    block = function.body.block
    last = _return(function)
    inputs = [tensor_buffer(target, kind) for kind in function.function_type.inputs]
    outputs = [tensor_buffer(target, value.type) for value in last.arguments]
    for arg, kind in zip(list(block.args), inputs, strict=True):
        location = arg.location
        made = Rewriter.replace_value_with_new_type(arg, kind)
        if isinstance(made, BlockArgument):
            made.location = location
    given: dict[SSAValue, SSAValue] = {}
    for number, (value, kind) in enumerate(zip(last.arguments, outputs, strict=True)):
        source = _source(value)
        arg = block.insert_arg(kind, len(block.args))
        arg.name_hint = value.name_hint or f"out{number}"
        arg.location = last.location
        given[source] = arg
    for op in list(block.ops):
        match op:
            case tile.LaunchOp() if op.into is None:
                _launch(op, given, target)
            case tile.AliasOp():
                _retype(op.res[0], target)
            case ConstantOp() | WeightOp():
                if op.res.uses.get_length():
                    _constant(op, target)
            case _:
                pass
    Rewriter.replace_op(last, ReturnOp())
    for op in reversed(list(block.ops)):
        if isinstance(op, tile.AliasOp) and not op.res[0].uses.get_length():
            Rewriter.erase_op(op)
    function.properties["function_type"] = type(function.function_type).from_lists([*inputs, *outputs], [])
    function.attributes[OUTPUTS] = IntegerAttr(len(outputs), i64)


def _source(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, tile.AliasOp):
        value = value.owner.args[0]
    return value


def _launch(op: tile.LaunchOp, given: dict[SSAValue, SSAValue], target: Target) -> None:
    destinations: list[SSAValue] = []
    for result in op.res:
        kind = tensor_buffer(target, result.type)
        held = given.get(result)
        if held is None:
            alloc = tile.AllocOp.create(result_types=[kind])
            _insert(alloc, op)
            held = alloc.res[0]
            held.name_hint = result.name_hint
        elif held.type != kind:  # returned through an alias: the kernel sees the output with its own shape
            alias = tile.AliasOp.create(operands=[held], result_types=[kind])
            _insert(alias, op)
            held = alias.res[0]
        destinations.append(held)
    made = tile.LaunchOp.create(
        operands=[*op.args, *destinations],
        properties={**op.properties, "into": UnitAttr()},
        attributes=dict(op.attributes),
    )
    _insert(made, op)
    for result, held in zip(op.res, destinations, strict=True):
        result.replace_all_uses_with(held)
    Rewriter.erase_op(op)


def _retype(value: SSAValue, target: Target) -> None:
    if not isinstance(value.type, BufferType):
        Rewriter.replace_value_with_new_type(value, tensor_buffer(target, value.type))


def _constant(op: ConstantOp | WeightOp, target: Target) -> None:
    alias = tile.AliasOp.create(operands=[op.res], result_types=[tensor_buffer(target, op.res.type)])
    alias.location = op.location
    alias.res[0].name_hint = op.res.name_hint
    op.res.replace_uses_with_if(alias.res[0], lambda use: use.operation is not alias)
    Rewriter.insert_op(alias, InsertPoint.after(op))


def _insert(op: Operation, before: Operation) -> None:
    op.location = before.location
    Rewriter.insert_op(op, InsertPoint.before(before))
