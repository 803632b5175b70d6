"""The online form: one walk over an axis for reductions that wait for one another (softmax·V, variance, …).

`derive` replaces, in a group, every reduction over looped axes that needs another one over the same axes by sums that
need none: inside the loop a running base stands in for what is not finished, and what was summed so far is moved along
with it (`online_values.py`). Nothing is recognised: the value under each reduction is taken apart by the rules of
`online_rules.py` until only maps of the current tile, finished factors (they wait until the loop is over) and
differences to a base remain. What has no such form keeps its own walk, and `Derived.refusals` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ..dialects.dtypes import is_float
from ..dialects.schedule import Sums
from .axes import Axis
from .group import Group, Node, Output, in_order
from .matrix_sums import summed_by_products, with_ones
from .number_kinds import NumberKinds
from .online_nodes import Maker, is_cast
from .online_proofs import Proofs
from .online_rules import Rules
from .online_state import States
from .online_values import Core, Frontier, Move, NotOnline, Refused, Row, Settled, Shifted, Term, Value

Differences: TypeAlias = Callable[[Move, bool], Node | None]
"""How much a value moves (None: not at all); the flag as for `States.step`."""


@dataclass(eq=False)
class Derived:
    """A group with online reductions, or the group itself where there is nothing to derive; why some have none."""

    group: Group
    refusals: dict[Node, str] = field(default_factory=dict[Node, str])

    @property
    def cascades(self) -> list[list[Node]]:
        found = {id(node.cascade): node.cascade for node in self.group.nodes if node.cascade}
        return list(found.values())


def derive(group: Group, looped: frozenset[Axis], sums: Sums = "vector") -> Derived:
    """The online form of a group whose `looped` axes are walked tile by tile; `sums` as in `Schedule`."""
    walks = dict.fromkeys(node.reduced & looped for node in group.reductions)
    refusals: dict[Node, str] = {}
    for walk in walks:
        if walk and not walk & group.taps:
            try:
                group = _Derivation(group, walk, looped, refusals).run(sums)
            except NotOnline as reason:
                refusals.update((node, str(reason)) for node in group.reductions if node.reduced & looped == walk)
    return Derived(group, refusals)


class _Derivation:
    """The reductions over the axes `walk` of one group.

    `final` gives for every node what stands for it after the loop. The members of cascade c see each other's running
    values; to a later cascade they are finished.
    """

    def __init__(self, group: Group, walk: frozenset[Axis], looped: frozenset[Axis], refusals: dict[Node, str]) -> None:
        self.group, self.walk, self.looped, self.refusals = group, walk, looped, refusals
        self.maker = Maker(group)
        self.final: dict[Node, Node] = {}
        self.members: list[list[Node]] = [[]]
        self.values: list[dict[Node, Value]] = [{}]
        self.kinds = NumberKinds(group)
        self.states = States(self.maker, walk, self.kinds)
        self.proofs = Proofs(self.kinds, walk)

    def run(self, sums: Sums) -> Group:
        for node in self.group.nodes:
            if node.is_reduction and node.reduced & self.looped == self.walk:
                self.reduction(node)
            else:
                self.plain(node)
        if not any(node.carry is not None for members in self.members for node in members):
            return self.group
        for members in self.members:
            self.share_rounding(members)
            if sums == "matrix":
                self.sum_by_products(members)
        outputs = [Output(o.number, self.final[o.node], o.index) for o in self.group.outputs]
        nodes = in_order(self.group.loads, outputs)
        for members in self.members:
            mark(members, nodes)
        return Group(self.group.inputs, self.group.results, nodes, outputs, self.group.axes)

    def streams(self, node: Node) -> bool:
        return bool(node.present & self.walk)

    # --- what does not end here -----------------------------------------------------------------------------------

    def plain(self, node: Node) -> None:
        """A node that is no reduction of this walk."""
        inputs = [self.final[source] for source in node.inputs]
        if node.cascade and inputs != node.inputs:
            raise NotOnline("reductions over other axes, taken in one walk already, would need these")
        if node.gathers is not None and inputs != node.inputs:
            raise NotOnline("which rows are loaded depends on a reduction of this walk")
        final = self.final[node] = self.maker.copy(node, inputs) if inputs else node
        self.kinds.meaning.setdefault(final, node)
        for number in range(len(self.members)):
            found = [self.value(number, source) for source in node.inputs]
            if all(isinstance(value, Settled) for value in found):
                continue
            refused = next((value for value in found if isinstance(value, Refused)), None)
            if refused is not None:
                self.values[number][node] = refused
            elif not self.streams(node):
                self.values[number][node] = Frontier(final)
            else:
                self.values[number][node] = self.rules(number).apply(node, found)

    def rules(self, number: int) -> Rules:
        return Rules(self.maker, self.states, self.members[number], self.looped, self.proofs)

    def value(self, number: int, node: Node) -> Value:
        return self.values[number].get(node) or Settled(self.final[node])

    # --- reductions -----------------------------------------------------------------------------------------------

    def reduction(self, node: Node) -> None:
        """Joins the last cascade that it needs; where that has no form, it starts a cascade of its own."""
        found = [[self.value(c, source) for source in node.inputs] for c in range(len(self.members))]
        needed = [c for c, values in enumerate(found) if not all(isinstance(v, Settled) for v in values)]
        inputs = [self.final[source] for source in node.inputs]
        if not needed:
            made = self.maker.again(node, inputs)
            self.join(0, node, made, [made])
            return
        last = needed[-1]
        try:
            if not is_float(node.element):
                raise NotOnline("integers are not moved")
            result, accumulators = self.derived(last, node, found[last])
            self.join(last, node, result, accumulators)
        except NotOnline as reason:
            self.refusals[node] = str(reason)
            if last + 1 == len(self.members):
                self.members.append([])
                self.values.append({})
            made = self.maker.again(node, inputs)
            self.join(last + 1, node, made, [made])

    def join(self, number: int, node: Node, result: Node, accumulators: list[Node]) -> None:
        self.final[node] = result
        self.kinds.meaning.setdefault(result, node)
        for accumulator in accumulators:
            if accumulator not in self.members[number]:
                self.members[number].append(accumulator)
        self.values[number][node] = Frontier(result)

    def derived(self, number: int, node: Node, values: list[Value]) -> tuple[Node, list[Node]]:
        """What stands for a reduction at the end, and the accumulators that it is made of. Raises NotOnline."""
        rules = self.rules(number)
        value = rules.reduced(node, values)
        accumulators: list[Node] = []
        if isinstance(value, Shifted):
            made = self.maker.reduce(node, value.node)
            made.carry = self.maker.map("add", self.maker.state("previous", made), self.states.step(value.move))
            left = self.states.finish(value.move)
            result = made if left is None else self.maker.map("add", made, left)
            self.states.inside[result] = made
            return result, [made]
        for _, core in value.parts:
            self.carry(core)
            accumulators += core.entries
        result = self.total([self.first(core, factor, self.states.finish) for factor, core in value.parts])
        inside = [self.first(core, factor, lambda move, factor: None) for factor, core in value.parts]
        self.states.inside[result] = self.total(inside)
        return result, accumulators

    def total(self, parts: list[Node]) -> Node:
        result = parts[0]
        for part in parts[1:]:
            result = self.maker.map("add", result, part)
        return result

    def carry(self, core: Core) -> None:
        """Gives each accumulator what it adds to in a step: its row of T times the values before the step."""
        for entry, row in zip(core.entries, core.rows, strict=True):
            if entry.carry is None and not core.is_fixed:
                before = [self.maker.state("previous", other) for other in core.entries]
                carried = self.row(row, before, self.states.step)
                entry.carry = None if carried is before[core.entries.index(entry)] else carried

    def first(self, core: Core, factor: Node | None, build: Differences) -> Node:
        """The first entry at other bases, times what was kept out of the loop."""
        row = core.rows[0]
        if len(core.entries) == 1 and factor is not None and not core.is_fixed:
            scale = self.row(row, [factor], build)  # few elements, where the accumulator may have many
            return self.maker.map("mul", core.entries[0], scale)
        result = self.row(row, core.entries, build)
        return result if factor is None else self.maker.map("mul", result, factor)

    def row(self, row: Row, values: list[Node], build: Differences) -> Node:
        """Σ over the row of T: term · value, differences as `build` makes them (None: zero)."""
        return self.total(
            [
                self.term(term, values[j], build)
                for j, terms in row.items()
                for term in terms
                if all(build(move, True) is not None for move in term.moves)
            ]
        )

    def term(self, term: Term, value: Node, build: Differences) -> Node:
        scale: Node | None = None
        for fn, move in term.powers:
            moved = build(move, False)
            if moved is not None:
                power = self.maker.map(fn, moved)
                scale = power if scale is None else self.maker.map("mul", scale, power)
        for move in term.moves:
            moved = build(move, True)
            assert moved is not None
            scale = moved if scale is None else self.maker.map("mul", scale, moved)
        if term.coefficient != 1:
            number = self.maker.constant(term.coefficient, value)
            scale = number if scale is None else self.maker.map("mul", scale, number)
        return value if scale is None else self.maker.map("mul", value, scale)

    def share_rounding(self, members: list[Node]) -> None:
        """What the matrix engine reads rounded is summed rounded: then the errors of both cancel in their ratio."""
        operands = [source for member in members if member.kind == "contract" for source in member.inputs]
        read = {source.inputs[0]: source for source in operands if is_cast(source)}
        for member in members:
            if member.carry is not None and member.kind == "reduce" and member.inputs[0] in read:
                member.inputs = [read[member.inputs[0]]]

    def sum_by_products(self, members: list[Node]) -> None:
        """Sums of what products read become products."""
        for member, place in summed_by_products(members).items():
            member.kind, member.inputs = "contract", with_ones(self.maker, member, place)


def mark(members: list[Node], nodes: list[Node]) -> None:
    """Tells those members that move or are looked at while they run that one loop computes them."""
    watched = {node.source for node in nodes if node.source is not None}
    cascade = [m for m in nodes if m in members and (m.carry is not None or m in watched)]
    for member in cascade:
        member.cascade = cascade
