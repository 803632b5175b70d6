"""Bases: what stands inside the loop for a value that is finished only after it.

A running maximum stands for a maximum. A sum is scaled up to the whole length, so that the base of a mean is the mean
of what was seen. The base need not be good, only true at the end: there nothing is scaled any more.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from xdsl.dialects.builtin import i1

from ..dialects.dtypes import compute_type, element
from ..dialects.graph_primitives import MapOp, ReduceOp
from ..dialects.graph_types import get_numbers
from ..dialects.scalar import apply, lookup, monoid
from .axes import Axis
from .group import Node
from .number_kinds import Kind, NumberKinds, of_number
from .online_nodes import Maker, fn_of, number
from .online_values import Base, Move, NotOnline


class States:
    """The bases of one walk."""

    def __init__(self, maker: Maker, walk: frozenset[Axis], kinds: NumberKinds) -> None:
        self.maker, self.walk, self.kinds = maker, walk, kinds
        self.bases: dict[Node, Base] = {}
        self.inside: dict[Node, Node] = {}
        """What stands for the result of a reduction inside the loop, where its bases count as the true ones."""

    def base(self, value: Node, members: list[Node]) -> Base:
        """The base of a finished value that needs `members`. Raises NotOnline."""
        if value not in self.bases:
            inside = rebuilt(value, self.inside.get, self.maker)
            kept = self.kept(value, inside, members)
            running, previous = (self.finite(self.at(inside, kind, members), kept) for kind in ("running", "previous"))
            settled = self.settled(running, previous, kept)
            self.bases[value] = Base(value, running, previous, settled, self.finite(inside, kept), value, kept)
        return self.bases[value]

    def at(self, value: Node, kind: str, members: list[Node]) -> Node:
        """The value of an expression over members before or after a step."""
        known = list(members)
        return rebuilt(value, lambda node: self.estimate(node, kind, members) if node in known else None, self.maker)

    def estimate(self, member: Node, kind: str, members: list[Node]) -> Node:
        now = self.maker.state(kind, member)
        plain = member.carry is None and (member.kind == "contract" or monoid_of(member) == "sum")
        if not plain:
            return now
        length = self.maker.constant(float(prod(axis.extent for axis in self.walk)), member)
        count = self.count(member, members)
        seen = self.maker.state(kind, count)
        if kind == "previous":  # before the first step nothing is seen, and the sum is zero
            seen = self.maker.map("max", seen, self.maker.constant(1.0, member))
        return self.maker.map("mul", now, self.maker.map("div", length, seen))

    def count(self, like: Node, members: list[Node]) -> Node:
        made = self.maker.known_as(self.maker.count(like, self.walk))
        if made not in members:
            members.append(made)
        return made

    # --- infinities -----------------------------------------------------------------------------------------------

    def kept(self, value: Node, inside: Node, members: list[Node]) -> Kind:
        """The infinities that a base is kept from, so that differences of bases are numbers: that which it begins at
        and those that it may be.

        A row of −∞ so far has the lowest finite number as its base: exp(−∞ − base) is 0, and so is the factor that
        moves this nothing to the first real base. At the end the difference to the true value says what the plain
        formula does of a row that never had one.
        """
        start, certain = initial(inside, members)
        if np.isnan(start):
            raise NotOnline("a base that is no number before the first step")
        begins = Kind.INFINITE if np.isinf(start) and not certain else of_number(start) & Kind.INFINITE
        return begins | self.kinds.of(value) & Kind.INFINITE

    def finite(self, node: Node, kept: Kind) -> Node:
        """A value with infinities replaced by the greatest numbers."""
        low, high = self.ends(node)
        if kept & Kind.LOW:
            node = self.maker.map("max", node, low)
        if kept & Kind.HIGH:
            node = self.maker.map("min", node, high)
        return node

    def ends(self, like: Node) -> tuple[Node, Node]:
        info = np.finfo(element(compute_type(like.element)).numpy)
        return self.maker.constant(float(info.min), like), self.maker.constant(float(info.max), like)

    def settled(self, running: Node, previous: Node, kept: Kind) -> Node:
        """The previous base; where that is still an infinity, the running one."""
        if not kept:
            return previous
        low, high = self.ends(previous)
        size = self.maker.map("abs", previous) if kept == Kind.INFINITE else previous
        end = low if kept == Kind.LOW else high
        return self.maker.map("select", self.maker.map("eq", size, end, to=i1), running, previous)

    # --- differences ----------------------------------------------------------------------------------------------

    def step(self, move: Move, factor: bool = False) -> Node:
        """How much the value moves in one step of the loop, to be exponentiated (or as a `factor`, multiplied with what
        was summed before). Nothing was summed at an infinity: it moves by nothing, or so that it stays nothing."""
        found = self.difference(
            move, lambda base, pull: (base.running, base.settled if factor or pull >= 0 else base.previous)
        )
        assert found is not None
        return found

    def finish(self, move: Move, factor: bool = False) -> Node | None:
        """How much is left to the true value when the loop is over; None if nothing ever is."""
        return self.difference(move, lambda base, pull: (base.true, base.final))

    def difference(self, move: Move, ends: Callable[[Base, float], tuple[Node, Node]]) -> Node | None:
        """`ends` is told which way the first step of a base goes: down (< 0) where it makes the exponential zero."""
        total: Node | None = None
        for base, factor, sign in move:
            to, start = ends(base, pull(base, factor, sign))
            if to is start:
                continue
            part = self.maker.map("sub", to, start) if sign > 0 else self.maker.map("sub", start, to)
            if factor is not None:
                part = self.maker.map("mul", part, factor)
            total = part if total is None else self.maker.map("add", total, part)
        return total


def pull(base: Base, factor: Node | None, sign: float) -> float:
    """Which way a value goes in the first step of a base: a maximum leaves the lowest number, x − max falls."""
    known = 1.0 if factor is None else number(factor) or 0.0
    return sign * known * {Kind.LOW: 1.0, Kind.HIGH: -1.0}.get(base.kept, 0.0)


def monoid_of(node: Node) -> str:
    assert isinstance(node.op, ReduceOp)
    return node.op.monoid.data


def rebuilt(root: Node, leaf: Callable[[Node], Node | None], maker: Maker) -> Node:
    """The same expression with other leaves."""
    made: dict[Node, Node] = {}
    stack = [(root, False)]
    while stack:
        node, entered = stack.pop()
        if node in made:
            continue
        if entered:
            inputs = [made[source] for source in node.inputs]
            made[node] = node if inputs == node.inputs else maker.copy(node, inputs)
            continue
        replaced = leaf(node)
        if replaced is not None or node.is_reduction:
            made[node] = replaced or node
            continue
        stack.append((node, True))
        stack += [(source, False) for source in node.inputs]
    return made[root]


def initial(root: Node, members: list[Node]) -> tuple[float, bool]:
    """An expression before the first step, and whether that is certain: what is not known is taken as 1."""
    values: dict[Node, float] = {}
    certain = True
    stack = [(root, False)]
    while stack:
        node, entered = stack.pop()
        if node in values:
            continue
        if node in members:
            row = element(node.element)
            values[node] = float(monoid(monoid_of(node)).identity(row)) if node.kind == "reduce" else 0.0
        elif node.kind == "constant":
            known = number(node)
            values[node] = 1.0 if known is None else known
            certain = certain and known is not None
        elif node.kind in ("map", "expand"):
            if not entered:
                stack.append((node, True))
                stack += [(source, False) for source in node.inputs]
            elif node.kind == "expand":
                values[node] = values[node.inputs[0]]
            else:
                assert isinstance(node.op, MapOp)
                operands = [np.float64(values[source]) for source in node.inputs]
                params = get_numbers(node.op.properties, "params", fn_of(node))
                values[node] = float(apply(lookup(fn_of(node)), [np.asarray(v) for v in operands], params))
        else:
            values[node], certain = 1.0, False
    return values[root], certain
