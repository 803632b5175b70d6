"""What one instruction may ask of a target: numbers of events, shapes of products, dimensions of descriptors.

Text at the hardware level, the machine and lowering ask here, so that all of them mean and say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

from .errors import UserError
from .target_model import MatrixType, Target

Sizes: TypeAlias = tuple[int, int, int]
"""m, k and n of a product."""


def check_event_number(target: Target, source: str, sink: str, number: int) -> None:
    """Raises UserError for a number that two engines do not have between them."""
    if number >= target.event_slots:
        raise UserError(
            f"event {number} from '{source}' to '{sink}': target '{target.name}' has {target.event_slots} between two "
            f"engines, numbers 0 to {target.event_slots - 1}"
        )


def product_sizes(letters: Sequence[str], extents: Mapping[str, int]) -> Sizes:
    """m, k and n of a product by the letters of its operands and result: the products of those of lhs and result, lhs
    and rhs, rhs and result. Letters in all three are a batch. "bmk,bkn->bmn" → the extents of m, k and n."""
    lhs, rhs, out = (set(part) for part in letters)
    parts = (lhs & out) - rhs, (lhs & rhs) - out, (rhs & out) - lhs
    return prod(extents[c] for c in parts[0]), prod(extents[c] for c in parts[1]), prod(extents[c] for c in parts[2])


def check_product(target: Target, engine: str, entry: MatrixType | None, sizes: Sizes) -> None:
    """Raises UserError for a product of more rows, columns or terms than one instruction of the engine takes."""
    if entry is None or entry.max_shape is None:
        return
    over = [name for name, size, most in zip("mkn", sizes, entry.max_shape, strict=True) if size > most]
    if over:
        found, most = (" × ".join(map(str, numbers)) for numbers in (sizes, entry.max_shape))
        raise UserError(
            f"a product of {found} (m × k × n) exceeds, in {' and '.join(over)}, the {most} that one instruction of "
            f"engine '{engine}' of target '{target.name}' takes"
        )


def check_descriptor(target: Target, dims: int) -> None:
    """Raises UserError for a transfer of more dimensions than one descriptor has."""
    if dims > target.max_dma_dims:
        raise UserError(
            f"the transfer needs {dims} dimensions, a descriptor of target '{target.name}' has {target.max_dma_dims}"
        )
