"""The `emit` pass: planned buffers become instructions on views, functions become programs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import hardware, tile
from ..dialects.attributes import int_values
from ..dialects.errors import UserError
from ..dialects.graph_functions import OUTPUTS, output_arguments
from ..dialects.graph_primitives import ConstantOp, WeightOp
from ..dialects.target import target_of
from ..dialects.tile_types import BufferType
from .emit_kernel import KernelEmitter
from .plan_names import ARGUMENTS, OFFSET
from .plan_validate import validate_plan
from .plan_validate_function import validate_function


@dataclass(frozen=True)
class EmitPass(ModulePass):
    """Requires planned buffer form; ensures a `hardware.program` and its `hardware.kernel`s, without events.

    1. `tile.for` → `hardware.for`; `tile.alloc` → `hardware.buffer` at its offset.
    2. `tile.slice` disappears into views: address, layout and active region of each operand.
    3. `tile.load`, `tile.move`, `tile.store` → `hardware.dma` on the engine of the target's move; a load that can leave
       its source → `hardware.fill`, then the DMA of the inside. A transfer of more dimensions than a descriptor has →
       loops of smaller ones.
    4. `tile.contract`, `tile.map`, `tile.reduce`, … → instructions of the matrix and the vector engine.
    5. `func.func` → `hardware.program`: buffers with their roles, launches in order.

    Rejects (UserError) buffers without offsets, stale offsets, and moves that the target does not have.
    """

    name = "emit"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        # A dump may have been edited since it was planned.
        for function in [f for f in op.ops if isinstance(f, FuncOp) and ARGUMENTS in f.attributes]:
            validate_function(function, target)
        for kernel in [k for k in op.ops if isinstance(k, tile.KernelOp)]:
            validate_plan(kernel.body.block, target)
            Rewriter.replace_op(kernel, KernelEmitter(kernel, target).emit(), new_results=[])
        for function in [f for f in op.ops if isinstance(f, FuncOp)]:
            if OUTPUTS in function.attributes:
                program = emit_program(function)
                Rewriter.insert_op(program, InsertPoint.before(function))
            elif not function.is_declaration and any(isinstance(o, tile.LaunchOp) for o in function.body.block.ops):
                raise UserError("this function is not in buffer form: run bufferize first", function.location)
            Rewriter.erase_op(function)


def emit_program(function: FuncOp) -> hardware.ProgramOp:
    """The program of a planned function. Raises UserError without offsets."""
    if ARGUMENTS not in function.attributes:
        raise UserError("this function has no planned addresses: run plan first", function.location)
    body, source = Block(), function.body.block
    program = hardware.ProgramOp(function.sym_name.data, Region(body))
    program.location = function.location
    for name, attribute in function.attributes.items():
        if name not in (ARGUMENTS, OUTPUTS):
            program.attributes[name] = attribute
    inputs = len(source.args) - output_arguments(function)
    build = _ProgramBuilder(body)
    values = build.values
    for number, (arg, offset) in enumerate(zip(source.args, int_values(function.attributes[ARGUMENTS]), strict=True)):
        role, index = ("input", number) if number < inputs else ("output", number - inputs)
        properties: dict[str, Attribute] = {"index": IntegerAttr(index, i64)}
        if arg.name_hint:
            properties["label"] = StringAttr(arg.name_hint)
        values[arg] = build.buffer(arg.type, offset, role, function, **properties)
        values[arg].name_hint = arg.name_hint
    for op in source.ops:
        match op:
            case tile.AllocOp():
                if op.offset is None:
                    raise UserError("this buffer has no offset: run plan first", op.location)
                values[op.res[0]] = build.buffer(op.res[0].type, op.offset.value.data, "workspace", op)
                values[op.res[0]].name_hint = op.res[0].name_hint
            case tile.AliasOp():
                values[op.res[0]] = build.alias(op)
            case tile.LaunchOp():
                launch = hardware.LaunchOp.create(
                    operands=[values[arg] for arg in op.args], properties={"callee": op.callee}
                )
                launch.location = op.location
                body.add_op(launch)
            case ConstantOp() | WeightOp() | ReturnOp():
                pass
            case _:
                raise UserError(f"'{op.name}' has no place in a program of launches", op.location)
    return program


class _ProgramBuilder:
    """Buffers of a program; `values` maps those of the function to them."""

    def __init__(self, body: Block) -> None:
        self.body = body
        self.values: dict[SSAValue, SSAValue] = {}

    def buffer(self, kind: Attribute, offset: int, role: str, at: Operation, **properties: Attribute) -> SSAValue:
        assert isinstance(kind, BufferType)
        made = hardware.BufferOp.create(
            result_types=[kind],
            properties={"offset": IntegerAttr(offset, i64), "role": StringAttr(role), **properties},
        )
        made.location = at.location
        self.body.add_op(made)
        return made.res

    def alias(self, op: tile.AliasOp) -> SSAValue:
        """The same bytes with another shape; of a constant or weight, its buffer."""
        owner, kind = op.args[0].owner, op.res[0].type
        if isinstance(owner, ConstantOp | WeightOp):
            offset = owner.attributes.get(OFFSET)
            if not isinstance(offset, IntegerAttr):
                raise UserError("this constant has no planned address: run plan first", owner.location)
            if isinstance(owner, ConstantOp):
                made = self.buffer(kind, offset.value.data, "constant", owner, value=owner.value)
            else:
                made = self.buffer(kind, offset.value.data, "weight", owner, file=owner.file, key=owner.key)
            made.name_hint = op.res[0].name_hint
            return made
        found = hardware.AliasOp.create(operands=[self.values[op.args[0]]], result_types=[kind])
        found.location = op.location
        self.body.add_op(found)
        return found.res
