"""Softmax and the normalisations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from ...dialects import graph
from ...dialects.graph_base import GraphOp
from ..builder import integer, kind_of, number, shape_of
from ..errors import Unsupported
from ..node import Handler, Node


def softmax(cls: type[GraphOp]) -> Handler:
    """Along an axis since opset 13; over all dimensions from the axis on, taken as one, before."""

    def handler(node: Node) -> SSAValue:
        x, shape = node.ssa(0), node.shape(0)
        if node.version >= 13:
            return node.build.named(cls, x, axis=integer(node.axis("axis", -1, len(shape))))
        axis = node.axis("axis", 1, len(shape))
        flat = node.build.reshape(x, [math.prod(shape[:axis]), math.prod(shape[axis:])])
        return node.build.reshape(node.build.named(cls, flat, axis=integer(1)), shape)

    return handler


def layer_normalization(node: Node) -> list[SSAValue | None]:
    """Over the dimensions from the axis on; the mean and 1/√variance too where somebody wants them."""
    x = node.ssa(0)
    axis = node.axis("axis", -1, len(node.shape(0)))
    epsilon = node.float("epsilon", 1e-5)
    result = node.build.named(graph.LayerNormOp, *node.all(), axis=integer(axis), epsilon=number(epsilon))
    if not (node.wants(1) or node.wants(2)):
        return [result]
    mean, _, scale = _moments(node, node.build.cast(x, "f32"), range(axis, len(node.shape(0))), epsilon)
    return [result, mean, scale]


def rms_normalization(node: Node) -> SSAValue:
    """x / √(mean x² + epsilon) · scale."""
    axis = node.axis("axis", -1, len(node.shape(0)))
    return node.build.named(
        graph.RmsNormOp, *node.all(), axis=integer(axis), epsilon=number(node.float("epsilon", 1e-5))
    )


def _moments(node: Node, x: SSAValue, axes: Sequence[int], epsilon: float) -> tuple[SSAValue, SSAValue, SSAValue]:
    """mean x, x − mean x, 1 / √(variance + epsilon)."""
    build = node.build
    mean = build.reduce("mean", x, list(axes))
    centred = build.map("sub", x, mean)
    variance = build.reduce("mean", build.map("square", centred), list(axes))
    return mean, centred, build.map("rsqrt", build.map("add", variance, build.scalar(epsilon, variance)))


def _per_channel(node: Node, i: int, rank: int) -> SSAValue:
    """Operand i of shape [C] beside [N, C, …]."""
    value = node.ssa(i)
    return node.build.reshape(value, [*shape_of(value), *[1] * (rank - 2)])


def instance_normalization(node: Node) -> SSAValue:
    """Over the spatial dimensions of each channel of each sample."""
    x, rank = node.ssa(0), len(node.shape(0))
    build = node.build
    _, centred, factor = _moments(node, x, range(2, rank), node.float("epsilon", 1e-5))
    scaled = build.map("mul", build.map("mul", centred, factor), _per_channel(node, 1, rank))
    return build.map("add", scaled, _per_channel(node, 2, rank))


def group_normalization(node: Node) -> SSAValue:
    """Over the channels of each group; scale and bias per group before opset 21, per channel since."""
    shape = node.shape(0)
    groups = node.int("num_groups")
    build, kind = node.build, kind_of(node.ssa(0))
    x = build.reshape(
        build.cast(node.ssa(0), "f32") if kind != "f64" else node.ssa(0),
        [shape[0], groups, -(-math.prod(shape[1:]) // groups)],
    )
    _, centred, factor = _moments(node, x, [2], node.float("epsilon", 1e-5))
    normal = build.map("mul", centred, factor)
    per_group = node.version < 21
    split = (
        [shape[0], groups, math.prod(shape[1:]) // groups] if per_group else [shape[0], shape[1], math.prod(shape[2:])]
    )
    normal = build.reshape(normal, split)
    scale, bias = (build.reshape(node.ssa(i), [split[1], 1]) for i in (1, 2))
    if not per_group and kind != "f64":
        normal = build.cast(normal, kind)
    result = build.map("add", build.map("mul", normal, scale), bias)
    return build.reshape(build.cast(result, kind), shape)


def batch_normalization(node: Node) -> list[SSAValue | None]:
    """At inference (x − mean) / √(variance + epsilon) · scale + bias; in training with the moments of the batch."""
    x, shape = node.ssa(0), node.shape(0)
    rank, build = len(shape), node.build
    epsilon = node.float("epsilon", 1e-5)
    scale, bias = _per_channel(node, 1, rank), _per_channel(node, 2, rank)
    if not node.flag("training_mode") or node.version < 14:
        if node.version < 14 and node.count > 1 and any(node.wants(i) for i in range(1, node.count)):
            raise Unsupported("training is not supported", "export the model for inference")
        mean, variance = _per_channel(node, 3, rank), _per_channel(node, 4, rank)
        root = build.map("rsqrt", build.map("add", variance, build.scalar(epsilon, variance)))
        factor = build.map("mul", scale, build.cast(root, kind_of(scale)))
        centred = build.map("sub", x, build.cast(mean, kind_of(x)))
        return [
            build.map("add", build.map("mul", centred, build.cast(factor, kind_of(x))), build.cast(bias, kind_of(x)))
        ]
    momentum = node.float("momentum", 0.9)
    axes = [0, *range(2, rank)]
    mean, centred, factor = _moments(node, x, axes, epsilon)
    variance = build.reduce("mean", build.map("square", centred), axes)
    result = build.map("add", build.map("mul", build.map("mul", centred, factor), scale), bias)
    running: list[SSAValue] = []
    for old, new in ((node.ssa(3), mean), (node.ssa(4), variance)):
        kept = build.map("mul", old, build.scalar(momentum, old))
        flat = build.reshape(new, shape_of(old))
        running.append(build.map("add", kept, build.map("mul", flat, build.scalar(1 - momentum, old))))
    return [result, *running]


def lp_normalization(node: Node) -> SSAValue:
    """x over its 1- or 2-norm along an axis; 0 where that is 0."""
    x, build = node.ssa(0), node.build
    axis, p = node.axis("axis", -1, len(node.shape(0))), node.int("p", 2)
    total = build.reduce("sum", build.map("abs" if p == 1 else "square", x), [axis])
    norm = total if p == 1 else build.map("sqrt", total)
    zero = build.map("eq", norm, build.scalar(0, norm))
    return build.where(zero, build.scalar(0, x), build.map("div", x, norm))


def local_response(node: Node) -> SSAValue:
    """x / (bias + alpha/size · Σ of squares in a window of channels)^beta."""
    x, build, size = node.ssa(0), node.build, node.int("size")
    before = (size - 1) // 2
    shape = shape_of(x)
    squares = build.map("square", x)
    low, high = [0] * len(shape), [0] * len(shape)
    low[1], high[1] = before, size - 1 - before
    padded = build.pad(squares, low, high)
    total = build.take(padded, 1, 0, shape[1])
    for i in range(1, size):
        total = build.map("add", total, build.take(padded, 1, i, shape[1]))
    scaled = build.map("mul", total, build.scalar(node.float("alpha", 1e-4) / size, x))
    base = build.map("add", scaled, build.scalar(node.float("bias", 1.0), x))
    return build.map("div", x, build.map("pow", base, build.scalar(node.float("beta", 0.75), x)))


def mean_variance(node: Node) -> SSAValue:
    """(x − mean) / (standard deviation + 1e-9)."""
    x, build = node.ssa(0), node.build
    axes = node.list("axes", [0, 2, 3])
    centred = build.map("sub", x, build.reduce("mean", x, axes))
    deviation = build.map("sqrt", build.reduce("mean", build.map("square", centred), axes))
    return build.map("div", centred, build.map("add", deviation, build.scalar(1e-9, x)))


TABLE: dict[str, Handler] = {
    "Softmax": softmax(graph.SoftmaxOp),
    "LogSoftmax": softmax(graph.LogSoftmaxOp),
    "LayerNormalization": layer_normalization,
    "RMSNormalization": rms_normalization,
    "InstanceNormalization": instance_normalization,
    "GroupNormalization": group_normalization,
    "BatchNormalization": batch_normalization,
    "LpNormalization": lp_normalization,
    "LRN": local_response,
    "MeanVarianceNormalization": mean_variance,
}
