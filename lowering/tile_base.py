"""What every part of a kernel's emission shares: where ops go, which tile stands for which value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.locations import fuse_locations
from ..dialects.tile_types import TileType
from .axes import Axis
from .cuts import Cut
from .group import Node, Output
from .nest import Nest
from .regions import Counters, Frame, affine_map, frame_of


@dataclass(frozen=True, eq=False)
class Tile:
    """An SSA tile and what its dimensions stand for."""

    value: SSAValue
    frame: Frame

    @property
    def element(self) -> Attribute:
        return tile.element_of(self.value)


@dataclass(frozen=True, eq=False)
class Start:
    """The first value of a loop's counter: an expression of outer counters."""

    expr: AffineExpr
    counters: tuple[SSAValue, ...]


class EmitterBase:
    """Appends ops to the current block. Tiles and casts are known per open loop, innermost last.

    `apart`: the matrix engine cannot reach the memory where the sums of a cascade are moved (`Node.carry`): its
    products are added there by the vector engine. `full` is the cut whose section without masks is being emitted;
    `starts` has the counters of loops that do not begin at 0.
    """

    def __init__(self, nest: Nest, apart: bool) -> None:
        self.nest = nest
        self.apart = apart
        self.group = nest.group
        self.order: list[Axis] = []
        self.counters: list[SSAValue] = []
        self.tiles: list[dict[Node, Tile]] = [{}]
        self.casts: list[dict[tuple[Node, Attribute], Tile]] = [{}]
        self.block = Block(arg_types=[*self.group.inputs, *self.group.results])
        self.args: tuple[BlockArgument, ...] = tuple(self.block.args)
        self.uses = self.count_uses()
        self.full: Cut | None = None
        self.starts: dict[SSAValue, Start] = {}

    def count_uses(self) -> dict[Node, list[Node | Output]]:
        uses: dict[Node, list[Node | Output]] = {node: [] for node in self.group.nodes}
        for node in self.group.nodes:
            for source in node.inputs:
                uses[source].append(node)
        for output in self.group.outputs:
            uses[output.node].append(output)
        return uses

    def add(self, op: Operation, node: Node | None) -> Operation:
        if node is not None:
            op.location = fuse_locations(self.locations(node))
        self.block.add_op(op)
        return op

    def locations(self, node: Node) -> Iterator[Attribute]:
        """Where a value comes from; of an input, which no op of the group makes, where it is used."""
        if node.location is not None:
            yield node.location
            return
        for use in self.uses[node]:
            if isinstance(use, Node):
                yield from self.locations(use)

    def add_slice(self, op: tile.SliceOp, source: Tile) -> None:
        """Adds a slice, which comes from where its tile does."""
        value = source.value
        op.location = value.owner.location if isinstance(value, OpResult) else cast(BlockArgument, value).location
        self.block.add_op(op)

    def reach(self) -> Counters:
        return Counters(self.order)

    def tile_type(self, frame: Frame, kind: Attribute) -> TileType:
        return TileType(self.extents(frame), kind)

    def extents(self, frame: Frame) -> list[int]:
        return [1 if axis is None else self.nest.tiles[axis] for axis in frame]

    def valid(self, frame: Frame) -> AffineMapAttr:
        reach = self.reach()
        results = [AffineConstantExpr(1) if axis is None else reach.left(axis, self.nest.tiles[axis]) for axis in frame]
        return AffineMapAttr(affine_map(reach.count, results))

    def lookup(self, node: Node) -> Tile:
        node = node if self.full is None else self.full.aliases.get(node, node)
        for level in reversed(self.tiles):
            if node in level:
                return level[node]
        if node.kind == "constant":
            return self.constant(node)
        raise AssertionError(f"value of kind {node.kind} is used before it is computed")

    def define(self, node: Node, value: Tile) -> None:
        self.tiles[-1][node] = value

    def frame(self, node: Node) -> Frame:
        return frame_of(self.group, node.present, self.nest.tiles)

    def constant(self, node: Node, frame: Frame = (None,)) -> Tile:
        value = node.immediate
        assert value is not None
        op = tile.FillOp.create(
            operands=list(self.counters),
            result_types=[self.tile_type(frame, node.element)],
            properties={"value": value, "valid": self.valid(frame)},
        )
        self.add(op, node)
        return Tile(op.results[0], frame)

    def framed(self, source: Tile, wanted: Frame) -> SSAValue:
        """The tile with its dimensions in the places of `wanted`; a slice that moves nothing where they differ."""
        mine = {axis for axis in source.frame if axis is not None}
        shape = [1 if axis is None or axis not in mine else self.nest.tiles[axis] for axis in wanted]
        same = len(wanted) == len(source.frame) and all(
            have is want or (want not in mine and (have is None or self.nest.tiles[have] == 1))
            for have, want in zip(source.frame, wanted, strict=True)
        )
        if same:
            return source.value
        count = len(self.order)
        place = {axis: AffineDimExpr(count + p) for p, axis in enumerate(wanted) if axis is not None}
        results = [AffineConstantExpr(0) if a is None else place[a] for a in source.frame]
        reach = self.reach()
        valid = [
            AffineConstantExpr(1) if a is None or a not in mine else reach.left(a, self.nest.tiles[a]) for a in wanted
        ]
        op = tile.SliceOp.create(
            operands=[source.value, *self.counters],
            result_types=[TileType(shape, source.element)],
            properties={
                "map": AffineMapAttr(affine_map(count + len(wanted), results)),
                "valid": AffineMapAttr(affine_map(count, valid)),
            },
        )
        self.add_slice(op, source)
        return op.results[0]

    def as_type(self, node: Node, source: Tile, kind: Attribute) -> Tile:
        """The tile rounded to an element type."""
        if source.element == kind:
            return source
        for level in reversed(self.casts):
            if (node, kind) in level:
                return level[node, kind]
        op = tile.MapOp.create(
            operands=[source.value],
            result_types=[TileType(tile.shape_of(source.value), kind)],
            properties={"fn": StringAttr("cast")},
        )
        self.add(op, node)
        made = Tile(op.results[0], source.frame)
        self.casts[-1][node, kind] = made
        return made
