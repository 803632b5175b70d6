"""The bytes that the operands of an instruction touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from ..dialects import hardware
from ..dialects.attributes import int_values
from ..dialects.dtypes import byte_width
from ..dialects.hardware_types import ViewType
from ..dialects.layout import Layout
from .affine_bounds import Range, reach
from .sync_trace import IntArray


@dataclass(frozen=True)
class Region:
    """[low, high) of each dimension of a layout."""

    layout: Layout
    low: tuple[int, ...]
    high: tuple[int, ...]

    def swept(self, count: int, stride: int) -> Region:
        """The bytes of `count` such regions, each `stride` bytes after the one before (before it, if negative; the
        first byte is then that of the last one)."""
        layout = Layout((*self.layout.dims, ((count, abs(stride)),)), self.layout.element_bytes)
        return Region(layout, (*self.low, 0), (*self.high, count))


def regions_of(op: hardware.InstructionOp, ranges: Mapping[SSAValue, Range]) -> tuple[Region | None, ...]:
    """Per view, the largest active region of the instruction while the counters are in `ranges`; None if it is empty.

    An output that is written afresh is touched whole.
    """
    views = [view_of(value) for value in op.views]
    axes = _axes(op)
    low: dict[object, int] = {}
    high: dict[object, int] = {}
    for view, names in zip(views, axes, strict=True):
        shape = shape_of(view)
        reached = [ranges.get(counter, (0, 0)) for counter in view.counters]
        starts = [0] * len(shape) if view.start is None else [reach(e, reached)[0] for e in view.start.data.results]
        ends = list(shape) if view.valid is None else [reach(e, reached)[1] for e in view.valid.data.results]
        for name, start, end, extent in zip(names, starts, ends, shape, strict=True):
            low[name] = max(low.get(name, 0), start)
            high[name] = min(high.get(name, extent), end, extent)
    found: list[Region | None] = []
    for view, names in zip(views, axes, strict=True):
        shape = shape_of(view)
        whole = op.fresh is not None and view is views[-1]
        first = (0,) * len(shape) if whole else tuple(low[name] for name in names)
        last = shape if whole else tuple(high[name] for name in names)
        empty = any(a >= b for a, b in zip(first, last, strict=True))
        found.append(None if empty else Region(layout_of(view), first, last))
    return tuple(found)


def bounding_counters(op: hardware.InstructionOp) -> list[SSAValue]:
    """The counters that the active region of an instruction depends on."""
    found: dict[SSAValue, None] = {}
    for view in (view_of(value) for value in op.views):
        for bound in (view.start, view.valid):
            for expr in bound.data.results if bound is not None else ():
                for part in expr.dfs():
                    if isinstance(part, AffineDimExpr):
                        found[view.counters[part.position]] = None
    return list(found)


def _axes(op: hardware.InstructionOp) -> list[list[object]]:
    """Per view a name for each dimension; dimensions of one name are walked together."""
    shapes = [op.shape(view) for view in op.views]
    if isinstance(op, hardware.MatmulOp):
        return [list[object](letters) for letters in op.letters()]
    reduced = set(int_values(op.axes)) if isinstance(op, hardware.ReduceOp) else set[int]()

    if isinstance(op, hardware.DmaOp) and op.gather is not None:
        shapes[0] = shapes[0][1:]

    def name(view: int, d: int) -> object:
        alone = (d in reduced and view == len(shapes) - 1) or (not reduced and shapes[view][d] != shapes[-1][d])
        return (view, d) if alone else d

    found = [[name(view, d) for d in range(len(shape))] for view, shape in enumerate(shapes)]
    if isinstance(op, hardware.DmaOp) and op.gather is not None:
        found[0].insert(0, "row")  # any of them
    return found


def view_of(value: SSAValue) -> hardware.ViewOp:
    """The `hardware.view` that makes an operand."""
    assert isinstance(value.owner, hardware.ViewOp)
    return value.owner


def shape_of(view: hardware.ViewOp) -> tuple[int, ...]:
    """Extents of a view."""
    assert isinstance(view.res.type, ViewType)
    return view.res.type.shape


def layout_of(view: hardware.ViewOp) -> Layout:
    """Layout of a view in bytes."""
    assert isinstance(view.res.type, ViewType)
    return view.layout.layout(byte_width(view.res.type.element_type))


@lru_cache(maxsize=1 << 13)
def runs_of(region: Region) -> IntArray:
    """Start and end of the contiguous bytes of a region, ascending, relative to the address of its view."""
    pieces, first, length = _pieces(region)
    starts = np.array([first], np.int64)
    for offsets in pieces:
        starts = (starts[:, None] + offsets).ravel()
    starts = np.unique(starts)
    breaks = np.flatnonzero(np.diff(starts) > length)
    begin, end = np.concatenate([[0], breaks + 1]), np.concatenate([breaks, [len(starts) - 1]])
    return np.stack([starts[begin], starts[end] + length], axis=1)


def _pieces(region: Region) -> tuple[list[IntArray], int, int]:
    """A region as one run of bytes, its first byte and length, repeated at the sums of offsets, one of each list."""
    atoms: list[tuple[int, int]] = []
    pieces: list[IntArray] = []
    first, length = 0, region.layout.element_bytes
    for dim, low, high in zip(region.layout.dims, region.low, region.high, strict=True):
        if len(dim) == 1:
            atoms.append((high - low, dim[0][1]))
            first += low * dim[0][1]
        elif low == 0 and high == prod(extent for extent, _ in dim):
            atoms += dim
        else:
            pieces.append(Layout((dim,), 1).addresses((high,))[low:])
    for extent, stride in sorted(atoms, key=lambda atom: atom[1]):
        if not pieces and stride <= length:
            length += (extent - 1) * stride
        elif extent > 1:
            pieces.append(np.arange(extent, dtype=np.int64) * stride)
    return pieces, first, length


@lru_cache(maxsize=1 << 14)
def overlap(left: Region, right: Region, shift: int) -> bool:
    """Whether a region at address 0 and another at `shift` share a byte."""
    a, b = runs_of(left), runs_of(right)
    if len(a) == 1 and len(b) == 1:
        return bool(a[0, 0] < b[0, 1] + shift and b[0, 0] + shift < a[0, 1])
    # The last run of `left` that starts before the end of a run of `right` must end after its start.
    before = np.searchsorted(a[:, 0], b[:, 1] + shift, side="left") - 1
    return bool(np.any((before >= 0) & (a[np.maximum(before, 0), 1] > b[:, 0] + shift)))
