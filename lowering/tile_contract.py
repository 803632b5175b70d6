"""Contractions of tiles, in pieces where the matrix engine has memories of its own."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, IndexType, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.locations import fuse_locations
from ..dialects.tile_types import TileType
from .axes import Axis
from .group import Node
from .nest import Nest
from .regions import Frame, add, affine_map, scaled
from .tile_base import Tile
from .tile_compute import ComputeEmitter


class ContractEmitter(ComputeEmitter):
    """What the matrix engine does."""

    def __init__(self, nest: Nest, apart: bool) -> None:
        super().__init__(nest, apart)
        self.inner = dict(zip(self.group.axes, nest.schedule.inner or nest.schedule.tiles, strict=True))

    def contract(self, node: Node, acc: Tile | None, loops: tuple[Axis, ...]) -> Tile:
        """A product of tiles, in pieces of the inner tile sizes where the schedule has them."""
        frames = [self.frame(source) for source in node.inputs]
        frame = self.frame(node)
        if (None,) in (*frames, frame):  # a unit dimension is a letter of its own in both operands
            frames = [f if f == (None,) else (None, *f) for f in frames]
        sources: list[Tile] = []
        for source, wanted in zip(node.inputs, frames, strict=True):
            have = self.as_type(source, self.lookup(source), source.element)
            sources.append(Tile(self.framed(have, wanted), wanted))
        axes = [a for a in self.group.axes if any(a in t.frame for t in (*sources, Tile(sources[0].value, frame)))]
        pieces = [axis for axis in axes if self.inner[axis] < self.nest.tiles[axis]]
        steps = [axis for axis in pieces if axis not in node.reduced] + [a for a in pieces if a in node.reduced]
        if acc is None and steps:
            acc = self.initial(node, anew=self.apart)
        counted = [self.counters[self.order.index(axis)] for axis in loops]
        if not steps:
            return self.product(node, sources, frame, acc, counted)
        assert acc is not None
        return self.pieces(node, sources, acc, counted, steps)

    def pieces(self, node: Node, sources: list[Tile], acc: Tile, counted: list[SSAValue], steps: list[Axis]) -> Tile:
        """Nested inner loops over `steps`, each carrying the accumulator."""
        outer, value, opened = self.block, acc.value, list[tuple[Block, SSAValue]]()
        inner: list[SSAValue] = []
        for axis in steps:
            body = Block(arg_types=[IndexType(), value.type])
            body.args[0].name_hint = f"{self.group.names[axis]}_inner"
            body.args[1].location = fuse_locations(self.locations(node))
            opened.append((self.block, value))
            self.block, value = body, body.args[1]
            inner.append(body.args[0])
            counted = [*counted, body.args[0]] if axis in node.reduced else counted
        step_of = dict(zip(steps, inner, strict=True))
        cut = [self.piece(source, step_of) for source in sources]
        whole = Tile(value, acc.frame)
        part = self.piece(whole, step_of)
        made = self.product(node, cut, acc.frame, part, counted)
        insert = tile.InsertOp.create(
            operands=[made.value, value, *self.counters, *inner],
            result_types=[value.type],
            properties={"map": self.piece_map(acc.frame, step_of)},
        )
        self.add(insert, node)
        result: SSAValue = insert.results[0]
        for axis, (block, before) in zip(reversed(steps), reversed(opened), strict=True):
            self.block.add_op(tile.YieldOp.create(operands=[result]))
            body, self.block = self.block, block
            trips = -(-self.nest.tiles[axis] // self.inner[axis])
            loop = tile.ForOp(trips, [before], Region(body), self.group.names[axis], "inner")
            self.add(loop, node)
            result = loop.results[0]
        assert self.block is outer
        return Tile(result, acc.frame)

    def piece_map(self, frame: Frame, steps: dict[Axis, SSAValue]) -> AffineMapAttr:
        """(counters, inner counters, positions of the piece) → position in the whole."""
        count, names = len(self.order), list(steps)
        base = count + len(names)
        results: list[AffineExpr] = []
        for p, axis in enumerate(frame):
            position: AffineExpr = AffineDimExpr(base + p)
            if axis in steps:
                position = add(scaled(AffineDimExpr(count + names.index(axis)), self.inner[axis]), position)
            results.append(position)
        return AffineMapAttr(affine_map(base + len(frame), results))

    def piece(self, source: Tile, steps: dict[Axis, SSAValue]) -> Tile:
        if not any(axis in steps for axis in source.frame):
            return source
        reach, names = self.reach(), list(steps)
        shape: list[int] = []
        valid: list[AffineExpr] = []
        for axis in source.frame:
            if axis is None:
                shape.append(1)
                valid.append(AffineConstantExpr(1))
                continue
            left = reach.left(axis, self.nest.tiles[axis])
            if axis in steps:
                left = self.capped(left, axis)
                left = add(left, scaled(AffineDimExpr(reach.count + names.index(axis)), -self.inner[axis]))
            shape.append(self.inner[axis] if axis in steps else self.nest.tiles[axis])
            valid.append(left)
        op = tile.SliceOp.create(
            operands=[source.value, *self.counters, *steps.values()],
            result_types=[TileType(shape, source.element)],
            properties={
                "map": self.piece_map(source.frame, steps),
                "valid": AffineMapAttr(affine_map(reach.count + len(names), valid)),
            },
        )
        self.add_slice(op, source)
        return Tile(op.results[0], source.frame)

    def capped(self, left: AffineExpr, axis: Axis) -> AffineExpr:
        """Elements left in the tile: the pieces of a tile must not reach into the next one."""
        if self.nest.tiles[axis] % self.inner[axis] == 0 or isinstance(left, AffineConstantExpr):
            whole = AffineConstantExpr(self.nest.tiles[axis])
            return left if not isinstance(left, AffineConstantExpr) or left.value < whole.value else whole
        raise AssertionError("inner tiles divide the tiles of looped axes")

    def product(self, node: Node, sources: list[Tile], frame: Frame, acc: Tile | None, counted: list[SSAValue]) -> Tile:
        names = self.group.names

        def letters(of: Frame) -> str:
            return "".join("Z" if axis is None else names[axis] for axis in of)

        spec = f"{letters(sources[0].frame)},{letters(sources[1].frame)}->{letters(frame)}"
        kind = acc.value.type if acc is not None else self.tile_type(frame, self.accumulated_type(node))
        properties: dict[str, Attribute] = {"spec": StringAttr(spec)}
        operands = [source.value for source in sources]
        if acc is not None:
            operands.append(acc.value)
            properties["accumulate"] = UnitAttr()
            if not node.cascade or self.apart:  # begins from nothing in the first step
                init, counters = self.begins(counted)
                properties["init"] = AffineMapAttr(affine_map(len(counters), init))
                operands += counters
        op = tile.ContractOp.create(operands=operands, result_types=[kind], properties=properties)
        self.add(op, node)
        return Tile(op.results[0], frame)

    def begins(self, counted: list[SSAValue]) -> tuple[list[AffineExpr], list[SSAValue]]:
        """Expressions that are all 0 in the first step of the loops with these counters, and what they are over."""
        counters = list(counted)
        exprs: list[AffineExpr] = []
        for position, counter in enumerate(counted):
            expr: AffineExpr = AffineDimExpr(position)
            start = self.starts.get(counter)
            if start is not None:
                dims = [AffineDimExpr(len(counters) + d) for d in range(len(start.counters))]
                counters += start.counters
                expr = expr + start.expr.replace_dims_and_symbols(dims, []) * -1
            exprs.append(expr)
        return exprs, counters
