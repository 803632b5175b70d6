"""The `place` pass: a memory for every tile, and the moves between memories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue, Use
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile
from ..dialects.errors import UserError
from ..dialects.output_stage import check_stage
from ..dialects.target import Target, target_of
from ..dialects.tile_types import TileType
from .buffers import root
from .place_aligned import load_unaligned_parts
from .place_homes import Homes, tile_values
from .place_routes import check_support, first_stop, matrix_memories, need, needed_route, route, vector_memory
from .reduce_steps import reduce_in_steps


@dataclass(frozen=True)
class PlacePass(ModulePass):
    """Requires kernels in value form and the module's target; ensures that every tile type names a memory.

    1. Matrix engine operands and results lie where that engine has them, all other results with the vector engine.
    2. A load lands in the first memory on the way to its readers; readers of two kinds get a load each:
       GM → L1 → L0A for a contraction, GM → UB for the vector engine.
    3. What is read elsewhere is moved: whole as far as the last stop, and from there slice by slice, just before the
       op that reads it. `%s = tile.slice %x : "l1"`, `%m = tile.move %s : "l0a"`.
    4. A cast between the matrix engine's result and another memory becomes part of the move if that can cast, and so do
       a multiplication by a number and an operator that its output stage has.
    5. A store leaves from where its tile lies if that memory has a move off chip, else by way of one that has.
    6. A slice of a load that begins between multiples of its memory's alignment becomes a load of its own.
    7. A reduction along rows → one over pieces of the rows, then one across the lanes of a piece (see reduce_steps).

    Rejects (UserError at the op) element types that an engine lacks, and ways that do not exist on chip.
    """

    name = "place"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for kernel in [k for k in op.ops if isinstance(k, tile.KernelOp)]:
            if any(isinstance(inner, tile.AllocOp) for inner in kernel.walk()):
                raise UserError("this kernel is in buffer form: place comes before bufferize", kernel.location)
            _Placer(kernel, target).run()
        verify_placed(op)


class _Placer:
    def __init__(self, kernel: tile.KernelOp, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        slots = kernel.schedule.data.get("move_slots") if kernel.schedule is not None else None
        steps = kernel.schedule.data.get("row_steps") if kernel.schedule is not None else None
        self.move_slots = cast("IntegerAttr[Any]", slots) if isinstance(slots, IntegerAttr) else None
        self.row_steps = steps.value.data if isinstance(steps, IntegerAttr) else 2  # pyright: ignore[reportUnknownMemberType]

    def run(self) -> None:
        if not any(True for _ in tile_values(self.kernel)):
            return
        for op in list(self.kernel.walk()):
            check_support(self.target, op)
            if isinstance(op, tile.LoadOp):
                self.split_load(op)
        homes = Homes(self.kernel, self.target)
        for value in list(tile_values(self.kernel)):
            set_memory(value, homes.of(value))
        for op, stage in homes.folded.items():
            move = tile.MoveOp.create(operands=[op.args[0]], result_types=[op.res[0].type], properties=stage)
            _replace(op, move)
        for value in list(tile_values(self.kernel)):
            if not isinstance(value.owner, tile.SliceOp):
                self.stage(value)
        for op in list(self.kernel.walk()):
            self.operands(op)
        load_unaligned_parts(self.kernel, self.target)
        if self.row_steps == 2:
            reduce_in_steps(self.kernel, self.target)

    # --- loads ----------------------------------------------------------------------------------------------------

    def split_load(self, load: tile.LoadOp) -> None:
        """A load of its own for each first memory that its readers ask for."""
        groups: dict[str, list[Use]] = {}
        undecided: list[Use] = []
        for use in slice_uses(load.res[0]):
            memory = need(self.target, use.operation, use.index)
            if memory is None:
                undecided.append(use)
            else:
                groups.setdefault(first_stop(self.target, memory, use.operation), []).append(use)
        if undecided and not any(self.serves(memory, undecided) for memory in groups):
            groups.setdefault(first_stop(self.target, self.target.working_memory, load), [])
        names = sorted(groups, key=lambda memory: not self.serves(memory, undecided))
        for memory in names[1:]:
            copy = load.clone()
            copy.location = load.location
            Rewriter.insert_op(copy, InsertPoint.after(load))
            _retarget(groups[memory], load.res[0], copy.res[0])

    def serves(self, memory: str, undecided: list[Use]) -> bool:
        """Whether stores and loops can take a tile from a memory."""
        return not undecided or self.target.move(memory, self.target.offchip) is not None

    # --- moves ----------------------------------------------------------------------------------------------------

    def stage(self, value: SSAValue) -> None:
        """Moves a whole tile as far as the last stop before its readers, for all of them at once."""
        home = memory_of(value)
        stops: dict[tuple[str, ...], list[Use]] = {}
        for use in slice_uses(value):
            wanted = need(self.target, use.operation, use.index)
            if wanted is None or wanted == home or use.operation.name == "tile.move":
                continue
            way = needed_route(self.target, home, wanted, use.operation)
            last = wanted in self.operand_memories(use.operation)
            path = tuple(move.destination for move in (way[:-1] if last else way))
            if path:
                stops.setdefault(path, []).append(use)
        made: dict[str, SSAValue] = {}
        for path, uses in sorted(stops.items(), key=lambda item: len(item[0])):
            moved, point = value, after(value, [use.operation for use in uses])
            for memory in path:
                if memory not in made:
                    made[memory] = self.move(moved, memory, point)
                moved = made[memory]
            _retarget(uses, value, moved)

    def operand_memories(self, op: Operation) -> tuple[str, ...]:
        """Memories that hold pieces for one product, filled just before it."""
        return matrix_memories(self.target, op)[:2] if isinstance(op, tile.ContractOp) else ()

    def operands(self, op: Operation) -> None:
        match op:
            case tile.StoreOp():
                self.store(op)
            case tile.InsertOp():
                self.bring(op, 0, memory_of(op.args[1]), op)
            case tile.ForOp():
                for number, arg in enumerate(op.body.block.args[1:]):
                    first = len(op.lower_operands) + len(op.upper_operands)
                    self.bring(op, first + number, memory_of(arg), op)
                    self.bring(op.yielded, number, memory_of(arg), op.yielded)
            case tile.LoadOp() if op.gather is not None:
                self.bring(op, 1, vector_memory(self.target, op), op)
            case tile.MapOp() | tile.ReduceOp() | tile.ContractOp():
                for index in range(len(op.tiles)):
                    wanted = need(self.target, op, index)
                    if wanted is not None:
                        self.bring(op, index, wanted, op)
            case _:
                pass

    def bring(self, op: Operation, index: int, memory: str, before: Operation) -> None:
        """Makes operand `index` of `op` lie in `memory`."""
        value = op.operands[index]
        if memory_of(value) == memory:
            return
        for move in needed_route(self.target, memory_of(value), memory, op):
            value = moved_already(value, move.destination, before) or self.move(
                value, move.destination, InsertPoint.before(before)
            )
        op.operands[index] = value

    def move(self, value: SSAValue, memory: str, point: InsertPoint, kind: Attribute | None = None) -> SSAValue:
        made = tile.MoveOp.create(
            operands=[value],
            result_types=[TileType(tile.shape_of(value), kind or tile.element_of(value), memory)],
        )
        owner = value.owner
        if isinstance(owner, Operation):
            made.location = owner.location
        elif isinstance(value, BlockArgument):
            made.location = value.location
        matrix = self.target.matrix_engine
        if self.move_slots is not None and matrix is not None and memory in (matrix[1].lhs, matrix[1].rhs):
            made.slots = self.move_slots
        Rewriter.insert_op(made, point)
        return made.res[0]

    # --- stores ---------------------------------------------------------------------------------------------------

    def store(self, op: tile.StoreOp) -> None:
        """Brings the tile to a memory with a move off chip, converting its elements on the way if they differ."""
        wanted = tile.element_of(op.destination)
        value, before = op.args[0], InsertPoint.before(op)
        cast = tile.element_of(value) != wanted
        exits = [m for m in self.target.moves if m.destination == self.target.offchip and (m.cast or not cast)]
        ways = [(route(self.target, memory_of(value), m.source), m.source) for m in exits]
        reached = sorted((len(way), memory, way) for way, memory in ways if way is not None)
        if not reached or (cast and reached[0][0]):
            vector = vector_memory(self.target, op)
            for move in needed_route(self.target, memory_of(value), vector, op):
                kind = wanted if cast and move.cast else None
                value = self.move(value, move.destination, before, kind)
                cast = tile.element_of(value) != wanted
            if cast:
                value = self.cast(value, wanted, op)
            leaving = [(route(self.target, vector, m.source), m) for m in self.target.moves]
            reached = sorted(
                (len(way), move.source, way)
                for way, move in leaving
                if way is not None and move.destination == self.target.offchip
            )
        if not reached:
            raise UserError(
                f"'{op.name}' stores from memory '{memory_of(value)}', and target '{self.target.name}' has no way off "
                "chip from there",
                op.location,
            )
        for move in reached[0][2]:
            value = self.move(value, move.destination, before)
        op.operands[0] = value
        staged = root(value).owner
        if op.slots is not None and isinstance(staged, tile.MoveOp | tile.MapOp | tile.ReduceOp):
            staged.slots = op.slots

    def cast(self, value: SSAValue, kind: Attribute, op: Operation) -> SSAValue:
        made = tile.MapOp.create(
            operands=[value],
            result_types=[TileType(tile.shape_of(value), kind, memory_of(value))],
            properties={"fn": StringAttr("cast")},
        )
        made.location = op.location
        check_support(self.target, made)
        Rewriter.insert_op(made, InsertPoint.before(op))
        return made.res[0]


# --- helpers ----------------------------------------------------------------------------------------------------------


def moved_already(value: SSAValue, memory: str, before: Operation) -> SSAValue | None:
    """What a move further up in the block has brought to a memory: two products read one copy of an operand."""
    for use in value.uses:
        move = use.operation
        if not isinstance(move, tile.MoveOp) or move.parent is not before.parent or move.scale or move.activation:
            continue
        same = memory_of(move.res[0]) == memory and tile.element_of(move.res[0]) == tile.element_of(value)
        if same and move.is_before_in_block(before):
            return move.res[0]
    return None


def memory_of(value: SSAValue) -> str:
    """The memory that a placed tile names."""
    kind = value.type
    assert isinstance(kind, TileType)
    return kind.memory.data


def set_memory(value: SSAValue, memory: str) -> None:
    """Names the memory in the type of a tile."""
    kind = value.type
    assert isinstance(kind, TileType)
    location = value.location if isinstance(value, BlockArgument) else None
    made = Rewriter.replace_value_with_new_type(value, TileType(kind.shape, kind.element_type, memory))
    if isinstance(made, BlockArgument) and location is not None:
        made.location = location


def slice_uses(value: SSAValue) -> list[Use]:
    """Uses of a value and of its slices, the slices themselves apart."""
    found: list[Use] = []
    for use in value.uses:
        if isinstance(use.operation, tile.SliceOp):
            found += slice_uses(use.operation.target)
        else:
            found.append(use)
    return found


def after(value: SSAValue, users: list[Operation]) -> InsertPoint:
    """Just behind the definition of a value; for a block argument, before its first user in the block."""
    if not isinstance(value, BlockArgument):
        assert isinstance(value.owner, Operation)
        return InsertPoint.after(value.owner)
    block = value.owner
    inside = {ancestor_in(block, op) for op in users}
    return InsertPoint.before(next(op for op in block.ops if op in inside))


def ancestor_in(block: Block, op: Operation) -> Operation:
    """The op of a block that an op is or lies in."""
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def _retarget(uses: list[Use], old: SSAValue, new: SSAValue) -> None:
    """Makes uses read `new` (or slices of it, made beside those of `old`) instead of `old`."""
    copies: dict[SSAValue, SSAValue] = {old: new}

    def copied(value: SSAValue) -> SSAValue:
        if value not in copies:
            piece = value.owner
            assert isinstance(piece, tile.SliceOp)
            source = copied(piece.tiles[0])
            kind = piece.target.type
            assert isinstance(kind, TileType) and isinstance(source.type, TileType)
            made = tile.SliceOp.create(
                operands=[source, *piece.counters],
                result_types=[TileType(kind.shape, kind.element_type, source.type.memory.data)],
                properties=piece.properties,
            )
            made.location = piece.location
            Rewriter.insert_op(made, InsertPoint.after(piece))
            copies[value] = made.res[0]
        return copies[value]

    for use in uses:
        use.operation.operands[use.index] = copied(use.operation.operands[use.index])
    for value in list(copies):
        while isinstance(value.owner, tile.SliceOp) and not value.uses.get_length():
            dead = value.owner
            value = dead.tiles[0]
            Rewriter.erase_op(dead)


def _replace(old: Operation, new: Operation) -> None:
    new.location = old.location
    for before, result in zip(old.results, new.results, strict=True):
        result.name_hint = before.name_hint
    Rewriter.replace_op(old, new)


def verify_placed(module: ModuleOp) -> None:
    """Raises UserError for an op whose operands do not lie where its engine reads them, or an impossible move."""
    target = target_of(module)
    for kernel in [k for k in module.ops if isinstance(k, tile.KernelOp)]:
        for op in kernel.walk():
            for index, value in enumerate(op.operands):
                if not isinstance(value.type, TileType):
                    continue
                wanted = need(target, op, index)
                if memory_of(value) not in target.memories or wanted not in (None, memory_of(value)):
                    raise UserError(
                        f"'{op.name}' reads operand {index} in '{memory_of(value)}'; its engine reads '{wanted}'",
                        op.location,
                    )
            match op:
                case tile.MoveOp():
                    source, destination = memory_of(op.tiles[0]), memory_of(op.target)
                    move = target.move(source, destination)
                    if move is None:
                        raise UserError(f"target '{target.name}' has no move {source} → {destination}", op.location)
                    check_stage(op, move, tile.element_of(op.tiles[0]), tile.element_of(op.target))
                case tile.ContractOp():
                    if memory_of(op.target) != matrix_memories(target, op)[2]:
                        raise UserError(f"'{op.name}' writes '{memory_of(op.target)}'", op.location)
                case tile.StoreOp():
                    if target.move(memory_of(op.args[0]), target.offchip) is None:
                        raise UserError(f"nothing leaves the chip from '{memory_of(op.args[0])}'", op.location)
                case _:
                    pass
