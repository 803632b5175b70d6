"""NumPy formulas of the named ops, written from their definitions and not from their decompositions.

A formula takes the op and its operands in the compute type, and returns the result before rounding. Elementwise ops of
the scalar table need none: the table is their definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..dialects import scalar
from ..dialects.graph_base import GraphOp
from ..dialects.graph_elementwise import gelu_form
from ..dialects.graph_linear import window_of
from ..dialects.graph_norm import masked_rows, reduced_axes
from ..dialects.graph_shape import permutation_of, slice_of
from ..dialects.graph_types import get_flag, get_int, get_ints, get_number, static_shape
from . import reference_index
from .reference_numbers import parameter

Array: TypeAlias = npt.NDArray[Any]
Formula: TypeAlias = Callable[[GraphOp, Sequence[Array]], Array]


def _axis(op: GraphOp, x: Array) -> int:
    return get_int(op.properties, "axis", -1, op.what()) % x.ndim


def _epsilon(op: GraphOp) -> float:
    return parameter(get_number(op.properties, "epsilon", 1e-5, op.what()), op.args[0].type)


# --- products ---------------------------------------------------------------------------------------------------------


def matmul(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.matmul after the transpositions."""
    a, b = args
    a = a.swapaxes(-1, -2) if get_flag(op.properties, "transpose_a", op.what()) else a
    b = b.swapaxes(-1, -2) if get_flag(op.properties, "transpose_b", op.what()) else b
    return np.matmul(a, b)


def conv(op: GraphOp, args: Sequence[Array]) -> Array:
    """Σ over kernel taps of shifted inputs times one slice of the weights, group by group."""
    x, w = args[:2]
    window = window_of(op.properties)
    top, left, bottom, right = window.pads
    padded = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    _, outputs, height, width = static_shape(op.res.type)
    inner, per_group = w.shape[1], outputs // window.groups
    total: Array = np.zeros((x.shape[0], outputs, height, width), x.dtype)
    for r in range(w.shape[2]):
        for s in range(w.shape[3]):
            h0, w0 = r * window.dilations[0], s * window.dilations[1]
            rows = slice(h0, h0 + (height - 1) * window.strides[0] + 1, window.strides[0])
            columns = slice(w0, w0 + (width - 1) * window.strides[1] + 1, window.strides[1])
            for g in range(window.groups):
                taken = padded[:, g * inner : (g + 1) * inner, rows, columns]
                mine = slice(g * per_group, (g + 1) * per_group)
                total[:, mine] += np.einsum("ncij,oc->noij", taken, w[mine, :, r, s])
    return total + args[2].reshape(-1, 1, 1) if len(args) == 3 else total


# --- normalisations ---------------------------------------------------------------------------------------------------


def softmax(op: GraphOp, args: Sequence[Array]) -> Array:
    """exp(x − max x) / Σ exp(x − max x)."""
    (x,) = args
    axis = _axis(op, x)
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    result = powers / powers.sum(axis=axis, keepdims=True)
    if masked_rows(op.properties) == "zero":
        masked = np.all(x == -np.inf, axis=axis, keepdims=True)
        return np.where(masked, np.zeros_like(x), result)
    return result


def log_softmax(op: GraphOp, args: Sequence[Array]) -> Array:
    """x − max x − log Σ exp(x − max x)."""
    (x,) = args
    axis = _axis(op, x)
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def layer_norm(op: GraphOp, args: Sequence[Array]) -> Array:
    """(x − mean) / √(variance + epsilon) · scale + bias."""
    x = args[0]
    axes = tuple(range(_axis(op, x), x.ndim))
    centred = x - x.mean(axis=axes, keepdims=True)
    result = centred / np.sqrt(np.square(centred).mean(axis=axes, keepdims=True) + x.dtype.type(_epsilon(op)))
    result = result * args[1] if len(args) > 1 else result
    return result + args[2] if len(args) > 2 else result


def rms_norm(op: GraphOp, args: Sequence[Array]) -> Array:
    """x / √(mean of x² + epsilon) · scale."""
    x = args[0]
    axes = tuple(range(_axis(op, x), x.ndim))
    result = x / np.sqrt(np.square(x).mean(axis=axes, keepdims=True) + x.dtype.type(_epsilon(op)))
    return result * args[1] if len(args) > 1 else result


def _reduction(function: Callable[..., Any]) -> Formula:
    def formula(op: GraphOp, args: Sequence[Array]) -> Array:
        (x,) = args
        axes = reduced_axes(op.properties, x.ndim, op.what())
        keepdims = get_flag(op.properties, "keepdims", op.what())
        return np.asarray(function(x, axis=axes, keepdims=keepdims)).astype(x.dtype)

    return formula


# --- activations ------------------------------------------------------------------------------------------------------


def gelu(op: GraphOp, args: Sequence[Array]) -> Array:
    """x · Φ(x), by erf or by its tanh approximation."""
    (x,) = args
    if gelu_form(op.properties) == "none":
        return x / 2 * (1 + scalar.apply(scalar.TABLE["erf"], [x * x.dtype.type(_rounded(op, math.sqrt(0.5)))]))
    cubic, slope = x.dtype.type(_rounded(op, 0.044715)), x.dtype.type(_rounded(op, math.sqrt(2 / math.pi)))
    return x / 2 * (1 + np.tanh(slope * (x + cubic * x**3)))


def _rounded(op: GraphOp, value: float) -> float:
    return parameter(value, op.args[0].type)


def silu(op: GraphOp, args: Sequence[Array]) -> Array:
    """x · sigmoid(x)."""
    (x,) = args
    return x * scalar.apply(scalar.TABLE["sigmoid"], [x])


def clip(op: GraphOp, args: Sequence[Array]) -> Array:
    """min(max(x, low), high)."""
    (x,) = args
    for name, bound in (("low", np.maximum), ("high", np.minimum)):
        if name in op.properties:
            limit = parameter(get_number(op.properties, name, None, op.what()), op.args[0].type)
            x = bound(x, x.dtype.type(limit))
    return x


# --- movement ---------------------------------------------------------------------------------------------------------


def transpose(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.transpose."""
    return np.transpose(args[0], permutation_of(op.properties, args[0].ndim))


def reshape(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.reshape to the result's shape."""
    return args[0].reshape(static_shape(op.res.type))


def expand(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.broadcast_to the result's shape."""
    return np.broadcast_to(args[0], static_shape(op.res.type)).copy()


def take_slice(op: GraphOp, args: Sequence[Array]) -> Array:
    """The listed positions of each dimension."""
    starts, sizes, steps = slice_of(op.properties, args[0].ndim)
    positions = [start + step * np.arange(size) for start, size, step in zip(starts, sizes, steps, strict=True)]
    return args[0][np.ix_(*positions)] if positions else args[0]


def concat(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.concatenate."""
    return np.concatenate(args, axis=get_int(op.properties, "axis", None, op.what()))


def pad(op: GraphOp, args: Sequence[Array]) -> Array:
    """numpy.pad with a constant."""
    (x,) = args
    low, high = (get_ints(op.properties, name, None, op.what()) for name in ("low", "high"))
    value = get_number(op.properties, "value", 0.0, op.what())
    return np.pad(x, list(zip(low, high, strict=True)), constant_values=x.dtype.type(value)) if x.ndim else x


FORMULAS: dict[str, Formula] = {
    "graph.matmul": matmul,
    "graph.conv": conv,
    "graph.softmax": softmax,
    "graph.log_softmax": log_softmax,
    "graph.layer_norm": layer_norm,
    "graph.rms_norm": rms_norm,
    "graph.reduce_sum": _reduction(np.sum),
    "graph.reduce_prod": _reduction(np.prod),
    "graph.reduce_max": _reduction(np.max),
    "graph.reduce_min": _reduction(np.min),
    "graph.reduce_mean": _reduction(np.mean),
    "graph.gelu": gelu,
    "graph.silu": silu,
    "graph.clip": clip,
    "graph.where": lambda op, args: np.where(*args),
    "graph.transpose": transpose,
    "graph.reshape": reshape,
    "graph.expand": expand,
    "graph.slice": take_slice,
    "graph.concat": concat,
    "graph.pad": pad,
    **reference_index.FORMULAS,
}
