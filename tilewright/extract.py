"""One kernel of a program as a file of its own: beside its reference logic, to be changed and compared."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.operators import KERNELS, TARGETS
from tilewright.dialects.target import set_target
from tilewright.dialects.tile import KernelOp
from tilewright.ir.diagnostics import did_you_mean
from tilewright.lowering.outline import kernel_logic

from .errors import plain_error
from .program import Program
from .reporting.fusion import fused_groups


def extract(program: Program, name: str) -> ModuleOp:
    """The kernel of this name as the `tile` pass made it, an operator whose logic it computes, and a function that
    calls the operator: a program. Raises SourceError if there is no such kernel.
    """
    groups = fused_groups(program)
    if name not in groups:
        hint = did_you_mean(name, groups) or f"there are {', '.join(groups) or 'none'}"
        raise plain_error(f"the program has no derived kernel '{name}'; {hint}")
    tiles = program.snapshot(after="tile").module
    kernel = next((op for op in tiles.ops if isinstance(op, KernelOp) and op.sym_name.data == name), None)
    if kernel is None:
        raise plain_error(f"kernel '{name}' is written by hand already")
    fused, copy = groups[name], kernel.clone()
    copy.properties.pop("schedule", None)  # a record of where it came from, of no meaning once it is changed
    copy.attributes[TARGETS] = ArrayAttr([StringAttr(program.target.name)])
    module = ModuleOp([copy, _operator(fused, name), _caller(fused, name)])
    set_target(module, program.target)
    return module


def _operator(fused: FusedOp, name: str) -> FuncOp:
    logic = next(op for op in kernel_logic(fused).ops if isinstance(op, FuncOp))
    for inner in logic.walk():
        inner.attributes.pop("tilewright.origin", None)
    logic.detach()
    logic.properties["sym_name"] = StringAttr(_operator_name(name))
    logic.properties["sym_visibility"] = StringAttr("private")
    logic.attributes[KERNELS] = ArrayAttr([SymbolRefAttr(name)])
    _name(fused, list(logic.body.block.args))
    return logic


def _caller(fused: FusedOp, name: str) -> FuncOp:
    inputs, outputs = [value.type for value in fused.args], [value.type for value in fused.res]
    block = Block(arg_types=inputs)
    _name(fused, list(block.args))
    call = CallOp(SymbolRefAttr(_operator_name(name)), list(block.args), outputs)
    for old, new in zip(fused.res, call.results, strict=True):
        new.name_hint = old.name_hint
    block.add_ops([call, ReturnOp(*call.results)])
    return FuncOp("main", FunctionType.from_lists(inputs, outputs), Region(block))


def _operator_name(kernel: str) -> str:
    return f"{kernel}_logic"


def _name(fused: FusedOp, values: list[SSAValue]) -> None:
    for old, new in zip(fused.args, values, strict=True):
        new.name_hint = old.name_hint
