"""Ops of the tile dialect that compute tiles."""

from __future__ import annotations

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, DictionaryAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from .instruction_rules import verify_map, verify_name, verify_reduce
from .scalar import MONOIDS, TABLE
from .tile_base import TileOp, shape_of


@irdl_op_definition
class MapOp(TileOp):
    """`args` = tiles: one scalar operator of the table, elementwise; extents are equal or 1 (broadcast).

    `immediates` lists the operator's arguments where some are values: an `index` attribute is the position of
    a tile in `args`, anything else is the value itself. Computes in the compute type of its operands and rounds
    to the element type of the result. `params`: parameters of the operator.
    """

    name = "tile.map"
    fn = prop_def(StringAttr)
    immediates = opt_prop_def(ArrayAttr[Attribute])
    params = opt_prop_def(DictionaryAttr)

    def verify_tiles(self) -> None:
        shapes = [shape_of(tile) for tile in self.tiles]
        verify_name(self.name, "operator", self.fn.data, TABLE)
        verify_map(self.name, shapes, shape_of(self.target), self.immediates)


@irdl_op_definition
class ReduceOp(TileOp):
    """`args` = tile: reduces `axes` to extent 1 with a monoid over the valid extents."""

    name = "tile.reduce"
    monoid = prop_def(StringAttr)
    axes = prop_def(DenseArrayBase)

    def verify_tiles(self) -> None:
        self.expect_tiles(1)
        verify_name(self.name, "monoid", self.monoid.data, MONOIDS)
        verify_reduce(self.name, shape_of(self.tiles[0]), shape_of(self.target), self.axes)


@irdl_op_definition
class ContractOp(TileOp):
    """`args` = lhs, rhs[, accumulator], counters…: `spec` names every dimension by a letter, as in einsum.

    Adds to the accumulator when there is one (unit attribute `accumulate`; in buffer form it is the destination),
    except where every result of `init` (counters → values) is 0: there it starts from zero. Accumulates in f32,
    or i32 for i8 and ui8. Runs on the matrix engine.
    """

    name = "tile.contract"
    spec = prop_def(StringAttr)
    accumulate = opt_prop_def(UnitAttr)
    init = opt_prop_def(AffineMapAttr)

    def letters(self) -> tuple[str, str, str]:
        """The dimension letters of lhs, rhs and result."""
        operands, _, out = self.spec.data.partition("->")
        lhs, _, rhs = operands.partition(",")
        return lhs, rhs, out

    def verify_tiles(self) -> None:
        carries = self.accumulate is not None and self.into is None
        self.expect_tiles(3 if carries else 2)
        extents: dict[str, int] = {}
        for letters, value in zip(self.letters(), (*self.tiles[:2], self.target), strict=True):
            shape = shape_of(value)
            if len(letters) != len(shape) or len(set(letters)) != len(letters):
                raise VerifyException(f"'tile.contract' spec '{self.spec.data}' does not fit shape {list(shape)}")
            for letter, extent in zip(letters, shape, strict=True):
                if extents.setdefault(letter, extent) != extent:
                    raise VerifyException(f"'tile.contract' axis '{letter}' is both {extents[letter]} and {extent}")
        if carries and self.tiles[2].type != self.target.type:
            raise VerifyException("'tile.contract' accumulator and result types differ")
        self.expect_map("init", self.init, len(self.counters), len(self.init.data.results) if self.init else 0)


@irdl_op_definition
class FillOp(TileOp):
    """`args` = counters…: a tile of one value, valid as `valid` says."""

    name = "tile.fill"
    value = prop_def(Attribute)
    valid = prop_def(AffineMapAttr)

    def verify_tiles(self) -> None:
        self.expect_tiles(0)
        self.expect_map("valid", self.valid, len(self.counters), len(shape_of(self.target)))


@irdl_op_definition
class EmptyOp(TileOp):
    """`args` = counters…: a tile whose bytes are poison, to be written piece by piece (value form only)."""

    name = "tile.empty"
    valid = prop_def(AffineMapAttr)

    def verify_tiles(self) -> None:
        self.expect_tiles(0)
        self.expect_map("valid", self.valid, len(self.counters), len(shape_of(self.target)))


@irdl_op_definition
class IotaOp(TileOp):
    """`args` = counters…: each element is `map`(counters, tile positions); valid as `valid` says."""

    name = "tile.iota"
    map = prop_def(AffineMapAttr)
    valid = prop_def(AffineMapAttr)

    def verify_tiles(self) -> None:
        self.expect_tiles(0)
        rank = len(shape_of(self.target))
        self.expect_map("map", self.map, len(self.counters) + rank, 1)
        self.expect_map("valid", self.valid, len(self.counters), rank)
