"""The one description of where the elements of a tensor, tile or view lie: extents and byte strides per dimension.

A logical dimension is a list of *atoms* (extent, byte stride), outermost first; an index is read as mixed-radix digits
over their extents. The rows of a 64 × 64 f16 tile in blocks of 16 rows × 32 bytes, block columns outermost:

    row dimension     [(4, 512), (16, 32)]     row 21 = 1·16 + 5  → 1·512 + 5·32
    column dimension  [(4, 2048), (16, 2)]     column 33 = 2·16 + 1 → 2·2048 + 1·2

which prints as `#tile.layout<[4, 512, 16, 32], [4, 2048, 16, 2]>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .errors import UserError
from .layout_runs import Runs, SharedAtom, count_runs, count_runs_by_address, descriptor_dimensions, share_atoms
from .target_model import Memory

Atom: TypeAlias = tuple[int, int]
"""Extent and byte stride."""


@dataclass(frozen=True)
class Layout:
    """Atoms per logical dimension, outermost first, and the bytes of one element."""

    dims: tuple[tuple[Atom, ...], ...]
    element_bytes: int

    @staticmethod
    def strided(shape: Sequence[int], strides: Sequence[int], element_bytes: int) -> Layout:
        """One atom per dimension; strides in bytes."""
        atoms = zip(shape, strides, strict=True)
        return Layout(tuple(((extent, stride),) for extent, stride in atoms), element_bytes)

    @staticmethod
    def row_major(shape: Sequence[int], element_bytes: int, inner_align: int = 1) -> Layout:
        """Dense, last dimension innermost. From rank 2 on, each row starts at a multiple of `inner_align` bytes."""
        strides: list[int] = []
        stride = element_bytes
        for position, extent in enumerate(reversed(shape)):
            strides.append(stride)
            stride *= extent
            if position == 0 and len(shape) > 1:
                stride = _round_up(stride, inner_align)
        return Layout.strided(shape, strides[::-1], element_bytes)

    @staticmethod
    def fractal(
        shape: Sequence[int],
        element_bytes: int,
        rows: int,
        block_bytes: int,
        order: Literal["row", "column"] = "column",
    ) -> Layout:
        """The last two dimensions in blocks of `rows` rows × `block_bytes` bytes, each block row-major.

        The extents are padded up to whole blocks. `order` names the index of the grid of blocks that is outermost:
        "column" keeps the blocks of one block column together. Leading dimensions are outside, dense. A shape of rank
        below 2 has nothing to block and is row-major.
        """
        if len(shape) < 2:
            return Layout.row_major(shape, element_bytes)
        columns = block_bytes // element_bytes
        block_rows, block_columns = -(-shape[-2] // rows), -(-shape[-1] // columns)
        block = rows * block_bytes
        row_stride, column_stride = (block, block * block_rows) if order == "column" else (block * block_columns, block)
        outer = Layout.row_major(shape[:-2], block * block_rows * block_columns).dims
        row_atoms = ((block_rows, row_stride), (rows, block_bytes))
        column_atoms = ((block_columns, column_stride), (columns, element_bytes))
        return Layout((*outer, row_atoms, column_atoms), element_bytes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the logical dimensions, padding of blocks included."""
        return tuple(prod(extent for extent, _ in atoms) for atoms in self.dims)

    @property
    def size_bytes(self) -> int:
        """Bytes from the first to the last element; 0 where there is none."""
        if 0 in self.shape:
            return 0
        return self.element_bytes + sum((extent - 1) * stride for atoms in self.dims for extent, stride in atoms)

    @property
    def overlaps(self) -> bool:
        """Whether elements may share bytes: strides, smallest first, do not step over what lies below them."""
        reach = self.element_bytes
        for stride, extent in sorted((stride, extent) for atoms in self.dims for extent, stride in atoms if extent > 1):
            if stride < reach:
                return True
            reach += stride * (extent - 1)
        return False

    def address(self, index: Sequence[int]) -> int:
        """Byte offset of the element at a logical index."""
        total = 0
        for atoms, position in zip(self.dims, index, strict=True):
            for extent, stride in reversed(atoms):
                position, digit = divmod(position, extent)
                total += digit * stride
        return total

    def addresses(self, valid: Sequence[int] | None = None) -> npt.NDArray[np.int64]:
        """Byte offsets of the elements in [0, valid) of each dimension, shaped like that region."""
        total: npt.NDArray[np.int64] = np.zeros((), np.int64)
        for atoms, extent in zip(self.dims, self.shape if valid is None else valid, strict=True):
            position = np.arange(extent, dtype=np.int64)
            offset = np.zeros(extent, np.int64)
            for radix, stride in reversed(atoms):
                offset += position % radix * stride
                position //= radix
            total = total[..., None] + offset
        return total

    def valid_runs(self, valid: Sequence[int] | None = None) -> Runs:
        """The contiguous pieces of the region [0, valid) as pairs (number of runs, bytes of each), longest first.

        One pair unless a dimension covers its blocks in part. Rows of 5 of 8 f32: `((rows, 20),)`; all of them:
        `((1, rows·32),)`. Elements read twice (stride 0, overlapping windows) count twice.
        """
        return tuple((count, length * self.element_bytes) for count, length in _runs((self,), self._valid(valid)))

    def descriptor_dims(self, valid: Sequence[int] | None = None) -> int:
        """Dimensions a DMA needs for this side alone, the contiguous run being one of them."""
        return descriptor_dimensions(_shared((self,), self._valid(valid)), self._valid(valid), (self.element_bytes,))

    def subview(self, offsets: Sequence[int], sizes: Sequence[int]) -> tuple[Layout, int]:
        """Layout of the part [offset, offset + size) of each dimension and its byte offset.

        A part that spans several blocks begins at a block and covers whole blocks (its shape is padded up). Raises
        UserError for a part outside the layout or beginning inside a block it does not end in.
        """
        dims: list[tuple[Atom, ...]] = []
        start = 0
        for number, (atoms, offset, size) in enumerate(zip(self.dims, offsets, sizes, strict=True)):
            if offset < 0 or size < 0 or offset + size > self.shape[number]:
                end = offset + size
                raise UserError(
                    f"part [{offset}, {end}) of dimension {number} lies outside its {self.shape[number]} elements"
                )
            inner, address = _part(atoms, offset, size)
            dims.append(inner)
            start += address
        return Layout(tuple(dims), self.element_bytes), start

    def check_valid(self, valid: Sequence[int]) -> None:
        """Raises UserError where a region [0, valid) does not lie inside the layout."""
        if any(extent > bound for extent, bound in zip(valid, self.shape, strict=True)):
            raise UserError(f"valid extents {tuple(valid)} exceed a layout of shape {self.shape}")

    def _valid(self, valid: Sequence[int] | None) -> tuple[int, ...]:
        return self.shape if valid is None else tuple(valid)


def memory_layout(memory: Memory, shape: Sequence[int], element_bytes: int, inner_align: int = 1) -> Layout:
    """The layout a memory keeps a tile in: its fractal blocks, or rows starting at multiples of `inner_align` bytes."""
    if memory.layout == "fractal" and memory.fractal_rows and memory.fractal_bytes:
        return Layout.fractal(shape, element_bytes, memory.fractal_rows, memory.fractal_bytes, memory.fractal_order)
    return Layout.row_major(shape, element_bytes, inner_align)


def pair_runs(source: Layout, destination: Layout, valid: Sequence[int] | None = None) -> Runs:
    """Pieces contiguous on both sides, as (number of runs, *elements* of each), longest first: what a move that can
    neither convert nor transpose copies. Row-major to fractal blocks of 32 bytes: runs of 32 bytes."""
    return _runs((source, destination), tuple(source.shape if valid is None else valid))


def pair_descriptor_dims(source: Layout, destination: Layout, valid: Sequence[int] | None = None) -> int:
    """Dimensions one DMA descriptor needs for a pair of layouts, the run contiguous on both sides being one of them."""
    extents = tuple(source.shape if valid is None else valid)
    widths = (source.element_bytes, destination.element_bytes)
    return descriptor_dimensions(_shared((source, destination), extents), extents, widths)


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """`#tile.layout<[4, 512, 16, 32], [64, 2]>`: per logical dimension extent, byte stride, extent, byte stride, …"""

    name = "tile.layout"
    dims: ArrayAttr[ArrayAttr[IntAttr]]

    def __init__(self, dims: Sequence[Sequence[int]] | ArrayAttr[ArrayAttr[IntAttr]]) -> None:
        if not isinstance(dims, ArrayAttr):
            dims = ArrayAttr([ArrayAttr([IntAttr(number) for number in numbers]) for numbers in dims])
        super().__init__(dims)

    @classmethod
    def from_layout(cls, layout: Layout) -> LayoutAttr:
        return cls([[number for atom in atoms for number in atom] for atoms in layout.dims])

    def layout(self, element_bytes: int) -> Layout:
        """The layout for elements of this width, which the attribute leaves to the type it belongs to."""
        rows = [[number.data for number in numbers] for numbers in self.dims]
        return Layout(tuple(tuple(zip(row[::2], row[1::2], strict=True)) for row in rows), element_bytes)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        def dimension() -> ArrayAttr[IntAttr]:
            numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            return ArrayAttr([IntAttr(number) for number in numbers])

        return [ArrayAttr(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, dimension))]

    def print_parameters(self, printer: Printer) -> None:
        dims = ", ".join(f"[{', '.join(str(number.data) for number in numbers)}]" for numbers in self.dims)
        printer.print_string(f"<{dims}>")

    def verify(self) -> None:
        for position, numbers in enumerate(self.dims):
            values = [number.data for number in numbers]
            if len(values) % 2:
                raise VerifyException(f"dimension {position} of a layout: pairs of extent and stride expected")
            if any(extent < 1 for extent in values[::2]) or any(stride < 0 for stride in values[1::2]):
                raise VerifyException(f"dimension {position} of a layout: extents are at least 1, strides at least 0")


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def _part(atoms: tuple[Atom, ...], offset: int, size: int) -> tuple[tuple[Atom, ...], int]:
    if not atoms:
        return (), 0
    (_, stride), rest = atoms[0], atoms[1:]
    block = prod(inner for inner, _ in rest)
    first, within = divmod(offset, block)
    if rest and within + size <= block:  # inside one block: the outer digit is fixed
        inner, address = _part(rest, within, size)
        return inner, address + first * stride
    if within:
        raise UserError(
            f"part [{offset}, {offset + size}) begins inside a block of {block} elements and ends in another"
        )
    return ((-(-size // block), stride), *rest), first * stride


def _shared(layouts: tuple[Layout, ...], valid: tuple[int, ...]) -> list[list[SharedAtom]] | None:
    dims = [share_atoms([layout.dims[d] for layout in layouts], extent) for d, extent in enumerate(valid)]
    shared = [atoms for atoms in dims if atoms is not None]
    return shared if len(shared) == len(dims) else None


@lru_cache(maxsize=1 << 14)
def _runs(layouts: tuple[Layout, ...], valid: tuple[int, ...]) -> Runs:
    for layout in layouts:
        layout.check_valid(valid)
    widths = tuple(layout.element_bytes for layout in layouts)
    shared = _shared(layouts, valid)
    counted = None if shared is None else count_runs(shared, valid, widths)
    if counted is None:
        counted = count_runs_by_address([layout.addresses(valid) for layout in layouts], widths)
    return counted
