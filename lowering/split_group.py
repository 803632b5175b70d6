"""A group in two: partial results over parts of a reduced axis, and what merges them.

The online form (`online.py`) says what an accumulator is at another base: `carry`, an expression over its value before
a step and the bases before and after. Merging parts is that step taken once for every part: with the part's value in
the place of the one before, the part's own bases in the place of those before, and those of the whole in the place of
those after; the moved parts are combined by the reduction itself.

    m = max x, s = Σ exp(x − m)     →     m_p = max x, s_p = Σ exp(x − m_p)  over part p
                                          m = max m_p, s = Σ s_p · exp(m_p − m)  over all p
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Attribute, Block, SSAValue

from ..dialects.dtypes import accumulator_type
from ..dialects.graph_primitives import ReduceOp
from .axes import Axis, Linear, NotFusable
from .group import Group, Node, Output
from .group_write import Writer
from .online import derive
from .online_nodes import Maker


@dataclass(eq=False)
class Halves:
    """Bodies of two groups with what their arguments stand for. `partial` yields one tensor of a type in `parts` for
    each argument that the merge begins with."""

    partial: Block
    partial_operands: list[SSAValue]
    parts: list[Attribute]
    merge: Callable[[list[SSAValue]], tuple[Block, list[SSAValue]]]
    """Given the results of `partial`."""


def split(group: Group, axis: Axis, parts: int, operands: list[SSAValue], location: LocationAttr) -> Halves:
    """Divides a reduced axis into equal parts. Raises NotFusable, with why, where partial results cannot be merged."""
    if axis.extent % parts:
        raise NotFusable(f"an axis of {axis.extent} has no {parts} equal parts")
    derived = derive(group, frozenset({axis}))
    splitter = _Splitter(derived.group, axis, parts)
    members = splitter.members
    merged = [Output(o.number, splitter.whole(o.node), o.index) for o in derived.group.outputs]
    inputs = dict(enumerate(operands))
    writer = Writer([splitter.part, *(splitter.inner if a is axis else a for a in group.axes)], location)
    yielded = [writer.write(splitter.partial(member), inputs) for member in members]

    def merge(values: list[SSAValue]) -> tuple[Block, list[SSAValue]]:
        made = Writer([splitter.part, *(a for a in group.axes if a is not axis)], location)
        known = {**inputs, **{len(inputs) + number: value for number, value in enumerate(values)}}
        for output in merged:
            made.write(output.node, known)
        results = sorted(merged, key=lambda output: output.number)
        block = made.finish([made.output(output, group.results[output.number]) for output in results])
        return block, made.operands

    if [output.number for output in sorted(merged, key=lambda o: o.number)] != list(range(len(group.results))):
        raise NotFusable("a result that is written in pieces")
    return Halves(writer.finish(yielded), writer.operands, [value.type for value in yielded], merge)


class _Splitter:
    """Both halves as nodes. Axis k becomes (part, inner), k = part · extent of inner + inner."""

    def __init__(self, group: Group, axis: Axis, parts: int) -> None:
        self.group, self.axis = group, axis
        self.part, self.inner = Axis(parts, axis.serial), Axis(axis.extent // parts, axis.serial)
        self.maker = Maker(group)
        self.partials: dict[Node, Node] = {}
        self.wholes: dict[Node, Node] = {}
        self.loads: dict[Node, Node] = {}

    @cached_property
    def members(self) -> list[Node]:
        """The reductions over the axis."""
        return [node for node in self.group.nodes if self.reduces(node)]

    def axes(self, axes: frozenset[Axis]) -> frozenset[Axis]:
        return axes - {self.axis} | {self.part, self.inner} if self.axis in axes else axes

    # --- a part ---------------------------------------------------------------------------------------------------

    def partial(self, root: Node) -> Node:
        """The value of a node in one part, bases being those of the part; of a reduction, over the part alone."""
        return _rebuilt(root, self.partials, self.under_partial, self.make_partial)

    def under_partial(self, node: Node) -> list[Node]:
        if node.kind == "running":
            assert node.source is not None
            return [node.source]
        for source in node.inputs:
            if source.is_reduction and self.axis in source.reduced:
                raise NotFusable("a reduction over this axis waits for another one to be complete")
        if node.kind == "previous":
            raise NotFusable("a value of the step before is looked at")
        return node.inputs

    def make_partial(self, node: Node) -> Node:
        if node.kind == "running":
            assert node.source is not None
            return self.partials[node.source]
        inputs = [self.partials[source] for source in node.inputs]
        if node.kind == "load":
            if any(node.windows) or node.inside:
                raise NotFusable("an input that is read in windows")
            inner = Linear({self.part: self.inner.extent, self.inner: 1})
            made = self.copy(node, inputs, node.element)
            made.index = [expr.substitute({self.axis: inner}) for expr in node.index]
            made.arg = node.arg
        else:
            kind = accumulator_type(node.inputs[0].element) if self.reduces(node) else node.element
            made = self.copy(node, inputs, kind)
        made.reduced = node.reduced - {self.axis} | {self.inner} if self.reduces(node) else node.reduced
        own = self.axes(node.present) if node.kind in ("load", "iota", "expand") else frozenset[Axis]()
        made.present = own.union(*(source.present for source in inputs)) - made.reduced
        made.dims = [[a for axis in axes for a in self.divided(axis)] for axes in node.dims]
        return made

    def divided(self, axis: Axis) -> list[Axis]:
        return [self.part, self.inner] if axis is self.axis else [axis]

    def reduces(self, node: Node) -> bool:
        return node.is_reduction and self.axis in node.reduced

    def copy(self, node: Node, inputs: list[Node], kind: Attribute) -> Node:
        made = Node(node.kind, kind, node.shape, node.dims, node.op, inputs, reduced=node.reduced, fill=node.fill)
        made.gathers = node.gathers
        return made

    # --- the whole ------------------------------------------------------------------------------------------------

    def whole(self, root: Node) -> Node:
        """The value of a node when all parts are merged."""
        return _rebuilt(root, self.wholes, self.under_whole, self.make_whole)

    def under_whole(self, node: Node) -> list[Node]:
        if self.reduces(node):
            return [] if node.carry is None else [node.carry]
        if node.kind == "running":
            assert node.source is not None
            return [node.source]
        if self.axis in node.present:
            raise NotFusable("a result varies along this axis")
        return node.inputs

    def make_whole(self, node: Node) -> Node:
        if node.kind == "running":
            assert node.source is not None
            return self.wholes[node.source]
        if node.kind == "previous":
            assert node.source is not None
            return self.loaded(node.source)
        if not self.reduces(node):
            inputs = [self.wholes[source] for source in node.inputs]
            made = self.copy(node, inputs, node.element)
            made.index, made.inside, made.windows, made.arg = node.index, node.inside, node.windows, node.arg
            made.present = node.present
            if inputs:
                made.present = frozenset(a for source in inputs for a in source.present) - node.reduced
            if node.kind == "expand":
                made.present |= node.present
            if any(node.windows) or node.inside:
                raise NotFusable("an input that is read in windows")
            return made
        moved = self.loaded(node) if node.carry is None else self.wholes[node.carry]
        moved = self.maker.expanded(moved, frozenset({self.part}))
        op = ReduceOp.create(properties={"monoid": node.op.monoid if isinstance(node.op, ReduceOp) else _SUM})
        self.maker.locate(op, node)
        made = Node("reduce", node.element, (), [], op, [moved], reduced=frozenset({self.part}))
        made.present = moved.present - made.reduced
        return made

    def loaded(self, member: Node) -> Node:
        """The partial results of a reduction, read by the merge."""
        if member in self.loads:
            return self.loads[member]
        partial = self.partial(member)
        number = len(self.group.inputs) + self.members.index(member)
        made = Node("load", partial.element, (), [], partial.op, arg=number, present=partial.present)
        axes = [self.part, *(axis for axis in self.group.axes if axis in partial.present)]
        made.index = [Linear({axis: 1}) for axis in axes]
        self.loads[member] = made
        return made


_SUM = StringAttr("sum")


def _rebuilt(
    root: Node, known: dict[Node, Node], under: Callable[[Node], list[Node]], make: Callable[[Node], Node]
) -> Node:
    """What `make` makes of a node, after those that `under` says come first."""
    stack = [(root, False)]
    while stack:
        node, entered = stack.pop()
        if node in known:
            continue
        if entered:
            known[node] = make(node)
        else:
            stack.append((node, True))
            stack += [(source, False) for source in under(node)]
    return known[root]
