"""The tile dialect: kernels as loops over tiles held on chip.

Every compute op exists in two forms. In *value form* tiles are SSA values (`!tile.tile`) and the op has one
result. In *buffer form* (after `bufferize`) operands are `!tile.buffer`s, the destination is the last operand,
the op carries the unit attribute `into` and has no result. `args` is the one operand list of each op, in the
order its docstring gives; loop counters are `index` values.

Index maps are affine maps over (counters…, tile positions…). `valid` maps go from the counters to the number of
valid elements per dimension and are clamped to [0, extent].
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from .attributes import int_values
from .layout import LayoutAttr
from .tile_types import BufferType, TileType


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The static extents of a tensor, tile or buffer value."""
    kind = value.type
    if isinstance(kind, TileType | BufferType):
        return kind.shape
    if isinstance(kind, TensorType):
        return tuple(kind.get_shape())
    raise VerifyException(f"expected a tensor, tile or buffer, got {kind}")


def element_of(value: SSAValue) -> Attribute:
    """The element type of a tensor, tile or buffer value."""
    kind = value.type
    if isinstance(kind, TileType | BufferType | TensorType):
        return kind.element_type  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    raise VerifyException(f"expected a tensor, tile or buffer, got {kind}")


class TileOp(IRDLOperation):
    """Common shape of the compute ops: one operand list, at most one result, optional destination."""

    args = var_operand_def()
    res = var_result_def()
    into = opt_prop_def(UnitAttr)

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        """All operands but the destination."""
        return tuple(self.args[:-1]) if self.into is not None else tuple(self.args)

    @property
    def tiles(self) -> tuple[SSAValue, ...]:
        """The tensor, tile and buffer inputs."""
        return tuple(arg for arg in self.inputs if not isinstance(arg.type, IndexType))

    @property
    def counters(self) -> tuple[SSAValue, ...]:
        """The loop counters among the inputs."""
        return tuple(arg for arg in self.inputs if isinstance(arg.type, IndexType))

    @property
    def target(self) -> SSAValue:
        """What the op defines: its result, or its destination in buffer form."""
        return self.args[-1] if self.into is not None else self.res[0]

    def expect_tiles(self, *counts: int) -> None:
        if len(self.tiles) not in counts:
            raise VerifyException(f"'{self.name}' takes {' or '.join(map(str, counts))} tiles, got {len(self.tiles)}")

    def expect_map(self, what: str, attr: AffineMapAttr | None, dims: int, results: int) -> None:
        if attr is None:
            return
        if attr.data.num_dims != dims or len(attr.data.results) != results:
            raise VerifyException(
                f"'{self.name}' {what} must map {dims} dimensions to {results}, "
                f"got {attr.data.num_dims} to {len(attr.data.results)}"
            )

    def verify_(self) -> None:
        if self.into is not None:
            if self.res or not self.args or not isinstance(self.args[-1].type, BufferType):
                raise VerifyException(f"'{self.name}' with 'into' ends in a destination buffer and has no result")
        elif len(self.res) != 1 or not isinstance(self.res[0].type, TileType | BufferType):
            raise VerifyException(f"'{self.name}' has one tile result")
        self.verify_tiles()

    def verify_tiles(self) -> None:
        """What each op requires beyond the common shape."""


@irdl_op_definition
class LoadOp(TileOp):
    """`args` = source tensor, counters…: reads a tile of a global tensor.

    `map`: (counters, tile positions) → global index. Positions whose `inside` expressions are not all ≥ 0, or
    whose global index is out of bounds, hold `fill` (required if there can be any). `valid`: counters → extents.
    `slots`: how many iterations' tiles exist at a time (multi-buffering).
    """

    name = "tile.load"
    map = prop_def(AffineMapAttr)
    valid = prop_def(AffineMapAttr)
    inside = opt_prop_def(AffineMapAttr)
    fill = opt_prop_def(Attribute)
    slots = opt_prop_def(IntegerAttr)

    def verify_tiles(self) -> None:
        self.expect_tiles(1)
        rank = len(shape_of(self.target))
        self.expect_map("map", self.map, len(self.counters) + rank, len(shape_of(self.tiles[0])))
        self.expect_map("valid", self.valid, len(self.counters), rank)
        if self.inside is not None:
            self.expect_map("inside", self.inside, len(self.counters) + rank, len(self.inside.data.results))
            if self.fill is None:
                raise VerifyException("'tile.load' with 'inside' needs 'fill'")
        if element_of(self.target) != element_of(self.tiles[0]):
            raise VerifyException("'tile.load' does not convert element types")


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
    slots = opt_prop_def(IntegerAttr)

    @property
    def destination(self) -> SSAValue:
        return self.args[1]

    def verify_(self) -> None:
        if self.res or self.into is not None:
            raise VerifyException("'tile.store' has no result and no 'into'")
        self.expect_tiles(2)
        rank = len(shape_of(self.args[0]))
        self.expect_map("map", self.map, len(self.counters) + rank, len(shape_of(self.args[1])))
        self.expect_map("valid", self.valid, len(self.counters), rank)


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
        shape = shape_of(self.target)
        for tile in self.tiles:
            extents = shape_of(tile)
            if len(extents) != len(shape) or any(e not in (1, s) for e, s in zip(extents, shape, strict=True)):
                raise VerifyException(f"'tile.map' cannot broadcast {list(extents)} to {list(shape)}")
        for slot in self.immediates or ():
            if is_position(slot) and not 0 <= position(slot) < len(self.tiles):
                raise VerifyException(f"'tile.map' refers to operand {position(slot)} of {len(self.tiles)}")


def is_position(slot: Attribute) -> bool:
    """Whether an entry of `immediates` names a tile operand (an `index` attribute) and is not a value."""
    return isinstance(slot, IntegerAttr) and isinstance(slot.type, IndexType)  # pyright: ignore[reportUnknownMemberType]


def position(slot: Attribute) -> int:
    assert isinstance(slot, IntegerAttr)
    return slot.value.data


@irdl_op_definition
class ReduceOp(TileOp):
    """`args` = tile: reduces `axes` to extent 1 with a monoid over the valid extents."""

    name = "tile.reduce"
    monoid = prop_def(StringAttr)
    axes = prop_def(DenseArrayBase)

    def verify_tiles(self) -> None:
        self.expect_tiles(1)
        axes = set(int_values(self.axes))
        wanted = tuple(1 if d in axes else extent for d, extent in enumerate(shape_of(self.tiles[0])))
        if shape_of(self.target) != wanted:
            raise VerifyException(f"'tile.reduce' gives {list(wanted)}, not {list(shape_of(self.target))}")


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


@irdl_op_definition
class MoveOp(TileOp):
    """`args` = tile: the same elements in another memory; casts to the element type of the result."""

    name = "tile.move"

    def verify_tiles(self) -> None:
        self.expect_tiles(1)
        if shape_of(self.tiles[0]) != shape_of(self.target):
            raise VerifyException("'tile.move' keeps the shape")


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer. Inside a loop with `slots = N`, iteration i uses slot i mod N (loops linearised together).

    `offset` (bytes from the start of the memory, set by `plan`) is where slot 0 lies.
    """

    name = "tile.alloc"
    res = var_result_def(BufferType)
    slots = opt_prop_def(IntegerAttr)
    offset = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        if len(self.res) != 1:
            raise VerifyException("'tile.alloc' has one result")
        if self.slots is not None and self.slots.value.data < 1:
            raise VerifyException("'tile.alloc' needs at least one slot")
        if self.offset is not None and self.offset.value.data < 0:
            raise VerifyException("'tile.alloc' offset must not be negative")


@irdl_op_definition
class AliasOp(IRDLOperation):
    """A contiguous tensor (or off-chip buffer) read with another shape of the same bytes."""

    name = "tile.alias"
    traits = traits_def(Pure())
    args = var_operand_def()
    res = var_result_def()

    def verify_(self) -> None:
        if len(self.args) != 1 or len(self.res) != 1:
            raise VerifyException("'tile.alias' takes one value and gives one")
        source, target = shape_of(self.args[0]), shape_of(self.res[0])
        if _count(source) != _count(target) or element_of(self.args[0]) != element_of(self.res[0]):
            raise VerifyException(f"'tile.alias' cannot read {list(source)} as {list(target)}")


def _count(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a loop with the carried values of the next iteration."""

    name = "tile.yield"
    traits = traits_def(IsTerminator())
    args = var_operand_def()


@irdl_op_definition
class ForOp(IRDLOperation):
    """`%r = tile.for %i = 0 to 8 iter (%a = %init) {axis, kind} : T { … tile.yield %next }`.

    Bounds are affine maps of outer counters (constants included). `axis` names the axis of the group that the
    loop walks, `kind` is "grid" (independent iterations), "stream" or "inner". Carried values keep their types.
    """

    name = "tile.for"
    lower_operands = var_operand_def(IndexType)
    upper_operands = var_operand_def(IndexType)
    inits = var_operand_def()
    res = var_result_def()
    lower = prop_def(AffineMapAttr)
    upper = prop_def(AffineMapAttr)
    axis = opt_prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        trip: int,
        inits: Sequence[SSAValue],
        body: Region,
        axis: str | None = None,
        kind: str | None = None,
    ) -> None:
        """A loop from 0 to a constant trip count."""
        super().__init__(
            operands=[[], [], list(inits)],
            result_types=[[init.type for init in inits]],
            properties={
                "lower": AffineMapAttr.constant_map(0),
                "upper": AffineMapAttr.constant_map(trip),
                "axis": StringAttr(axis) if axis else None,
                "kind": StringAttr(kind) if kind else None,
            },
            regions=[body],
        )

    @property
    def counter(self) -> SSAValue:
        return self.body.block.args[0]

    @property
    def yielded(self) -> Operation:
        last = self.body.block.last_op
        assert last is not None
        return last

    def verify_(self) -> None:
        args = self.body.block.args
        if not args or not isinstance(args[0].type, IndexType):
            raise VerifyException("'tile.for' body starts with an index counter")
        carried = [arg.type for arg in args[1:]]
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("'tile.for' body ends in tile.yield")
        for what, types in (
            ("initial", [init.type for init in self.inits]),
            ("yielded", [value.type for value in last.args]),
            ("result", [result.type for result in self.res]),
        ):
            if types != carried:
                raise VerifyException(f"'tile.for' {what} types {_list(types)} differ from carried {_list(carried)}")
        verify_bounds(self.name, self.lower, len(self.lower_operands), self.upper, len(self.upper_operands))
        if self.kind is not None and self.kind.data not in ("grid", "stream", "inner"):
            raise VerifyException("'tile.for' kind is one of grid, stream, inner")


def _list(types: Sequence[Attribute]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def verify_bounds(name: str, lower: AffineMapAttr, lowers: int, upper: AffineMapAttr, uppers: int) -> None:
    """Loop bounds are single-result maps over as many counters as are given."""
    for what, attr, count in (("lower", lower, lowers), ("upper", upper, uppers)):
        if attr.data.num_dims != count or len(attr.data.results) != 1:
            raise VerifyException(f"'{name}' {what} bound must map {count} counters to one value")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """`tile.kernel @k(%x: T) -> (%o: T) { … }`: block arguments are the inputs, then the outputs.

    `function_type` gives inputs and outputs; `schedule` is the decision that produced the kernel.
    """

    name = "tile.kernel"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    schedule = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def verify_(self) -> None:
        kinds = [*self.function_type.inputs, *self.function_type.outputs]
        if [arg.type for arg in self.body.block.args] != kinds:
            raise VerifyException(f"'tile.kernel' @{self.sym_name.data} arguments differ from its function type")
        for kind in kinds:
            if not isinstance(kind, TensorType | BufferType):
                raise VerifyException(f"'tile.kernel' arguments are tensors or off-chip buffers, got {kind}")

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        return tuple(self.body.block.args[: len(self.function_type.inputs)])

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        return tuple(self.body.block.args[len(self.function_type.inputs) :])


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """`%o = tile.launch %x {callee = @k} : T` (value form) or `tile.launch %x, %o {callee = @k, into}` (buffers)."""

    name = "tile.launch"
    args = var_operand_def()
    res = var_result_def()
    callee = prop_def(SymbolRefAttr)
    into = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        if self.into is not None and self.res:
            raise VerifyException("'tile.launch' with 'into' has no result")


Tile = Dialect(
    "tile",
    [
        LoadOp,
        StoreOp,
        MapOp,
        ReduceOp,
        ContractOp,
        FillOp,
        EmptyOp,
        IotaOp,
        SliceOp,
        InsertOp,
        MoveOp,
        AllocOp,
        AliasOp,
        YieldOp,
        ForOp,
        KernelOp,
        LaunchOp,
    ],
    [TileType, BufferType, LayoutAttr],
)
