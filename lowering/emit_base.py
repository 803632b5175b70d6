"""What all parts of the emission of a kernel share: where buffers are, how views and instructions are made."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects import hardware, tile
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.target_model import Target
from ..dialects.tile_types import BufferType
from .affine_bounds import is_multiple
from .ahead import AHEAD
from .emit_views import Loops, Place, Valid, bounded, substituted


class Emitter:
    """`places` says where each buffer's bytes are and how much of it is valid, `block` where instructions go."""

    def __init__(self, kernel: tile.KernelOp, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.loops = Loops()
        self.places: dict[SSAValue, Place] = {}
        self.block = Block()

    def define(self, value: SSAValue, buffer: SSAValue, offset: AffineExpr) -> None:
        """The bytes of a buffer, all valid."""
        kind = value.type
        if not isinstance(kind, BufferType):
            raise UserError("this kernel is not in buffer form: run bufferize first", self.kernel.location)
        layout = kind.layout.layout(byte_width(kind.element_type))
        valid: Valid = (None,) * len(kind.shape)
        self.places[value] = Place(buffer, kind.memory.data, kind.element_type, kind.shape, layout, offset, valid)

    def written(self, value: SSAValue, valid: Valid) -> None:
        """What an op wrote is valid."""
        self.places[value] = self.places[value].with_valid(valid)

    def is_whole(self, value: SSAValue) -> bool:
        """Whether a value is all of a buffer and not a slice."""
        return isinstance(value.owner, tile.AllocOp)

    def counters(self, op: tile.TileOp) -> list[AffineExpr]:
        return [self.loops.dim(counter) for counter in op.counters]

    def valid_of(self, map_: AffineMapAttr, op: tile.TileOp, shape: Sequence[int]) -> Valid:
        """What an op states as valid."""
        exprs = substituted(map_.data, self.counters(op), [])
        return tuple(bounded(expr, extent, self.loops.ranges) for expr, extent in zip(exprs, shape, strict=True))

    def add(self, op: Operation, at: Operation) -> Operation:
        op.location = at.location
        if AHEAD in at.attributes:
            op.attributes[AHEAD] = at.attributes[AHEAD]
        self.block.add_op(op)
        return op

    def view(self, place: Place, at: Operation) -> SSAValue:
        """The view of a place. Raises UserError where it does not start at a multiple of its memory's alignment."""
        memory = self.target.memories[place.memory]
        if not memory.offchip and not is_multiple(place.offset, memory.align, self.loops.ranges):
            raise UserError(
                f"'{at.name}' works on a part of a tile in memory '{place.memory}' that does not start at a multiple "
                f"of {memory.align} bytes",
                at.location,
            )
        return self.add(self.loops.view(place), at).results[0]

    def instruction(
        self,
        made: type[hardware.InstructionOp],
        engine: str,
        places: Sequence[Place],
        at: Operation,
        properties: dict[str, Attribute] | None = None,
        counters: Sequence[SSAValue] = (),
        fresh: bool = False,
    ) -> None:
        """Adds views and an instruction; `counters` are those of tile loops."""
        views = [self.view(place, at) for place in places]
        filled: dict[str, Attribute] = {"engine": StringAttr(engine), **(properties or {})}
        if fresh:
            filled["fresh"] = UnitAttr()
        renamed = [self.loops.rename[counter] for counter in counters]
        self.add(made.create(operands=[*views, *renamed], properties=filled), at)
