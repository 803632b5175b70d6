"""Emits one `hardware.kernel` from a `tile.kernel` in planned buffer form."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ..dialects import hardware, tile
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.layout import Layout
from ..dialects.target_model import Target
from ..dialects.tile_types import BufferType
from ..dialects.transfer import transfer
from .bufferize_layout import linear, slot_bytes
from .emit_edges import Edges
from .emit_views import Loops, Place, Valid, address, bounded, meet, simplified, substituted
from .regions import add, scaled, total


class KernelEmitter:
    """Walks the body once; `places` says where each buffer's bytes are and how much of it is valid."""

    def __init__(self, kernel: tile.KernelOp, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.loops = Loops()
        self.places: dict[SSAValue, Place] = {}
        self.roots: dict[SSAValue, SSAValue] = {}
        self.top = Block()
        self.block = self.top
        self.last_buffer: Operation | None = None

    def emit(self) -> hardware.KernelOp:
        kinds = [arg.type for arg in self.kernel.body.block.args]
        self.top = self.block = Block(arg_types=kinds)
        for arg, copy in zip(self.kernel.body.block.args, self.top.args, strict=True):
            copy.name_hint = arg.name_hint
            self.define(arg, copy, AffineConstantExpr(0))
        self.ops(self.kernel.body.block)
        made = hardware.KernelOp.create(
            properties={"sym_name": self.kernel.sym_name, "schedule": self.kernel.schedule}
            if self.kernel.schedule is not None
            else {"sym_name": self.kernel.sym_name},
            attributes=dict(self.kernel.attributes),
            regions=[Region(self.top)],
        )
        made.location = self.kernel.location
        return made

    # --- bookkeeping ----------------------------------------------------------------------------------------------

    def define(self, value: SSAValue, buffer: SSAValue, offset: AffineExpr) -> None:
        kind = value.type
        if not isinstance(kind, BufferType):
            raise UserError("this kernel is not in buffer form: run bufferize first", self.kernel.location)
        layout = kind.layout.layout(byte_width(kind.element_type))
        valid: Valid = (None,) * len(kind.shape)
        self.places[value] = Place(buffer, kind.memory.data, kind.element_type, kind.shape, layout, offset, valid)

    def add(self, op: Operation, at: Operation) -> Operation:
        op.location = at.location
        self.block.add_op(op)
        return op

    def view(self, place: Place, at: Operation) -> SSAValue:
        return self.add(self.loops.view(place), at).results[0]

    def counters(self, op: tile.TileOp) -> list[AffineExpr]:
        return [self.loops.dim(counter) for counter in op.counters]

    def valid_of(self, map_: AffineMapAttr, op: tile.TileOp, shape: Sequence[int]) -> Valid:
        exprs = substituted(map_.data, self.counters(op), [])
        return tuple(bounded(expr, extent) for expr, extent in zip(exprs, shape, strict=True))

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
        views = [self.view(place, at) for place in places]
        filled: dict[str, Attribute] = {"engine": StringAttr(engine), **(properties or {})}
        if fresh:
            filled["fresh"] = UnitAttr()
        self.add(made.create(operands=[*views, *counters], properties=filled), at)

    # --- structure ------------------------------------------------------------------------------------------------

    def ops(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case tile.ForOp():
                    self.loop(op)
                case tile.AllocOp():
                    self.alloc(op)
                case tile.SliceOp():
                    self.slice(op)
                case tile.LoadOp():
                    self.load(op)
                case tile.StoreOp():
                    self.store(op)
                case tile.MoveOp():
                    self.move(op)
                case tile.ContractOp():
                    self.contract(op)
                case tile.MapOp():
                    self.map(op)
                case tile.ReduceOp():
                    self.reduce(op)
                case tile.FillOp():
                    self.fill(op)
                case tile.IotaOp():
                    self.iota(op)
                case tile.YieldOp():
                    pass
                case _:
                    raise UserError(f"'{op.name}' is not in buffer form: run bufferize first", op.location)

    def loop(self, op: tile.ForOp) -> None:
        if op.inits or op.lower.data != AffineMap.constant_map(0):
            raise UserError("a loop in buffer form starts at 0 and carries nothing", op.location)
        last = op.upper.data.results[0]
        if not isinstance(last, AffineConstantExpr):
            raise UserError("only loops with a constant trip count are emitted", op.location)
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = op.counter.name_hint
        outer, self.block = self.block, body
        self.loops.counters.append(op.counter)
        self.loops.trips.append(last.value)
        self.enter(op.counter, body.args[0])
        self.ops(op.body.block)
        self.loops.counters.pop()
        self.loops.trips.pop()
        self.block = outer
        properties: dict[str, Attribute] = {"lower": op.lower, "upper": op.upper}
        if op.axis is not None:
            properties["axis"] = op.axis
        made = hardware.ForOp.build(operands=[[], []], properties=properties, regions=[Region(body)])
        self.add(made, op)

    def enter(self, old: SSAValue, new: SSAValue) -> None:
        """Counters of the tile loops become those of the new ones in every view made from here on."""
        self.loops.rename[old] = new

    def alloc(self, op: tile.AllocOp) -> None:
        if op.offset is None:
            raise UserError("this buffer has no offset: run plan first", op.location)
        value = op.res[0]
        kind = value.type
        assert isinstance(kind, BufferType)
        slots = 1 if op.slots is None else op.slots.value.data
        properties: dict[str, Attribute] = {"offset": op.offset, "role": StringAttr("local")}
        if slots > 1:
            properties["slots"] = IntegerAttr(slots, i64)
        made = hardware.BufferOp.create(result_types=[kind], properties=properties)
        made.location = op.location
        made.res.name_hint = value.name_hint
        if self.last_buffer is None:
            first = self.top.first_op
            if first is None:
                self.top.add_op(made)
            else:
                self.top.insert_op_before(made, first)
        else:
            self.top.insert_op_after(made, self.last_buffer)
        self.last_buffer = made
        offset: AffineExpr = AffineConstantExpr(0)
        if slots > 1:
            size = slot_bytes(kind, self.target.memories[kind.memory.data])
            offset = scaled(self.loops.linearised() % slots, size)
        self.define(value, made.res, offset)
        self.roots[value] = value

    def slice(self, op: tile.SliceOp) -> None:
        source, result = self.places[op.tiles[0]], op.res[0]
        kind = result.type
        assert isinstance(kind, BufferType)
        zero = [AffineConstantExpr(0)] * len(kind.shape)
        index = substituted(op.map.data, self.counters(op), zero)
        self.define(result, source.buffer, add(source.offset, address(source.layout, index)))
        self.places[result] = self.places[result].with_valid(self.valid_of(op.valid, op, kind.shape))

    def written(self, value: SSAValue, valid: Valid) -> None:
        """What an op wrote is valid; slices that state their own keep it."""
        self.places[value] = self.places[value].with_valid(valid)

    def is_whole(self, value: SSAValue) -> bool:
        return isinstance(value.owner, tile.AllocOp)

    # --- movement -------------------------------------------------------------------------------------------------

    def seen_through(self, place: Place, map_: AffineMapAttr, op: tile.TileOp, shape: Sequence[int]) -> Place:
        """A global tensor as a tile sees it through the map of a load or store."""
        counters, rank = self.counters(op), len(shape)
        first = self.loops.depth
        positions: list[AffineExpr] = [AffineDimExpr(first + p) for p in range(rank)]
        strides = [0] * rank
        offset: list[AffineExpr] = [place.offset]
        for expr, atoms in zip(substituted(map_.data, counters, positions), place.layout.dims, strict=True):
            found = linear(expr)
            if found is None or len(atoms) != 1:
                raise UserError(f"'{op.name}' map {map_.data} is not linear", op.location)
            stride = atoms[0][1]
            for dim, coefficient in found[1].items():
                if dim >= first:
                    strides[dim - first] += coefficient * stride
                else:
                    offset.append(scaled(AffineDimExpr(dim), coefficient * stride))
            offset.append(AffineConstantExpr(found[0] * stride))
        if any(stride < 0 for stride in strides):
            raise UserError(f"'{op.name}' runs backwards through its tensor", op.location)
        layout = Layout.strided(shape, strides, place.layout.element_bytes)
        none: Valid = (None,) * rank
        return Place(place.buffer, place.memory, place.element, tuple(shape), layout, simplified(total(offset)), none)

    def load(self, op: tile.LoadOp) -> None:
        target, source = op.target, self.places[op.tiles[0]]
        place = self.places[target]
        place = place.with_valid(self.valid_of(op.valid, op, place.shape))
        self.written(target, place.valid)
        outside = self.seen_through(source, op.map, op, place.shape)
        edges = Edges(self.loops, op, source, place, self.counters(op))
        if edges.needed:
            self.fill_place(place, op.fill, op)
            outside, inside = edges.clip(outside, place)
            self.dma(outside, inside, op, fresh=False)
        else:
            self.dma(outside, place, op, fresh=self.is_whole(target))

    def store(self, op: tile.StoreOp) -> None:
        place = self.places[op.args[0]]
        place = place.with_valid(self.valid_of(op.valid, op, place.shape))
        outside = self.seen_through(self.places[op.destination], op.map, op, place.shape)
        self.dma(place, outside, op, fresh=False)

    def move(self, op: tile.MoveOp) -> None:
        source, place = self.places[op.tiles[0]], self.places[op.target]
        place = place.with_valid(source.valid)
        self.written(op.target, source.valid)
        self.dma(source, place, op, fresh=self.is_whole(op.target))

    def dma(self, source: Place, destination: Place, op: Operation, fresh: bool) -> None:
        """One transfer, or a loop of smaller ones if a descriptor has too few dimensions."""
        move = self.target.move(source.memory, destination.memory)
        if move is None:
            raise UserError(
                f"target '{self.target.name}' has no move from '{source.memory}' to '{destination.memory}'", op.location
            )
        if source.element != destination.element and not move.cast:
            raise UserError(
                f"the move from '{source.memory}' to '{destination.memory}' of target '{self.target.name}' cannot "
                f"convert {source.element} to {destination.element}",
                op.location,
            )
        dims = transfer(self.target, move, source.layout, destination.layout, source.shape).dims
        if dims <= self.target.max_dma_dims:
            self.instruction(hardware.DmaOp, move.engine, [source, destination], op, fresh=fresh)
            return
        wide = [d for d, extent in enumerate(source.shape) if extent > 1]
        if not wide:
            raise UserError("a transfer of one element needs no dimension", op.location)
        cut = max(wide, key=lambda d: max(source.layout.dims[d][0][1], destination.layout.dims[d][0][1]))
        body = Block(arg_types=[IndexType()])
        outer, self.block = self.block, body
        self.loops.counters.append(body.args[0])
        self.loops.trips.append(source.shape[cut])
        self.loops.rename[body.args[0]] = body.args[0]
        self.dma(self.row(source, cut), self.row(destination, cut), op, False)
        self.loops.counters.pop()
        self.loops.trips.pop()
        self.block = outer
        bound = {"lower": AffineMapAttr.constant_map(0), "upper": AffineMapAttr.constant_map(source.shape[cut])}
        self.add(hardware.ForOp.build(operands=[[], []], properties=bound, regions=[Region(body)]), op)

    def row(self, place: Place, cut: int) -> Place:
        """One index of a dimension: the counter of the innermost loop."""
        here = AffineDimExpr(self.loops.depth - 1)
        index: list[AffineExpr] = [AffineConstantExpr(0)] * len(place.shape)
        index[cut] = here
        dims = tuple(((1, place.layout.element_bytes),) if d == cut else a for d, a in enumerate(place.layout.dims))

        def at(exprs: Valid) -> Valid:
            return tuple(
                add(expr, scaled(here, -1)) if d == cut and expr is not None else expr for d, expr in enumerate(exprs)
            )

        return Place(
            place.buffer,
            place.memory,
            place.element,
            tuple(1 if d == cut else e for d, e in enumerate(place.shape)),
            Layout(dims, place.layout.element_bytes),
            add(place.offset, address(place.layout, index)),
            at(place.valid),
            at(place.start),
        )

    # --- computation ----------------------------------------------------------------------------------------------

    @property
    def vector(self) -> str:
        engine = self.target.vector_engine
        assert engine is not None
        return engine[0]

    def fill_place(self, place: Place, value: Attribute | None, op: Operation) -> None:
        """Writes a value to all valid elements, by the vector engine or else by a move that can pad."""
        assert value is not None
        vector = self.target.vector_engine
        if vector is not None and place.memory in vector[1].memories:
            engine = vector[0]
        else:
            padding = [m for m in self.target.moves if m.destination == place.memory and m.pad]
            if not padding:
                raise UserError(
                    f"target '{self.target.name}' has no engine that fills memory '{place.memory}'", op.location
                )
            engine = padding[0].engine
        self.instruction(hardware.FillOp, engine, [place], op, {"value": value}, fresh=True)

    def contract(self, op: tile.ContractOp) -> None:
        matrix = self.target.matrix_engine
        if matrix is None:
            raise UserError(f"target '{self.target.name}' has no matrix engine", op.location)
        lhs, rhs = (self.places[value] for value in op.tiles[:2])
        names = op.letters()
        extents: dict[str, AffineExpr | None] = {}
        for letters, place in zip(names, (lhs, rhs), strict=False):
            for letter, valid in zip(letters, place.valid, strict=True):
                extents[letter] = meet(extents.get(letter), valid)
        valid = tuple(extents.get(letter) for letter in names[2])
        out = self.places[op.target].with_valid(valid)
        if self.is_whole(op.target):
            self.written(op.target, valid)
        properties: dict[str, Attribute] = {"spec": op.spec}
        counters: list[SSAValue] = []
        if op.accumulate is None or (op.init is not None and not op.init.data.results):
            properties["overwrite"] = UnitAttr()
        elif op.init is not None:
            properties["init"] = op.init
            counters = [self.loops.rename[counter] for counter in op.counters]
        overwrites = "overwrite" in properties and self.is_whole(op.target)
        self.instruction(hardware.MatmulOp, matrix[0], [lhs, rhs, out], op, properties, counters, fresh=overwrites)

    def map(self, op: tile.MapOp) -> None:
        sources = [self.places[value] for value in op.tiles]
        out = self.places[op.target]
        valid: Valid = (None,) * len(out.shape)
        for source in sources:
            valid = tuple(
                have if extent == 1 != size else meet(have, found)
                for have, found, extent, size in zip(valid, source.valid, source.shape, out.shape, strict=True)
            )
        if not sources:
            valid = out.valid
        out = out.with_valid(valid)
        properties: dict[str, Attribute] = {"fn": op.fn}
        if op.immediates is not None:
            properties["immediates"] = op.immediates
        if op.params is not None:
            properties["params"] = op.params
        fresh = self.is_whole(op.target) and op.target not in op.tiles
        self.instruction(hardware.VectorOp, self.vector, [*sources, out], op, properties, fresh=fresh)
        if self.is_whole(op.target):
            self.written(op.target, valid)

    def reduce(self, op: tile.ReduceOp) -> None:
        source, out = self.places[op.tiles[0]], self.places[op.target]
        valid = tuple(None if size == 1 else found for size, found in zip(out.shape, source.valid, strict=True))
        properties: dict[str, Attribute] = {"monoid": op.monoid, "axes": op.axes}
        out = out.with_valid(valid)
        fresh = self.is_whole(op.target)
        self.instruction(hardware.ReduceOp, self.vector, [source, out], op, properties, fresh=fresh)
        if fresh:
            self.written(op.target, valid)

    def fill(self, op: tile.FillOp) -> None:
        place = self.places[op.target]
        place = place.with_valid(self.valid_of(op.valid, op, place.shape))
        self.written(op.target, place.valid)
        self.instruction(hardware.FillOp, self.vector, [place], op, {"value": op.value}, fresh=self.is_whole(op.target))

    def iota(self, op: tile.IotaOp) -> None:
        place = self.places[op.target]
        place = place.with_valid(self.valid_of(op.valid, op, place.shape))
        self.written(op.target, place.valid)
        counters = [self.loops.rename[counter] for counter in op.counters]
        self.instruction(
            hardware.IotaOp,
            self.vector,
            [place],
            op,
            {"map": op.map},
            counters,
            fresh=self.is_whole(op.target),
        )
