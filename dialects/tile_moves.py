"""Ops of the tile dialect that bring, send, cut and place bytes."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, TensorType, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from .instruction_rules import verify_map
from .output_stage import OutputStage
from .tile_base import TileOp, element_of, shape_of


@irdl_op_definition
class LoadOp(TileOp):
    """`args` = source tensor, counters…: reads a tile of a global tensor.

    `map`: (counters, tile positions) → global index. Positions whose `inside` expressions are not all ≥ 0, or
    whose global index is out of bounds, hold `fill` (required if there can be any). `valid`: counters → extents.
    `gather` = d, `args` = source tensor, indices, counters…: in dimension d of the source the place is the i32 in the
    tile `indices`, whose extents are those of the result or 1; `map` says 0 there. Indices are in bounds.
    `slots`: how many iterations' tiles exist at a time (multi-buffering).
    """

    name = "tile.load"
    READS_TENSORS: ClassVar[bool] = True
    map = prop_def(AffineMapAttr)
    valid = prop_def(AffineMapAttr)
    inside = opt_prop_def(AffineMapAttr)
    fill = opt_prop_def(Attribute)
    gather = opt_prop_def(IntegerAttr)

    @property
    def indices(self) -> SSAValue | None:
        """The tile that chooses rows, where one does."""
        return self.tiles[1] if self.gather is not None else None

    def verify_tiles(self) -> None:
        self.expect_tiles(1 if self.gather is None else 2)
        if self.gather is not None:
            self.verify_gather(self.gather.value.data)
        rank = len(shape_of(self.target))
        self.expect_map("map", self.map, len(self.counters) + rank, len(shape_of(self.tiles[0])))
        self.expect_map("valid", self.valid, len(self.counters), rank)
        if self.inside is not None:
            self.expect_map("inside", self.inside, len(self.counters) + rank, len(self.inside.data.results))
            if self.fill is None:
                raise VerifyException("'tile.load' with 'inside' needs 'fill'")
        if element_of(self.target) != element_of(self.tiles[0]):
            raise VerifyException("'tile.load' does not convert element types")

    def verify_gather(self, chosen: int) -> None:
        """The rules of rows that indices choose."""
        source, indices = self.tiles
        if not 0 <= chosen < len(shape_of(source)):
            raise VerifyException(f"'tile.load' gathers along dimension {chosen} of {len(shape_of(source))}")
        if isinstance(indices.type, TensorType) or element_of(indices) != i32:
            raise VerifyException("'tile.load' gathers by a tile of i32")
        verify_map("tile.load", [shape_of(indices)], shape_of(self.target), None)
        place = self.map.data.results[chosen] if chosen < len(self.map.data.results) else None
        if not (isinstance(place, AffineConstantExpr) and place.value == 0):
            raise VerifyException(f"'tile.load' map is 0 in dimension {chosen}, where the indices say the place")
        if self.inside is not None or self.fill is not None:
            raise VerifyException("'tile.load' with 'gather' has neither 'inside' nor 'fill'")


@irdl_op_definition
class StoreOp(TileOp):
    """`args` = tile, destination tensor, counters…: writes the valid part of a tile to a global tensor.

    `map`: (counters, tile positions) → global index; `valid`: counters → extents. Casts to the tensor's element
    type. Has neither result nor `into`: the destination is global in both forms. `slots` as for a load: the
    staging buffer, if `place` needs one.
    """

    name = "tile.store"
    map = prop_def(AffineMapAttr)
    valid = prop_def(AffineMapAttr)

    @property
    def destination(self) -> SSAValue:
        return self.args[1]

    def verify_(self) -> None:
        if self.res or self.into is not None:
            raise VerifyException("'tile.store' has no result and no 'into'")
        self.expect_slots()
        if self.args and isinstance(self.args[0].type, TensorType):
            raise VerifyException("'tile.store' operand 0 is a tensor, not a tile: tile.load it first")
        self.expect_tiles(2)
        rank = len(shape_of(self.args[0]))
        self.expect_map("map", self.map, len(self.counters) + rank, len(shape_of(self.args[1])))
        self.expect_map("valid", self.valid, len(self.counters), rank)


@irdl_op_definition
class MoveOp(TileOp, OutputStage):
    """`args` = tile: the same elements in another memory, scaled and activated on the way as its output stage says
    (`output_stage.py`), and cast to the element type of the result."""

    name = "tile.move"

    def verify_tiles(self) -> None:
        self.expect_tiles(1)
        if shape_of(self.tiles[0]) != shape_of(self.target):
            raise VerifyException("'tile.move' keeps the shape")
        self.verify_stage(element_of(self.tiles[0]))


@irdl_op_definition
class SliceOp(TileOp):
    """`args` = tile, counters…: a strided part of a tile, without moving bytes.

    `map`: (counters, positions of the result) → position in the tile; `valid`: counters → extents of the result.
    In buffer form the result is a buffer over the same bytes.
    """

    name = "tile.slice"
    map = prop_def(AffineMapAttr)
    valid = prop_def(AffineMapAttr)

    def verify_tiles(self) -> None:
        self.expect_tiles(1)
        rank = len(shape_of(self.target))
        self.expect_map("map", self.map, len(self.counters) + rank, len(shape_of(self.tiles[0])))
        self.expect_map("valid", self.valid, len(self.counters), rank)
        if element_of(self.tiles[0]) != element_of(self.target):
            raise VerifyException("'tile.slice' does not convert element types")


@irdl_op_definition
class InsertOp(TileOp):
    """`args` = part, whole, counters…: the whole with a part replaced (value form only; in place after bufferize).

    `map`: (counters, positions of the part) → position in the whole.
    """

    name = "tile.insert"
    map = prop_def(AffineMapAttr)

    def verify_tiles(self) -> None:
        self.expect_tiles(2)
        part, whole = self.tiles
        self.expect_map("map", self.map, len(self.counters) + len(shape_of(part)), len(shape_of(whole)))
        if whole.type != self.target.type or element_of(part) != element_of(whole):
            raise VerifyException("'tile.insert' keeps the type of the whole")
