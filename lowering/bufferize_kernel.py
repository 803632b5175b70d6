"""One kernel from values to buffers: the kernel is rebuilt op by op, every tile value standing for a buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import AffineMapAttr, FunctionType, IndexType, IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from ..dialects import tile
from ..dialects.errors import UserError
from ..dialects.target import Target
from ..dialects.tile_types import BufferType, TileType
from .bufferize_layout import buffer_type, may_be_cut, slice_type, tensor_buffer
from .bufferize_uses import Uses
from .buffers import root, slots_of


class KernelBufferizer:
    """`run` returns the kernel in buffer form; the old one is left as it is.

    `buffers` maps tile values to buffers, `occupant` a buffer to the value it holds at the current point.
    """

    def __init__(self, kernel: tile.KernelOp, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.uses = Uses(kernel)
        self.buffers: dict[SSAValue, SSAValue] = {}
        self.occupant: dict[SSAValue, SSAValue] = {}
        self.made_for: dict[SSAValue, tile.InsertOp] = {}
        self.block = Block()
        self.depth = 0

    def run(self) -> tile.KernelOp:
        kernel = self.kernel
        kinds = [tensor_buffer(self.target, arg.type) for arg in kernel.body.block.args]
        top = self.block = Block(arg_types=kinds)
        for old, new in zip(kernel.body.block.args, top.args, strict=True):
            new.name_hint, new.location = old.name_hint, old.location
            self.buffers[old] = new
        self.ops(kernel.body.block)
        count = len(kernel.function_type.inputs)
        made = tile.KernelOp.create(
            properties={**kernel.properties, "function_type": FunctionType.from_lists(kinds[:count], kinds[count:])},
            attributes=dict(kernel.attributes),
            regions=[Region(top)],
        )
        made.location = kernel.location
        return made

    # --- emission -------------------------------------------------------------------------------------------------

    def add(self, op: Operation, like: Operation) -> Operation:
        op.location = like.location
        self.block.add_op(op)
        return op

    def alloc(self, kind: BufferType, like: Operation, slots: int = 1, hint: str | None = None) -> SSAValue:
        properties: dict[str, Attribute] = {"slots": IntegerAttr(slots, i64)} if slots > 1 and self.depth else {}
        made = tile.AllocOp.create(result_types=[kind], properties=properties)
        self.add(made, like)
        made.res[0].name_hint = hint
        return made.res[0]

    def copy(self, source: SSAValue, destination: SSAValue, like: Operation) -> None:
        """Copies between buffers of one memory, which only the vector engine can do."""
        kind = destination.type
        assert isinstance(kind, BufferType)
        engine = self.target.vector_engine
        if engine is None or kind.memory.data != engine[1].memories[0]:
            raise UserError(
                f"'{like.name}' needs a copy of a tile in memory '{kind.memory.data}', where no engine can make one: "
                "the old value is read after it was replaced",
                like.location,
            )
        properties: dict[str, Attribute] = {"fn": StringAttr("identity"), "into": UnitAttr()}
        self.add(tile.MapOp.create(operands=[source, destination], properties=properties), like)

    def mapped(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.buffers[value] for value in values]

    # --- walking --------------------------------------------------------------------------------------------------

    def ops(self, block: Block) -> None:
        for op in block.ops:
            match op:
                case tile.ForOp():
                    self.loop(op)
                case tile.YieldOp():
                    self.yields(op)
                case tile.SliceOp():
                    self.slice(op)
                case tile.InsertOp():
                    self.insert(op)
                case tile.EmptyOp():
                    self.empty(op)
                case tile.StoreOp():
                    properties = {name: value for name, value in op.properties.items() if name != "slots"}
                    self.add(tile.StoreOp.create(operands=self.mapped(op.args), properties=properties), op)
                case tile.TileOp():
                    self.compute(op)
                case _:
                    raise UserError(f"'{op.name}' does not belong in a kernel in value form", op.location)

    def loop(self, op: tile.ForOp) -> None:
        carried: list[SSAValue] = []
        for init in op.inits:
            held = self.buffers[init]
            once = sum(other is init for other in op.inits) == 1
            if not (once and self.owned(init) and self.uses.dies_at(init, op)):
                source = held
                held = self.alloc(self.type_of(init), op, hint=init.name_hint)
                self.copy(source, held, op)
            carried.append(held)
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = op.counter.name_hint
        outer, self.block = self.block, body
        self.buffers[op.counter] = body.args[0]
        for arg, held in zip(op.body.block.args[1:], carried, strict=True):
            self.hold(arg, held)
        self.depth += 1
        self.ops(op.body.block)
        self.depth -= 1
        body.add_op(tile.YieldOp.create())
        self.block = outer
        lower, upper = self.mapped(op.lower_operands), self.mapped(op.upper_operands)
        properties = {n: value for n, value in op.properties.items() if n != "operandSegmentSizes"}
        made = tile.ForOp(0, [], Region(body))
        made.operands = [*lower, *upper]
        made.properties.update(properties)
        made.properties["operandSegmentSizes"] = type(op.properties["operandSegmentSizes"]).from_list(  # pyright: ignore
            cast(Any, op.properties["operandSegmentSizes"]).elt_type, [len(lower), len(upper), 0]
        )
        self.add(made, op)
        for result, held in zip(op.res, carried, strict=True):
            self.hold(result, held)

    def yields(self, op: tile.YieldOp) -> None:
        """Brings what is yielded into the buffers of the carried arguments."""
        loop = op.parent_op()
        assert isinstance(loop, tile.ForOp)
        pending: list[tuple[SSAValue, SSAValue]] = []
        for arg, value in zip(loop.body.block.args[1:], op.args, strict=True):
            if self.buffers[value] is not self.buffers[arg]:
                pending.append((self.buffers[value], self.buffers[arg]))
        while pending:
            waiting = {root(source) for source, _ in pending}
            free = next((pair for pair in pending if root(pair[1]) not in waiting), None)
            if free is not None:
                pending.remove(free)
                self.copy(*free, op)
                continue
            # Every destination still holds what another needs: one value steps aside.
            source, _ = pending[0]
            kept = self.alloc(cast(BufferType, source.type), op)
            self.copy(source, kept, op)
            pending = [(kept if root(held) is root(source) else held, into) for held, into in pending]

    def slice(self, op: tile.SliceOp) -> None:
        source = self.buffers[op.tiles[0]]
        self.buffers[op.target] = self.part(source, op, op.valid, self.mapped(op.counters), op)

    def part(
        self, source: SSAValue, form: tile.SliceOp, valid: AffineMapAttr, counters: Sequence[SSAValue], like: Operation
    ) -> SSAValue:
        kind = source.type
        assert isinstance(kind, BufferType)
        made = tile.SliceOp.create(
            operands=[source, *counters],
            result_types=[slice_type(kind, form)],
            properties={"map": form.map, "valid": valid},
        )
        self.add(made, like)
        made.res[0].name_hint = form.target.name_hint
        return made.res[0]

    def insert(self, op: tile.InsertOp) -> None:
        part, whole = op.tiles
        held = self.buffers[whole]
        if not self.uses.dies_at(whole, op):
            old = held
            held = self.alloc(self.type_of(whole), op, hint=op.target.name_hint)
            self.copy(old, held, op)
            self.made_for.pop(part, None)
        if self.made_for.get(part) is not op:
            place = self.place_of(op, held)
            self.copy(self.buffers[part], place, op)
        self.hold(op.target, held)

    def place_of(self, op: tile.InsertOp, whole: SSAValue) -> SSAValue:
        """The slice of a whole that an insert replaces."""
        part = op.tiles[0]
        extents = [AffineConstantExpr(extent) for extent in tile.shape_of(part)]
        valid = AffineMapAttr(AffineMap(len(op.counters), 0, tuple(extents)))
        form = tile.SliceOp.create(
            operands=[op.tiles[1], *op.counters],
            result_types=[part.type],
            properties={"map": op.map, "valid": valid},
        )
        made = self.part(whole, form, valid, self.mapped(op.counters), op)
        form.drop_all_references()
        return made

    def empty(self, op: tile.EmptyOp) -> None:
        """A buffer; what of it is valid is stated by a slice of the whole."""
        held = self.alloc(self.type_of(op.target), op, self.slots(op), op.target.name_hint)
        shape = tile.shape_of(op.target)
        if any(not is_at_least(e, extent) for e, extent in zip(op.valid.data.results, shape, strict=True)):
            count = len(op.counters)
            same = AffineMap(count + len(shape), 0, tuple(AffineDimExpr(count + d) for d in range(len(shape))))
            made = tile.SliceOp.create(
                operands=[held, *self.mapped(op.counters)],
                result_types=[held.type],
                properties={"map": AffineMapAttr(same), "valid": op.valid},
            )
            self.add(made, op)
            held = made.res[0]
        self.hold(op.target, held)

    # --- destinations ---------------------------------------------------------------------------------------------

    def compute(self, op: tile.TileOp) -> None:
        held = self.destination(op)
        tiles = op.tiles
        if isinstance(op, tile.ContractOp) and op.accumulate is not None:
            tiles = tiles[:2]
        properties = {n: value for n, value in op.properties.items() if n != "slots"}
        made = type(op).create(
            operands=[*self.mapped(tiles), *self.mapped(op.counters), held],
            properties={**properties, "into": UnitAttr()},
        )
        self.add(made, op)
        self.hold(op.target, held)

    def destination(self, op: tile.TileOp) -> SSAValue:
        if isinstance(op, tile.ContractOp) and op.accumulate is not None:
            return self.accumulator(op)
        found = self.carried(op) or self.inserted(op)
        if found is None and isinstance(op, tile.MapOp):
            found = self.in_place(op)
        if found is None:
            found = self.alloc(self.type_of(op.target), op, self.slots(op), op.target.name_hint)
        return found

    def carried(self, op: tile.TileOp) -> SSAValue | None:
        """The buffer of the carried argument that the result replaces, where that is free."""
        loop = op.parent_op()
        if not isinstance(loop, tile.ForOp):
            return None
        for arg, value in zip(loop.body.block.args[1:], loop.yielded.operands, strict=True):
            if value is op.target:
                held = self.buffers[arg]
                occupant = self.occupant[root(held)]
                if self.uses.last(occupant) < self.uses.index[op] and self.uses.block_of(occupant) is op.parent:
                    return held
                if isinstance(op, tile.MapOp) and occupant in op.tiles and self.may_overwrite(op, occupant):
                    return self.buffers[occupant]
        return None

    def inserted(self, op: tile.TileOp) -> SSAValue | None:
        """The slice of the whole that the result goes to, where nothing reads the whole in between."""
        if op.target.uses.get_length() != 1:
            return None
        use = next(iter(op.target.uses))
        insert = use.operation
        if not isinstance(insert, tile.InsertOp) or use.index != 0 or insert.parent is not op.parent:
            return None
        whole, here = insert.tiles[1], self.uses.index[op]
        if not self.uses.dies_at(whole, insert) or any(value not in self.buffers for value in insert.args[1:]):
            return None
        block = op.parent
        assert block is not None
        if any(r.operation is not insert and self.uses.at(r, block) >= here for r in self.uses.readers(whole)):
            return None
        self.made_for[op.target] = insert
        return self.place_of(insert, self.buffers[whole])

    def in_place(self, op: tile.MapOp) -> SSAValue | None:
        """The buffer of an operand that dies here. A multi-buffered load keeps its own: refilling it must not wait
        for the readers of the result. So does a carried argument, unless the next iteration's is computed from the
        result: what takes its place would keep the next value of the argument waiting."""
        for value in op.tiles:
            if isinstance(value, BlockArgument) and not self.uses.replaces(op.target, value):
                continue
            held = self.buffers[value]
            if isinstance(held.owner, tile.AllocOp) and self.may_overwrite(op, value):
                slots = slots_of(held.owner)
                if slots > 1 and isinstance(value.owner, tile.LoadOp):
                    continue
                if self.slots(op) > slots and held.owner.parent is self.block:
                    held.owner.slots = IntegerAttr(self.slots(op), i64)
                return held
        return None

    def may_overwrite(self, op: tile.MapOp, value: SSAValue) -> bool:
        """Whether an elementwise result may replace an operand: same type, dead here, and read here only as it is."""
        if value.type != op.target.type or not self.owned(value) or not self.uses.dies_at(value, op):
            return False
        taken = self.buffers[value].type
        assert isinstance(taken, BufferType)
        if may_be_cut(op.target) and taken.layout != self.type_of(op.target).layout:
            return False
        held = root(self.buffers[value])
        return all(other is value or root(self.buffers[other]) is not held for other in op.tiles)

    def accumulator(self, op: tile.ContractOp) -> SSAValue:
        """The buffer of the accumulator; of a slice of one, if the result goes back where the slice came from."""
        value = op.tiles[2]
        insert = self.goes_back(op, value)
        if insert is not None:
            self.made_for[op.target] = insert
            return self.buffers[value]
        if not isinstance(value.owner, tile.SliceOp) and self.uses.dies_at(value, op):
            return self.buffers[value]
        held = self.alloc(self.type_of(op.target), op, hint=op.target.name_hint)
        self.copy(self.buffers[value], held, op)
        return held

    def goes_back(self, op: tile.ContractOp, value: SSAValue) -> tile.InsertOp | None:
        """The insert that puts the result where the accumulator `value` was taken from, if nothing reads between."""
        uses = list(op.target.uses)
        insert = uses[0].operation if len(uses) == 1 and uses[0].index == 0 else None
        if not isinstance(insert, tile.InsertOp) or insert.parent is not op.parent:
            return None
        whole, piece = insert.tiles[1], value.owner
        if isinstance(piece, tile.SliceOp):
            same = piece.tiles[0] is whole and piece.map == insert.map and piece.counters == insert.counters
            same = same and value.uses.get_length() == 1
        else:
            same = value is whole and is_all_of(insert)
        if not same or not self.uses.dies_at(whole, insert):
            return None
        here, block = self.uses.index[op], op.parent
        assert block is not None
        readers = [r for r in self.uses.readers(whole) if r.operation not in (insert, op)]
        return insert if all(self.uses.at(r, block) < here for r in readers) else None

    # --- values ---------------------------------------------------------------------------------------------------

    def hold(self, value: SSAValue, held: SSAValue) -> None:
        self.buffers[value] = held
        self.occupant[root(held)] = value

    def owned(self, value: SSAValue) -> bool:
        """Whether a value has its bytes to itself: it is not a slice of another."""
        return not isinstance(value.owner, tile.SliceOp) and value not in self.made_for

    def type_of(self, value: SSAValue) -> BufferType:
        assert isinstance(value.type, TileType)
        return buffer_type(self.target, value)

    def slots(self, op: tile.TileOp) -> int:
        return op.slots.value.data if op.slots is not None else 1


def is_all_of(op: tile.InsertOp) -> bool:
    """Whether an insert replaces the whole."""
    count, (part, whole) = len(op.counters), (tile.shape_of(value) for value in op.tiles)
    same = all(expr == AffineDimExpr(count + d) for d, expr in enumerate(op.map.data.results))
    return part == whole and same


def is_at_least(expr: object, extent: int) -> bool:
    """Whether a valid extent is a constant that covers the whole dimension."""
    return isinstance(expr, AffineConstantExpr) and expr.value >= extent
