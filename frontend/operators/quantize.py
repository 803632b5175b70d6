"""Integers that stand for scaled numbers."""

from __future__ import annotations

import numpy as np
from xdsl.ir import SSAValue

from ...dialects.dtypes import by_name
from ..builder import kind_of, shape_of
from ..errors import Unsupported
from ..node import Handler, Node, normalized
from ..values import element_of_onnx
from .convolution import conv_integer


def _beside(node: Node, i: int, shape: tuple[int, ...]) -> SSAValue:
    """A scale or zero point beside a tensor of this shape: one, one per place of an axis, or one per block."""
    value, build = node.ssa(i), node.build
    sizes = shape_of(value)
    if sizes in ((), (1,)):
        return build.reshape(value, ())
    axis = normalized(node.int("axis", 1), len(shape))
    if len(sizes) == 1:
        return build.reshape(value, [sizes[0] if d == axis else 1 for d in range(len(shape))])
    block = node.int("block_size", 0) or -(-shape[axis] // sizes[axis])
    split = build.reshape(value, [*sizes[: axis + 1], 1, *sizes[axis + 1 :]])
    wide = build.expand(split, [*sizes[: axis + 1], block, *sizes[axis + 1 :]])
    joined = build.reshape(wide, [*sizes[:axis], sizes[axis] * block, *sizes[axis + 1 :]])
    return build.take(joined, axis, 0, shape[axis])


def _stored(node: Node) -> str:
    number = node.int("output_dtype", 0)
    if node.has(2):
        return node.value(2).element.name
    return element_of_onnx(number).name if number else "ui8"


def quantized(node: Node, x: SSAValue, scale: SSAValue, zero: SSAValue | None, kind: str) -> SSAValue:
    """round(x / scale) + zero point, within the range of `kind`."""
    build, info = node.build, np.iinfo(by_name(kind).numpy)
    y = build.map("round", build.map("div", build.cast(x, "f32"), build.cast(scale, "f32")))
    if zero is not None:
        y = build.map("add", y, build.cast(zero, "f32"))
    return build.cast(build.clip(y, info.min, info.max), kind)


def quantize_linear(node: Node) -> SSAValue:
    """To integers."""
    kind = _stored(node)
    if by_name(kind).kind != "int":
        raise Unsupported(f"quantizing to {kind} is not supported", "i8 and ui8 are")
    x, shape = node.ssa(0), node.shape(0)
    return quantized(node, x, _beside(node, 1, shape), _beside(node, 2, shape) if node.has(2) else None, kind)


def dequantize_linear(node: Node) -> SSAValue:
    """(x − zero point) · scale."""
    build, shape = node.build, node.shape(0)
    scale = _beside(node, 1, shape)
    x = build.cast(node.ssa(0), kind_of(scale))
    if node.has(2):
        x = build.map("sub", x, build.cast(_beside(node, 2, shape), kind_of(scale)))
    return build.map("mul", x, scale)


def dynamic_quantize(node: Node) -> list[SSAValue]:
    """To ui8 with the scale and zero point that the range of the data, 0 included, asks for."""
    build, x = node.build, node.ssa(0)
    axes = list(range(len(node.shape(0))))
    zero = build.scalar(0, x)
    high = build.map("max", build.reduce("max", x, axes, False), zero)
    low = build.map("min", build.reduce("min", x, axes, False), zero)
    scale = build.map("div", build.map("sub", high, low), build.scalar(255, x))
    # Data of zeros only have no range: whatever the scale, the result is 0.
    safe = build.where(build.map("eq", scale, zero), build.scalar(1, x), scale)
    point = build.clip(build.map("round", build.map("div", build.map("neg", low), safe)), 0, 255)
    point = build.cast(point, "ui8")
    return [quantized(node, x, safe, point, "ui8"), scale, point]


def _centred(node: Node, value: SSAValue, zero_at: int, column: bool) -> SSAValue:
    """i8 or ui8 minus its zero point, as i32."""
    build = node.build
    wide = build.cast(value, "i32")
    if not node.has(zero_at):
        return wide
    zero = build.cast(node.ssa(zero_at), "i32")
    if len(shape_of(zero)) == 1 and shape_of(zero)[0] > 1 and not column:
        zero = build.reshape(zero, [*shape_of(zero), 1])
    return build.map("sub", wide, build.reshape(zero, ()) if shape_of(zero) in ((1,), ()) else zero)


def product_of_integers(node: Node, a: SSAValue, b: SSAValue) -> SSAValue:
    """A matrix product of i32: products and a sum, since no matrix engine takes them."""
    build = node.build
    left, right = shape_of(a), shape_of(b)
    wide = build.reshape(a, [*left, 1]), build.reshape(b, [*right[:-2], 1, *right[-2:]])
    return build.reduce(
        "sum",
        build.map("mul", *wide),
        [len(shape_of(wide[0])) - 2 if len(left) >= len(right) else len(right) - 1],
        False,
    )


def matmul_integer(node: Node) -> SSAValue:
    """The product of integer matrices with their zero points taken off."""
    a, b, build = node.ssa(0), node.ssa(1), node.build
    same = kind_of(a) == kind_of(b)
    if same and not node.has(2) and not node.has(3):
        return build.matmul(a, b)
    return product_of_integers(node, _centred(node, a, 2, False), _centred(node, b, 3, True))


def qlinear_matmul(node: Node) -> SSAValue:
    """Dequantised operands multiplied, the product quantised."""
    build = node.build
    a = build.map("sub", build.cast(node.ssa(0), "i32"), build.cast(_row(node, 2), "i32"))
    b = build.map("sub", build.cast(node.ssa(3), "i32"), build.cast(node.ssa(5), "i32"))
    total = build.cast(product_of_integers(node, a, b), "f32")
    scales = build.map("mul", build.cast(_row(node, 1), "f32"), build.cast(node.ssa(4), "f32"))
    y = build.map("mul", total, scales)
    return quantized(node, y, build.cast(node.ssa(6), "f32"), node.ssa(7), node.value(7).element.name)


def _row(node: Node, i: int) -> SSAValue:
    value = node.ssa(i)
    size = shape_of(value)
    return node.build.reshape(value, [size[0], 1]) if len(size) == 1 and size[0] > 1 else value


def qlinear_conv(node: Node) -> SSAValue:
    """Dequantised operands convolved, the result quantised; the bias has the scale of the products."""
    build, rank = node.build, len(node.shape(0))
    operands = (node.operands[0], node.operands[3], node.operands[2], node.operands[5])
    inner = Node(node.proto, node.version, operands, build, node.materialize, node.subgraph)
    total = conv_integer(inner)
    if node.has(8):
        bias = node.ssa(8)
        total = build.map("add", total, build.reshape(bias, [*shape_of(bias), *[1] * (rank - 2)]))
    weight_scale = node.ssa(4)
    if shape_of(weight_scale) not in ((), (1,)):
        weight_scale = build.reshape(weight_scale, [*shape_of(weight_scale), *[1] * (rank - 2)])
    else:
        weight_scale = build.reshape(weight_scale, ())
    scale = build.map("mul", build.reshape(node.ssa(1), ()), weight_scale)
    y = build.map("mul", build.cast(total, "f32"), scale)
    zero = build.reshape(node.ssa(7), ())
    return quantized(node, y, build.reshape(node.ssa(6), ()), zero, node.value(7).element.name)


TABLE: dict[str, Handler] = {
    "QuantizeLinear": quantize_linear,
    "DequantizeLinear": dequantize_linear,
    "DynamicQuantizeLinear": dynamic_quantize,
    "MatMulInteger": matmul_integer,
    "QLinearMatMul": qlinear_matmul,
    "QLinearConv": qlinear_conv,
}
