"""Which kinds of numbers a node can be, whatever the data: negative, zero, positive, an infinity, none at all.

Abstract interpretation over sets of kinds. What positions and constants make has the kinds of its interval
(`static_values.py`); data are assumed finite, and nothing is assumed to overflow, though products may underflow:

    s = select(mask, x, −∞)     −∞ or finite          −s       +∞ or finite
    m = max s                   −∞ or finite          s − m    anything: −∞ − −∞ is no number
    e = exp(s − m), m finite    0 or positive         Σ e      positive: one of the terms is exp(0)

A question may be asked under `facts`: what nodes are taken to be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntFlag
from itertools import product

import numpy as np
from xdsl.dialects.builtin import FloatAttr

from ..dialects.dtypes import is_float
from ..dialects.graph_primitives import ReduceOp
from .group import Group, Node
from .online_nodes import fn_of
from .static_values import Grid, Interval, interval, static_nodes


class Kind(IntFlag):
    """A set of kinds of numbers."""

    NONE = 0
    LOW = 1  # −∞
    NEGATIVE = 2
    ZERO = 4
    POSITIVE = 8
    HIGH = 16  # +∞
    NAN = 32
    FINITE = NEGATIVE | ZERO | POSITIVE
    INFINITE = LOW | HIGH
    ANY = FINITE | INFINITE | NAN


SINGLE = (Kind.LOW, Kind.NEGATIVE, Kind.ZERO, Kind.POSITIVE, Kind.HIGH, Kind.NAN)
BOUNDED = frozenset((
    "sign", "leaky_relu", "floor", "ceil", "round", "sigmoid", "tanh", "erf", "sin", "cos", "atan",
))  # fmt: skip
"""Operators without a rule of their own that are finite of finite operands."""
PASSED = frozenset(("cast", "identity"))


def of_number(value: float) -> Kind:
    """The kind of one number."""
    if np.isnan(value):
        return Kind.NAN
    if np.isinf(value):
        return Kind.HIGH if value > 0 else Kind.LOW
    return Kind.ZERO if value == 0 else Kind.POSITIVE if value > 0 else Kind.NEGATIVE


class NumberKinds:
    """The kinds of the nodes of a group."""

    def __init__(self, group: Group) -> None:
        self.static = static_nodes(group)
        self.meaning: dict[Node, Node] = {}
        """The node of the group that a derived one stands for."""
        self.known: dict[frozenset[tuple[Node, Kind]], dict[Node, Kind]] = {}
        self.intervals: dict[Node, Interval] = {}

    def of(self, root: Node, facts: Mapping[Node, Kind] | None = None) -> Kind:
        """The kinds that a node can be, where other nodes are what `facts` says."""
        facts = facts or {}
        known = self.known.setdefault(frozenset(facts.items()), dict(facts))
        stack, entered = [root], set[Node]()
        while stack:
            node = stack[-1]
            meant = self.meaning.get(node, node)
            if meant is not node and node not in known:
                if meant not in known:
                    stack.append(meant)
                    continue
                known[node] = known[meant]
            if node in known:
                stack.pop()
            elif node in entered:
                known[node] = self.found(node, known)
                stack.pop()
            elif node.source is not None or node.carry is not None:
                known[node] = Kind.ANY  # the value of a derived reduction depends on itself
            else:
                entered.add(node)
                stack += [source for source in node.inputs if source not in known]
        return known[root]

    def found(self, node: Node, known: Mapping[Node, Kind]) -> Kind:
        operands = [known[source] for source in node.inputs]
        if node in self.static:
            exact = self.of_interval(node)
            if exact is not None:
                return exact
        if not is_float(node.element):
            return Kind.FINITE
        match node.kind:
            case "load":
                fill = node.fill
                return Kind.FINITE | of_number(fill.value.data) if isinstance(fill, FloatAttr) else Kind.FINITE
            case "expand":
                return operands[0]
            case "contract":
                return _sum(_pairs(operands, _product))
            case "reduce":
                return self.reduced(node, operands[0], known)
            case "map":
                return _map(node, operands)
            case _:
                return Kind.ANY

    def of_interval(self, node: Node) -> Kind | None:
        """The kinds between the ends of a static value; None where these are not known."""
        low, high = (float(end) for end in interval(node, Grid((), {}), self.intervals))
        if np.isnan(low) or np.isnan(high):
            return Kind.ANY if node.kind == "load" else None
        between = _when(low < 0, Kind.NEGATIVE) | _when(low <= 0 <= high, Kind.ZERO) | _when(high > 0, Kind.POSITIVE)
        return of_number(low) | of_number(high) | _when(low < high, between)

    def reduced(self, node: Node, operand: Kind, known: Mapping[Node, Kind]) -> Kind:
        assert isinstance(node.op, ReduceOp)
        match node.op.monoid.data:
            case "max" | "min":
                return operand
            case "sum":
                top = greatest(node)
                sure = top is not None and not known.get(top, Kind.ANY) & (Kind.INFINITE | Kind.NAN)
                return Kind.POSITIVE if sure else _sum(operand)
            case _:
                return Kind.FINITE if operand in Kind.FINITE else Kind.ANY


def greatest(node: Node) -> Node | None:
    """m of Σ exp(x − m) where m is the maximum of x over the same axes: then one of the terms is exp(0)."""
    power = passed(node.inputs[0])
    shifted = passed(power.inputs[0]) if power.kind == "map" and fn_of(power) in ("exp", "exp2") else None
    if shifted is None or shifted.kind != "map" or fn_of(shifted) != "sub":
        return None
    value, top = map(passed, shifted.inputs)
    largest = top.kind == "reduce" and isinstance(top.op, ReduceOp) and top.op.monoid.data == "max"
    return top if largest and top.reduced == node.reduced and passed(top.inputs[0]) is value else None


def passed(node: Node) -> Node:
    """What a node repeats or casts to another type of floats."""
    while node.kind == "expand" or (node.kind == "map" and fn_of(node) in PASSED and is_float(node.inputs[0].element)):
        node = node.inputs[0]
    return node


# --- rules ------------------------------------------------------------------------------------------------------------


def _when(condition: object, kind: Kind) -> Kind:
    return kind if condition else Kind.NONE


def _pairs(operands: Sequence[Kind], rule: Callable[[Kind, Kind], Kind]) -> Kind:
    """A rule for single kinds, on sets."""
    found = Kind.NONE
    for one, other in product(*([kind for kind in SINGLE if kind & operand] for operand in operands)):
        found |= Kind.NAN if Kind.NAN in (one, other) else rule(one, other)
    return found


def _negated(a: Kind) -> Kind:
    pairs = ((Kind.LOW, Kind.HIGH), (Kind.NEGATIVE, Kind.POSITIVE))
    found = a & (Kind.ZERO | Kind.NAN)
    for low, high in pairs:
        found |= _when(a & low, high) | _when(a & high, low)
    return found


def _added(a: Kind, b: Kind) -> Kind:
    infinite = (a | b) & Kind.INFINITE
    if infinite:
        return Kind.NAN if infinite == Kind.INFINITE else infinite
    if Kind.ZERO in (a, b) or a == b:
        return b if a == Kind.ZERO else a
    return Kind.FINITE


def _product(a: Kind, b: Kind) -> Kind:
    positive = (a in Kind.POSITIVE | Kind.HIGH) == (b in Kind.POSITIVE | Kind.HIGH)
    if (a | b) & Kind.INFINITE:
        return Kind.NAN if Kind.ZERO in (a, b) else Kind.HIGH if positive else Kind.LOW
    if Kind.ZERO in (a, b):
        return Kind.ZERO
    return Kind.ZERO | (Kind.POSITIVE if positive else Kind.NEGATIVE)  # what is small may underflow


def _larger(a: Kind, b: Kind) -> Kind:
    return max(a, b)  # the kinds are in order


def _smaller(a: Kind, b: Kind) -> Kind:
    return min(a, b)


def _inverse(a: Kind) -> Kind:
    kept = a & (Kind.NEGATIVE | Kind.POSITIVE | Kind.NAN)
    return kept | _when(a & Kind.ZERO, Kind.INFINITE) | _when(a & Kind.INFINITE, Kind.ZERO)


def _root(a: Kind) -> Kind:
    return a & (Kind.ZERO | Kind.POSITIVE | Kind.HIGH | Kind.NAN) | _when(a & (Kind.LOW | Kind.NEGATIVE), Kind.NAN)


def _size(a: Kind) -> Kind:
    return a & ~(Kind.LOW | Kind.NEGATIVE) | _negated(a & (Kind.LOW | Kind.NEGATIVE))


def _power(a: Kind) -> Kind:
    finite = _when(a & (Kind.NEGATIVE | Kind.POSITIVE), Kind.ZERO | Kind.POSITIVE)
    return finite | _when(a & Kind.ZERO, Kind.POSITIVE) | _when(a & Kind.LOW, Kind.ZERO) | a & (Kind.HIGH | Kind.NAN)


def _logarithm(a: Kind) -> Kind:
    below = _when(a & (Kind.LOW | Kind.NEGATIVE), Kind.NAN)
    return _when(a & Kind.POSITIVE, Kind.FINITE) | _when(a & Kind.ZERO, Kind.LOW) | below | a & (Kind.HIGH | Kind.NAN)


def _sum(a: Kind) -> Kind:
    """Of any number of terms."""
    finite = a & Kind.FINITE
    if finite & Kind.NEGATIVE and finite & Kind.POSITIVE:
        finite = Kind.FINITE
    both = _when(a & Kind.INFINITE == Kind.INFINITE, Kind.NAN)
    return finite | a & (Kind.INFINITE | Kind.NAN) | both


UNARY: dict[str, Callable[[Kind], Kind]] = {
    "neg": _negated,
    "identity": lambda a: a,
    "cast": lambda a: a | _when(a & (Kind.NEGATIVE | Kind.POSITIVE), Kind.ZERO),
    "abs": _size,
    "square": lambda a: _size(a) | _when(a & (Kind.NEGATIVE | Kind.POSITIVE), Kind.ZERO),
    "relu": lambda a: a & ~(Kind.LOW | Kind.NEGATIVE) | _when(a & (Kind.LOW | Kind.NEGATIVE), Kind.ZERO),
    "exp": _power,
    "exp2": _power,
    "log": _logarithm,
    "sqrt": _root,
    "reciprocal": _inverse,
    "rsqrt": lambda a: _inverse(_root(a)),
}
BINARY: dict[str, Callable[[Kind, Kind], Kind]] = {
    "add": lambda a, b: _pairs((a, b), _added),
    "sub": lambda a, b: _pairs((a, _negated(b)), _added),
    "mul": lambda a, b: _pairs((a, b), _product),
    "div": lambda a, b: _pairs((a, _inverse(b)), _product),
    "max": lambda a, b: _pairs((a, b), _larger),
    "min": lambda a, b: _pairs((a, b), _smaller),
}


def _map(node: Node, operands: Sequence[Kind]) -> Kind:
    fn = fn_of(node)
    match operands:
        case [condition, a, b] if fn == "select":
            return _when(condition & ~Kind.ZERO, a) | _when(condition & Kind.ZERO, b)
        case [a] if fn in UNARY:
            return UNARY[fn](a) if is_float(node.inputs[0].element) else Kind.FINITE
        case [a, b] if fn in BINARY:
            if fn == "mul" and node.inputs[0] is node.inputs[1]:
                return UNARY["square"](a)
            return BINARY[fn](a, b)
        case _:
            finite = fn in BOUNDED and all(operand in Kind.FINITE for operand in operands)
            return Kind.FINITE if finite else Kind.ANY
