"""Loads of regions, slices of them, and stores of results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.dtypes import element
from ..dialects.graph_types import Tensor, static_shape
from ..dialects.tile_types import TileType
from .axes import Axis, Linear
from .group import Node, Output
from .nest import Load, Nest, Pin, is_cut
from .pins import Pinned
from .regions import Counters, Frame, RegionDim, add, affine_map, frame_of, region_of, scaled, total
from .tile_base import EmitterBase, Tile


@dataclass(frozen=True, eq=False)
class LoadedRegion:
    """What one load brought, and which axes were fixed then."""

    value: SSAValue
    dims: list[RegionDim]
    fixed: frozenset[Axis]


class MoveEmitter(EmitterBase):
    """Between tensors and tiles."""

    def __init__(self, nest: Nest, apart: bool) -> None:
        super().__init__(nest, apart)
        self.regions: dict[Node, LoadedRegion] = {}
        self.pinned: dict[Node, LoadedRegion] = {}
        self.slots = dict(zip(self.group.loads, nest.schedule.slots, strict=True))

    def load(self, item: Load | Pin) -> None:
        node, reach = item.node, self.reach()
        pin = self.nest.pins[node] if isinstance(item, Pin) else None
        dims = region_of(self.nest, node, item.fixed, pin)
        shape = [dim.extent for dim in dims] or [1]
        count = reach.count
        rank = len(shape)
        place = {dim.axis: AffineDimExpr(count + p) for p, dim in enumerate(dims) if dim.window is None}
        stretch = {dim.index: AffineDimExpr(count + p) for p, dim in enumerate(dims) if dim.window is not None}

        def start(axis: Axis, coefficient: int) -> AffineExpr:
            if axis not in item.fixed:
                return AffineConstantExpr(0)
            return scaled(reach.start(axis, self.nest.tiles[axis]), coefficient)

        def at(expr: Linear) -> AffineExpr:
            """An expression of the axes as one of counters and positions of the region."""
            parts: list[AffineExpr] = []
            for position, (index, window) in enumerate(zip(node.index, node.windows, strict=True)):
                if window is not None and window.base in expr.terms:
                    factor, expr = expr.multiple_of(index)
                    parts += [start(axis, factor * coefficient) for axis, coefficient in index.terms.items()]
                    if position in stretch:
                        parts.append(scaled(stretch[position], factor))
            for axis, coefficient in expr.terms.items():
                parts.append(start(axis, coefficient))
                if axis in place:
                    parts.append(scaled(place[axis], coefficient))
            return total([AffineConstantExpr(expr.offset), *parts])

        valid = [self.region_valid(node, dim, item.fixed, reach, pin) for dim in dims] or [AffineConstantExpr(1)]
        properties: dict[str, Attribute] = {
            "map": AffineMapAttr(affine_map(count + rank, [at(expr) for expr in node.index])),
            "valid": AffineMapAttr(affine_map(count, valid)),
        }
        if node.inside:
            properties["inside"] = AffineMapAttr(affine_map(count + rank, [at(expr) for expr in node.inside]))
        if node.fill is not None:
            properties["fill"] = node.fill
        if pin is None and self.slots[node] > 1:
            properties["slots"] = IntegerAttr(self.slots[node], i64)
        indices: list[SSAValue] = []
        if node.gathers is not None:
            indices = [self.framed(self.lookup(node.inputs[0]), tuple(dim.axis for dim in dims) or (None,))]
            properties["gather"] = IntegerAttr(node.gathers, i64)
        op = tile.LoadOp.create(
            operands=[self.args[node.arg], *indices, *self.counters],
            result_types=[TileType(shape, node.element)],
            properties=properties,
        )
        self.add(op, node)
        region = LoadedRegion(op.results[0], dims, item.fixed)
        if pin is not None:
            self.pinned[node] = region
            return
        self.regions[node] = region
        frame: Frame = tuple(dim.axis for dim in dims) or (None,)
        self.define(node, Tile(op.results[0], frame))

    def take_pinned(self, item: Load) -> None:
        """The pinned tiles instead of a load."""
        node = item.node
        self.regions[node] = self.pinned[node]
        if not is_cut(node, item.fixed, self.nest.looped_axes):
            self.slice(node)

    def region_valid(
        self, node: Node, dim: RegionDim, fixed: frozenset[Axis], reach: Counters, pin: Pinned | None
    ) -> AffineExpr:
        axis = dim.axis
        if pin is not None and axis is pin.axis:
            return AffineConstantExpr(dim.extent)
        left = reach.left(axis, self.nest.tiles[axis]) if axis in fixed else AffineConstantExpr(axis.extent)
        if dim.window is None:
            return left
        expr = node.index[dim.index]
        step = expr.terms[axis]
        spread = sum((tap.extent - 1) * expr.terms[tap] for tap in dim.window.taps)
        return add(scaled(left, step), AffineConstantExpr(1 - step + spread))

    def slice(self, node: Node) -> None:
        region, frame, reach = self.regions[node], self.frame(node), self.reach()
        count = reach.count
        place = {axis: AffineDimExpr(count + p) for p, axis in enumerate(frame) if axis is not None}

        def within(axis: Axis) -> AffineExpr:
            """The position along an axis, from the start of the region."""
            start = AffineConstantExpr(0) if axis in region.fixed else reach.start(axis, self.nest.tiles[axis])
            return add(start, place.get(axis, AffineConstantExpr(0)))

        results: list[AffineExpr] = []
        for dim in region.dims:
            if dim.window is None:
                results.append(within(dim.axis))
            else:
                terms = node.index[dim.index].terms
                results.append(total([scaled(within(axis), coefficient) for axis, coefficient in terms.items()]))
        op = tile.SliceOp.create(
            operands=[region.value, *self.counters],
            result_types=[self.tile_type(frame, node.element)],
            properties={
                "map": AffineMapAttr(affine_map(count + len(frame), results or [AffineConstantExpr(0)])),
                "valid": self.valid(frame),
            },
        )
        self.add(op, node)
        self.define(node, Tile(op.results[0], frame))

    def store(self, output: Output) -> None:
        node = output.node
        destination = self.args[len(self.group.inputs) + output.number]
        kind = cast(Tensor, destination.type)
        wanted = element(kind).attribute
        source = self.lookup(node)
        if node.kind != "contract":
            source = self.as_type(node, source, wanted)
        frame = frame_of(self.group, frozenset(a for e in output.index for a in e.terms), self.nest.tiles)
        value = self.framed(source, frame)
        reach = self.reach()
        place = {axis: AffineDimExpr(reach.count + p) for p, axis in enumerate(frame) if axis is not None}

        def at(expr: Linear) -> AffineExpr:
            parts: list[AffineExpr] = [AffineConstantExpr(expr.offset)]
            for axis, coefficient in expr.terms.items():
                parts.append(scaled(reach.start(axis, self.nest.tiles[axis]), coefficient))
                if axis in place:
                    parts.append(scaled(place[axis], coefficient))
            return total(parts)

        assert len(output.index) == len(static_shape(kind))
        properties: dict[str, Attribute] = {
            "map": AffineMapAttr(affine_map(reach.count + len(frame), [at(expr) for expr in output.index])),
            "valid": self.valid(frame),
        }
        if self.nest.schedule.store_slots > 1:
            properties["slots"] = IntegerAttr(self.nest.schedule.store_slots, i64)
        op = tile.StoreOp.create(operands=[value, destination, *self.counters], properties=properties)
        self.add(op, node)
