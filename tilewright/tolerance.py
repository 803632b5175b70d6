"""How far results may be from float64: by element type, accumulator and length of the reductions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.dtypes import element
from tilewright.dialects.graph_functions import entry_function
from tilewright.dialects.graph_primitives import ContractOp, ReduceOp, parse_spec
from tilewright.dialects.graph_types import static_shape
from tilewright.lowering.decompose import DecomposePass
from tilewright.lowering.pipeline import run_pipeline

UNITS = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""Largest relative error of one rounding to a float type."""

ROUNDINGS = 16
"""Roundings to the storage type that one result is taken to have gone through."""


def output_tolerances(module: ModuleOp) -> list[float]:
    """Per output of a graph-level program, the relative error (see `relative_error`) that a right lowering stays below.

    16 roundings to the coarsest float type that the output depends on, plus 4·√k to f32, the accumulator's type, for
    the longest sum of k terms on the way. What depends on integers only is exact: 0. Raises UserError for a program
    that cannot be decomposed.
    """
    primitives = module.clone()
    run_pipeline(primitives, [DecomposePass(kernels=False)])
    function = entry_function(primitives)
    reached: dict[SSAValue, tuple[float, int]] = {arg: (_unit(arg), 1) for arg in function.body.block.args}
    results: list[tuple[float, int]] = []
    for op in function.body.block.ops:
        below = [reached[operand] for operand in op.operands]
        if isinstance(op, ReturnOp):
            results = below
        for value in op.results:
            unit = max([_unit(value), *(unit for unit, _ in below)])
            reached[value] = unit, max([summed_terms(op), *(length for _, length in below)])
    return [ROUNDINGS * unit + (4 * math.sqrt(k) * UNITS["f32"] if unit else 0.0) for unit, k in results]


def default_tolerance(module: ModuleOp) -> float:
    """The largest of `output_tolerances`."""
    return max(output_tolerances(module), default=0.0)


def _unit(value: SSAValue) -> float:
    row = element(value.type)
    return UNITS[row.name] if row.kind == "float" else 0.0


def summed_terms(op: Operation) -> int:
    """How many terms each element of a primitive's result sums up; 1 for what sums nothing."""
    if isinstance(op, ReduceOp):
        return math.prod(static_shape(op.args[0].type)) // max(1, math.prod(static_shape(op.res.type)))
    if isinstance(op, ContractOp):
        *operands, out = parse_spec(op.spec.data)
        sizes: dict[str, int] = {}
        for letters, arg in zip(operands, op.args, strict=True):
            sizes.update(zip(letters, static_shape(arg.type), strict=True))
        return math.prod(size for letter, size in sizes.items() if letter not in out)
    return 1


@dataclass(frozen=True)
class Deviation:
    """How far a result is from float64: max|x − ref|, the same over max|ref|, and what the latter may be."""

    name: str
    absolute: float
    relative: float
    tolerance: float

    def __bool__(self) -> bool:
        """Whether it is too far; NaN is."""
        return not self.relative <= self.tolerance


def farthest(deviations: Iterable[Deviation]) -> Deviation:
    """The one to report: one that is too far before others, then the largest relative error."""
    return max(deviations, key=lambda one: (bool(one), one.relative))


def relative_error(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> float:
    """max|found − wanted| / max|wanted| over finite elements; infinite where NaN or infinities differ."""
    return errors(found, wanted)[1]


def errors(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> tuple[float, float]:
    """max|found − wanted|, and the same divided by max|wanted| (if that is not 0), over finite elements.

    Both are infinite where NaN or infinities differ, or the shapes.
    """
    a, b = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if a.shape != b.shape:
        return math.inf, math.inf
    finite = np.isfinite(b)
    odd = ~finite
    if not np.array_equal(a[odd], b[odd], equal_nan=True) or not np.all(np.isfinite(a[finite])):
        return math.inf, math.inf
    if not finite.any():
        return 0.0, 0.0
    difference, scale = float(np.max(np.abs(a[finite] - b[finite]))), float(np.max(np.abs(b[finite])))
    return difference, difference / scale if scale else difference
