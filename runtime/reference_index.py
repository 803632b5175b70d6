"""NumPy formulas of gathers, scatters, extrema, running sums and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..dialects.graph_base import GraphOp
from ..dialects.graph_index import scatter_reduction
from ..dialects.graph_types import get_flag, get_int, get_number
from ..dialects.graph_window import windows_of

Array: TypeAlias = npt.NDArray[Any]
Formula: TypeAlias = Callable[[GraphOp, Sequence[Array]], Array]


def _axis(op: GraphOp, x: Array, default: int) -> int:
    return get_int(op.properties, "axis", default, op.what()) % x.ndim


def _inside(indices: Array, size: int) -> tuple[Array, Array]:
    """Indices counted from the front (0 where outside), and which of them are inside."""
    wrapped = np.where(indices < 0, indices + size, indices).astype(np.int64)
    inside = (wrapped >= 0) & (wrapped < size)
    return np.where(inside, wrapped, 0), inside


def gather(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.take; 0 for indices outside."""
    x, indices = args
    axis = _axis(op, x, 0)
    places, inside = _inside(indices, x.shape[axis])
    mask = inside.reshape([1] * axis + list(inside.shape) + [1] * (x.ndim - axis - 1))
    return np.where(mask, np.take(x, places, axis), np.zeros((), x.dtype))


def gather_elements(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.take_along_axis on the part of x beside the indices; 0 for indices outside."""
    x, indices = args
    axis = _axis(op, x, 0)
    part = tuple(slice(None) if d == axis else slice(size) for d, size in enumerate(indices.shape))
    places, inside = _inside(indices, x.shape[axis])
    return np.where(inside, np.take_along_axis(x[part], places, axis), np.zeros((), x.dtype))


def scatter_elements(op: GraphOp, args: Sequence[Array]) -> Array:
    """One update after another."""
    x, indices, updates = args
    axis = _axis(op, x, 0)
    steps: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    step = steps.get(scatter_reduction(op.properties))
    result = x.copy()
    places, inside = _inside(indices, x.shape[axis])
    for index in np.ndindex(indices.shape):
        if inside[index]:
            target = tuple(int(places[index]) if d == axis else i for d, i in enumerate(index))
            result[target] = updates[index] if step is None else step(result[target], updates[index])
    return result


def _place(function: Callable[..., Any]) -> Formula:
    def formula(op: GraphOp, args: Sequence[Array]) -> Array:
        (x,) = args
        axis = _axis(op, x, -1)
        if get_flag(op.properties, "last", op.what()):
            return x.shape[axis] - 1 - np.expand_dims(function(np.flip(x, axis), axis=axis), axis)
        return np.expand_dims(function(x, axis=axis), axis)

    return formula


def _running(function: Callable[..., Any], neutral: int) -> Formula:
    def formula(op: GraphOp, args: Sequence[Array]) -> Array:
        (x,) = args
        axis = _axis(op, x, -1)
        reverse = get_flag(op.properties, "reverse", op.what())
        x = np.flip(x, axis) if reverse else x
        result: Array = function(x, axis=axis, dtype=x.dtype)
        if get_flag(op.properties, "exclusive", op.what()):
            first = np.full_like(np.take(result, [0], axis), neutral)
            result = np.concatenate([first, np.take(result, range(x.shape[axis] - 1), axis)], axis)
        return np.flip(result, axis) if reverse else result

    return formula


def window(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy's sliding windows over the padded operand, every stride-th of them, every dilation-th tap."""
    (x,) = args
    windows = windows_of(op.properties, x.ndim)
    widths = [(0, 0)] * x.ndim
    for axis, low, high in zip(windows.axes, windows.low, windows.high, strict=True):
        widths[axis] = (low, high)
    padded = np.pad(x, widths, constant_values=x.dtype.type(get_number(op.properties, "value", 0.0, op.what())))
    reach = [d * (s - 1) + 1 for d, s in zip(windows.dilations, windows.sizes, strict=True)]
    taken = np.lib.stride_tricks.sliding_window_view(padded, reach, windows.axes)
    steps = [slice(None)] * x.ndim + [slice(None, None, d) for d in windows.dilations]
    for axis, stride in zip(windows.axes, windows.strides, strict=True):
        steps[axis] = slice(None, None, stride)
    return taken[tuple(steps)]


FORMULAS: dict[str, Formula] = {
    "graph.window": window,
    "graph.gather": gather,
    "graph.gather_elements": gather_elements,
    "graph.scatter_elements": scatter_elements,
    "graph.arg_max": _place(np.argmax),
    "graph.arg_min": _place(np.argmin),
    "graph.cum_sum": _running(np.cumsum, 0),
    "graph.cum_prod": _running(np.cumprod, 1),
}
