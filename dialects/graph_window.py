"""Sliding windows as a view: what convolutions and poolings of one's own are written with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def

from .errors import UserError
from .graph_base import GraphOp
from .graph_types import Properties, get_ints, get_number, normalize_axis, static_shape, tensor_type


@dataclass(frozen=True)
class Windows:
    """Per windowed axis: taps, stride, dilation, elements added before and after."""

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]

    def positions(self, i: int, size: int) -> int:
        """How many windows fit along axis `axes[i]` of `size` elements."""
        reach = self.dilations[i] * (self.sizes[i] - 1) + 1
        return (size + self.low[i] + self.high[i] - reach) // self.strides[i] + 1


def windows_of(properties: Properties, rank: int) -> Windows:
    """The attributes of a window view. Raises UserError for malformed ones."""
    what = "'graph.window'"
    axes = tuple(normalize_axis(a, rank, what) for a in get_ints(properties, "axes", None, what))
    n = len(axes)
    sizes = get_ints(properties, "sizes", None, what)
    strides, dilations = (get_ints(properties, name, [1] * n, what) for name in ("strides", "dilations"))
    low, high = (get_ints(properties, name, [0] * n, what) for name in ("low", "high"))
    if {len(sizes), len(strides), len(dilations), len(low), len(high)} != {n} or len(set(axes)) != n:
        raise UserError(f"{what} needs sizes (and strides, dilations, low, high) for each of {n} different axes")
    if min((*sizes, *strides, *dilations), default=1) < 1 or min((*low, *high), default=0) < 0:
        raise UserError(f"{what} needs sizes, strides and dilations of at least 1, low and high of at least 0")
    return Windows(axes, sizes, strides, dilations, low, high)


@irdl_op_definition
class WindowOp(GraphOp):
    """Sliding windows over `axes`: each becomes its positions, and its taps become a new last dimension, in order.

        out[…, p, …, t] = x[…, strides·p + dilations·t − low, …], and `value` (default 0) outside of x

    A 3×3 maximum pooling is a window view and a reduction over its two last dimensions; a convolution is a window view
    and a contraction. No kernel ever stores the windows.
    """

    name = "graph.window"
    axes = prop_def(DenseArrayBase)
    sizes = prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    dilations = opt_prop_def(DenseArrayBase)
    low = opt_prop_def(DenseArrayBase)
    high = opt_prop_def(DenseArrayBase)
    value = opt_prop_def(FloatAttr | IntegerAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        shape = list(static_shape(source))
        windows = windows_of(properties, len(shape))
        get_number(properties, "value", 0.0, cls.what())
        for i, axis in enumerate(windows.axes):
            count = windows.positions(i, shape[axis])
            if count < 1:
                raise UserError(
                    f"{cls.what()}: a window of {windows.sizes[i]} does not fit into axis {axis} of {source}"
                )
            shape[axis] = count
        return [tensor_type(source.element_type, [*shape, *windows.sizes])]
