"""Elementwise ops, index tiles and reductions, on tiles."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.attributes import scalar_attribute
from ..dialects.dtypes import accumulator_type, element
from ..dialects.graph_primitives import IotaOp, MapOp, ReduceOp
from ..dialects.scalar import monoid
from .group import Node
from .kept_types import kept_type
from .regions import Frame, add, affine_map, scaled, total
from .tile_base import EmitterBase, Tile


class ComputeEmitter(EmitterBase):
    """What the vector engine does."""

    def map(self, node: Node) -> None:
        frame = self.frame(node)
        if is_cast(node) and node.inputs[0].kind != "constant":
            source = self.lookup(node.inputs[0])
            if source.element == node.element:  # its producer rounded already
                self.define(node, source)
                return
        if node.kind == "expand" and node.inputs[0].kind == "constant":
            self.define(node, self.constant(node.inputs[0], frame))
            return
        if node.kind == "expand" and self.ends_inside(node):
            self.define(node, self.repeated(node, frame))
            return
        operands: list[SSAValue] = []
        slots: list[Attribute] = []
        for source in node.inputs:
            immediate = source.immediate
            if immediate is not None:
                slots.append(immediate)
            else:
                slots.append(IntegerAttr.from_index_int_value(len(operands)))
                operands.append(self.framed(self.lookup(source), frame))
        properties: dict[str, Attribute] = {"fn": StringAttr("identity")}
        if node.kind == "map":
            assert isinstance(node.op, MapOp)
            properties["fn"] = node.op.fn
            if node.op.params is not None:
                properties["params"] = node.op.params
        if len(operands) != len(slots):
            properties["immediates"] = ArrayAttr(slots)
        kind = kept_type(node, self.uses[node]) if node.kind == "map" else tile.element_of(operands[0])
        op = tile.MapOp.create(operands=operands, result_types=[self.tile_type(frame, kind)], properties=properties)
        self.add(op, node)
        self.define(node, Tile(op.results[0], frame))

    def ends_inside(self, node: Node) -> bool:
        """Whether a value is repeated along an axis whose last tile is not full."""
        new = node.present - node.inputs[0].present
        return any(axis.extent % self.nest.tiles[axis] for axis in new)

    def repeated(self, node: Node, frame: Frame) -> Tile:
        """A value repeated along axes as far as they reach: what is valid is what is in a tile that says so."""
        there = tile.FillOp.create(
            operands=list(self.counters),
            result_types=[self.tile_type(frame, i1)],
            properties={"value": scalar_attribute(1, i1), "valid": self.valid(frame)},
        )
        self.add(there, node)
        source = self.framed(self.lookup(node.inputs[0]), frame)
        op = tile.MapOp.create(
            operands=[there.results[0], source, source],
            result_types=[self.tile_type(frame, tile.element_of(source))],
            properties={"fn": StringAttr("select")},
        )
        self.add(op, node)
        return Tile(op.results[0], frame)

    def iota(self, node: Node) -> None:
        assert isinstance(node.op, IotaOp)
        frame, reach = self.frame(node), self.reach()
        place = {axis: AffineDimExpr(reach.count + p) for p, axis in enumerate(frame) if axis is not None}
        parts: list[AffineExpr] = []
        scale = 1
        for axis in reversed(node.dims[node.op.dim.value.data % len(node.dims)]):
            position = add(reach.start(axis, self.nest.tiles[axis]), place.get(axis, AffineConstantExpr(0)))
            parts.append(scaled(position, scale))
            scale *= axis.extent
        op = tile.IotaOp.create(
            operands=list(self.counters),
            result_types=[self.tile_type(frame, node.element)],
            properties={
                "map": AffineMapAttr(affine_map(reach.count + len(frame), [total(parts)])),
                "valid": self.valid(frame),
            },
        )
        self.add(op, node)
        self.define(node, Tile(op.results[0], frame))

    def reduced(self, node: Node) -> Tile:
        """The reduction of the part of the axes that lies within a tile."""
        assert isinstance(node.op, ReduceOp)
        source = self.lookup(node.inputs[0])
        axes = [p for p, axis in enumerate(source.frame) if axis in node.reduced and self.extents(source.frame)[p] > 1]
        kind = accumulator_type(source.element)
        frame: Frame = tuple(None if axis in node.reduced else axis for axis in source.frame)
        if not axes:
            return Tile(self.as_type(node, source, kind).value, frame)
        op = tile.ReduceOp.create(
            operands=[source.value],
            result_types=[self.tile_type(frame, kind)],
            properties={"monoid": node.op.monoid, "axes": DenseArrayBase.from_list(i64, axes)},
        )
        self.add(op, node)
        return Tile(op.results[0], frame)

    def initial(self, node: Node, anew: bool = False) -> Tile:
        """The accumulator of a reduction before its loops; `anew`: the first product overwrites it."""
        frame = self.frame(node)
        properties: dict[str, Attribute] = {"valid": self.valid(frame)}
        kind = self.accumulated_type(node)
        if node.kind == "reduce":
            assert isinstance(node.op, ReduceOp)
            identity = monoid(node.op.monoid.data).identity(element(kind))
            properties["value"] = scalar_attribute(identity, kind)
        elif node.cascade and not anew:  # what is looked at and moved has to be a number from the beginning
            properties["value"] = scalar_attribute(0.0, kind)
        made = tile.FillOp if "value" in properties else tile.EmptyOp
        op = made.create(
            operands=list(self.counters), result_types=[self.tile_type(frame, kind)], properties=properties
        )
        self.add(op, node)
        return Tile(op.results[0], frame)

    def accumulated_type(self, node: Node) -> Attribute:
        return accumulator_type(node.inputs[0].element)


def is_cast(node: Node) -> bool:
    return node.kind == "map" and isinstance(node.op, MapOp) and node.op.fn.data == "cast"
