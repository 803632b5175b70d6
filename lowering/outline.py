"""One fused group as a program of its own: to be measured, or to be compared with its reference logic."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.graph_fused import FusedOp
from ..dialects.graph_primitives import ConstantOp
from ..dialects.operators import KERNEL
from .handwritten import kernel_of
from .known_inputs import stand_in


def kernel_alone(fused: FusedOp) -> ModuleOp:
    """A module whose function does nothing but a copy of this group, with its schedule or hand-written kernel.

    Its arguments are the group's inputs; those that are known are constants in it all the same, as masks are made of
    them."""
    block = Block(arg_types=[value.type for value in fused.args])
    inputs = [stand_in(value) for value in fused.args]
    made = [value.owner for value in inputs if isinstance(value.owner, ConstantOp)]
    operands = [v if isinstance(v.owner, ConstantOp) else a for v, a in zip(inputs, block.args, strict=True)]
    copy = FusedOp(operands, [result.type for result in fused.res], Region())
    fused.body.clone_into(copy.body)
    if fused.schedule is not None:
        copy.schedule = fused.schedule
    copy.location = fused.location
    block.add_ops([*made, copy, ReturnOp(*copy.res)])
    module = _module(fused, block)
    kernel = kernel_of(fused)
    if kernel is not None:
        copy.attributes[KERNEL] = fused.attributes[KERNEL]
        Rewriter.insert_op(kernel.clone(), InsertPoint.at_start(module.body.block))
    return module


def kernel_logic(fused: FusedOp) -> ModuleOp:
    """A module whose function is the region of this group: what its kernel has to compute."""
    block = Block(arg_types=[value.type for value in fused.args])
    values: dict[SSAValue, SSAValue] = dict(zip(fused.body.block.args, block.args, strict=True))
    for op in fused.body.block.ops:
        if op is not fused.yield_op:
            block.add_op(op.clone(values))
    block.add_op(ReturnOp(*(values[value] for value in fused.yield_op.args)))
    return _module(fused, block)


def _module(fused: Operation, block: Block) -> ModuleOp:
    kinds = ([value.type for value in fused.operands], [result.type for result in fused.results])
    return ModuleOp([FuncOp("main", kinds, Region(block))])
