"""Making nodes: the same expression is one node, whoever asks for it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

from ..dialects.dtypes import accumulator_type, compute_type, is_bool, promote
from ..dialects.graph_primitives import ConstantOp, MapOp, ReduceOp
from ..dialects.locations import fuse_locations
from ..dialects.scalar import lookup
from .axes import Axis
from .group import Group, Node
from .interval_rules import EXACT


class Maker:
    """Makes maps, constants and reductions of nodes, without making one twice. Values in between are in the compute
    type; a node made from another keeps its location."""

    def __init__(self, group: Group) -> None:
        self.known: dict[Hashable, Node] = {}
        self.serials: dict[Node, int] = {}
        for node in group.nodes:
            if not node.is_reduction:  # a derived reduction is told more than one of the group it was derived from
                self.known.setdefault(self.key(node), node)

    def serial(self, node: Node) -> int:
        return self.serials.setdefault(node, len(self.serials))

    def key(self, node: Node) -> Hashable:
        inputs = tuple(self.serial(source) for source in node.inputs)
        match node.kind:
            case "map":
                assert isinstance(node.op, MapOp)
                if lookup(node.op.fn.data).commutative:
                    inputs = tuple(sorted(inputs))
                return "map", node.op.fn, node.op.params, node.element, inputs
            case "reduce":
                assert isinstance(node.op, ReduceOp)
                return "reduce", node.op.monoid, node.element, node.reduced, inputs
            case "contract":
                return "contract", node.element, node.reduced, inputs
            case "constant":
                return "constant", node.immediate, node.element
            case "expand":
                return "expand", node.present, inputs
            case "running" | "previous":
                return node.kind, node.source
            case _:
                return node

    def known_as(self, node: Node) -> Node:
        return self.known.setdefault(self.key(node), node)

    # --- maps -----------------------------------------------------------------------------------------------------

    def map(self, fn: str, *inputs: Node, to: Attribute | None = None, like: Node | None = None) -> Node:
        """A scalar operator on nodes, in the compute type unless `to` says otherwise; trivial ones are left out."""
        plain = self.trivial(fn, inputs)
        if plain is not None:
            return plain
        kind = to or compute_type(promote([source.element for source in inputs]))
        op = MapOp.create(properties={"fn": StringAttr(fn)})
        self.locate(op, like or inputs[0])
        return self.finish(Node("map", kind, (), [], op, list(inputs)))

    def trivial(self, fn: str, inputs: Sequence[Node]) -> Node | None:
        """The operand that a product with one or a sum with zero is."""
        row = lookup(fn)
        for position, node in enumerate(inputs):
            if row.arity != 2 or (position == 0 and not row.commutative):
                continue
            neutral = row.identity.get("float")
            if neutral is not None and number(node) == neutral:
                return inputs[1 - position]
        return None

    def copy(self, node: Node, inputs: Sequence[Node], wide: bool = False) -> Node:
        """The same map, reduction or contraction of other operands; `wide`: not rounded to less than it computes in."""
        if list(inputs) == node.inputs and not wide:
            return node
        return self.again(node, inputs, wide)

    def again(self, node: Node, inputs: Sequence[Node], wide: bool = False) -> Node:
        """Like `copy`, but another node even if the operands are the same."""
        kind = compute_type(node.element) if wide and not is_cast(node) else node.element
        made = Node(node.kind, kind, node.shape, node.dims, node.op, list(inputs), reduced=node.reduced)
        if node.is_reduction:
            made.inputs = [self.expanded(source, node.reduced) for source in inputs]
        return self.finish(made)

    def finish(self, made: Node) -> Node:
        made.present = frozenset(axis for source in made.inputs for axis in source.present) - made.reduced
        return self.known_as(made)

    def constant(self, value: float, like: Node) -> Node:
        """A number in the compute type of `like`."""
        return self.number(value, like, compute_type(like.element))

    def number(self, value: float, like: Node, kind: Attribute | None = None) -> Node:
        """A number in an element type, that of `like` unless `kind` says otherwise."""
        kind = kind or like.element
        op = ConstantOp.of(np.asarray(value), kind)
        self.locate(op, like)
        return self.known_as(Node("constant", kind, (), [], op))

    def cast(self, node: Node, kind: Attribute) -> Node:
        return node if node.element == kind else self.map("cast", node, to=kind)

    # --- reductions -----------------------------------------------------------------------------------------------

    def expanded(self, node: Node, wanted: frozenset[Axis]) -> Node:
        """The node repeated along axes that it does not vary along."""
        if wanted <= node.present:
            return node
        made = Node("expand", node.element, node.shape, node.dims, node.op, [node])
        made.present = node.present | wanted
        return self.known_as(made)

    def reduce(self, like: Node, source: Node) -> Node:
        """The reduction of another operand, kept in the accumulator type."""
        made = Node("reduce", accumulator_type(like.element), (), [], like.op, reduced=like.reduced)
        made.inputs = [self.expanded(source, like.reduced)]
        return self.finish(made)

    def contract(self, like: Node, left: Node, right: Node) -> Node:
        """The contraction of other operands, each rounded as the old one was."""
        made = Node("contract", accumulator_type(like.inputs[0].element), (), [], like.op, reduced=like.reduced)
        pair = zip((left, right), like.inputs, strict=True)
        made.inputs = [self.expanded(self.cast(new, old.element), like.reduced) for new, old in pair]
        return self.finish(made)

    def count(self, like: Node, axes: frozenset[Axis]) -> Node:
        """How many positions of `axes` there are: the sum of ones."""
        op = ReduceOp.create(properties={"monoid": StringAttr("sum")})
        self.locate(op, like)
        ones = self.constant(1.0, like)
        made = Node("reduce", ones.element, (), [], op, [self.expanded(ones, axes)], reduced=axes)
        return self.finish(made)

    def state(self, kind: str, reduction: Node) -> Node:
        """The `running` or `previous` value of a reduction."""
        made = Node(kind, reduction.element, (), [], reduction.op, source=reduction)
        made.present = reduction.present
        return self.known_as(made)

    @staticmethod
    def locate(op: MapOp | ConstantOp | ReduceOp, like: Node) -> None:
        if like.location is not None:
            op.location = fuse_locations([like.location])


def is_cast(node: Node) -> bool:
    return node.kind == "map" and isinstance(node.op, MapOp) and node.op.fn.data == "cast"


def number(node: Node) -> float | None:
    """The value of a constant node; None of others and of an integer that is not exact as a float."""
    found = node.immediate
    if not isinstance(found, FloatAttr | IntegerAttr):
        return None
    value = found.value.data
    if is_bool(node.element):
        return float(value != 0)  # true is −1 in one bit
    return float(value) if isinstance(value, float) or abs(value) <= EXACT else None


def fn_of(node: Node) -> str:
    """The scalar operator of a map."""
    assert isinstance(node.op, MapOp)
    return node.op.fn.data
