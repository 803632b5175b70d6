"""Comparisons, logic and choice."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ..node import Handler, Node
from .elementwise import scalar


def exclusive_or(node: Node) -> SSAValue:
    """True where the operands differ."""
    return node.build.map("ne", node.ssa(0), node.ssa(1))


def where(node: Node) -> SSAValue:
    """The second operand where the first holds, else the third."""
    return node.build.where(node.ssa(0), node.ssa(1), node.ssa(2))


TABLE: dict[str, Handler] = {
    "Equal": scalar("eq"),
    "Less": scalar("lt"),
    "LessOrEqual": scalar("le"),
    "Greater": scalar("gt"),
    "GreaterOrEqual": scalar("ge"),
    "And": scalar("and"),
    "Or": scalar("or"),
    "Not": scalar("not"),
    "Xor": exclusive_or,
    "IsNaN": scalar("isnan"),
    "Where": where,
}
