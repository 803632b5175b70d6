"""What costs depend on that no schedule of a group changes: where values lie, which operators a move does on its way.

Thousands of schedules of one group are estimated, and all of them ask.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import Attribute

from ..dialects.dtypes import accumulator_type, byte_width, compute_type, is_float, type_name
from ..dialects.graph_primitives import MapOp
from ..dialects.output_stage import can_do, output_stage
from ..dialects.target_model import Target
from .axes import Axis
from .group import Group, Node, Output
from .kept_types import kept_type, rounded_already
from .roles import Roles, product_apart


class Facts:
    """Of one group on one target."""

    def __init__(self, group: Group, target: Target) -> None:
        self.group, self.target, self.roles = group, target, Roles.of(target)
        self.apart = product_apart(target)
        self.users: dict[Node, list[tuple[Node | Output, int]]] = {node: [] for node in group.nodes}
        self.carried = {node.carry: node for node in group.nodes if node.carry is not None}
        for node in group.nodes:
            for operand, source in enumerate(node.inputs):
                self.users[source].append((node, operand))
        for output in group.outputs:
            self.users[output.node].append((output, 0))
        self.nodes = {node: NodeFacts(self, node) for node in group.nodes}

    def uses(self, node: Node) -> list[Node | Output]:
        return [user for user, _ in self.users[node]]


@dataclass(eq=False)
class NodeFacts:
    """Of one node."""

    facts: Facts
    node: Node

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes that it varies along, in the group's order."""
        return tuple(axis for axis in self.facts.group.axes if axis in self.node.present)

    @cached_property
    def width(self) -> int:
        """Bytes of an element of its tensor type."""
        return byte_width(self.node.element)

    @cached_property
    def summed(self) -> int:
        """Bytes of an element of what a reduction is summed in."""
        return byte_width(accumulator_type(self.node.inputs[0].element))

    @cached_property
    def moved_apart(self) -> bool:
        """Whether a contraction is accumulated by the vector engine."""
        return self.node.kind == "contract" and bool(self.node.cascade) and self.facts.apart

    @cached_property
    def to_vector(self) -> bool:
        """Whether a contraction's result is needed where the vector engine works."""
        facts = self.facts
        direct = facts.target.move(facts.roles.result or "", facts.target.offchip) is not None
        return any(
            (isinstance(user, Node) and user.kind != "contract") or (isinstance(user, Output) and not direct)
            for user in facts.uses(self.node)
        )

    @cached_property
    def crosses(self) -> bool:
        """Whether the matrix engine makes it for the vector engine, or the other way round."""
        product = self.node.kind == "contract"
        return any(isinstance(u, Node) and (u.kind == "contract") != product for u in self.facts.uses(self.node))

    @cached_property
    def on_the_way(self) -> bool:
        """Whether the move that brings a product to the vector engine does the work of an operator."""
        facts, node = self.facts, self.node
        sources = [source for source in node.inputs if source.immediate is None]
        move = facts.target.move(facts.roles.result or "", facts.roles.vector)
        if not isinstance(node.op, MapOp) or len(sources) != 1 or sources[0].kind != "contract" or move is None:
            return False
        alone = len(facts.users[sources[0]]) == 1 and not any(isinstance(u, Output) for u in facts.uses(node))
        numbers = [number for source in node.inputs if (number := source.immediate) is not None]
        stage = output_stage(node.op.fn.data, numbers, node.op.params)
        return stage is not None and alone and not facts.nodes[sources[0]].moved_apart and can_do(move, stage, False)

    @cached_property
    def done(self) -> bool:
        """Whether an operator takes the vector engine no time: the move before it or its producer did its work."""
        inputs = self.node.inputs
        return bool(inputs) and (self.on_the_way or rounded_already(self.node, self.facts.uses(inputs[0])))

    @cached_property
    def homes(self) -> tuple[tuple[str, int], ...]:
        """Memories that hold it, with the bytes of an element there."""
        facts, node, roles = self.facts, self.node, self.facts.roles
        widths = dict[str, int]()
        stages = roles.lhs_stage, roles.rhs_stage
        for user, operand in facts.users[node]:
            stage = stages[operand] if isinstance(user, Node) and user.kind == "contract" else None
            if stage is not None:
                widths[stage] = self.width
        if self.moved_apart:
            widths[roles.vector] = self.summed
        elif node.kind == "contract":
            widths[roles.result or roles.vector] = self.summed
            if self.to_vector:
                widths[roles.vector] = self.summed
        elif node.kind != "load" or any(not isinstance(u, Node) or u.kind != "contract" for u in facts.uses(node)):
            kind = node.element if node.kind == "load" else kept_type(node, facts.uses(node))
            widths[roles.vector] = byte_width(kind)
        return tuple(sorted(widths.items()))

    @cached_property
    def elementwise(self) -> tuple[str, int, str]:
        """The function of an elementwise node, the width that decides its speed, and the type computed in."""
        node = self.node
        fn = node.op.fn.data if isinstance(node.op, MapOp) else "fill" if node.kind == "iota" else "identity"
        kinds = [_widened(node.element), *(_widened(source.element) for source in node.inputs)]
        return fn, max(byte_width(kind) for kind in kinds), type_name(kinds[-1])


def _widened(kind: Attribute) -> Attribute:
    """The type a value is kept in on chip: f32 for narrower floats."""
    return compute_type(kind) if is_float(kind) else kind
