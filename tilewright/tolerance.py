"""How far results may be from float64: by element type, accumulator and length of the reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp, TensorType

from tilewright.dialects.dtypes import element

UNITS = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of one rounding to a float type."""

ROUNDINGS = 16
"""Roundings to the storage type that one result is taken to have gone through."""


def default_tolerance(module: ModuleOp) -> float:
    """The relative error (see `relative_error`) that a right lowering of a graph-level program stays below.

    16 roundings to the coarsest float type in the program, plus 4·√k to the accumulator's for sums of k
    products. A program of integers only is exact: 0.
    """
    units = [0.0]
    longest = 1
    for op in module.walk():
        for value in (*op.operands, *op.results):
            if not isinstance(value.type, TensorType):
                continue
            row = element(value.type)  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
            if row.kind == "float":
                units.append(UNITS[row.name])
                longest = max(longest, *(int(d) for d in value.type.get_shape()), 1)  # pyright: ignore[reportUnknownMemberType]
    coarsest = max(units)
    return ROUNDINGS * coarsest + (4 * math.sqrt(longest) * UNITS["f32"] if coarsest else 0.0)


def relative_error(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> float:
    """max|found − wanted| / max|wanted| over finite elements; infinite where NaN or infinities differ."""
    a, b = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if a.shape != b.shape:
        return math.inf
    finite = np.isfinite(b)
    odd = ~finite
    if not np.array_equal(a[odd], b[odd], equal_nan=True) or not np.all(np.isfinite(a[finite])):
        return math.inf
    if not finite.any():
        return 0.0
    difference, scale = float(np.max(np.abs(a[finite] - b[finite]))), float(np.max(np.abs(b[finite])))
    return difference / scale if scale else difference
