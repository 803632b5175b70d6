"""Resize and Upsample: each axis by itself, by known positions or by a known matrix of weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..builder import kind_of, shape_of
from ..errors import Unsupported
from ..node import Handler, Node, normalized
from ..values import Array
from .shape import pick

_MOST_SLICES = 64


def resize(node: Node) -> SSAValue:
    """To given sizes or by given factors."""
    shape = node.shape(0)
    rank = len(shape)
    if node.version < 11:
        roi_at, scales_at, sizes_at = 9, 1, 9
    else:
        roi_at, scales_at, sizes_at = 1, 2, 3
    axes = [normalized(a, rank) for a in node.list("axes", list(range(rank)))]
    scales, sizes = [1.0] * rank, list(shape)
    if node.has(sizes_at) and node.value(sizes_at).shape != (0,):
        wanted = node.ints(sizes_at, "the sizes")
        policy = node.text("keep_aspect_ratio_policy", "stretch")
        factors = [w / shape[a] for w, a in zip(wanted, axes, strict=True)]
        if policy != "stretch":
            one = min(factors) if policy == "not_larger" else max(factors)
            factors = [one] * len(axes)
            wanted = [math.floor(one * shape[a] + 0.5) for a in axes]
        for axis, want, factor in zip(axes, wanted, factors, strict=True):
            sizes[axis], scales[axis] = want, factor
    else:
        given = [float(v) for v in node.array(scales_at, "the scales").reshape(-1)]
        for axis, factor in zip(axes, given, strict=True):
            sizes[axis], scales[axis] = math.floor(shape[axis] * factor), factor
    roi = [0.0] * rank + [1.0] * rank
    if node.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" and node.has(roi_at):
        found = [float(v) for v in node.array(roi_at, "the region").reshape(-1)]
        for i, axis in enumerate(axes):
            roi[axis], roi[rank + axis] = found[i], found[len(axes) + i]
    x = node.ssa(0)
    for axis in range(rank):
        if scales[axis] != 1.0 or sizes[axis] != shape[axis] or roi[axis] != 0 or roi[rank + axis] != 1:
            x = _along(node, x, axis, sizes[axis], scales[axis], (roi[axis], roi[rank + axis]))
    return x


def _coordinates(node: Node, size: int, out: int, scale: float, roi: tuple[float, float]) -> Array:
    """Where in the operand each position of the result lies."""
    mode = node.text("coordinate_transformation_mode", "half_pixel") if node.version >= 11 else "asymmetric"
    i = np.arange(out, dtype=np.float64)
    length = scale * size
    match mode:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjustment = out / length
            return size / 2 * (1 - adjustment) + (i + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if length > 1 else np.zeros(out)
        case "align_corners":
            return i * (size - 1) / (length - 1) if length > 1 else np.zeros(out)
        case "asymmetric":
            return i / scale
        case "tf_crop_and_resize":
            start, end = roi
            if out > 1:
                return start * (size - 1) + i * (end - start) * (size - 1) / (length - 1)
            return np.asarray([0.5 * (start + end) * (size - 1)])
        case _:
            raise Unsupported(f"coordinate_transformation_mode '{mode}' is not supported")


def _along(node: Node, x: SSAValue, axis: int, out: int, scale: float, roi: tuple[float, float]) -> SSAValue:
    size = shape_of(x)[axis]
    at = _coordinates(node, size, out, scale, roi)
    mode = node.text("mode", "nearest")
    cropped = node.text("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    outside = (at < 0) | (at > size - 1) if cropped else np.zeros(out, bool)
    if mode == "nearest" and not outside.any():
        return _nearest(node, x, axis, _rounded(node, at, size))
    weights = np.zeros((out, size))
    if mode == "nearest":
        weights[np.arange(out), _rounded(node, at, size)] = 1
    else:
        _interpolate(node, weights, at, size, scale, mode)
    weights[outside] = 0
    y = _weighted(node, x, axis, weights)
    if outside.any() and node.float("extrapolation_value", 0.0) != 0:
        fill = np.where(outside, node.float("extrapolation_value", 0.0), 0.0)
        fill = fill.reshape([-1 if d == axis else 1 for d in range(len(shape_of(x)))])
        y = node.build.map("add", y, node.build.constant(fill, kind_of(y)))
    return y


def _rounded(node: Node, at: Array, size: int) -> Array:
    default = "round_prefer_floor" if node.version >= 11 else "floor"
    match node.text("nearest_mode", default):
        case "floor":
            index = np.floor(at)
        case "ceil":
            index = np.ceil(at)
        case "round_prefer_ceil":
            index = np.floor(at + 0.5)
        case _:
            index = np.ceil(at - 0.5)
    return np.clip(index.astype(np.int64), 0, size - 1)


def _nearest(node: Node, x: SSAValue, axis: int, index: Array) -> SSAValue:
    """Whole repetitions are a broadcast; else slices; else a lookup of known places."""
    shape = shape_of(x)
    size, out = shape[axis], len(index)
    if out % size == 0 and np.array_equal(index, np.repeat(np.arange(size), out // size)):
        split = node.build.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        wide = node.build.expand(split, [*shape[: axis + 1], out // size, *shape[axis + 1 :]])
        return node.build.reshape(wide, [*shape[:axis], out, *shape[axis + 1 :]])
    if out <= _MOST_SLICES:
        return pick(node, x, axis, index)
    from .indexing import lookup

    return lookup(node, x, node.build.constant(index.astype(np.int32)), axis)


def _interpolate(node: Node, weights: Array, at: Array, size: int, scale: float, mode: str) -> None:
    """Adds the weights of the neighbours of each place; smoothed over 1/scale elements with antialias."""
    exclude = node.flag("exclude_outside")
    stretch = max(1.0, 1.0 / scale) if node.flag("antialias") else 1.0
    support = (1.0 if mode == "linear" else 2.0) * stretch
    a = node.float("cubic_coeff_a", -0.75)
    for row, place in enumerate(at):
        first = math.floor(place - support) + 1 if stretch > 1 else math.floor(place) - (0 if mode == "linear" else 1)
        count = math.ceil(2 * support) + 1 if stretch > 1 else (2 if mode == "linear" else 4)
        taps = first + np.arange(count)
        distance = np.abs(taps - place) / stretch
        value = np.maximum(0.0, 1.0 - distance) if mode == "linear" else _cubic(distance, a)
        if exclude:
            value = np.where((taps < 0) | (taps >= size), 0.0, value)
        total = value.sum()
        if exclude or stretch > 1:
            value = value / total
        np.add.at(weights[row], np.clip(taps, 0, size - 1), value)


def _cubic(t: Array, a: float) -> Array:
    """Keys' cubic convolution kernel."""
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def _weighted(node: Node, x: SSAValue, axis: int, weights: Array) -> SSAValue:
    """Σ over the axis of weight · element: a contraction with a constant matrix."""
    shape = shape_of(x)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    kind = kind_of(x)
    wide = node.build.cast(x, "f32") if kind[0] not in "fb" else x
    table = node.build.constant(weights, kind_of(wide))
    y = node.build.contract("avb,ov->aob", node.build.reshape(wide, [outer, shape[axis], inner]), table)
    return node.build.cast(node.build.reshape(y, [*shape[:axis], len(weights), *shape[axis + 1 :]]), kind)


def upsample(node: Node) -> SSAValue:
    """Resize of opset 10 and before; its scales were an attribute before opset 9."""
    shape = node.shape(0)
    scales: Sequence[float] = (
        [float(v) for v in node.array(1, "the scales").reshape(-1)] if node.version >= 9 else node.numbers("scales")
    )
    x = node.ssa(0)
    for axis, scale in enumerate(scales):
        if scale != 1.0:
            x = _along(node, x, axis, math.floor(shape[axis] * scale), scale, (0.0, 1.0))
    return x


TABLE: dict[str, Handler] = {"Resize": resize, "Upsample": upsample}
