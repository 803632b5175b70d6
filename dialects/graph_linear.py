"""Named products: matrix multiplication and two-dimensional convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def

from .dtypes import accumulator_type, element
from .errors import UserError
from .graph_base import GraphOp
from .graph_types import Dim, Properties, Tensor, broadcast, get_flag, get_int, get_ints, shape_of, tensor_type


def product_element(element_type: Attribute) -> Attribute:
    """The default element type of a product: the operands', but i32 for i8 and ui8."""
    return element_type if element(element_type).kind == "float" else accumulator_type(element_type)


@irdl_op_definition
class MatmulOp(GraphOp):
    """The matrix product of the last two dimensions; leading dimensions broadcast as NumPy does.

    transpose_a, transpose_b swap the last two dimensions of an operand first. A one-dimensional operand is a row on
    the left and a column on the right, and its dimension goes from the result. The result may be written in another
    element type of the same kind; sums are kept in the accumulator type either way.
    """

    name = "graph.matmul"
    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "kind"
    transpose_a = opt_prop_def(UnitAttr)
    transpose_b = opt_prop_def(UnitAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        types = cls.expect_operands(operand_types, 2)
        element_type = cls.expect_same_element(types)
        for type_ in types:
            cls.expect_number(type_)
            if not shape_of(type_):
                raise UserError(f"{cls.what()} takes tensors of rank 1 or more, got {type_}")
        matrices = [list(shape_of(t)) for t in types]
        for matrix, flag in zip(matrices, ("transpose_a", "transpose_b"), strict=True):
            if get_flag(properties, flag, cls.what()):
                if len(matrix) < 2:
                    raise UserError(f"{cls.what()}: {flag} needs a matrix, got {types[0]} and {types[1]}")
                matrix[-2:] = matrix[:-3:-1]
        left, right = matrices
        if left[-1] != right[-2 if len(right) > 1 else 0]:
            raise UserError(f"{cls.what()}: inner dimensions of {types[0]} and {types[1]} differ")
        batch = broadcast([tuple(left[:-2]), tuple(right[:-2])], cls.what())
        rows: list[Dim] = left[-2:-1]
        columns: list[Dim] = right[-1:] if len(right) > 1 else []
        return [tensor_type(product_element(element_type), [*batch, *rows, *columns])]


@dataclass(frozen=True)
class Window:
    """How a convolution walks: strides and dilations (height, width), pads (top, left, bottom, right), groups."""

    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int

    def positions(self, size: int, taps: int, axis: int) -> int:
        """Output size of spatial axis 0 or 1 for an input of `size` and a kernel of `taps`."""
        padded = size + self.pads[axis] + self.pads[axis + 2]
        return (padded - self.dilations[axis] * (taps - 1) - 1) // self.strides[axis] + 1


def window_of(properties: Properties) -> Window:
    """The window attributes of a convolution. Raises UserError for malformed ones."""
    what = "'graph.conv'"
    strides, dilations = (get_ints(properties, n, (1, 1), what) for n in ("strides", "dilations"))
    pads = get_ints(properties, "pads", (0, 0, 0, 0), what)
    groups = get_int(properties, "groups", 1, what)
    if (len(strides), len(dilations), len(pads)) != (2, 2, 4):
        raise UserError(f"{what} needs 2 strides, 2 dilations and 4 pads (top, left, bottom, right)")
    if min(*strides, *dilations, groups) < 1 or min(pads) < 0:
        raise UserError(f"{what} needs strides, dilations and groups of at least 1 and pads of at least 0")
    return Window(strides, pads, dilations, groups)


@irdl_op_definition
class ConvOp(GraphOp):
    """Two-dimensional convolution (cross-correlation) of x [N, C, H, W] with w [O, C/groups, R, S], plus bias [O].

    Attributes: strides, dilations (height, width), pads (top, left, bottom, right) of zeros, groups. Sums are kept in
    the accumulator type, to which the optional third operand is added before rounding.
    """

    name = "graph.conv"
    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "kind"
    strides = opt_prop_def(DenseArrayBase)
    pads = opt_prop_def(DenseArrayBase)
    dilations = opt_prop_def(DenseArrayBase)
    groups = opt_prop_def(IntegerAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        types = cls.expect_operands(operand_types, 2, 3)
        element_type = cls.expect_same_element(types[:2])
        cls.expect_number(types[0])
        x, w = (shape_of(t) for t in types[:2])
        window = window_of(properties)
        if len(x) != 4 or len(w) != 4:
            raise UserError(
                f"{cls.what()} takes x [N, C, H, W] and w [O, C/groups, R, S], got {types[0]} and {types[1]}"
            )
        channels, height, width = (_number(d, types[0]) for d in x[1:])
        outputs, inner, *taps = (_number(d, types[1]) for d in w)
        if channels != inner * window.groups or outputs % window.groups:
            raise UserError(
                f"{cls.what()}: {channels} input and {outputs} output channels do not fit {window.groups} groups of "
                f"{types[1]} on {types[0]}"
            )
        sizes = [window.positions(s, t, axis) for axis, (s, t) in enumerate(zip((height, width), taps, strict=True))]
        if min(sizes) < 1:
            raise UserError(f"{cls.what()}: the kernel of {types[1]} does not fit into {types[0]}")
        if len(types) == 3:
            cls.expect_number(types[2])
            if shape_of(types[2]) != (outputs,) or element(types[2]).kind != element(types[0]).kind:
                raise UserError(f"{cls.what()} takes a bias of shape [{outputs}] of {element_type}, got {types[2]}")
        return [tensor_type(product_element(element_type), [x[0], outputs, *sizes])]


def _number(dim: Dim, type_: Tensor) -> int:
    if isinstance(dim, str):
        raise UserError(f"'graph.conv' needs numbers for channels and sizes, got '{dim}' in {type_}")
    return dim
