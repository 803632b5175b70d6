"""Whether a step of a loop changes nothing where masks hold a known value, and what of its body is left where it does.

The step is evaluated symbolically: known values (`facts`), constants, accumulators before the step, and everything else
as it is. It changes nothing if every accumulator comes out as it went in, by identities of floating-point numbers that
hold bit for bit or, where a value must be finite, under an assumption about the inputs that is returned:

    s′ = select(false, s, −∞) = −∞        m′ = max(m, −∞) = m        exp(s′ − m′) = exp(−∞) = 0
    l′ = l·exp(m − m′) + 0 = l            o′ = o·exp(m − m′) + 0·V = o   if V is finite

Nothing is said of values that only look neutral: of select(false, s, −65504) the maximum may be −65504 itself, so a
row that is masked throughout is uniform and not empty. −0 and 0 are one number here, where nothing is divided by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import TypeAlias

from ..dialects.dtypes import is_float
from ..dialects.graph_primitives import ReduceOp
from ..dialects.scalar import monoid
from .axes import Axis
from .group import Group, Node
from .map_numbers import divided_by, keeps_numbers, map_of_numbers
from .number_kinds import Kind, NumberKinds
from .online_nodes import fn_of, number

Facts: TypeAlias = Mapping[Node, float]
"""Static nodes with the value that they have in all of a tile."""


@dataclass(frozen=True)
class Value:
    """A symbolic value: equal ones are the same number. kind: constant, before (an accumulator), node, map (`form`:
    its parameters, and the type that it rounds to)."""

    kind: str
    number: float = 0.0
    node: Node | None = None
    fn: str = ""
    args: tuple[Value, ...] = ()
    form: str = ""


@dataclass(frozen=True)
class Step:
    """`changed`: the first accumulator that a step may change, None where it changes nothing; then `assumed` are the
    loads that must be finite for that."""

    changed: Node | None
    assumed: frozenset[Node] = frozenset()


# Finite of finite operands, unless it overflows: what is assumed of inputs covers that too.
KEEPS_FINITE = {
    "add", "sub", "mul", "neg", "abs", "sign", "square", "relu", "leaky_relu", "floor", "ceil", "round", "min", "max",
    "sigmoid", "tanh", "erf", "sin", "cos", "atan", "cast", "identity", "select",
}  # fmt: skip
FINITE_SUMS = frozenset(("contract", "expand"))
# Not always finite of finite operands, but always a number.
NEVER_NAN = {"exp", "exp2", "expm1", "sinh", "cosh", "reciprocal"}


@dataclass(eq=False)
class Absorber:
    """The steps of one loop: `carried` are its accumulators, `fixed` its axis and those of the loops around it."""

    group: Group
    carried: Sequence[Node]
    fixed: frozenset[Axis]
    kinds: NumberKinds
    memo: dict[frozenset[tuple[Node, float]], Step] = field(default_factory=dict[frozenset[tuple[Node, float]], Step])

    @cached_property
    def under(self) -> frozenset[Node]:
        """What a step needs."""
        return needed_by(self.carried, {})

    def step(self, facts: Facts) -> Step:
        """What a step does in a tile of which these facts hold."""
        key = frozenset(facts.items())
        if key not in self.memo:
            self.memo[key] = _Evaluation(self, facts).run()
        return self.memo[key]

    @cached_property
    def divided(self) -> frozenset[Node]:
        return divided_by(self.group)

    def aliases(self, facts: Facts) -> dict[Node, Node]:
        """Nodes that are one of their operands where the facts hold, each with that: select(true, a, b) is a."""
        found: dict[Node, Node] = {}
        for node in self.group.nodes:
            if node.kind != "map" or node in facts or not any(source in facts for source in node.inputs):
                continue
            fn = fn_of(node)
            plain = chosen(fn, [_fact(source, facts) for source in node.inputs])
            if fn in ("add", "sub") and node in self.divided:
                continue  # −0 + 0 is 0
            if plain is not None:
                source = node.inputs[plain]
                if source.present == node.present and source.element == node.element:
                    found[node] = found.get(source, source)
        return found


def needed_by(accumulators: Sequence[Node], aliases: Mapping[Node, Node]) -> frozenset[Node]:
    """The values that a step of some accumulators needs, where nodes are what `aliases` says."""
    needed: set[Node] = set()
    pending = [source for node in accumulators for source in _operands(node)]
    while pending:
        node = pending.pop()
        node = aliases.get(node, node)
        if node not in needed:
            needed.add(node)
            pending += _operands(node)
    return frozenset(needed)


def _operands(node: Node) -> list[Node]:
    return [*node.inputs, *(other for other in (node.carry, node.source) if other is not None)]


def _fact(node: Node, facts: Facts) -> Value:
    known = facts.get(node)
    if known is None:
        known = number(node) if node.kind == "constant" else None
    return Value("node", node=node) if known is None else Value("constant", known)


class _Evaluation:
    def __init__(self, loop: Absorber, facts: Facts) -> None:
        self.carried, self.fixed, self.kinds, self.facts = loop.carried, loop.fixed, loop.kinds, facts
        self.values: dict[Node, Value] = {}
        self.assumed: set[Node] = set()

    def run(self) -> Step:
        for node in self.carried:
            if self.after(node) != Value("before", node=node):
                return Step(node)
        return Step(None, frozenset(self.assumed))

    # --- nodes ----------------------------------------------------------------------------------------------------

    def after(self, node: Node) -> Value:
        """An accumulator after the step."""
        carry = Value("before", node=node) if node.carry is None else self.of(node.carry)
        part = self.part(node)
        return Value("node", node=node) if part is None else self.map(combine_of(node), [carry, part])

    def part(self, node: Node) -> Value | None:
        """What a reduction gives where its operands are known: None where that is not."""
        operands = [self.of(source) for source in node.inputs]
        if node.kind == "contract":
            zero = next((p for p, v in enumerate(operands) if v == Value("constant", 0.0)), None)
            return Value("constant", 0.0) if zero is not None and self.finite(operands[1 - zero]) else None
        value = operands[0]
        neutral = value.kind == "constant" and value.number == _identity(node)
        same = value.kind == "constant" and combine_of(node) in ("max", "min")
        return value if neutral or same else None

    def of(self, root: Node) -> Value:
        stack = [(root, False)]
        while stack:
            node, entered = stack.pop()
            if node in self.values:
                continue
            if entered or not self.below(node):
                self.values[node] = self.found(node)
            else:
                stack.append((node, True))
                stack += [(source, False) for source in self.below(node)]
        return self.values[root]

    def below(self, node: Node) -> list[Node]:
        if node in self.facts or node.kind == "previous":
            return []
        if node.kind == "running":
            source = node.source
            assert source is not None
            return [*source.inputs, *([source.carry] if source.carry is not None else [])]
        return [] if self.finished(node) else node.inputs

    def finished(self, node: Node) -> bool:
        """A reduction that other loops have computed, over other tiles than that of which the facts hold."""
        return node.is_reduction and (
            bool(node.cascade) or (node not in self.carried and bool(node.reduced & self.fixed))
        )

    def found(self, node: Node) -> Value:
        if node in self.facts:
            return Value("constant", self.facts[node])
        match node.kind:
            case "constant":
                value = number(node)
                return Value("node", node=node) if value is None else Value("constant", value)
            case "previous" | "running" if node.source in self.carried:
                assert node.source is not None
                return Value("before", node=node.source) if node.kind == "previous" else self.after(node.source)
            case "map":
                return self.mapped(node, [self.values[source] for source in node.inputs])
            case "expand":
                return self.values[node.inputs[0]]
            case "reduce" | "contract" if not self.finished(node) and node not in self.carried:
                return self.part(node) or Value("node", node=node)
            case _:
                return Value("node", node=node)

    # --- identities -----------------------------------------------------------------------------------------------

    def mapped(self, node: Node, args: Sequence[Value]) -> Value:
        """A map of symbolic values."""
        fn = fn_of(node)
        if all(arg.kind == "constant" for arg in args):
            found = map_of_numbers(node, [arg.number for arg in args])
            return Value("node", node=node) if found is None else Value("constant", found)
        plain = chosen(fn, args)
        if plain is not None and not keeps_numbers(node.inputs[plain], node):
            return Value("node", node=node)
        assert node.op is not None
        return self.map(fn, args, f"{node.op.properties.get('params')} {node.element}")

    def map(self, fn: str, args: Sequence[Value], form: str = "") -> Value:
        """A scalar operator on symbolic values that are not all constants."""
        plain = chosen(fn, args)
        if plain is not None:
            return args[plain]
        numbers = [arg.number if arg.kind == "constant" else None for arg in args]
        if len(args) == 2:
            for position, (value, other) in enumerate(zip(numbers, reversed(args), strict=True)):
                if fn == "mul" and value == 0.0 and self.finite(other):
                    return Value("constant", 0.0)
                if value is not None and abs(value) == inf and fn in ("add", "sub") and self.finite(other):
                    return Value("constant", -value if fn == "sub" and position == 1 else value)
            if fn == "sub" and args[0] == args[1] and self.finite(args[0]):
                return Value("constant", 0.0)
        return Value("map", fn=fn, args=tuple(args), form=form)

    def finite(self, value: Value) -> bool:
        """Whether a value is finite, if the inputs are; takes note of the inputs that it is said of."""
        found = self.loads_under(value)
        if found is None:
            return False
        self.assumed |= found
        return True

    def loads_under(self, value: Value) -> frozenset[Node] | None:
        """The loads that a value is finite of; None where it may be infinite whatever they are."""
        if value.kind == "constant":
            return frozenset() if isfinite(value.number) else None
        if value.kind == "map":
            if value.fn in ("max", "min") and (kept := self.kept(value)) is not None:
                return kept
            parts = [self.loads_under(arg) for arg in value.args]
            return _union(parts) if value.fn in KEEPS_FINITE else None
        return self.finite_node(value.node) if value.kind == "node" and value.node is not None else None

    def kept(self, value: Value) -> frozenset[Node] | None:
        """A value bounded below and above by numbers, or bounded on the side on which it can be infinite."""
        low, high, inside = -inf, inf, value
        while inside.kind == "map" and inside.fn in ("max", "min"):
            bound = next((arg for arg in inside.args if arg.kind == "constant" and isfinite(arg.number)), None)
            if bound is None:
                break
            low, high = (bound.number, high) if inside.fn == "max" else (low, bound.number)
            inside = inside.args[1 - inside.args.index(bound)]
        if isfinite(low) and isfinite(high):  # what lies between them, if it is a number at all
            if inside.kind == "before":
                return self.reached(inside.node, Kind.NAN)
            never = inside.kind == "map" and inside.fn in NEVER_NAN
            return _union([self.loads_under(arg) for arg in (inside.args if never else (inside,))])
        if inside.kind != "before":
            return None
        # A running maximum begins at −∞ and is finite from below once it is bounded there; from above it is what is
        # known of what it is the maximum of.
        beyond = Kind.HIGH if isfinite(low) else Kind.LOW if isfinite(high) else Kind.INFINITE
        return self.reached(inside.node, beyond | Kind.NAN)

    def reached(self, node: Node | None, never: Kind) -> frozenset[Node] | None:
        """The loads that have to be finite for a maximum or minimum so far never to be such a number; None where it may
        be one whatever they are."""
        if node is None or node.kind != "reduce" or combine_of(node) not in ("max", "min"):
            return None
        begins = Kind.LOW if combine_of(node) == "max" else Kind.HIGH
        possible = begins | (Kind.ANY if node.carry is not None else self.kinds.of(node.inputs[0]))
        return None if possible & never else _loads_under(node)

    def finite_node(self, node: Node) -> frozenset[Node] | None:
        if node.kind == "iota" or not is_float(node.element):
            return frozenset()
        if node.kind == "load":
            if node.table is not None:
                return frozenset() if self.kinds.of(node) in Kind.FINITE else None
            return frozenset((node,))
        summed = node.kind == "reduce" and combine_of(node) == "add"
        if self.finished(node) and node not in self.carried:
            return None if self.kinds.of(node) & ~Kind.FINITE else _loads_under(node)
        if node.cascade or not (node.kind in FINITE_SUMS or summed):
            return None
        return _union([self.loads_under(self.of(source)) for source in node.inputs])


def chosen(fn: str, args: Sequence[Value]) -> int | None:
    """The operand that the result is, whatever the others hold."""
    if fn == "select":
        condition = args[0]
        if condition.kind == "constant":
            return 1 if condition.number else 2
        return 1 if args[1] == args[2] else None
    if fn == "identity":
        return 0
    if len(args) != 2:
        return None
    for position, neutral in NEUTRAL.get(fn, ()):
        if args[position] == Value("constant", neutral):
            return 1 - position
    return None


def _union(parts: Sequence[frozenset[Node] | None]) -> frozenset[Node] | None:
    known = [part for part in parts if part is not None]
    return frozenset[Node]().union(*known) if len(known) == len(parts) else None


def _loads_under(node: Node) -> frozenset[Node]:
    """The loads under a node that are not known."""
    found: set[Node] = set()
    pending, seen = [node], {node}
    while pending:
        here = pending.pop()
        if here.kind == "load" and here.table is None:
            found.add(here)
        new = [source for source in _operands(here) if source not in seen]
        pending += new
        seen.update(new)
    return frozenset(found)


NEUTRAL: dict[str, tuple[tuple[int, float], ...]] = {
    "add": ((0, 0.0), (1, 0.0)),
    "sub": ((1, 0.0),),
    "mul": ((0, 1.0), (1, 1.0)),
    "div": ((1, 1.0),),
    "max": ((0, -inf), (1, -inf)),
    "min": ((0, inf), (1, inf)),
    "and": ((0, 1.0), (1, 1.0)),
    "or": ((0, 0.0), (1, 0.0)),
}
"""Operands that change nothing: position and number."""


def combine_of(node: Node) -> str:
    """The scalar operator that adds a part to a reduction."""
    if node.kind == "contract":
        return "add"
    assert isinstance(node.op, ReduceOp)
    return monoid(node.op.monoid.data).combine.name


def _identity(node: Node) -> float:
    return {"add": 0.0, "mul": 1.0, "max": -inf, "min": inf}[combine_of(node)]
