"""Decompositions of normalisations, reductions and activations; and the table of all decompositions.

Each rule is the op's definition written in primitives. Values in between are in the compute type; the last primitive
rounds to the result's element type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from ..dialects.dtypes import BY_NAME, element
from ..dialects.graph_base import GraphOp
from ..dialects.graph_elementwise import ELEMENTWISE, gelu_form
from ..dialects.graph_norm import masked_rows, reduced_axes
from ..dialects.graph_types import get_flag, get_int, get_number, static_shape
from . import decompose_index, decompose_linear, decompose_views
from .decompose_emit import Emitter

Rule: TypeAlias = Callable[[Emitter, GraphOp], SSAValue]


def _axis(op: GraphOp) -> int:
    return get_int(op.properties, "axis", -1, op.what()) % len(static_shape(op.args[0].type))


def _axes_from(op: GraphOp) -> range:
    return range(_axis(op), len(static_shape(op.args[0].type)))


def softmax(emit: Emitter, op: GraphOp) -> SSAValue:
    """m = max x; p = exp(x − m); p / Σ p.

    With masked_rows = "zero", m is at least the lowest finite number and Σ p at least 1: a row of −∞ then gives
    exp(−∞) / 1 = 0, and no other row changes, because its greatest element adds exp(0) = 1 to the sum.
    """
    x, axis = op.args[0], _axis(op)
    zero = masked_rows(op.properties) == "zero"
    top = emit.reduce("max", x, [axis])
    if zero:
        lowest = float(np.finfo(BY_NAME[element(top.type).name].numpy).min)
        top = emit.map("max", top, emit.scalar(lowest, top))
    powers = emit.map("exp", emit.map("sub", x, top))
    total = emit.reduce("sum", powers, [axis])
    if zero:
        total = emit.map("max", total, emit.scalar(1.0, total))
    return emit.map("div", powers, total, to=emit.result_element)


def log_softmax(emit: Emitter, op: GraphOp) -> SSAValue:
    """s = x − max x; s − log Σ exp(s)."""
    x, axis = op.args[0], _axis(op)
    shifted = emit.map("sub", x, emit.reduce("max", x, [axis]))
    total = emit.reduce("sum", emit.map("exp", shifted), [axis])
    return emit.map("sub", shifted, emit.map("log", total), to=emit.result_element)


def layer_norm(emit: Emitter, op: GraphOp) -> SSAValue:
    """c = x − mean x; c · rsqrt(mean c² + epsilon) · scale + bias."""
    x, axes = op.args[0], _axes_from(op)
    centred = emit.map("sub", x, emit.mean(x, axes))
    variance = emit.mean(emit.map("square", centred), axes)
    return _scaled(emit, op, centred, variance)


def rms_norm(emit: Emitter, op: GraphOp) -> SSAValue:
    """x · rsqrt(mean x² + epsilon) · scale."""
    x = op.args[0]
    return _scaled(emit, op, x, emit.mean(emit.map("square", x), _axes_from(op)))


def _scaled(emit: Emitter, op: GraphOp, x: SSAValue, square: SSAValue) -> SSAValue:
    """x · rsqrt(square + epsilon), times operand 1, plus operand 2; the last of these rounds."""
    epsilon = emit.scalar(get_number(op.properties, "epsilon", 1e-5, op.what()), square)
    factor = emit.map("rsqrt", emit.map("add", square, epsilon))
    steps = [("mul", factor), *zip(("mul", "add"), op.args[1:], strict=False)]
    for i, (fn, operand) in enumerate(steps):
        x = emit.map(fn, x, operand, to=emit.result_element if i == len(steps) - 1 else None)
    return x


def reduction(monoid: str) -> Rule:
    """A reduction that keeps its axes, then a view without them unless they are to stay."""

    def rule(emit: Emitter, op: GraphOp) -> SSAValue:
        axes = reduced_axes(op.properties, len(static_shape(op.args[0].type)), op.what())
        if monoid == "mean":
            total = emit.mean(op.args[0], axes, to=emit.result_element)
        else:
            total = emit.reduce(monoid, op.args[0], axes, to=emit.result_element)
        keepdims = get_flag(op.properties, "keepdims", op.what())
        return total if keepdims else decompose_views.without_dims(emit, total, axes)

    return rule


def gelu(emit: Emitter, op: GraphOp) -> SSAValue:
    """x/2 · (1 + erf(x·√½)), or x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))."""
    x = op.args[0]
    if gelu_form(op.properties) == "none":
        inner = emit.map("erf", emit.map("mul", x, emit.scalar(math.sqrt(0.5), x)))
    else:
        cube = emit.map("mul", emit.map("square", x), x)
        argument = emit.map("add", x, emit.map("mul", cube, emit.scalar(0.044715, x)))
        inner = emit.map("tanh", emit.map("mul", argument, emit.scalar(math.sqrt(2 / math.pi), x)))
    half = emit.map("mul", x, emit.scalar(0.5, x))
    return emit.map("mul", half, emit.map("add", inner, emit.scalar(1.0, x)), to=emit.result_element)


def silu(emit: Emitter, op: GraphOp) -> SSAValue:
    """x · sigmoid(x)."""
    return emit.map("mul", op.args[0], emit.map("sigmoid", op.args[0]), to=emit.result_element)


def clip(emit: Emitter, op: GraphOp) -> SSAValue:
    """min(max(x, low), high), without the bounds that are not given."""
    bounds = [(fn, name) for fn, name in (("max", "low"), ("min", "high")) if name in op.properties]
    x = op.args[0]
    for i, (fn, name) in enumerate(bounds):
        limit = emit.scalar(get_number(op.properties, name, None, op.what()), op.args[0])
        x = emit.map(fn, x, limit, to=emit.result_element if i == len(bounds) - 1 else None)
    return x


def scalar_operator(fn: str) -> Rule:
    """One map."""
    return lambda emit, op: emit.map(fn, *op.args, to=emit.result_element, params=op.properties.get("params"))


RULES: dict[str, Rule] = {
    **{f"graph.{fn}": scalar_operator(fn) for fn in ELEMENTWISE},
    "graph.cast": scalar_operator("cast"),
    "graph.where": scalar_operator("select"),
    "graph.clip": clip,
    "graph.gelu": gelu,
    "graph.silu": silu,
    "graph.matmul": decompose_linear.matmul,
    "graph.conv": decompose_linear.conv,
    "graph.softmax": softmax,
    "graph.log_softmax": log_softmax,
    "graph.layer_norm": layer_norm,
    "graph.rms_norm": rms_norm,
    "graph.reduce_sum": reduction("sum"),
    "graph.reduce_prod": reduction("prod"),
    "graph.reduce_max": reduction("max"),
    "graph.reduce_min": reduction("min"),
    "graph.reduce_mean": reduction("mean"),
    "graph.transpose": decompose_views.transpose,
    "graph.reshape": decompose_views.reshape,
    "graph.expand": decompose_views.expand,
    "graph.slice": decompose_views.take_slice,
    "graph.concat": decompose_views.concat,
    "graph.pad": decompose_views.pad,
    "graph.window": decompose_views.window,
    "graph.gather": decompose_index.gather,
    "graph.gather_elements": decompose_index.gather_elements,
    "graph.scatter_elements": decompose_index.scatter_elements,
    "graph.arg_max": decompose_index.place,
    "graph.arg_min": decompose_index.place,
    "graph.cum_sum": decompose_index.running,
    "graph.cum_prod": decompose_index.running,
}
