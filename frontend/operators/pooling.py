"""Poolings: a window view and a reduction over its taps."""

from __future__ import annotations

import math

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dtypes import by_name
from ...dialects.scalar import MONOIDS
from ..builder import kind_of, shape_of
from ..node import Handler, Node
from .convolution import Frame, frame_of, windowed


def _frame(node: Node) -> Frame:
    return frame_of(node, node.shape(0)[2:], node.list("kernel_shape"), node.flag("ceil_mode"))


def _taps(node: Node) -> list[int]:
    n = len(node.shape(0)) - 2
    return list(range(2 + n, 2 + 2 * n))


def max_pool(node: Node) -> list[SSAValue]:
    """The greatest of each window; on demand its place in the tensor, row-major or (storage_order) column-major."""
    x, frame, build = node.ssa(0), _frame(node), node.build
    lowest = MONOIDS["max"].identity(by_name(kind_of(x)))
    top = build.reduce("max", windowed(node, x, frame, fill=lowest), _taps(node), True)
    n = len(frame.kernel)
    result = build.reshape(top, shape_of(top)[: 2 + n])
    if not node.wants(1):
        return [result]
    shape = node.shape(0)
    places = np.arange(math.prod(shape)).reshape(shape)
    if node.flag("storage_order"):
        spatial = np.arange(math.prod(shape[2:])).reshape(shape[2:], order="F")
        places = np.arange(math.prod(shape[:2])).reshape(*shape[:2], *[1] * n) * math.prod(shape[2:]) + spatial
    where = windowed(node, build.constant(places.astype(np.int32)), frame, fill=math.prod(shape))
    hit = build.map("eq", windowed(node, x, frame, fill=lowest), top)
    found = build.reduce("min", build.where(hit, where, build.scalar(math.prod(shape), where)), _taps(node), False)
    return [result, build.cast(found, "i64")]


def average_pool(node: Node) -> SSAValue:
    """The sum of each window over how many of its taps lie inside (or, on demand, in the padding)."""
    x, frame, build = node.ssa(0), _frame(node), node.build
    total = build.reduce("sum", windowed(node, x, frame), _taps(node), False)
    counts = _counts(node, frame)
    return build.map("div", total, build.constant(counts, kind_of(x)))


def _counts(node: Node, frame: Frame) -> np.ndarray:
    """Per position, how many taps count; a number where they all have the same."""
    sizes, n = node.shape(0)[2:], len(frame.kernel)
    padding = node.flag("count_include_pad")
    given = frame_of(node, sizes, node.list("kernel_shape"))  # rounding up adds no padding that counts
    result = np.ones([1] * n)
    for d in range(n):
        positions = (sizes[d] + frame.low[d] + frame.high[d] - frame.reach[d]) // frame.strides[d] + 1
        start = np.arange(positions) * frame.strides[d] - frame.low[d]
        taps = start[:, None] + np.arange(frame.kernel[d]) * frame.dilations[d]
        first, last = (-given.low[d], sizes[d] + given.high[d]) if padding else (0, sizes[d])
        count = ((taps >= first) & (taps < last)).sum(1)
        result = result * count.reshape([-1 if i == d else 1 for i in range(n)])
    return np.asarray(result.flat[0]) if np.all(result == result.flat[0]) else result


def lp_pool(node: Node) -> SSAValue:
    """(Σ |x|ᵖ)^(1/p) over each window."""
    x, frame, build, p = node.ssa(0), _frame(node), node.build, node.int("p", 2)
    return _root(node, build.reduce("sum", windowed(node, _power(node, x, p), frame), _taps(node), False), p)


def _power(node: Node, x: SSAValue, p: int) -> SSAValue:
    size = node.build.map("abs", x)
    if p == 2:
        return node.build.map("square", x)
    return size if p == 1 else node.build.map("pow", size, node.build.scalar(p, x))


def _root(node: Node, x: SSAValue, p: int) -> SSAValue:
    if p == 2:
        return node.build.map("sqrt", x)
    return x if p == 1 else node.build.map("pow", x, node.build.scalar(1 / p, x))


def over_all(kind: str) -> Handler:
    """A reduction over all spatial dimensions."""
    return lambda node: node.build.reduce(kind, node.ssa(0), range(2, len(node.shape(0))))


def global_lp_pool(node: Node) -> SSAValue:
    """(Σ |x|ᵖ)^(1/p) over all spatial dimensions."""
    p = node.int("p", 2)
    return _root(node, node.build.reduce("sum", _power(node, node.ssa(0), p), range(2, len(node.shape(0)))), p)


TABLE: dict[str, Handler] = {
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "LpPool": lp_pool,
    "GlobalMaxPool": over_all("max"),
    "GlobalAveragePool": over_all("mean"),
    "GlobalLpPool": global_lp_pool,
}
