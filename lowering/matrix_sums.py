"""Sums of rows by the matrix engine: where a product reads what is summed, the sum is a product with ones.

    %l = reduce %p {sum over d}            →   %l = contract "bd,d->b" %p, ones
    %o = contract "bd,dc->bc" %p, %v           %o = contract "bd,dc->bc" %p, %v

The vector engine is spared one pass over all elements; the matrix engine, which has the operand already, does one
narrow product more. What is summed is what the product reads, in its element type: nothing is rounded that was not.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..dialects.graph_primitives import ReduceOp
from .axes import Axis
from .group import Group, Node, Output, in_order
from .online_nodes import Maker


def summed_by_products(nodes: Iterable[Node]) -> dict[Node, int]:
    """The sums among some reductions that products can do: which operand of a product what is summed is."""
    reductions = list(nodes)
    read: dict[tuple[Node, frozenset[Axis]], int] = {}
    for node in reductions:
        if node.kind == "contract":
            for place, source in enumerate(node.inputs):
                read.setdefault((source, node.reduced), place)
    return {
        node: read[node.inputs[0], node.reduced]
        for node in reductions
        if node.kind == "reduce"
        and isinstance(node.op, ReduceOp)
        and node.op.monoid.data == "sum"
        and (node.inputs[0], node.reduced) in read
    }


def with_ones(maker: Maker, node: Node, place: int) -> list[Node]:
    """The operands of the product that a sum is, what is summed at `place`."""
    (summed,) = node.inputs
    ones = maker.expanded(maker.number(1, summed), node.reduced)
    return [summed, ones] if place == 0 else [ones, summed]


def by_products(group: Group) -> Group:
    """The group with these sums as products; itself if it has none."""
    places = summed_by_products(group.reductions)
    if not places:
        return group
    maker = Maker(group)
    made: dict[Node, Node] = {}
    for node in group.nodes:
        inputs = [made[source] for source in node.inputs]
        copy = maker.copy(node, inputs)
        if node in places:
            copy = Node("contract", node.element, node.shape, node.dims, node.op, reduced=node.reduced)
            copy.inputs = with_ones(maker, maker.again(node, inputs), places[node])
            copy = maker.finish(copy)
        made[node] = copy
    outputs = [Output(o.number, made[o.node], o.index) for o in group.outputs]
    return Group(group.inputs, group.results, in_order(group.loads, outputs), outputs, group.axes)
