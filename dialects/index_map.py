"""Quasi-affine index maps of `graph.view`, in a normal form that shows their structure.

Every output dimension is written in a mixed radix: its digits are *atoms*, outermost first. Every operand index is then
a plain sum of coefficient × atom plus an offset; floordiv and mod are gone.

Worked example: reshaping [6, 4] to [3, 8]. Row-major order says operand index = (lin floordiv 4, lin mod 4) with
lin = 8·d0 + d1. The second output dimension splits into the atoms (2, 4): d1 = 4·a + b, so lin = 8·d0 + 4·a + b and

    atoms = ((3,), (2, 4))
    exprs = ((2·d0 + a) , (b))     stored as  (((2, 0, 0), (1, 1, 0)), 0), (((1, 1, 1),), 0)

Reshaping [6, 4] to [8, 3] has no such form, because neither 4 nor 3 divides the other; `from_affine` raises
NotMixedRadix then, and `evaluate_map` computes the index arrays directly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir.affine import AffineExpr, AffineMap

from .affine_digits import Sum, atoms_of, normalize
from .affine_eval import evaluate

Array: TypeAlias = npt.NDArray[Any]
Box: TypeAlias = list[tuple[int, int]]
Term: TypeAlias = tuple[int, int, int]
Expr: TypeAlias = tuple[tuple[Term, ...], int]


class NotMixedRadix(ValueError):
    """An index map whose divisions and remainders fit no common mixed radix of the output dimensions."""

    def __init__(self, map_: AffineMap, out_shape: Sequence[int]) -> None:
        super().__init__(f"{map_} over {list(out_shape)} has no mixed-radix form")


@dataclass(frozen=True)
class IndexMap:
    """From an output index to an operand index.

    atoms: per output dimension the extents of its digits, outermost first; their product is the dimension's size.
    exprs: per operand dimension (terms, offset); a term is (coefficient, output dimension, atom index).
    """

    atoms: tuple[tuple[int, ...], ...]
    exprs: tuple[Expr, ...]

    @staticmethod
    def from_affine(map_: AffineMap, out_shape: Sequence[int]) -> IndexMap:
        """The normal form of `map_` over outputs of `out_shape`. Raises NotMixedRadix if its divisions fit none."""
        sums: list[Sum] = []
        for result in map_.results:
            total = normalize(result, out_shape)
            if total is None:
                raise NotMixedRadix(map_, out_shape)
            sums.append(total)
        atoms: list[tuple[int, ...]] = []
        for dim, size in enumerate(out_shape):
            extents = atoms_of(dim, size, sums)
            if extents is None:
                raise NotMixedRadix(map_, out_shape)
            atoms.append(extents)
        return IndexMap(tuple(atoms), tuple(_on_atoms(total, tuple(atoms)) for total in sums))

    @staticmethod
    def try_affine(map_: AffineMap, out_shape: Sequence[int]) -> IndexMap | None:
        """As from_affine, but None where there is no normal form."""
        try:
            return IndexMap.from_affine(map_, out_shape)
        except NotMixedRadix:
            return None

    @staticmethod
    def permutation(in_shape: Sequence[int], order: Sequence[int]) -> IndexMap:
        """Output dimension i is operand dimension order[i], as numpy.transpose.

        >>> IndexMap.permutation((2, 3), (1, 0)).exprs
        ((((1, 1, 0),), 0), (((1, 0, 0),), 0))
        """
        terms = [[(1, list(order).index(j))] for j in range(len(in_shape))]
        return IndexMap.linear([in_shape[p] for p in order], terms, [0] * len(in_shape))

    @staticmethod
    def reshape(in_shape: Sequence[int], out_shape: Sequence[int]) -> IndexMap | None:
        """Row-major reshape; None where the shapes have no common refinement, as [6, 4] and [8, 3]."""
        return IndexMap.try_affine(reshape_affine(in_shape, out_shape), out_shape)

    @staticmethod
    def slice(out_shape: Sequence[int], starts: Sequence[int], steps: Sequence[int]) -> IndexMap:
        """Operand index = start + step · output index, per dimension."""
        terms = [[(step, d)] for d, step in enumerate(steps)]
        return IndexMap.linear(out_shape, terms, starts)

    @staticmethod
    def broadcast(in_shape: Sequence[int], out_shape: Sequence[int]) -> IndexMap:
        """NumPy broadcast to `out_shape`: dimensions of size 1 are read at 0, missing leading ones ignored."""
        skip = len(out_shape) - len(in_shape)
        terms = [[(1, skip + j)] if size != 1 else [] for j, size in enumerate(in_shape)]
        return IndexMap.linear(out_shape, terms, [0] * len(in_shape))

    @staticmethod
    def window(out_shape: Sequence[int], pairs: Sequence[tuple[int, int, int, int, int]]) -> IndexMap:
        """Sliding windows: per operand dimension (position dim, stride, tap dim, dilation, offset) gives
        stride · position + dilation · tap + offset. A dimension of −1 contributes nothing.

        >>> str(IndexMap.window((6, 3), [(0, 2, 1, 1, -1)]).to_affine())
        '(d0, d1) -> ((((d0 * 2) + d1) + -1))'
        """
        terms = [
            [(c, d) for c, d in ((stride, pos), (dilation, tap)) if d >= 0] for pos, stride, tap, dilation, _ in pairs
        ]
        return IndexMap.linear(out_shape, terms, [pair[4] for pair in pairs])

    @staticmethod
    def linear(
        out_shape: Sequence[int], terms: Sequence[Sequence[tuple[int, int]]], offsets: Sequence[int]
    ) -> IndexMap:
        """Operand index j = Σ coefficient · output index + offset, over (coefficient, output dimension) of terms[j]."""
        exprs = tuple(
            (tuple((c, d, 0) for c, d in row if out_shape[d] > 1 and c), offset)
            for row, offset in zip(terms, offsets, strict=True)
        )
        return IndexMap(tuple((size,) for size in out_shape), exprs)

    @property
    def out_shape(self) -> tuple[int, ...]:
        """The output shape."""
        return tuple(math.prod(a) for a in self.atoms)

    def bounds(self) -> list[tuple[int, int]]:
        """Per operand dimension the least and greatest index that occurs."""
        result: list[tuple[int, int]] = []
        for terms, offset in self.exprs:
            ends = [c * (self.atoms[d][a] - 1) for c, d, a in terms]
            result.append((offset + sum(min(e, 0) for e in ends), offset + sum(max(e, 0) for e in ends)))
        return result

    def to_affine(self) -> AffineMap:
        """The map as an xDSL affine map; neighbouring atoms that move together are joined again."""
        return AffineMap(len(self.atoms), 0, tuple(self._affine_expr(terms, offset) for terms, offset in self.exprs))

    def _affine_expr(self, terms: tuple[Term, ...], offset: int) -> AffineExpr:
        parts: list[AffineExpr] = []
        rest = list(terms)
        while rest:
            coefficient, dim, first = rest.pop(0)
            last, extents = first, self.atoms[dim]
            while rest and rest[0][1:] == (dim, last + 1) and rest[0][0] * extents[last + 1] == coefficient:
                coefficient, _, last = rest.pop(0)
            parts.append(_digit_expr(dim, extents, first, last) * coefficient)
        expr = parts[0] if parts else AffineExpr.constant(offset)
        for part in parts[1:]:
            expr = expr + part
        return expr + offset if parts and offset else expr

    def gather(self, array: Array) -> Array:
        """out[i] = array[map(i)] as a new array. Raises IndexError if the map leaves `array`."""
        for (low, high), size in zip(self.bounds(), array.shape, strict=True):
            if low < 0 or high >= size:
                raise IndexError(f"index map reaches {low} to {high} of a dimension of size {size}")
        start = array[tuple(np.s_[offset:] for _, offset in self.exprs)]
        strides = {(d, a): 0 for d, extents in enumerate(self.atoms) for a in range(len(extents))}
        for (terms, _), stride in zip(self.exprs, array.strides, strict=True):
            for coefficient, d, a in terms:
                strides[d, a] += coefficient * stride
        shape = [extent for extents in self.atoms for extent in extents]
        spread = np.lib.stride_tricks.as_strided(start, shape, list(strides.values()), writeable=False)
        return np.array(spread.reshape(self.out_shape))


def _digit_expr(dim: int, extents: tuple[int, ...], first: int, last: int) -> AffineExpr:
    inner = math.prod(extents[last + 1 :])
    expr = AffineExpr.dimension(dim)
    if inner > 1:
        expr = expr // inner
    return expr % math.prod(extents[first : last + 1]) if first > 0 else expr


def _on_atoms(total: Sum, atoms: tuple[tuple[int, ...], ...]) -> Expr:
    """A sum of digits as terms over atoms: a digit that spans several atoms becomes one term for each."""
    terms: dict[tuple[int, int], int] = {}
    for digit in total.digits:
        weight = 1
        for a in reversed(range(len(atoms[digit.dim]))):
            if digit.divisor <= weight < digit.divisor * digit.extent:
                key = (digit.dim, a)
                terms[key] = terms.get(key, 0) + digit.coefficient * (weight // digit.divisor)
            weight *= atoms[digit.dim][a]
    kept = tuple((c, d, a) for (d, a), c in sorted(terms.items()) if c and atoms[d][a] > 1)
    return kept, total.offset


def reshape_affine(in_shape: Sequence[int], out_shape: Sequence[int]) -> AffineMap:
    """The row-major reshape as floordiv and mod of the linear index, simplified where a mixed radix exists."""
    linear: AffineExpr = AffineExpr.constant(0)
    for d, _ in enumerate(out_shape):
        linear = linear + AffineExpr.dimension(d) * math.prod(out_shape[d + 1 :])
    results: list[AffineExpr] = []
    for j, size in enumerate(in_shape):
        inner = math.prod(in_shape[j + 1 :])
        quotient = linear // inner if inner > 1 else linear
        results.append(quotient % size if j > 0 else quotient)
    plain = AffineMap(len(out_shape), 0, tuple(results))
    normal = IndexMap.try_affine(plain, out_shape)
    return plain if normal is None else normal.to_affine()


def volume(box: Box) -> int:
    """Number of indices in a box; empty ranges count as 0."""
    return math.prod(max(0, high - low) for low, high in box)


def shifted(map_: AffineMap, box: Box) -> AffineMap:
    """The map seen from the corner of `box`: index 0 stands for the box's lower bounds."""
    dims = [AffineExpr.dimension(d) + low if low else AffineExpr.dimension(d) for d, (low, _) in enumerate(box)]
    return map_.replace_dims_and_symbols(dims, [], len(box), 0)


def evaluate_map(map_: AffineMap, box: Box) -> tuple[Array, ...]:
    """The operand indices of every output index in `box`, as arrays that broadcast to the box."""
    grid = np.ogrid[tuple(slice(low, high) for low, high in box)] if box else ()
    return tuple(np.asarray(evaluate(result, list(grid))) for result in map_.results)


def map_stays_inside(map_: AffineMap, box: Box, in_shape: Sequence[int]) -> bool:
    """Whether every output index of `box` maps to an index of `in_shape`.

    Exact; a map without a normal form is decided by enumeration.
    """
    extents = [high - low for low, high in box]
    normal = IndexMap.try_affine(shifted(map_, box), extents)
    if normal is not None:
        return all(low >= 0 and high < size for (low, high), size in zip(normal.bounds(), in_shape, strict=True))
    indices = evaluate_map(map_, box)
    return all(int(i.min()) >= 0 and int(i.max()) < size for i, size in zip(indices, in_shape, strict=True))


def gather_box(map_: AffineMap, box: Box, array: Array) -> Array:
    """array[map(i)] for every output index i of `box`, as a new array of the box's extents."""
    extents = [high - low for low, high in box]
    normal = IndexMap.try_affine(shifted(map_, box), extents)
    if normal is not None:
        return normal.gather(array)
    return np.broadcast_to(array[evaluate_map(map_, box)], extents).copy()
