"""Taking a streamed value apart: which map of which values gives what kind of value (`online_values.py`).

Every rule is a law of algebra (sums distribute, exp turns a shift into a factor); a map that has none refuses.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dialects.dtypes import byte_width, compute_type, is_float
from .axes import Axis
from .group import Node
from .online_nodes import Maker, fn_of, number
from .online_proofs import Proofs
from .online_state import States, monoid_of
from .online_values import Core, Frontier, Move, NotOnline, Refused, Settled, Shifted, Sums, Term, Value

POWERS = (2, 3, 4)
"""Exponents of `pow` that are multiplied out."""


class Rules:
    """The rules for one cascade: `members` are the reductions whose running values stand in for finished ones."""

    def __init__(
        self, maker: Maker, states: States, members: list[Node], looped: frozenset[Axis], proofs: Proofs
    ) -> None:
        self.maker, self.states, self.members, self.looped, self.proofs = maker, states, members, looped, proofs
        self.walk = states.walk

    def apply(self, node: Node, values: list[Value]) -> Value:
        """The value of a streamed node of which an operand needs a member."""
        try:
            if not is_float(node.element):
                raise NotOnline(f"{self.name(node)} of a value that is not finished gives no number")
            if node.is_reduction:
                return self.inside(node, values)
            return self.map(node, values)
        except NotOnline as reason:
            return Refused(str(reason))

    def name(self, node: Node) -> str:
        return f"'{fn_of(node)}'" if node.kind == "map" else f"a {node.kind}"

    # --- maps -----------------------------------------------------------------------------------------------------

    def map(self, node: Node, values: list[Value]) -> Value:
        if node.kind == "expand":
            return values[0]
        fn = fn_of(node)
        match fn:
            case "add" | "sub":
                return self.added(node, values[0], values[1])
            case "mul":
                return self.multiplied(node, values[0], values[1])
            case "div":
                return self.divided(node, values[0], values[1])
            case "square":
                return self.multiplied(node, values[0], values[0])
            case "pow":
                return self.raised(node, values)
            case "exp" | "exp2":
                return self.power(node, values[0])
            case "neg" | "identity" | "cast":
                return self.linear(node, values[0])
            case "select":
                return self.selected(node, values)
            case _:
                raise NotOnline(f"{self.name(node)} mixes a streamed value with a reduction that is not finished")

    def added(self, node: Node, left: Value, right: Value) -> Value:
        """x ± d is shifted with the base of d."""
        minus = fn_of(node) == "sub"
        first, second = self.move_of(left), self.move_of(right)
        if first is not None and second is not None:
            move: Move = (*first, *((b, f, -s if minus else s) for b, f, s in second))
            return Shifted(self.maker.copy(node, [self.now(left), self.now(right)], wide=True), move, node)
        other = self.sums(right)
        if minus:
            other = Sums([(self.negated(factor, core), core) for factor, core in other.parts])
        return Sums([*self.sums(left).parts, *other.parts])

    def negated(self, factor: Node | None, core: Core) -> Node:
        if factor is None:
            return self.maker.constant(-1.0, core.entries[0])
        return self.maker.map("neg", factor)

    def multiplied(self, node: Node, left: Value, right: Value) -> Value:
        for value, other in ((left, right), (right, left)):
            if isinstance(value, Shifted) and isinstance(other, Settled) and not self.streams(other.node):
                shifted = self.maker.map("mul", value.node, other.node, like=node)
                return Shifted(shifted, self.scaled(value.move, other.node), node)
            if isinstance(value, Frontier):
                return Sums([(self.times(factor, value.node), core) for factor, core in self.sums(other).parts])
        return self.product(node, left, right)

    def product(self, node: Node, left: Value, right: Value) -> Sums:
        parts: list[tuple[Node | None, Core]] = []
        for first, one in self.sums(left).parts:
            for second, other in self.sums(right).parts:
                core = one.product(other, lambda a, b: self.maker.map("mul", a, b, like=node))
                parts.append((second if first is None else self.times(second, first), core))
        return Sums(parts)

    def divided(self, node: Node, left: Value, right: Value) -> Value:
        if isinstance(right, Frontier):
            one = self.maker.constant(1.0, right.node)
            inverse = self.maker.map("div", one, right.node, like=node)
            return Sums([(self.times(factor, inverse), core) for factor, core in self.sums(left).parts])
        if not isinstance(right, Settled):
            raise NotOnline("a division by a streamed value that needs a reduction that is not finished")
        if isinstance(left, Shifted) and not self.streams(right.node):
            inverse = self.maker.map("div", self.maker.constant(1.0, right.node), right.node)
            shifted = self.maker.copy(node, [left.node, right.node], wide=True)
            return Shifted(shifted, self.scaled(left.move, inverse), node)
        return self.each(left, lambda entry: self.maker.map("div", entry, right.node, like=node))

    def raised(self, node: Node, values: list[Value]) -> Value:
        exponent = number(values[1].node) if isinstance(values[1], Settled) else None
        if exponent not in POWERS:
            raise NotOnline("a power of a value that is not finished, whose exponent is not 2, 3 or 4")
        result = values[0]
        for _ in range(int(exponent) - 1):
            result = self.product(node, result, values[0])
        return result

    def power(self, node: Node, value: Value) -> Value:
        """exp(y) at a base, times exp(−difference) where the base moves."""
        if not isinstance(value, Shifted):
            raise NotOnline(f"{self.name(node)} of a product with a reduction that is not finished")
        self.proofs.check(value)
        entry = self.maker.copy(node, [value.node], wide=True)
        return Sums([(None, Core([entry], [{0: [Term(powers=((fn_of(node), value.move),))]}]))])

    def linear(self, node: Node, value: Value) -> Value:
        fn = fn_of(node)
        if fn == "cast" and byte_width(node.element) < byte_width(compute_type(node.element)):
            raise NotOnline("a cast rounds a value that is not finished: rounding is not moved through a sum")
        if isinstance(value, Shifted):
            move = self.reversed(value.move) if fn == "neg" else value.move
            return Shifted(self.maker.copy(node, [value.node], wide=True), move, node)
        if fn == "neg":
            parts = self.sums(value).parts
            return Sums([(self.negated(factor, core), core) for factor, core in parts])
        return self.each(value, lambda entry: self.maker.copy(node, [entry], wide=True))

    def selected(self, node: Node, values: list[Value]) -> Value:
        """A choice by what is known: of two sums, term by term; of a shifted value and an infinity, which stays one."""
        condition, *branches = values
        if not isinstance(condition, Settled):
            raise NotOnline("a choice that depends on a reduction that is not finished")
        for place, (value, other) in enumerate((branches, branches[::-1])):
            constant = number(other.node) if isinstance(other, Settled) else None
            if isinstance(value, Shifted) and constant in (float("inf"), float("-inf")):
                inputs = [value.node, self.now(other)] if place == 0 else [self.now(other), value.node]
                move = self.proofs.chosen(value.move, condition.node, place == 0)
                return Shifted(self.maker.copy(node, [condition.node, *inputs], wide=True), move, node)
        parts: list[tuple[Node | None, Core]] = []
        for place, value in enumerate(branches):
            for factor, core in self.sums(value).parts:
                zero = self.maker.constant(0.0, core.entries[0])

                def chosen(entry: Node, place: int = place, zero: Node = zero) -> Node:
                    inputs = [entry, zero] if place == 0 else [zero, entry]
                    return self.maker.copy(node, [condition.node, *inputs], wide=True)

                if not (isinstance(value, Settled) and number(value.node) == 0):
                    if factor is not None:
                        self.proofs.check_factor(factor)
                    moved = core.with_moves(
                        lambda move, place=place: self.proofs.chosen(move, condition.node, place == 0)
                    )
                    parts.append((factor, Core([chosen(entry) for entry in core.entries], moved.rows)))
        return Sums(parts)

    # --- reductions -----------------------------------------------------------------------------------------------

    def inside(self, node: Node, values: list[Value]) -> Value:
        """A reduction within the tile of values that are not finished; not one with a loop of its own."""
        if node.reduced & self.looped:
            raise NotOnline("a reduction over another looped axis needs a value that is not finished")
        value = self.reduced(node, values)
        if isinstance(value, Shifted):
            return Shifted(self.maker.reduce(node, value.node), value.move, node)
        return value

    def reduced(self, node: Node, values: list[Value]) -> Shifted | Sums:
        """What a reduction is the reduction of: its cores have reductions as entries. Raises NotOnline."""
        refused = next((value for value in values if isinstance(value, Refused)), None)
        if refused is not None:
            raise NotOnline(refused.reason)
        if node.kind == "contract":
            left, right = (self.sums(value) for value in values)
            parts: list[tuple[Node | None, Core]] = []
            for first, one in left.parts:
                for second, other in right.parts:
                    core = one.product(other, lambda a, b: self.maker.contract(node, a, b))
                    parts.append((second if first is None else self.times(second, first), core))
            return self.checked(node, Sums(parts))
        name, value = monoid_of(node), values[0]
        if name in ("max", "min"):
            if isinstance(value, Shifted):
                self.check_move(node, value.move)
                self.proofs.check(value)
                return value
            raise NotOnline(f"a {name} of a product with a reduction that is not finished")
        if name != "sum":
            raise NotOnline(f"a reduction by '{name}' of values that are not finished")
        found = self.sums(value)
        return self.checked(
            node,
            Sums([(f, Core([self.maker.reduce(node, e) for e in core.entries], core.rows)) for f, core in found.parts]),
        )

    def checked(self, node: Node, found: Sums) -> Sums:
        for factor, core in found.parts:
            if factor is not None and factor.present & node.reduced:
                raise NotOnline("a finished factor varies along an axis that is summed")
            for move in core.moves():
                self.check_move(node, move)
        return found

    def check_move(self, node: Node, move: Move) -> None:
        for base, factor, _ in move:
            if base.true.present & node.reduced or (factor is not None and factor.present & node.reduced):
                raise NotOnline("a base varies along an axis that is reduced")

    # --- forms ----------------------------------------------------------------------------------------------------

    def streams(self, node: Node) -> bool:
        return bool(node.present & self.walk)

    def move_of(self, value: Value) -> Move | None:
        """How a value moves as a whole; None for sums of cores, which have many parts."""
        match value:
            case Settled():
                return ()
            case Frontier(node):
                return ((self.states.base(node, self.members), None, 1.0),)
            case Shifted(_, move):
                return move
            case _:
                return None

    def now(self, value: Value) -> Node:
        """A value at the running bases."""
        match value:
            case Settled(node) | Shifted(node):
                return node
            case Frontier(node):
                return self.states.base(node, self.members).running
            case _:
                raise AssertionError("a sum of cores is no node")

    def sums(self, value: Value) -> Sums:
        match value:
            case Settled(node):
                return Sums([(None, Core.fixed(node))])
            case Frontier(node):
                return Sums([(node, Core.fixed(self.maker.constant(1.0, node)))])
            case Shifted(node, move):
                self.proofs.check(value)
                one = self.maker.constant(1.0, node)
                return Sums([(None, Core([node, one], [{0: [Term()], 1: [Term(moves=(move,))]}, {1: [Term()]}]))])
            case Sums():
                return value
            case Refused(reason):
                raise NotOnline(reason)

    def each(self, value: Value, entry: Callable[[Node], Node]) -> Sums:
        """A linear map of every entry."""
        return Sums([(f, Core([entry(e) for e in core.entries], core.rows)) for f, core in self.sums(value).parts])

    def times(self, factor: Node | None, other: Node | None) -> Node | None:
        if factor is None or other is None:
            return other if factor is None else factor
        return self.maker.map("mul", factor, other)

    def scaled(self, move: Move, factor: Node) -> Move:
        known = number(factor)
        if known is not None and abs(known) == 1:
            return move if known == 1 else self.reversed(move)
        return tuple((b, factor if f is None else self.maker.map("mul", f, factor), s) for b, f, s in move)

    def reversed(self, move: Move) -> Move:
        return tuple((base, factor, -sign) for base, factor, sign in move)
