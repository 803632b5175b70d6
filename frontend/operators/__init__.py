"""ONNX operators, one file for each family; each file has a table from operator to importer."""

from __future__ import annotations

from ..node import Handler
from . import (
    control,
    convolution,
    elementwise,
    indexing,
    linear,
    logic,
    normalize,
    pooling,
    quantize,
    recurrent,
    reduction,
    resize,
    shape,
)

OPERATORS: dict[str, Handler] = {
    **elementwise.TABLE,
    **logic.TABLE,
    **reduction.TABLE,
    **linear.TABLE,
    **convolution.TABLE,
    **pooling.TABLE,
    **normalize.TABLE,
    **shape.TABLE,
    **indexing.TABLE,
    **resize.TABLE,
    **quantize.TABLE,
    **recurrent.TABLE,
    **control.TABLE,
}
"""Operator, as in `Add` or `com.microsoft.FusedMatMul`, → what imports a node of it."""
