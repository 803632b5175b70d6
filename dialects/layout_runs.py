"""Counting the contiguous runs of a region, on one side or on both sides of a transfer at once.

Everything here counts *elements*; strides are bytes, one per side. The region is [0, valid) of each dimension. Atoms
are visited by stride, largest first. Under a digit below the last valid one the inner atoms are covered whole, under
the last one as far as the remainder goes: two cases per atom, whatever the extents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Runs: TypeAlias = tuple[tuple[int, int], ...]
"""(number of runs, length of each), longest first."""


@dataclass(frozen=True)
class SharedAtom:
    """One digit of a dimension that all sides can follow: extent and byte stride on each side."""

    extent: int
    strides: tuple[int, ...]


@dataclass(frozen=True)
class _Piece:
    """Runs of a part of the region in address order: the first, the last, and those between counted by length.

    `ends` is where the last run ends on each side, relative to the start of the part. A single run is first and last.
    """

    first: int
    last: int
    between: tuple[tuple[int, int], ...]
    single: bool
    ends: tuple[int, ...]


def share_atoms(sides: Sequence[Sequence[tuple[int, int]]], valid: int) -> list[SharedAtom] | None:
    """Splits the atoms of one dimension so that all sides have the same extents; None where blocks do not nest.

    Extents (4, 16) and (2, 32) of 64 elements become (2, 2, 16). The outermost digit only has to reach `valid`.
    """
    blocks = {1}
    for atoms in sides:
        block = 1
        for extent, _ in reversed(atoms[1:]):
            block *= extent
            blocks.add(block)
    marks = sorted(block for block in blocks if block < valid or block == 1)
    if any(larger % smaller for smaller, larger in pairwise(marks)):
        return None
    extents = [larger // smaller for smaller, larger in pairwise(marks)] + [-(-valid // marks[-1])]
    shared = [
        SharedAtom(extent, tuple(_stride_at(atoms, mark) for atoms in sides))
        for mark, extent in zip(marks, extents, strict=True)
    ]
    return shared[::-1]


def _stride_at(atoms: Sequence[tuple[int, int]], mark: int) -> int:
    """Bytes between elements `mark` apart inside one dimension."""
    block = 1
    for extent, stride in reversed(atoms):
        if mark < block * extent or (extent, stride) == atoms[0]:
            return mark // block * stride
        block *= extent
    return 0  # a dimension without atoms has one element


def _ordered(dims: Sequence[Sequence[SharedAtom]], valid: Sequence[int]) -> list[tuple[int, int, SharedAtom]] | None:
    """(dimension, elements of one step, atom) from the largest stride of the first side to the smallest. None where
    that order would visit an inner digit of a partly covered dimension before an outer one."""
    rows: list[tuple[int, int, SharedAtom]] = []
    for number, atoms in enumerate(dims):
        for position, atom in enumerate(atoms):
            if atom.extent > 1:
                rows.append((number, prod(inner.extent for inner in atoms[position + 1 :]), atom))
    # What is read again (stride 0) is read again from its start: outermost.
    rows.sort(key=lambda row: (0 in row[2].strides, row[2].strides), reverse=True)
    for number, atoms in enumerate(dims):
        steps = [step for dim, step, _ in rows if dim == number]
        if steps != sorted(steps, reverse=True) and valid[number] != prod(atom.extent for atom in atoms):
            return None
    return rows


def count_runs(dims: Sequence[Sequence[SharedAtom]], valid: Sequence[int], widths: Sequence[int]) -> Runs | None:
    """Runs contiguous on all sides; None where the atoms' order does not allow counting them (see `_ordered`).

    `widths`: bytes of one element on each side.
    """
    if 0 in valid:
        return ()
    order = _ordered(dims, valid)
    if order is None:
        return None
    whole = [n for n, atoms in enumerate(dims) if valid[n] == prod(atom.extent for atom in atoms)]

    @cache
    def piece(position: int, left: tuple[int, ...]) -> _Piece:
        """`left`: elements still to cover in each dimension, inside the digits already fixed."""
        if position == len(order):
            return _Piece(1, 1, (), True, tuple(widths))
        number, step, atom = order[position]
        if number in whole:
            full, part = atom.extent, 0
            inside = left
        else:
            full, part = divmod(left[number], step)
            inside = (*left[:number], step, *left[number + 1 :])
        result = _repeat(piece(position + 1, inside), full, atom.strides) if full else None
        if not part:
            assert result is not None
            return result
        rest = piece(position + 1, (*left[:number], part, *left[number + 1 :]))
        offset = tuple(full * stride for stride in atom.strides)
        return rest if result is None else _join(result, rest, offset)

    found = piece(0, tuple(valid))
    lengths = Counter(dict(found.between))
    lengths[found.first] += 1
    if not found.single:
        lengths[found.last] += 1
    return _sorted_runs(lengths)


def _join(left: _Piece, right: _Piece, offset: tuple[int, ...]) -> _Piece:
    """`right` placed at byte `offset` after the start of `left`; the runs that meet there become one."""
    ends = tuple(start + end for start, end in zip(offset, right.ends, strict=True))
    between = Counter(dict(left.between)) + Counter(dict(right.between))
    if left.ends == offset:
        bridge = left.last + right.first
        first = bridge if left.single else left.first
        last = bridge if right.single else right.last
        if not left.single and not right.single:
            between[bridge] += 1
        return _Piece(first, last, _items(between), left.single and right.single, ends)
    if not left.single:
        between[left.last] += 1
    if not right.single:
        between[right.first] += 1
    return _Piece(left.first, right.last, _items(between), False, ends)


def _repeat(piece: _Piece, count: int, strides: tuple[int, ...]) -> _Piece:
    """`count` copies of a piece, `strides` bytes apart."""
    if count == 1:
        return piece
    ends = tuple((count - 1) * stride + end for stride, end in zip(strides, piece.ends, strict=True))
    meet = piece.ends == strides
    if piece.single:
        if meet:
            return _Piece(count * piece.first, count * piece.first, (), True, ends)
        between = ((piece.first, count - 2),) if count > 2 else ()
        return _Piece(piece.first, piece.first, between, False, ends)
    lengths = Counter({length: count * times for length, times in piece.between})
    for length in (piece.last + piece.first,) if meet else (piece.last, piece.first):
        lengths[length] += count - 1
    return _Piece(piece.first, piece.last, _items(lengths), False, ends)


def _items(lengths: Counter[int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(lengths.items()))


def _sorted_runs(lengths: Counter[int]) -> Runs:
    return tuple((count, length) for length, count in sorted(lengths.items(), reverse=True))


def count_runs_by_address(sides: Sequence[npt.NDArray[np.int64]], widths: Sequence[int]) -> Runs:
    """The same from the byte address of every element, in the order of the first side's addresses."""
    flat = [side.ravel() for side in sides]
    if flat[0].size == 0:
        return ()
    order = np.argsort(flat[0], kind="stable")
    breaks = np.zeros(flat[0].size - 1, np.bool_)
    for side, width in zip(flat, widths, strict=True):
        breaks |= np.diff(side[order]) != width
    lengths = np.diff(np.flatnonzero(np.concatenate([[True], breaks, [True]])))
    return _sorted_runs(Counter(int(length) for length in lengths))


def descriptor_dimensions(dims: list[list[SharedAtom]] | None, valid: Sequence[int], widths: Sequence[int]) -> int:
    """Loops of one DMA descriptor: atoms that do not continue the run inside them, and the run itself.

    Blocks that do not nest (`dims` is None) cannot be one descriptor; each dimension then counts as if copied element
    by element.
    """
    if dims is None:
        return 1 + sum(extent > 1 for extent in valid)
    rows: list[tuple[tuple[int, ...], int, bool]] = []
    for atoms, extent in zip(dims, valid, strict=True):
        step = 1
        for atom in reversed(atoms):
            covered = min(atom.extent, -(-extent // step))
            if covered > 1:
                rows.append((atom.strides, covered, extent % (step * atom.extent) == 0))
            step *= atom.extent
    count = 1
    reach: tuple[int, ...] | None = tuple(widths)
    for strides, covered, whole in sorted(rows):
        if strides != reach:
            count += 1
        reach = tuple(stride * covered for stride in strides) if whole or strides == reach else None
    return count
