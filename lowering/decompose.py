"""The pass `decompose`: named graph ops become primitives."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block
from xdsl.passes import ModulePass

from ..dialects.errors import UserError
from ..dialects.graph_base import GraphOp
from ..dialects.graph_fused import FusedOp
from ..dialects.operators import MATCH
from .decompose_emit import Emitter
from .decompose_rules import RULES
from .handwritten import erase_unused_kernels
from .inline import inline_calls
from .link import instantiate_calls


@dataclass(frozen=True)
class DecomposePass(ModulePass):
    """Named ops → primitives.

    Requires: static shapes (symbolic dimensions bound). Ensures: functions hold only primitives of the graph dialect
    and no calls; every primitive made from the k-th graph op of a function has the attribute
    `tilewright.origin = k : i64` and that op's location. A primitive that the user wrote is left as it is.

    1. Calls of private functions are inlined; see `inline.inline_calls`. One with a hand-written kernel that fits
       becomes a `graph.fused` that names it (see `handwritten`); `kernels=false` takes none. Functions that `match` is
       to look for stay as they are; kernels that nothing names any more go.
    2. Each named op is replaced by what its rule in `decompose_rules.RULES` makes of it:

        %p = graph.softmax %x {axis = -1} : tensor<4x8xf16>
      →
        %m = graph.reduce %x {monoid = "max", axes = array<i64: 1>, tilewright.origin = 0} : tensor<4x1xf32>
        %d = graph.map %x, %m {fn = "sub", tilewright.origin = 0} : tensor<4x8xf32>
        %e = graph.map %d {fn = "exp", tilewright.origin = 0} : tensor<4x8xf32>
        %s = graph.reduce %e {monoid = "sum", axes = array<i64: 1>, tilewright.origin = 0} : tensor<4x1xf32>
        %p = graph.map %e, %s {fn = "div", tilewright.origin = 0} : tensor<4x8xf16>
    """

    name = "decompose"
    kernels: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        instantiate_calls(op)
        inline_calls(op, self.kernels)
        erase_unused_kernels(op)
        for function in op.ops:
            if isinstance(function, FuncOp) and not function.is_declaration and MATCH not in function.attributes:
                decompose_block(function.body.block)
                for inner in function.body.block.ops:
                    if isinstance(inner, FusedOp):
                        decompose_block(inner.body.block)


def decompose_block(block: Block) -> None:
    """Decomposes the named ops of a block. Raises UserError at an op with symbolic dimensions."""
    named = [op for op in block.ops if isinstance(op, GraphOp)]
    for position, op in enumerate(named):
        rule = RULES.get(op.name)
        if rule is None:
            continue
        attributes: dict[str, Attribute] = {"tilewright.origin": IntegerAttr(position, i64), **op.attributes}
        try:
            result = rule(Emitter(op, attributes), op)
        except UserError as error:
            raise UserError(error.message, error.location or op.location, error.notes) from error
        if result.name_hint is None:
            result.name_hint = op.res.name_hint
        op.res.replace_all_uses_with(result)
        block.erase_op(op)
