"""When the values of a kernel in value form are last read."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, BlockArgument, Operation, SSAValue, Use

from ..dialects import tile
from .place import ancestor_in


class Uses:
    """Positions of ops in their blocks, and the last reader of a value there (readers of its slices included)."""

    def __init__(self, kernel: tile.KernelOp) -> None:
        self.index: dict[Operation, int] = {}
        for block in _blocks(kernel):
            for number, op in enumerate(block.ops):
                self.index[op] = number

    def block_of(self, value: SSAValue) -> Block | None:
        """The block a value is defined in."""
        return value.owner if isinstance(value.owner, Block) else value.owner.parent

    def readers(self, value: SSAValue) -> Iterator[Use]:
        """Uses of the value and of its slices, slices included."""
        for use in value.uses:
            yield use
            if isinstance(use.operation, tile.SliceOp):
                yield from self.readers(use.operation.target)

    def at(self, use: Use, block: Block) -> int:
        """Position in `block` of the op that a use is or lies in."""
        return self.index[ancestor_in(block, use.operation)]

    def last(self, value: SSAValue) -> int:
        """Position, in the value's own block, of its last reader; -1 where there is none."""
        block = self.block_of(value)
        assert block is not None
        return max((self.at(use, block) for use in self.readers(value)), default=-1)

    def dies_at(self, value: SSAValue, op: Operation) -> bool:
        """Whether nothing reads a value after `op`, so that `op` may overwrite it. False for values of outer blocks
        (the next iteration reads them again) and where something inside the regions of `op` reads it."""
        block = self.block_of(value)
        if block is not op.parent or block is None:
            return False
        here = self.index[op]
        for use in self.readers(value):
            found = self.at(use, block)
            if found > here or (found == here and use.operation is not op):
                return False
        return True

    def replaces(self, value: SSAValue, arg: BlockArgument) -> bool:
        """Whether what a loop yields for a carried argument is computed from `value`, which is of its body."""
        loop = arg.owner.parent_op()
        if not isinstance(loop, tile.ForOp):
            return False
        waiting, seen = [loop.yielded.operands[arg.index - 1]], set[SSAValue]()
        while waiting:
            found = waiting.pop()
            if found is value:
                return True
            if found in seen or not isinstance(found.owner, Operation):
                continue
            seen.add(found)
            waiting += [operand for operand in found.owner.operands if self.block_of(operand) is arg.owner]
        return False


def _blocks(kernel: tile.KernelOp) -> Iterator[Block]:
    yield kernel.body.block
    for op in kernel.walk():
        if isinstance(op, tile.ForOp):
            yield op.body.block
