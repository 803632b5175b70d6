"""The pass `reference`: kernels swapped for their logic."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.errors import UserError
from ..dialects.graph_functions import entry_function
from ..dialects.graph_fused import FusedOp
from ..dialects.names import suggestion
from .fuse import FusePass
from .handwritten import erase_unused_kernels
from .outline import kernel_logic

ALL = "all"


def group_names(module: ModuleOp) -> dict[str, FusedOp]:
    """The groups of a module by the names that their kernels get: the function's, and a number in order."""
    return {
        f"{function.sym_name.data}_{number}": fused
        for function in module.ops
        if isinstance(function, FuncOp) and not function.is_declaration
        for number, fused in enumerate(op for op in function.body.block.ops if isinstance(op, FusedOp))
    }


@dataclass(frozen=True)
class ReferencePass(ModulePass):
    """Requires groups; ensures that those of the named kernels are gone.

    What such a group computes is computed by one kernel for each operation of its logic, as `fuse{unfused=true}` makes
    them, whether its kernel is written by hand or was to be derived: where results become right by that, the kernel is
    wrong. Kernels are numbered anew.

    `kernels`: names as reports have them (`main_0`), or `all`.
    """

    name = "reference"
    kernels: tuple[str, ...] = (ALL,)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        groups = group_names(op)
        for name in self.kernels:
            if name not in (*groups, ALL):
                hint = suggestion(name, groups).replace("@", "")
                raise UserError(f"the program has no kernel '{name}' that was made from a group; {hint}")
        for name, fused in groups.items():
            if name in self.kernels or ALL in self.kernels:
                _swap(ctx, fused, op)
        erase_unused_kernels(op)


def _swap(ctx: Context, fused: FusedOp, module: ModuleOp) -> None:
    logic = kernel_logic(fused)
    logic.attributes.update(module.attributes)
    FusePass(unfused=True).apply(ctx, logic)
    body = entry_function(logic).body.block
    values: dict[SSAValue, SSAValue] = dict(zip(body.args, fused.args, strict=True))
    block = fused.parent
    assert block is not None
    for op in body.ops:
        if isinstance(op, ReturnOp):
            results = [values.get(value, value) for value in op.arguments]
            Rewriter.replace_op(fused, [], results)
            return
        block.insert_op_before(op.clone(values), fused)
