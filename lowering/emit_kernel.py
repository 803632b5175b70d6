"""Emits one `hardware.kernel` from a `tile.kernel` in planned buffer form."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ..dialects import hardware, tile
from ..dialects.errors import UserError
from ..dialects.target_model import Target
from ..dialects.tile_types import BufferType
from . import emit_compute, emit_moves
from .affine_bounds import counter_values
from .bufferize_layout import slice_type, slot_bytes
from .buffers import slots_of
from .cores import CORES
from .emit_base import Emitter
from .emit_views import address, substituted
from .regions import add, scaled


class KernelEmitter(Emitter):
    """Walks the body once. Buffers go to the head of the kernel, everything else where it stands."""

    def __init__(self, kernel: tile.KernelOp, target: Target) -> None:
        super().__init__(kernel, target)
        self.last_buffer: Operation | None = None
        self.top = self.block

    def emit(self) -> hardware.KernelOp:
        """The kernel at the hardware level, without events. Raises UserError for what has no instruction."""
        arguments = self.kernel.body.block.args
        self.top = self.block = Block(arg_types=[arg.type for arg in arguments])
        for arg, copy in zip(arguments, self.top.args, strict=True):
            copy.name_hint, copy.location = arg.name_hint, arg.location
            self.define(arg, copy, AffineConstantExpr(0))
        self.ops(self.kernel.body.block)
        properties: dict[str, Attribute] = {"sym_name": self.kernel.sym_name}
        if self.kernel.schedule is not None:
            properties["schedule"] = self.kernel.schedule
        made = hardware.KernelOp.create(
            properties=properties, attributes=dict(self.kernel.attributes), regions=[Region(self.top)]
        )
        made.location = self.kernel.location
        return made

    def ops(self, block: Block) -> None:
        for op in block.ops:
            try:
                self.op(op)
            except UserError as error:  # layouts and costs know no places
                raise UserError(error.message, error.location or op.location, error.notes) from None

    def op(self, op: Operation) -> None:
        match op:
            case tile.ForOp():
                self.loop(op)
            case tile.AllocOp():
                self.alloc(op)
            case tile.SliceOp():
                self.slice(op)
            case tile.LoadOp():
                emit_moves.load(self, op)
            case tile.StoreOp():
                emit_moves.store(self, op)
            case tile.MoveOp():
                emit_moves.move(self, op)
            case tile.ContractOp():
                emit_compute.contract(self, op)
            case tile.MapOp():
                emit_compute.map_(self, op)
            case tile.ReduceOp():
                emit_compute.reduce(self, op)
            case tile.FillOp():
                emit_compute.fill(self, op)
            case tile.IotaOp():
                emit_compute.iota(self, op)
            case tile.YieldOp():
                pass
            case _:
                raise UserError(f"'{op.name}' is not in buffer form: run bufferize first", op.location)

    def loop(self, op: tile.ForOp) -> None:
        if op.inits:
            raise UserError("a loop in buffer form carries nothing: run bufferize first", op.location)
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = op.counter.name_hint
        outer, self.block = self.block, body
        lowers, uppers = ([self.loops.range(v) for v in group] for group in (op.lower_operands, op.upper_operands))
        values = counter_values(op.lower.data.results, lowers, op.upper.data.results, uppers)
        lower = [self.loops.rename[value] for value in op.lower_operands]
        upper = [self.loops.rename[value] for value in op.upper_operands]
        self.loops.enter(op.counter, body.args[0], values)
        self.ops(op.body.block)
        self.loops.leave()
        self.block = outer
        properties: dict[str, Attribute] = {"lower": op.lower, "upper": op.upper}
        if op.axis is not None:
            properties["axis"] = op.axis
        made = hardware.ForOp.build(operands=[lower, upper], properties=properties, regions=[Region(body)])
        if op.cores is not None:
            made.attributes[CORES] = op.cores
        self.add(made, op)

    def alloc(self, op: tile.AllocOp) -> None:
        if op.offset is None:
            raise UserError("this buffer has no offset: run plan first", op.location)
        value = op.res[0]
        kind = value.type
        assert isinstance(kind, BufferType)
        slots = slots_of(op)
        properties: dict[str, Attribute] = {"offset": op.offset, "role": StringAttr("local")}
        if slots > 1:
            properties["slots"] = IntegerAttr(slots, i64)
        made = hardware.BufferOp.create(result_types=[kind], properties=properties)
        made.location = op.location
        made.res.name_hint = value.name_hint
        first = self.top.first_op
        if self.last_buffer is not None:
            self.top.insert_op_after(made, self.last_buffer)
        elif first is not None:
            self.top.insert_op_before(made, first)
        else:
            self.top.add_op(made)
        self.last_buffer = made
        offset: AffineExpr = AffineConstantExpr(0)
        if slots > 1 and self.loops.depth:
            size = slot_bytes(kind, self.target.memories[kind.memory.data])
            offset = scaled(self.loops.linearised() % slots, size)
        self.define(value, made.res, offset)

    def slice(self, op: tile.SliceOp) -> None:
        """Bytes of another buffer: its strides are in the type of the slice, its offset and valid extents here."""
        source, result = self.places[op.tiles[0]], op.res[0]
        kind = result.type
        source_type = op.tiles[0].type
        assert isinstance(kind, BufferType) and isinstance(source_type, BufferType)
        wanted = slice_type(source_type, op)
        if kind.layout != wanted.layout:
            raise UserError(f"'tile.slice' lies in its buffer as {wanted.layout}, not as {kind.layout}", op.location)
        zero = [AffineConstantExpr(0)] * len(kind.shape)
        index = substituted(op.map.data, self.counters(op), zero)
        self.define(result, source.buffer, add(source.offset, address(source.layout, index)))
        self.written(result, self.valid_of(op.valid, op, kind.shape))
