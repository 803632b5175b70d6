"""What a set of primitives computes, over named axes: the form that schedules, costs and kernels are made from.

`group_build.read_group` makes it from the region of a `graph.fused`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Attribute, Operation

from ..dialects.graph_primitives import ConstantOp
from .axes import Axis, Linear, NotFusable
from .known_table import Table


@dataclass(frozen=True)
class Window:
    """An input dimension of which a tile needs one stretch, whatever its own axes: `base` walks it, `taps` step inside.

    So are read overlapping indices (a convolution) and indices of several axes that can leave the input (a padded
    dimension, split): a stretch has one lower and one upper edge.
    """

    base: Axis
    taps: tuple[Axis, ...]

    @staticmethod
    def of(expr: Linear) -> Window:
        """The longest axis is the base."""
        base = max(expr.terms, key=lambda axis: (axis.extent, -axis.serial))
        return Window(base, tuple(axis for axis in expr.terms if axis is not base))


@dataclass(eq=False, repr=False)
class Node:
    """One value of a group. `kind`: load, map, reduce, contract, iota, constant, expand, running or previous.

    `dims` lists the axes of each logical dimension; `present` the axes the value varies along; `reduced` the axes a
    reduction or contraction sums over. A load reads input `arg` at `index`, one expression per dimension of the
    input, where all `inside` expressions are ≥ 0 and the index is in bounds; elsewhere it is `fill`. `windows` says
    which of these dimensions are read as windows, `table` what the elements are, where they are known. Where
    the load `gathers` along a dimension of the input, its place there is the value of its only input, along whose axes
    it varies; `index` is 0 there.

    In a derived group (`online.py`) a reduction may be one of a `cascade`, which one walk over its axes computes. What
    such a reduction adds to in every step is `carry`, an expression over `previous` nodes (the value of the reduction
    `source` before the step) and `running` ones (after it); without `carry` it is its own previous value.
    """

    kind: str
    element: Attribute
    shape: tuple[int, ...]
    dims: list[list[Axis]]
    op: Operation | None = None
    inputs: list[Node] = field(default_factory=list["Node"])
    arg: int = -1
    index: list[Linear] = field(default_factory=list[Linear])
    inside: list[Linear] = field(default_factory=list[Linear])
    windows: list[Window | None] = field(default_factory=list["Window | None"])
    fill: Attribute | None = None
    reduced: frozenset[Axis] = frozenset()
    present: frozenset[Axis] = frozenset()
    letters: list[dict[str, list[Axis]]] = field(default_factory=list[dict[str, list[Axis]]])
    source: Node | None = None
    carry: Node | None = None
    cascade: list[Node] = field(default_factory=list["Node"])
    table: Table | None = None
    gathers: int | None = None

    @property
    def location(self) -> Attribute | None:
        return self.op.location if self.op is not None else None

    @property
    def is_reduction(self) -> bool:
        return self.kind in ("reduce", "contract")

    @property
    def chosen(self) -> frozenset[Axis]:
        """The axes along which the rows that a load gathers differ."""
        return self.inputs[0].present if self.gathers is not None else frozenset()

    @property
    def taps(self) -> frozenset[Axis]:
        """The taps of a load's windows."""
        return frozenset(tap for window in self.windows if window is not None for tap in window.taps)

    @property
    def immediate(self) -> Attribute | None:
        """The value of a splat constant, as a typed scalar attribute."""
        if self.kind != "constant" or not isinstance(self.op, ConstantOp):
            return None
        return next(iter(self.op.value.get_attrs()))


@dataclass(eq=False)
class Output:
    """Where a value goes: result number, and per dimension of the result the index written."""

    number: int
    node: Node
    index: list[Linear]


@dataclass(eq=False)
class Group:
    """Nodes in topological order, outputs, and the axes in canonical order (names follow it)."""

    inputs: list[Attribute]
    results: list[Attribute]
    nodes: list[Node]
    outputs: list[Output]
    axes: list[Axis]

    @property
    def names(self) -> dict[Axis, str]:
        """Axis names a, b, c, … in canonical order."""
        return {axis: axis_name(position) for position, axis in enumerate(self.axes)}

    @property
    def loads(self) -> list[Node]:
        return [node for node in self.nodes if node.kind == "load"]

    @property
    def reductions(self) -> list[Node]:
        return [node for node in self.nodes if node.is_reduction]

    @property
    def reduced(self) -> frozenset[Axis]:
        """Axes that some reduction or contraction sums over."""
        return frozenset(axis for node in self.nodes for axis in node.reduced)

    @property
    def taps(self) -> frozenset[Axis]:
        """Window taps of all loads: walked one at a time."""
        return frozenset(tap for load in self.loads for tap in load.taps)


def axis_name(position: int) -> str:
    letter = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    if position >= len(letter):
        raise NotFusable(f"more than {len(letter)} axes")
    return letter[position]


def in_order(loads: list[Node], outputs: list[Output]) -> list[Node]:
    """What outputs need, operands first; the loads in their old order, and what they need, before everything else."""
    found: dict[Node, None] = {}
    pending = [(node, False) for node in (*(output.node for output in reversed(outputs)), *reversed(loads))]
    open_: set[Node] = set()
    while pending:
        node, entered = pending.pop()
        if entered:
            found[node] = None
            continue
        if node in found or node in open_:
            continue
        if node.source is not None:  # there from the beginning of a step, or after the step of its source
            found[node] = None
            pending.append((node.source, False))
            continue
        open_.add(node)
        pending.append((node, True))
        if node.carry is not None:
            pending.append((node.carry, False))
        pending += [(source, False) for source in reversed(node.inputs)]
    return list(found)
