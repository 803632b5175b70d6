"""A two-operand contraction as batched matrix products, which NumPy computes fast.

Letters fall into batch (in both operands and the result), summed, rows (of lhs only), columns (of rhs only). Operands
may have further dimensions in front, over which the products are broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..dialects.graph_primitives import parse_spec

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class _Operand:
    """`turn` brings its dimensions into the order of `groups`, each of which is so many of them."""

    turn: tuple[int, ...]
    groups: tuple[int, int, int]

    def matrices(self, array: Array) -> Array:
        lead = array.ndim - len(self.turn)
        turned = array.transpose([*range(lead), *(lead + d for d in self.turn)])
        ends = [lead]
        for count in self.groups:
            ends.append(ends[-1] + count)
        merged = [math.prod(turned.shape[low:high]) for low, high in pairwise(ends)]
        return turned.reshape([*turned.shape[:lead], *merged])


@dataclass(frozen=True)
class Contraction:
    """One spec. `lhs` gives [batch, rows, summed], `rhs` [batch, summed, columns]; `natural` are the result's letters
    in the order of their product, `turn` brings them into that of the spec."""

    _lhs: _Operand
    _rhs: _Operand
    natural: tuple[str, ...]
    turn: tuple[int, ...]

    def lhs(self, array: Array) -> Array:
        """The first operand as matrices."""
        return self._lhs.matrices(array)

    def rhs(self, array: Array) -> Array:
        """The second operand as matrices."""
        return self._rhs.matrices(array)

    def product(self, lhs: Array, rhs: Array, sizes: Mapping[str, int]) -> Array:
        """Of two operands as matrices; `sizes` are the extents of the letters."""
        product = np.matmul(lhs, rhs)
        lead = product.ndim - 3
        whole = product.reshape([*product.shape[:lead], *(sizes[c] for c in self.natural)])
        return whole.transpose([*range(lead), *(lead + d for d in self.turn)])


@lru_cache(maxsize=1024)
def contraction(spec: str) -> Contraction:
    """The contraction of a spec such as "mk,kn->mn"."""
    left, right, out = parse_spec(spec)
    batch = [c for c in left if c in right and c in out]
    summed = [c for c in left if c in right and c not in out]
    rows = [c for c in left if c not in right]
    columns = [c for c in right if c not in left]
    natural = (*batch, *rows, *columns)
    return Contraction(
        _Operand(tuple(left.index(c) for c in (*batch, *rows, *summed)), (len(batch), len(rows), len(summed))),
        _Operand(tuple(right.index(c) for c in (*batch, *summed, *columns)), (len(batch), len(summed), len(columns))),
        natural,
        tuple(natural.index(c) for c in out),
    )


def einsum(spec: str, a: Array, b: Array) -> Array:
    """The contraction of two arrays."""
    found, (left, right, _) = contraction(spec), parse_spec(spec)
    sizes = {**dict(zip(left, a.shape, strict=True)), **dict(zip(right, b.shape, strict=True))}
    return found.product(found.lhs(a), found.rhs(b), sizes)
