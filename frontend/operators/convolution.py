"""Convolutions in any number of dimensions, transposed ones included."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from ...dialects import graph
from ..builder import integer, integers, kind_of, number, shape_of
from ..errors import Unsupported
from ..node import Handler, Node


@dataclass(frozen=True)
class Frame:
    """How a window walks over the spatial dimensions."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def reach(self) -> list[int]:
        """How many elements a dilated window spans."""
        return [d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel, strict=True)]


def frame_of(node: Node, sizes: Sequence[int], kernel: Sequence[int], ceil_mode: bool = False) -> Frame:
    """The attributes of a convolution or pooling over dimensions of these sizes, auto_pad worked out."""
    n = len(sizes)
    strides, dilations = (node.list(name, [1] * n) for name in ("strides", "dilations"))
    pads, auto = node.list("pads", [0] * 2 * n), node.text("auto_pad", "NOTSET")
    if {len(kernel), len(strides), len(dilations)} != {n} or len(pads) != 2 * n:
        raise Unsupported(f"kernel, strides, dilations and pads do not fit {n} spatial dimensions")
    low, high = pads[:n], pads[n:]
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [max(0, (-(-s // t) - 1) * t + r - s) for s, t, r in zip(sizes, strides, reach, strict=True)]
        low = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total]
        high = [t - b for t, b in zip(total, low, strict=True)]
    elif auto == "VALID":
        low, high = [0] * n, [0] * n
    if ceil_mode and auto == "NOTSET":
        for d in range(n):
            left = (sizes[d] + low[d] + high[d] - reach[d]) % strides[d]
            positions = (sizes[d] + low[d] + high[d] - reach[d]) // strides[d] + 1
            # The last window must begin inside of the tensor or its padding before it.
            if left and positions * strides[d] < sizes[d] + low[d]:
                high[d] += strides[d] - left
    return Frame(tuple(kernel), tuple(strides), tuple(dilations), tuple(low), tuple(high))


def conv(node: Node) -> SSAValue:
    """x [N, C, …] with w [O, C/groups, …], plus a bias."""
    x, w = node.ssa(0), node.ssa(1)
    sizes, kernel = shape_of(x)[2:], shape_of(w)[2:]
    frame = frame_of(node, sizes, node.list("kernel_shape", list(kernel)))
    return convolved(node, x, w, frame, node.int("group", 1), node.ssa(2) if node.has(2) else None)


def convolved(
    node: Node, x: SSAValue, w: SSAValue, frame: Frame, groups: int, bias: SSAValue | None = None
) -> SSAValue:
    """The convolution op where there are up to two spatial dimensions; windows and a contraction for more."""
    n, build = len(frame.kernel), node.build
    if n > 2:
        result = _windows_contracted(node, x, w, frame, groups)
        if bias is None:
            return result
        return build.map("add", result, build.reshape(bias, [*shape_of(bias), *[1] * n]))
    extra = [1] * (2 - n)
    x4, w4 = (build.reshape(v, [*shape_of(v)[:2], *extra, *shape_of(v)[2:]]) for v in (x, w))
    zeros = [0] * (2 - n)
    properties = {
        "strides": integers([*extra, *frame.strides]),
        "dilations": integers([*extra, *frame.dilations]),
        "pads": integers([*zeros, *frame.low, *zeros, *frame.high]),
        "groups": integer(groups),
    }
    result = build.named(graph.ConvOp, x4, w4, *([] if bias is None else [bias]), **properties)
    shape = shape_of(result)
    return build.reshape(result, [*shape[:2], *shape[4 - n :]])


def _windows_contracted(node: Node, x: SSAValue, w: SSAValue, frame: Frame, groups: int) -> SSAValue:
    n, build = len(frame.kernel), node.build
    samples, channels = shape_of(x)[:2]
    outputs, inner = shape_of(w)[:2]
    grouped = build.reshape(x, [samples, groups, channels // groups, *shape_of(x)[2:]])
    windows = windowed(node, grouped, frame, first=3)
    weights = build.reshape(w, [groups, outputs // groups, inner, *shape_of(w)[2:]])
    places, taps = "ijklm"[:n], "rstuv"[:n]
    product = build.contract(f"ngc{places}{taps},goc{taps}->ngo{places}", windows, weights)
    return build.reshape(product, [samples, outputs, *shape_of(product)[3:]])


def windowed(node: Node, x: SSAValue, frame: Frame, first: int = 2, fill: float = 0.0) -> SSAValue:
    """The windows of `frame` over the dimensions from `first` on."""
    return node.build.named(
        graph.WindowOp,
        x,
        axes=integers(range(first, first + len(frame.kernel))),
        sizes=integers(frame.kernel),
        strides=integers(frame.strides),
        dilations=integers(frame.dilations),
        low=integers(frame.low),
        high=integers(frame.high),
        value=number(fill) if kind_of(x)[0] in "fb" else integer(int(fill)),
    )


def conv_transpose(node: Node) -> SSAValue:
    """A convolution of x, zeros put between its elements, with the kernel turned round and its channels swapped."""
    x, w, build = node.ssa(0), node.ssa(1), node.build
    groups, n = node.int("group", 1), len(shape_of(x)) - 2
    sizes, kernel = shape_of(x)[2:], shape_of(w)[2:]
    strides, dilations = (node.list(name, [1] * n) for name in ("strides", "dilations"))
    extra = node.list("output_padding", [0] * n)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    full = [s * (i - 1) + r for s, i, r in zip(strides, sizes, reach, strict=True)]
    auto = node.text("auto_pad", "NOTSET")
    wanted = node.attribute("output_shape")
    if wanted is not None or auto.startswith("SAME"):
        out = (
            [int(v) for v in wanted[-n:]]
            if wanted is not None
            else [i * s for i, s in zip(sizes, strides, strict=True)]
        )
        total = [f + e - o for f, e, o in zip(full, extra, out, strict=True)]
        low = [t // 2 if auto == "SAME_UPPER" else t - t // 2 for t in total]  # t may be negative
        high = [t - b for t, b in zip(total, low, strict=True)]
    else:
        pads = [0] * 2 * n if auto == "VALID" else node.list("pads", [0] * 2 * n)
        low, high = pads[:n], pads[n:]
    # Between the elements: each becomes the first of a block of `stride`, zeros behind it.
    for d, stride in enumerate(strides):
        if stride > 1:
            shape = list(shape_of(x))
            axis = d + 2
            split = build.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
            after = [stride - 1 if i == axis + 1 else 0 for i in range(len(shape) + 1)]
            joined = build.pad(split, [0] * (len(shape) + 1), after)
            shape[axis] *= stride
            x = build.take(build.reshape(joined, shape), axis, 0, shape[axis] - stride + 1)
    samples_channels = shape_of(w)
    inner, per_group = samples_channels[0] // groups, samples_channels[1]
    turned = build.slice(
        w, [0, 0, *(k - 1 for k in kernel)], samples_channels, [1, 1, *[-1 if k > 1 else 1 for k in kernel]]
    )
    split = build.reshape(turned, [groups, inner, per_group, *kernel])
    swapped = build.transpose(split, [0, 2, 1, *range(3, 3 + n)])
    weights = build.reshape(swapped, [groups * per_group, inner, *kernel])
    edges = [(r - 1 - a, r - 1 - b + e) for r, a, b, e in zip(reach, low, high, extra, strict=True)]
    cut = [max(0, -a) for a, _ in edges]
    kept = [s - max(0, -a) - max(0, -b) for s, (a, b) in zip(shape_of(x)[2:], edges, strict=True)]
    x = build.slice(x, [0, 0, *cut], [*shape_of(x)[:2], *kept])
    frame = Frame(
        tuple(kernel),
        (1,) * n,
        tuple(dilations),
        tuple(max(0, a) for a, _ in edges),
        tuple(max(0, b) for _, b in edges),
    )
    return convolved(node, x, weights, frame, groups, node.ssa(2) if node.has(2) else None)


def conv_integer(node: Node) -> SSAValue:
    """A convolution of integers with their zero points taken off."""
    x, w, build = node.ssa(0), node.ssa(1), node.build
    if node.has(2):
        x = build.map("sub", build.cast(x, "i32"), build.cast(build.reshape(node.ssa(2), ()), "i32"))
    if node.has(3):
        zero = node.ssa(3)
        zero = build.reshape(zero, [*shape_of(zero), *[1] * (len(shape_of(w)) - len(shape_of(zero)))])
        w = build.map("sub", build.cast(w, "i32"), build.cast(zero, "i32"))
    frame = frame_of(node, shape_of(x)[2:], node.list("kernel_shape", list(shape_of(w)[2:])))
    x, w = build.cast(x, "i32"), build.cast(w, "i32")
    return _summed_windows(node, x, w, frame, node.int("group", 1))


def _summed_windows(node: Node, x: SSAValue, w: SSAValue, frame: Frame, groups: int) -> SSAValue:
    """Products and a sum, for element types that no matrix engine takes."""
    n, build = len(frame.kernel), node.build
    samples, channels = shape_of(x)[:2]
    outputs, inner = shape_of(w)[:2]
    grouped = build.reshape(x, [samples, groups, channels // groups, *shape_of(x)[2:]])
    windows = windowed(node, grouped, frame, first=3)  # [N, G, C, …places, …taps]
    places = shape_of(windows)[3 : 3 + n]
    spread = build.reshape(windows, [samples, groups, 1, inner, *places, *frame.kernel])
    weights = build.reshape(w, [1, groups, outputs // groups, inner, *[1] * n, *frame.kernel])
    product = build.map("mul", spread, weights)
    axes = [3, *range(4 + n, 4 + 2 * n)]
    total = build.reduce("sum", product, axes, False)
    return build.reshape(total, [samples, outputs, *places])


def col2im(node: Node) -> SSAValue:
    """Blocks put back and overlapping ones added: a transposed convolution with taps as channels."""
    image, block = node.ints(1, "the shape of the image"), node.ints(2, "the shape of the blocks")
    n, build = len(image), node.build
    strides, dilations = (node.list(name, [1] * n) for name in ("strides", "dilations"))
    pads = node.list("pads", [0] * 2 * n)
    samples, columns, _ = node.shape(0)
    channels = columns // math.prod(block)
    reach = [d * (b - 1) + 1 for d, b in zip(dilations, block, strict=True)]
    padded = [i + pads[d] + pads[d + n] for d, i in enumerate(image)]
    places = [(p - r) // s + 1 for p, r, s in zip(padded, reach, strides, strict=True)]
    x = build.reshape(node.ssa(0), [samples, channels, *block, *places])
    total: SSAValue | None = None
    for tap in range(math.prod(block)):
        index: list[int] = []
        for size in reversed(block):
            index.insert(0, tap % size)
            tap //= size
        part = build.slice(x, [0, 0, *index, *[0] * n], [samples, channels, *[1] * n, *places])
        part = build.reshape(part, [samples, channels, *places])
        for d in range(n):
            part = _spread(node, part, d + 2, strides[d], index[d] * dilations[d], padded[d])
        total = part if total is None else build.map("add", total, part)
    assert total is not None
    return build.slice(total, [0, 0, *pads[:n]], [samples, channels, *image])


def _spread(node: Node, x: SSAValue, axis: int, stride: int, start: int, size: int) -> SSAValue:
    """Element i at place start + stride · i of `size`, zeros elsewhere."""
    build, shape = node.build, list(shape_of(x))
    count = shape[axis]
    if stride > 1:
        split = build.reshape(x, [*shape[: axis + 1], 1, *shape[axis + 1 :]])
        after = [stride - 1 if i == axis + 1 else 0 for i in range(len(shape) + 1)]
        joined = build.pad(split, [0] * (len(shape) + 1), after)
        shape[axis] = count * stride
        x = build.take(build.reshape(joined, shape), axis, 0, (count - 1) * stride + 1)
    low, high = [0] * len(shape), [0] * len(shape)
    low[axis], high[axis] = start, size - start - ((count - 1) * stride + 1)
    return build.pad(x, low, high)


TABLE: dict[str, Handler] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "ConvInteger": conv_integer,
    "Col2Im": col2im,
}
