"""What the ops of the tile dialect share: one operand list, at most one result, an optional destination."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AffineMapAttr, IndexType, IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, opt_prop_def, var_operand_def, var_result_def
from xdsl.utils.exceptions import VerifyException

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


def expect_slots(name: str, slots: IntegerAttr | None) -> None:
    """Raises VerifyException for less than one copy of a buffer."""
    if slots is not None and slots.value.data < 1:
        raise VerifyException(f"'{name}' slots are at least 1, got {slots.value.data}")


class TileOp(IRDLOperation):
    """Common shape of the compute ops: one operand list, at most one result, optional destination.

    `slots`: how many iterations' results exist at a time (multi-buffering, from `place` to `bufferize`).
    """

    READS_TENSORS: ClassVar[bool] = False

    args = var_operand_def()
    res = var_result_def()
    into = opt_prop_def(UnitAttr)
    slots = opt_prop_def(IntegerAttr)

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
        self.expect_slots()
        for number, value in enumerate(self.tiles):
            if isinstance(value.type, TensorType) and not self.READS_TENSORS:
                raise VerifyException(f"'{self.name}' operand {number} is a tensor, not a tile: tile.load it first")
        self.verify_tiles()

    def expect_slots(self) -> None:
        expect_slots(self.name, self.slots)

    def verify_tiles(self) -> None:
        """What each op requires beyond the common shape."""
