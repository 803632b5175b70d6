"""Which memory each tile value of a kernel lives in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import Attribute, Operation, OpResult, SSAValue, Use

from ..dialects import tile
from ..dialects.dtypes import is_float
from ..dialects.instruction_rules import is_position
from ..dialects.output_stage import can_do, output_stage
from ..dialects.target import Target
from ..dialects.tile_types import TileType
from .place_routes import first_stop, matrix_memories, need, route, vector_memory


def tile_values(kernel: tile.KernelOp) -> Iterator[SSAValue]:
    """Every value of tile type, in order: results of ops, carried arguments of loops."""
    for op in kernel.walk():
        yield from (result for result in op.results if isinstance(result.type, TileType))
        if isinstance(op, tile.ForOp):
            yield from op.body.block.args[1:]


class Homes:
    """One memory for each class of values that share their bytes.

    A class is closed under slices, the whole of an insert, the accumulator of a contraction and what a loop carries.
    What produces a value of the class decides: the matrix engine, the vector engine, else who reads it.
    """

    def __init__(self, kernel: tile.KernelOp, target: Target) -> None:
        self.kernel = kernel
        self.target = target
        self.parent: dict[SSAValue, SSAValue] = {}
        self.home: dict[SSAValue, str] = {}
        self.folded: dict[tile.MapOp, dict[str, Attribute]] = {}
        """Operators that a move does on its way, and what it is told."""
        values = list(tile_values(kernel))
        for value in values:
            self.parent[value] = value
            kind = value.type
            if isinstance(kind, TileType) and kind.memory.data:
                self.home[value] = kind.memory.data
        ops = list(kernel.walk())
        self._join_certain(ops)
        self._produce_matrix(ops)
        self._produce_vector(ops)
        self._join_carried(ops)
        self._resolve_free(ops, values)

    def of(self, value: SSAValue) -> str:
        """The memory of a value's class."""
        return self.home[self.find(value)]

    def find(self, value: SSAValue) -> SSAValue:
        while self.parent[value] is not value:
            self.parent[value] = self.parent[self.parent[value]]
            value = self.parent[value]
        return value

    def members(self, value: SSAValue) -> list[SSAValue]:
        root = self.find(value)
        return [other for other in self.parent if self.find(other) is root]

    # --- joining --------------------------------------------------------------------------------------------------

    def join(self, one: SSAValue, other: SSAValue) -> bool:
        """Merges two classes unless their memories are decided and differ."""
        a, b = self.find(one), self.find(other)
        if a is b:
            return True
        homes = {self.home[x] for x in (a, b) if x in self.home}
        if len(homes) > 1:
            return False
        self.parent[b] = a
        if homes:
            self.home[a] = homes.pop()
        return True

    def _join_certain(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            match op:
                case tile.SliceOp():
                    self.join(op.tiles[0], op.target)
                case tile.InsertOp():
                    self.join(op.tiles[1], op.target)
                case tile.ContractOp() if op.accumulate is not None:
                    self.join(op.tiles[2], op.target)
                case tile.ForOp():
                    for arg, result in zip(op.body.block.args[1:], op.res, strict=True):
                        self.join(arg, result)
                case _:
                    pass

    def _join_carried(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if isinstance(op, tile.ForOp):
                carried = zip(op.body.block.args[1:], op.inits, op.yielded.operands, strict=True)
                for arg, init, following in carried:
                    self.join(arg, following)
                    self.join(arg, init)
            elif isinstance(op, tile.InsertOp) and self.find(op.tiles[1]) not in self.home:
                self.join(op.tiles[1], op.tiles[0])

    # --- producers ------------------------------------------------------------------------------------------------

    def settle(self, value: SSAValue, memory: str) -> None:
        self.home.setdefault(self.find(value), memory)

    def _produce_matrix(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if isinstance(op, tile.ContractOp):
                self.settle(op.target, matrix_memories(self.target, op)[2])

    def _produce_vector(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if isinstance(op, tile.MapOp | tile.ReduceOp | tile.FillOp | tile.IotaOp):
                memory = vector_memory(self.target, op)
                chosen = self._fold(op, memory) if isinstance(op, tile.MapOp) else None
                self.settle(op.target, chosen or memory)

    def _fold(self, op: tile.MapOp, vector: str) -> str | None:
        """The memory a move brings the result to, where its output stage can do what the vector engine would."""
        stage = self._output_stage(op)
        if stage is None or (stage and op.tiles[0].uses.get_length() > 1):
            return None  # what others read would be moved once more
        home = self.home.get(self._carried_home(op.tiles[0]))
        if home is None or home == vector:
            return None
        stops: set[str] = set()
        for use in self.uses(op.target):
            memory = need(self.target, use.operation, use.index)
            if memory is None:
                return None
            way = route(self.target, home, memory)
            if not way:
                return None
            stops.add(way[0].destination)
        move = self.target.move(home, stops.pop()) if len(stops) == 1 else None
        if move is None or not can_do(move, stage, tile.element_of(op.tiles[0]) != tile.element_of(op.target)):
            return None
        self.folded[op] = stage
        return move.destination

    def _output_stage(self, op: tile.MapOp) -> dict[str, Attribute] | None:
        """What a move has to be told to do the work of an operator, None where no move can."""
        if len(op.tiles) != 1:
            return None
        if op.fn.data == "cast":
            return {} if op.immediates is None else None  # of a number, not of a tile
        slots = op.immediates.data if op.immediates is not None else ()
        numbers = [slot for slot in slots if not is_position(slot)]
        return output_stage(op.fn.data, numbers, op.params) if is_float(tile.element_of(op.tiles[0])) else None

    def _carried_home(self, value: SSAValue) -> SSAValue:
        """The class whose memory decides where a value lies: for a loop's result, that of what it yields."""
        found, seen = self.find(value), set[SSAValue]()
        while found not in self.home and found not in seen:
            seen.add(found)
            for member in self.members(found):
                owner = member.owner
                if isinstance(owner, tile.ForOp) and isinstance(member, OpResult):
                    found = self.find(owner.yielded.operands[member.index])
                    break
        return found

    def _resolve_free(self, ops: Iterable[Operation], values: Iterable[SSAValue]) -> None:
        """Loads land where the first reader's way begins; what nobody decides lies with the vector engine."""
        for value in values:
            root = self.find(value)
            if root in self.home:
                continue
            owner = value.owner if isinstance(value.owner, Operation) else self.kernel
            wanted = [self.wish(use) for member in self.members(root) for use in member.uses]
            found = next((memory for memory in wanted if memory is not None), None)
            self.home[root] = first_stop(self.target, found or self.target.working_memory, owner)

    # --- readers --------------------------------------------------------------------------------------------------

    def uses(self, value: SSAValue) -> Iterator[Use]:
        """Uses of a value and of its slices."""
        for use in value.uses:
            if isinstance(use.operation, tile.SliceOp):
                yield from self.uses(use.operation.target)
            else:
                yield use

    def wish(self, use: Use) -> str | None:
        """The memory a reader asks for, where one does; following parts into wholes."""
        op = use.operation
        if isinstance(op, tile.InsertOp) and use.index == 0:
            return self.home.get(self.find(op.tiles[1]))
        return need(self.target, op, use.index)
