"""The element types that values of a group have on chip."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from ..dialects.dtypes import compute_type, is_float
from .group import Node, Output
from .online_nodes import is_cast


def kept_type(node: Node, uses: Sequence[Node | Output]) -> Attribute:
    """The element type a computed tile is kept in: f32 for narrower floats, unless a cast asks for less or the
    value only leaves for a tensor or a matrix operand of that type."""
    if not is_float(node.element) or is_cast(node):
        return node.element
    if all(isinstance(use, Output) or use.kind == "contract" for use in uses):
        return node.element
    wanted = {use.element for use in uses if isinstance(use, Node) and is_cast(use)}
    if len(wanted) == 1 and all(isinstance(use, Node) and is_cast(use) for use in uses):
        return wanted.pop()
    return compute_type(node.element)


def rounded_already(node: Node, uses: Sequence[Node | Output]) -> bool:
    """Whether a cast finds its operand, with these uses, in the type that it names: nothing is left to do."""
    source = node.inputs[0] if is_cast(node) else None
    return source is not None and source.kind == "map" and kept_type(source, uses) == node.element
