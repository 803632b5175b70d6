"""Scalar operators of nodes on numbers: what is known of a map without its data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dialects.dtypes import common_compute_type, convert, element
from ..dialects.graph_types import get_numbers
from ..dialects.scalar import apply, lookup
from .group import Group, Node
from .interval_rules import EXACT
from .online_nodes import fn_of

DIVIDES = {"div": 1, "reciprocal": 0, "rsqrt": 0, "pow": 0}
"""Operators that give another number for −0 than for 0, and the operand of which that is so."""
FORGETS_SIGN = frozenset((
    "exp", "exp2", "sigmoid", "cos", "cosh", "abs", "square", "log", "eq", "ne", "lt", "le", "gt", "ge", "isnan",
))  # fmt: skip
"""Operators whose results, the signs of zeros included, are the same for −0 and 0."""


def map_of_numbers(node: Node, numbers: Sequence[float]) -> float | None:
    """What a map gives of operands that are these numbers, in the types that it computes in.

    None where it depends on the sign of a zero or on whether a float is rounded where it is kept, where it is no
    number, and for integers that are not exact as floats.
    """
    fn, target = fn_of(node), element(node.element)
    if fn in DIVIDES and numbers[DIVIDES[fn]] == 0:
        return None
    types = [source.element for source in node.inputs]
    if fn != "cast":
        compute = common_compute_type(types[1:] if fn == "select" else types)
        types = [types[0], *[compute] * 2] if fn == "select" else [compute] * len(types)
    operands = [np.asarray(number).astype(element(kind).numpy) for number, kind in zip(numbers, types, strict=True)]
    assert node.op is not None
    value = apply(lookup(fn), operands, get_numbers(node.op.properties, "params", fn))
    with np.errstate(all="ignore"):
        stored = convert(value, target)
    if target.kind == "float":
        exact = fn == "cast" or bool(stored == value)
        return float(stored) if exact and not np.isnan(stored) else None
    return float(stored) if abs(int(stored)) <= EXACT else None


def keeps_numbers(source: Node, to: Node) -> bool:
    """Whether a map that hands an operand on hands on the same number, but for the rounding of floats."""
    return source.element == to.element or element(source.element).kind == element(to.element).kind == "float"


def divided_by(group: Group) -> frozenset[Node]:
    """The nodes of which the sign of a zero shows, as something is divided by a value made of them."""
    found: set[Node] = set()
    grows = True
    while grows:
        before = len(found)
        for node in reversed(group.nodes):
            fn = fn_of(node) if node.kind == "map" else ""
            if node in found and fn not in FORGETS_SIGN:
                found.update(node.inputs)
                found.update(other for other in (node.carry, node.source) if other is not None)
            if fn in DIVIDES:
                found.add(node.inputs[DIVIDES[fn]])
        grows = len(found) > before
    return frozenset(found)
