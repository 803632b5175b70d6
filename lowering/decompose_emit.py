"""Making primitives in place of a named op: one short method for each primitive."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineMap

from ..dialects.dtypes import compute_type, element, promote
from ..dialects.graph_base import GraphOp
from ..dialects.graph_primitives import ConstantOp, ContractOp, MapOp, ReduceOp, ViewOp
from ..dialects.graph_types import broadcast, ints_attr, static_shape, tensor_type
from ..dialects.index_map import Box
from ..dialects.scalar import lookup


@dataclass(frozen=True)
class Emitter:
    """Inserts primitives before `op`, each with the op's location and the attributes in `attributes`.

    Intermediates are in the compute type of the operands unless `to` gives another element type; nothing rounds to a
    narrower type but the last primitive of a decomposition.
    """

    op: GraphOp
    attributes: Mapping[str, Attribute]

    @property
    def result_element(self) -> Attribute:
        """The element type of the named op's result."""
        return self.op.result_tensor.element_type

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape of the named op's result."""
        return static_shape(self.op.res.type)

    def insert(self, made: GraphOp) -> SSAValue:
        """Places a primitive and gives its result."""
        made.location = self.op.location
        made.attributes.update(self.attributes)
        block = self.op.parent
        assert isinstance(block, Block)
        block.insert_op_before(made, self.op)
        return made.res

    def map(self, fn: str, *values: SSAValue, to: Attribute | None = None, params: Attribute | None = None) -> SSAValue:
        """A scalar operator on broadcast operands."""
        row = lookup(fn)
        if to is None and row.result == "same":
            data = values[1:] if fn == "select" else values
            to = compute_type(promote([element(v.type).attribute for v in data]))
        properties: dict[str, Attribute] = {"fn": StringAttr(fn)}
        if isinstance(params, DictionaryAttr):
            properties["params"] = params
        type_ = None
        if to is not None:
            type_ = tensor_type(to, broadcast([static_shape(v.type) for v in values], self.op.what()))
        return self.insert(MapOp.make(values, type_, properties))

    def reduce(self, monoid: str, value: SSAValue, axes: Sequence[int], to: Attribute | None = None) -> SSAValue:
        """A monoid over axes, which stay with size 1."""
        shape = [1 if d in axes else s for d, s in enumerate(static_shape(value.type))]
        type_ = tensor_type(compute_type(element(value.type).attribute) if to is None else to, shape)
        return self.insert(ReduceOp.make([value], type_, {"monoid": StringAttr(monoid), "axes": ints_attr(axes)}))

    def mean(self, value: SSAValue, axes: Sequence[int], to: Attribute | None = None) -> SSAValue:
        """The sum over axes divided by their number of elements."""
        count = math.prod(static_shape(value.type)[a] for a in axes)
        total = self.reduce("sum", value, axes)
        return self.map("div", total, self.scalar(count, value), to=to)

    def contract(self, spec: str, a: SSAValue, b: SSAValue, to: Attribute) -> SSAValue:
        """A product summed over the letters that the result lacks."""
        properties = {"spec": StringAttr(spec)}
        inferred = cast(TensorType[Attribute], ContractOp.infer_types([a.type, b.type], properties)[0])
        return self.insert(ContractOp.make([a, b], tensor_type(to, inferred.get_shape()), properties))

    def view(
        self,
        values: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        shape: Sequence[int],
        boxes: Sequence[Box] | None = None,
        fill: float | None = None,
    ) -> SSAValue:
        """Elements in other places; `fill` outside the boxes."""
        row = element(values[0].type)
        properties: dict[str, Attribute] = {"maps": ArrayAttr(AffineMapAttr(m) for m in maps)}
        if boxes is not None:
            properties["lower"] = ArrayAttr(ints_attr(low for low, _ in box) for box in boxes)
            properties["upper"] = ArrayAttr(ints_attr(high for _, high in box) for box in boxes)
        if fill is not None:
            properties["fill"] = number_attr(fill, row.attribute)
        return self.insert(ViewOp.make(values, tensor_type(row.attribute, shape), properties))

    def scalar(self, value: float, like: SSAValue) -> SSAValue:
        """A rank-0 constant in the compute type of `like`."""
        return self.insert(ConstantOp.of(np.asarray(value), compute_type(element(like.type).attribute)))


def number_attr(value: float, element_type: Attribute) -> Attribute:
    """`value` as a typed attribute of a float or integer element type."""
    if element(element_type).kind == "float":
        return FloatAttr(float(value), cast(AnyFloat, element_type))
    return IntegerAttr(int(value), cast(IntegerType, element_type))
