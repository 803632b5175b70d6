"""Movement: transposes, shapes, slices, concatenation, padding, tiling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from ..builder import kind_of, shape_of
from ..errors import Unsupported
from ..fold import RESULT_LIMIT
from ..node import Handler, Node, Result, normalized
from ..values import Array, element_of_onnx


def transpose(node: Node) -> SSAValue:
    """Dimension i of the result is dimension perm[i]."""
    rank = len(node.shape(0))
    return node.build.transpose(node.ssa(0), node.list("perm", list(range(rank))[::-1]))


def reshape(node: Node) -> SSAValue:
    """0 keeps a dimension (unless allowzero), −1 takes what is left."""
    shape, source = node.ints(1, "the shape"), node.shape(0)
    if not node.flag("allowzero"):
        if any(s == 0 and d >= len(source) for d, s in enumerate(shape)):
            raise Unsupported(f"the shape {shape} keeps a dimension that {list(source)} does not have")
        shape = [source[d] if s == 0 else s for d, s in enumerate(shape)]
    if -1 in shape:
        known = -math.prod(shape)
        if known <= 0 or math.prod(source) % known:
            raise Unsupported(f"{list(source)} does not divide into {shape}")
        shape[shape.index(-1)] = math.prod(source) // known
    return node.build.reshape(node.ssa(0), shape)


def squeeze(node: Node) -> SSAValue:
    """Without the listed dimensions, or all of size 1."""
    shape = node.shape(0)
    axes = node.axes_operand(1, 13, len(shape))
    gone = [d for d, s in enumerate(shape) if s == 1] if axes is None else axes
    if any(shape[d] != 1 for d in gone):
        raise Unsupported(f"dimensions {gone} of {list(shape)} are not all 1")
    return node.build.reshape(node.ssa(0), [s for d, s in enumerate(shape) if d not in gone])


def unsqueeze(node: Node) -> SSAValue:
    """With dimensions of size 1 at the listed places of the result."""
    shape = list(node.shape(0))
    given = node.ints(1, "the list of axes") if node.version >= 13 else node.list("axes")
    rank = len(shape) + len(given)
    for axis in sorted(normalized(a, rank) for a in given):
        shape.insert(axis, 1)
    return node.build.reshape(node.ssa(0), shape)


def flatten(node: Node) -> SSAValue:
    """A matrix: the dimensions before the axis, and those from it on."""
    shape = node.shape(0)
    axis = node.int("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return node.build.reshape(node.ssa(0), [math.prod(shape[:axis]), math.prod(shape[axis:])])


def empty(node: Node, shape: Sequence[int]) -> Array:
    """The one tensor of a shape without elements, in the type of operand 0: a constant."""
    return np.zeros(tuple(shape), node.value(0).dtype)


def concat(node: Node) -> Result:
    """One after another; operands without elements change nothing."""
    rank = len(node.shape(0))
    axis = node.axis("axis", None, rank)
    parts = [v for v in node.operands if v is not None and math.prod(v.shape)]
    if not parts:
        return empty(
            node, [sum(v.shape[d] for v in node.operands if v) if d == axis else s for d, s in enumerate(node.shape(0))]
        )
    return node.build.concat([node.materialize(v) for v in parts], axis)


def split(node: Node) -> list[Result | None]:
    """Parts along an axis, of the given sizes or of equal ones."""
    shape = node.shape(0)
    axis, count = node.axis("axis", 0, len(shape)), node.count
    if node.version >= 13 and node.has(1):
        sizes = node.ints(1, "the sizes of the parts")
    elif node.version < 13 and node.attribute("split") is not None:
        sizes = node.list("split")
    else:
        part = -(-shape[axis] // count)
        sizes = [min(part, shape[axis] - i * part) for i in range(count)]
    parts: list[Result | None] = []
    start = 0
    for i, size in enumerate(sizes):
        if size == 0:
            parts.append(empty(node, [0 if d == axis else s for d, s in enumerate(shape)]))
        else:
            parts.append(node.build.take(node.ssa(0), axis, start, size) if node.wants(i) else None)
        start += size
    return parts


def take_slice(node: Node) -> Result:
    """Starts, ends and steps, negative ones and ones beyond the ends included, as in Python."""
    shape = node.shape(0)
    rank = len(shape)
    if node.version < 10:
        starts, ends = node.list("starts"), node.list("ends")
        axes, steps = node.list("axes", list(range(len(starts)))), [1] * len(starts)
    else:
        starts, ends = node.ints(1, "the list of starts"), node.ints(2, "the list of ends")
        axes = node.ints(3, "the list of axes") if node.has(3) else list(range(len(starts)))
        steps = node.ints(4, "the list of steps") if node.has(4) else [1] * len(starts)
    first, sizes, strides = [0] * rank, list(shape), [1] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        d = normalized(axis, rank)
        if step == 0:
            raise Unsupported("a step of 0 leads nowhere")
        picked = range(shape[d])[slice(start, end, step)]
        first[d], sizes[d], strides[d] = picked.start, len(picked), step
    if 0 in sizes:
        return empty(node, sizes)
    return node.build.slice(node.ssa(0), first, sizes, [s if n > 1 else 1 for s, n in zip(strides, sizes, strict=True)])


def pad(node: Node) -> SSAValue:
    """Constant, reflected, repeated or wrapped edges; negative pads cut."""
    shape = node.shape(0)
    rank = len(shape)
    mode = node.text("mode", "constant")
    if node.version < 11:
        pads, fill = node.list("pads"), node.float("value", 0.0)
    else:
        pads = node.ints(1, "the pads")
        fill = node.number(2, "the value of the padding") if node.has(2) else 0
    axes = [normalized(a, rank) for a in node.ints(3, "the list of axes")] if node.has(3) else list(range(rank))
    low, high = [0] * rank, [0] * rank
    for i, d in enumerate(axes):
        low[d], high[d] = pads[i], pads[i + len(axes)]
    x = node.ssa(0)
    cut = [max(0, -p) for p in low]
    kept = [s + min(0, a) + min(0, b) for s, a, b in zip(shape, low, high, strict=True)]
    if min(kept, default=1) < 1:
        raise Unsupported(f"pads {pads} leave nothing of {list(shape)}")
    x = node.build.slice(x, cut, kept)
    low, high = [max(0, p) for p in low], [max(0, p) for p in high]
    if mode == "constant":
        if kind_of(x) == "i1":
            wide = node.build.pad(node.build.cast(x, "i32"), low, high, int(fill))
            return node.build.cast(wide, "i1")
        return node.build.pad(x, low, high, fill)
    for d in range(rank):
        index = padded_positions(kept[d], low[d], high[d], mode)
        x = pick(node, x, d, index)
    return x


def padded_positions(size: int, low: int, high: int, mode: str) -> Array:
    """Which element stands at each position of a padded axis."""
    match mode:
        case "edge":
            return np.pad(np.arange(size), (low, high), mode="edge")
        case "reflect":
            return np.pad(np.arange(size), (low, high), mode="reflect")
        case "wrap":
            return np.pad(np.arange(size), (low, high), mode="wrap")
        case _:
            raise Unsupported(f"mode '{mode}' is not supported")


def runs(index: Array) -> list[tuple[int, int, int]]:
    """Known positions as (start, count, step), one run of equal steps after another."""
    found: list[tuple[int, int, int]] = []
    places = [int(i) for i in index]
    at = 0
    while at < len(places):
        step = places[at + 1] - places[at] if at + 1 < len(places) else 1
        count = 1
        while at + count < len(places) and places[at + count] - places[at + count - 1] == step:
            count += 1
        found.append((places[at], count, step if count > 1 else 1))
        at += count
    return found


def pick(node: Node, x: SSAValue, axis: int, index: Array) -> SSAValue:
    """Known positions along an axis: slices of equal steps, one after another."""
    size = shape_of(x)[axis]
    if list(index) == list(range(size)):
        return x
    parts: list[SSAValue] = []
    for start, count, step in runs(index):
        if step == 0:
            shape = [count if d == axis else s for d, s in enumerate(shape_of(x))]
            parts.append(node.build.expand(node.build.take(x, axis, start, 1), shape))
        else:
            parts.append(node.build.take(x, axis, start, count, step))
    return node.build.concat(parts, axis)


def expand(node: Node) -> SSAValue:
    """Broadcast to a shape, which may itself be broadcast."""
    wanted = node.ints(1, "the shape")
    if 0 in wanted:
        raise Unsupported(f"the shape {wanted} has no elements", "tensors without elements are not supported")
    return node.build.expand(node.ssa(0), np.broadcast_shapes(node.shape(0), tuple(wanted)))


def tile(node: Node) -> SSAValue:
    """Copies side by side: broadcast over a dimension of its own in front of each."""
    shape, repeats = node.shape(0), node.ints(1, "the repetitions")
    if 0 in repeats:
        raise Unsupported(f"repetitions {repeats} leave no elements", "tensors without elements are not supported")
    split = [n for s in shape for n in (1, s)]
    spread = [n for r, s in zip(repeats, shape, strict=True) for n in (r, s)]
    wide = node.build.expand(node.build.reshape(node.ssa(0), split), spread)
    return node.build.reshape(wide, [r * s for r, s in zip(repeats, shape, strict=True)])


def shape(node: Node) -> Array:
    """The sizes, or some of them."""
    sizes = node.shape(0)
    return np.asarray(sizes[slice(node.int("start", 0), node.int("end", len(sizes)))], np.int64)


def size(node: Node) -> Array:
    """The number of elements."""
    return np.asarray(math.prod(node.shape(0)), np.int64)


def depth_to_space(node: Node) -> SSAValue:
    """Blocks of channels become blocks of pixels."""
    n, c, h, w = node.shape(0)
    b = node.int("blocksize")
    depth = c // (b * b)
    if node.text("mode", "DCR") == "DCR":
        split, order = [n, b, b, depth, h, w], [0, 3, 4, 1, 5, 2]
    else:
        split, order = [n, depth, b, b, h, w], [0, 1, 4, 2, 5, 3]
    moved = node.build.transpose(node.build.reshape(node.ssa(0), split), order)
    return node.build.reshape(moved, [n, depth, h * b, w * b])


def space_to_depth(node: Node) -> SSAValue:
    """Blocks of pixels become blocks of channels."""
    n, c, h, w = node.shape(0)
    b = node.int("blocksize")
    dcr = node.text("mode", "DCR") == "DCR"
    parts = node.build.reshape(node.ssa(0), [n, c, h // b, b, w // b, b])
    moved = node.build.transpose(parts, [0, 3, 5, 1, 2, 4] if dcr else [0, 1, 3, 5, 2, 4])
    return node.build.reshape(moved, [n, c * b * b, h // b, w // b])


def trilu(node: Node) -> SSAValue:
    """The upper or lower triangle, zeros elsewhere."""
    x, dims = node.ssa(0), node.shape(0)
    k = int(node.number(1, "the diagonal")) if node.has(1) else 0
    build = node.build
    rows, columns = build.iota(dims[-2:], 0, "i32"), build.iota(dims[-2:], 1, "i32")
    edge = build.map("add", rows, build.scalar(k, rows)) if k else rows
    kept = build.map("ge" if node.flag("upper", True) else "le", columns, edge)
    if kind_of(x) == "i1":
        return build.map("and", x, kept)
    return build.where(kept, x, build.scalar(0, x))


def eye_like(node: Node) -> SSAValue:
    """Ones on a diagonal."""
    number = node.attribute("dtype")
    row = node.value(0).element if number is None else element_of_onnx(number)
    return node.build.constant(np.eye(*node.shape(0), k=node.int("k", 0)), row.name)


def constant_of_shape(node: Node) -> Array:
    """One repeated value."""
    found = node.attribute("value")
    value = np.zeros(1, np.float32) if found is None else np.asarray(found)
    return np.broadcast_to(value.reshape(()), node.ints(0, "the shape"))


def number_range(node: Node) -> Array:
    """start, start + delta, … up to the limit."""
    first = node.array(0, "the start").reshape(())
    start, limit, delta = (node.number(i, what) for i, what in enumerate(("the start", "the limit", "the step")))
    if (limit - start) / delta > RESULT_LIMIT:
        raise Unsupported(f"a range from {start} to {limit} by {delta} is too long to be a constant")
    return np.arange(start, limit, delta).astype(first.dtype)


def center_crop_pad(node: Node) -> SSAValue:
    """Cut or padded with zeros around the middle to the given sizes."""
    shape = node.shape(0)
    wanted = node.ints(1, "the shape")
    axes = [normalized(a, len(shape)) for a in node.list("axes", list(range(len(shape))))]
    x = node.ssa(0)
    for axis, want in zip(axes, wanted, strict=True):
        have = shape_of(x)[axis]
        if want < have:
            x = node.build.take(x, axis, (have - want) // 2, want)
        elif want > have:
            low = (want - have) // 2
            before, after = [0] * len(shape), [0] * len(shape)
            before[axis], after[axis] = low, want - have - low
            x = node.build.pad(x, before, after)
    return x


def reverse_sequence(node: Node) -> SSAValue:
    """The first lengths[b] elements of each batch backwards."""
    shape, lengths = node.shape(0), node.ints(1, "the lengths")
    batch, time = node.int("batch_axis", 1), node.int("time_axis", 0)
    rows: list[SSAValue] = []
    for b, length in enumerate(lengths):
        row = node.build.take(node.ssa(0), batch, b, 1)
        rows.append(pick(node, row, time, np.r_[np.arange(length)[::-1], np.arange(length, shape[time])]))
    return node.build.concat(rows, batch)


TABLE: dict[str, Handler] = {
    "Transpose": transpose,
    "Reshape": reshape,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Flatten": flatten,
    "Concat": concat,
    "Split": split,
    "Slice": take_slice,
    "Pad": pad,
    "Expand": expand,
    "Tile": tile,
    "Shape": shape,
    "Size": size,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Trilu": trilu,
    "EyeLike": eye_like,
    "ConstantOfShape": constant_of_shape,
    "Range": number_range,
    "CenterCropPad": center_crop_pad,
    "ReverseSequence": reverse_sequence,
}
