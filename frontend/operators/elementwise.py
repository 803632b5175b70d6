"""Arithmetic and activations: one element at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from ...dialects import graph
from ...dialects.dtypes import ElementType, element
from ..builder import kind_of
from ..errors import Unsupported
from ..node import Handler, Node, Result
from ..values import element_of_onnx


def scalar(fn: str) -> Handler:
    """One scalar operator of the table."""
    return lambda node: node.build.map(fn, *node.all())


def fold_left(fn: str) -> Handler:
    """A two-operand operator over any number of operands."""

    def handler(node: Node) -> SSAValue:
        return reduce(lambda a, b: node.build.map(fn, a, b), node.all())

    return handler


def mean(node: Node) -> SSAValue:
    """The sum over the number of operands."""
    values = node.all()
    total = reduce(lambda a, b: node.build.map("add", a, b), values)
    return node.build.map("div", total, node.build.scalar(len(values), total))


def power(node: Node) -> SSAValue:
    """aᵇ in the type of a."""
    a, b = node.ssa(0), node.ssa(1)
    if element(a.type).kind == "int" and element(b.type).kind == "float":
        return node.build.cast(node.build.map("pow", node.build.cast(a, kind_of(b)), b), kind_of(a))
    return node.build.map("pow", a, node.build.cast(b, kind_of(a)))


def modulo(node: Node) -> SSAValue:
    """The remainder with the sign of the divisor, or (fmod = 1) of the dividend."""
    return node.build.map("rem" if node.flag("fmod") else "mod", node.ssa(0), node.ssa(1))


def clip(node: Node) -> SSAValue:
    """Bounds as attributes before opset 11, as operands since."""
    x = node.ssa(0)
    if node.version < 11:
        return node.build.clip(x, node.float("min", -math.inf), node.float("max", math.inf))
    for i, fn in ((1, "max"), (2, "min")):
        if node.has(i):
            x = node.build.map(fn, x, node.build.reshape(node.ssa(i), ()))
    return x


def cast(node: Node) -> Result:
    """Conversion to the type `to`."""
    return _converted(node, element_of_onnx(node.int("to")))


def cast_like(node: Node) -> Result:
    """Conversion to the type of the second operand."""
    return _converted(node, node.value(1).element)


def _converted(node: Node, row: ElementType) -> Result:
    if not math.prod(node.shape(0)):
        return np.zeros(node.shape(0), row.numpy)
    return node.build.cast(node.ssa(0), row.name)


def gelu(node: Node) -> SSAValue:
    """By erf or by its tanh approximation."""
    form = StringAttr(node.text("approximate", "none"))
    return node.build.named(graph.GeluOp, node.ssa(0), approximate=form)


def leaky_relu(node: Node) -> SSAValue:
    """a for a ≥ 0, else alpha·a."""
    return node.build.map("leaky_relu", node.ssa(0), params={"alpha": node.float("alpha", 0.01)})


def prelu(node: Node) -> SSAValue:
    """a for a ≥ 0, else slope·a; the slope broadcasts."""
    x, slope = node.ssa(0), node.ssa(1)
    below = node.build.map("lt", x, node.build.scalar(0, x))
    return node.build.where(below, node.build.map("mul", x, slope), x)


def hard_sigmoid(node: Node) -> SSAValue:
    """max(0, min(1, alpha·a + beta))."""
    return _hard_sigmoid(node, node.float("alpha", 0.2), node.float("beta", 0.5))


def hard_swish(node: Node) -> SSAValue:
    """a · hard_sigmoid(a) with alpha = 1/6."""
    return node.build.map("mul", node.ssa(0), _hard_sigmoid(node, 1 / 6, 0.5))


def _hard_sigmoid(node: Node, alpha: float, beta: float) -> SSAValue:
    x = node.ssa(0)
    line = node.build.map("add", node.build.map("mul", x, node.build.scalar(alpha, x)), node.build.scalar(beta, x))
    return node.build.clip(line, 0.0, 1.0)


def _exponential_branch(node: Node, x: SSAValue, below: SSAValue, above: SSAValue) -> SSAValue:
    negative = node.build.map("lt", x, node.build.scalar(0, x))
    return node.build.where(negative, below, above)


def elu(node: Node) -> SSAValue:
    """a for a ≥ 0, else alpha·(eᵃ − 1)."""
    x = node.ssa(0)
    below = node.build.map("mul", node.build.map("expm1", x), node.build.scalar(node.float("alpha", 1.0), x))
    return _exponential_branch(node, x, below, x)


def selu(node: Node) -> SSAValue:
    """gamma · elu with alpha."""
    x = node.ssa(0)
    alpha, gamma = node.float("alpha", 1.67326319217681884765625), node.float("gamma", 1.05070102214813232421875)
    below = node.build.map("mul", node.build.map("expm1", x), node.build.scalar(alpha * gamma, x))
    return _exponential_branch(node, x, below, node.build.map("mul", x, node.build.scalar(gamma, x)))


def celu(node: Node) -> SSAValue:
    """max(0, a) + min(0, alpha·(e^(a/alpha) − 1))."""
    x, alpha = node.ssa(0), node.float("alpha", 1.0)
    inner = node.build.map("expm1", node.build.map("div", x, node.build.scalar(alpha, x)))
    return _exponential_branch(node, x, node.build.map("mul", inner, node.build.scalar(alpha, x)), x)


def softplus_of(node: Node, x: SSAValue) -> SSAValue:
    """ln(1 + eᵃ) = max(a, 0) + ln(1 + e^−|a|), which does not overflow."""
    tail = node.build.map("log1p", node.build.map("exp", node.build.map("neg", node.build.map("abs", x))))
    return node.build.map("add", node.build.map("relu", x), tail)


def softplus(node: Node) -> SSAValue:
    """ln(1 + eᵃ)."""
    return softplus_of(node, node.ssa(0))


def mish(node: Node) -> SSAValue:
    """a · tanh(softplus a)."""
    x = node.ssa(0)
    return node.build.map("mul", x, node.build.map("tanh", softplus_of(node, x)))


def softsign(node: Node) -> SSAValue:
    """a / (1 + |a|)."""
    x = node.ssa(0)
    return node.build.map("div", x, node.build.map("add", node.build.map("abs", x), node.build.scalar(1, x)))


def swish(node: Node) -> SSAValue:
    """a · sigmoid(alpha·a)."""
    x, alpha = node.ssa(0), node.float("alpha", 1.0)
    inner = x if alpha == 1.0 else node.build.map("mul", x, node.build.scalar(alpha, x))
    return node.build.map("mul", x, node.build.map("sigmoid", inner))


def thresholded_relu(node: Node) -> SSAValue:
    """a for a > alpha, else 0."""
    x = node.ssa(0)
    above = node.build.map("gt", x, node.build.scalar(node.float("alpha", 1.0), x))
    return node.build.where(above, x, node.build.scalar(0, x))


def shrink(node: Node) -> SSAValue:
    """a − bias above lambd, a + bias below −lambd, else 0."""
    x, bias, limit = node.ssa(0), node.float("bias", 0.0), node.float("lambd", 0.5)
    low = node.build.map("lt", x, node.build.scalar(-limit, x))
    high = node.build.map("gt", x, node.build.scalar(limit, x))
    inner = node.build.where(high, node.build.map("sub", x, node.build.scalar(bias, x)), node.build.scalar(0, x))
    return node.build.where(low, node.build.map("add", x, node.build.scalar(bias, x)), inner)


def identity(node: Node) -> SSAValue:
    """The operand."""
    return node.ssa(0)


def dropout(node: Node) -> list[SSAValue]:
    """At inference the operand, and a mask of true."""
    if node.version >= 12 and node.has(2):
        training = bool(node.number(2, "whether to train"))
        ratio = node.number(1, "the ratio") if node.has(1) else 0.5
        if training and ratio != 0:
            raise Unsupported("it drops elements at random", "export the model for inference")
    x = node.ssa(0)
    return [x, node.build.full(node.shape(0), True, "i1")] if node.wants(1) else [x]


def is_infinite(node: Node) -> SSAValue:
    """Which elements are +∞ or −∞, as the attributes say."""
    x = node.ssa(0)
    above, below = node.flag("detect_positive", True), node.flag("detect_negative", True)
    if above and below:
        return node.build.map("eq", node.build.map("abs", x), node.build.scalar(math.inf, x))
    if above or below:
        return node.build.map("eq", x, node.build.scalar(math.inf if above else -math.inf, x))
    return node.build.full(node.shape(0), False, "i1")


def shifted(node: Node) -> SSAValue:
    """Bits moved by `direction`."""
    left = node.text("direction") == "LEFT"
    return node.build.map("shift_left" if left else "shift_right", node.ssa(0), node.ssa(1))


def constant(node: Node) -> Sequence[np.ndarray]:
    """A tensor, or numbers, in an attribute."""
    for name, dtype in (("value", None), ("value_float", np.float32), ("value_floats", np.float32),
                        ("value_int", np.int64), ("value_ints", np.int64)):  # fmt: skip
        found = node.attribute(name)
        if found is not None:
            return [np.asarray(found, dtype)]
    raise Unsupported("only constants of numbers are supported")


_SCALARS = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Neg": "neg", "Abs": "abs", "Sign": "sign", "Relu": "relu",
    "Floor": "floor", "Ceil": "ceil", "Round": "round", "Exp": "exp", "Log": "log", "Sqrt": "sqrt",
    "Reciprocal": "reciprocal", "Tanh": "tanh", "Sigmoid": "sigmoid", "Erf": "erf", "Sin": "sin", "Cos": "cos",
    "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh", "Asinh": "asinh",
    "Acosh": "acosh", "Atanh": "atanh", "BitwiseAnd": "bit_and", "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor",
    "BitwiseNot": "bit_not",
}  # fmt: skip

TABLE: dict[str, Handler] = {
    **{name: scalar(fn) for name, fn in _SCALARS.items()},
    "Sum": fold_left("add"),
    "Max": fold_left("max"),
    "Min": fold_left("min"),
    "Mean": mean,
    "Pow": power,
    "Mod": modulo,
    "BitShift": shifted,
    "Clip": clip,
    "Cast": cast,
    "CastLike": cast_like,
    "Gelu": gelu,
    "LeakyRelu": leaky_relu,
    "PRelu": prelu,
    "HardSigmoid": hard_sigmoid,
    "HardSwish": hard_swish,
    "Elu": elu,
    "Selu": selu,
    "Celu": celu,
    "Softplus": softplus,
    "Mish": mish,
    "Softsign": softsign,
    "Swish": swish,
    "ThresholdedRelu": thresholded_relu,
    "Shrink": shrink,
    "Identity": identity,
    "Dropout": dropout,
    "IsInf": is_infinite,
    "Constant": constant,
}
