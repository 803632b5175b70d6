"""The pass `canonicalize`: what can be said more simply at the graph level is said more simply."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import dce

from ..dialects.graph_base import GraphOp
from ..dialects.graph_types import shape_of
from .canonicalize_scalar import fold_scalar, simplify_scalar
from .canonicalize_views import fold_view, simplify_view

# Every rewrite removes an op or shortens a chain of them, so rounds end by themselves; this only bounds a mistake.
_MOST_ROUNDS = 1000


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Simplifies graph ops, named or primitive, in functions and in regions of `graph.fused`.

    Requires nothing. Ensures: the same results, bit for bit, for all inputs, NaN and infinities included, under
    native evaluation. New ops keep location and attributes (`tilewright.origin`) of the op they replace.

    1. Identities of the scalar table: x·1 → x, x + (−0) → x, x − 0 → x, not(not x) → x, abs(abs x) → abs x,
       max(x, x) → x, and(x, false) → false, a cast to the same type → x. x + 0 stays for floats (it turns −0 into +0),
       and so does x·0 (NaN, infinities).
    2. select with a known condition, or with the same value twice, → that value.
    3. Views: the identity → its operand; a view of a box-free view → one view; likewise transposes and reshapes.
    4. Scalar operators and views of constants → a constant, if it has at most `fold_limit` elements.
    5. Common subexpressions are computed once, values without a use not at all.

        %1 = graph.transpose %0 {permutation = array<i64: 1, 0>}
        %2 = graph.transpose %1 {permutation = array<i64: 1, 0>}      →    graph.exp %0
        %3 = graph.exp %2
    """

    name = "canonicalize"
    fold_limit: int = 65536

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        blocks = [block for inner in op.walk() for region in inner.regions for block in region.blocks]
        for _ in range(_MOST_ROUNDS):
            changed = False
            for block in blocks:
                changed = self._visit(block) or changed
            if not changed:
                count = _count(op)
                cse(op)
                dce(op)
                if _count(op) == count:  # what has become one value may be simpler still: max(x, x)
                    break

    def _visit(self, block: Block) -> bool:
        """Rewrites the ops of a block in order; returns whether any was."""
        changed = False
        for op in list(block.ops):
            if isinstance(op, GraphOp) and op.args:
                replacement = simplify_scalar(op) or simplify_view(op) or self._fold(op)
                if replacement is not None:
                    _replace(block, op, replacement)
                    changed = True
        return changed

    def _fold(self, op: GraphOp) -> GraphOp | None:
        shape = shape_of(op.res.type)
        numbers = [d for d in shape if isinstance(d, int)]
        if len(numbers) != len(shape) or math.prod(numbers) > self.fold_limit:
            return None
        return fold_scalar(op) or fold_view(op)


def _count(op: ModuleOp) -> int:
    return sum(1 for _ in op.walk())


def _replace(block: Block, op: GraphOp, replacement: SSAValue | Operation) -> None:
    if isinstance(replacement, Operation):
        replacement.location = op.location
        replacement.attributes.update(op.attributes)
        block.insert_op_before(replacement, op)
        value: SSAValue = replacement.results[0]
        value.name_hint = op.res.name_hint
    else:
        value = replacement
    op.res.replace_all_uses_with(value)
    block.erase_op(op)
