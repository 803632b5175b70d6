"""Making graph ops: one short method for each, types inferred, the location that of the ONNX node at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, StringAttr, UnitAttr, f64, i64
from xdsl.ir import Attribute, Block, SSAValue

from ..dialects import graph
from ..dialects.dtypes import by_name, element
from ..dialects.graph_base import GraphOp
from ..dialects.graph_types import ints_attr, static_shape, tensor_type
from ..dialects.locations import Location
from .values import Array, element_of_array

_REDUCTIONS: dict[str, type[GraphOp]] = {
    "sum": graph.ReduceSumOp,
    "max": graph.ReduceMaxOp,
    "min": graph.ReduceMinOp,
    "prod": graph.ReduceProdOp,
    "mean": graph.ReduceMeanOp,
}


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The static shape of a value."""
    return static_shape(value.type)


def kind_of(value: SSAValue) -> str:
    """The name of the element type: f32, i64, …"""
    return element(value.type).name


@dataclass
class Builder:
    """Appends ops to `block`. Every op gets the location of the node that is being imported."""

    block: Block
    location: Location
    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    weight_file: str = "weights.safetensors"

    def insert(self, op: GraphOp) -> SSAValue:
        """Places an op and gives its result."""
        op.location = self.location
        self.block.add_op(op)
        return op.res

    def map(self, fn: str, *values: SSAValue, params: Mapping[str, float] | None = None) -> SSAValue:
        """A scalar operator of the table on broadcast operands."""
        properties: dict[str, Attribute] = {}
        if params:
            properties["params"] = DictionaryAttr({name: FloatAttr(value, f64) for name, value in params.items()})
        return self.insert(graph.ELEMENTWISE[fn].make(values, None, properties))

    def cast(self, value: SSAValue, kind: str) -> SSAValue:
        """The value in another element type; itself if it has it."""
        if kind_of(value) == kind:
            return value
        return self.insert(graph.CastOp.make([value], tensor_type(by_name(kind).attribute, shape_of(value))))

    def constant(self, array: Array, kind: str | None = None) -> SSAValue:
        """A constant in the text."""
        row = element_of_array(array) if kind is None else by_name(kind)
        return self.insert(graph.ConstantOp.of(array, row.attribute))

    def scalar(self, number: float | bool, like: SSAValue) -> SSAValue:
        """A rank-0 constant in the element type of `like`."""
        return self.constant(np.asarray(number), kind_of(like))

    def full(self, shape: Sequence[int], number: float | bool, kind: str) -> SSAValue:
        """A tensor of one repeated value."""
        return self.constant(np.full(tuple(shape), number), kind)

    def weight(self, key: str, array: Array) -> SSAValue:
        """A constant stored beside the text."""
        self.weights[key] = array
        properties = {"file": StringAttr(self.weight_file), "key": StringAttr(key)}
        type_ = tensor_type(element_of_array(array).attribute, array.shape)
        return self.insert(graph.WeightOp.make([], type_, properties))

    def iota(self, shape: Sequence[int], dim: int, kind: str) -> SSAValue:
        """The index along one dimension."""
        type_ = tensor_type(by_name(kind).attribute, shape)
        return self.insert(graph.IotaOp.make([], type_, {"dim": IntegerAttr(dim, i64)}))

    def where(self, condition: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        """a where the condition holds, else b."""
        return self.insert(graph.WhereOp.make([condition, a, b]))

    def clip(self, value: SSAValue, low: float | None, high: float | None) -> SSAValue:
        """min(max(x, low), high); None does not bind."""
        kind = kind_of(value)
        bounds = {"low": low, "high": high}
        properties: dict[str, Attribute] = {}
        for name, bound in bounds.items():
            if bound is not None:
                is_float = element(value.type).kind == "float"
                properties[name] = FloatAttr(float(bound), f64) if is_float else IntegerAttr(int(bound), i64)
        return self.insert(graph.ClipOp.make([value], None, properties)) if properties else self.cast(value, kind)

    def reduce(self, kind: str, value: SSAValue, axes: Sequence[int], keepdims: bool = True) -> SSAValue:
        """sum, max, min, prod or mean over axes."""
        properties: dict[str, Attribute] = {"axes": ints_attr(axes)}
        if keepdims:
            properties["keepdims"] = UnitAttr()
        return self.insert(_REDUCTIONS[kind].make([value], None, properties))

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Row-major order in another shape; the value itself if it has it."""
        if shape_of(value) == tuple(shape):
            return value
        return self.insert(graph.ReshapeOp.make([value], tensor_type(element(value.type).attribute, shape)))

    def expand(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """Broadcast to a shape; the value itself if it has it."""
        if shape_of(value) == tuple(shape):
            return value
        return self.insert(graph.ExpandOp.make([value], tensor_type(element(value.type).attribute, shape)))

    def transpose(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        """Dimension i of the result is dimension order[i]; the value itself if nothing moves."""
        if list(order) == list(range(len(order))):
            return value
        return self.insert(graph.TransposeOp.make([value], None, {"permutation": ints_attr(order)}))

    def slice(
        self, value: SSAValue, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int] | None = None
    ) -> SSAValue:
        """Elements start + step · i of each dimension."""
        steps = [1] * len(starts) if steps is None else steps
        if shape_of(value) == tuple(sizes) and not any(starts) and set(steps) <= {1}:
            return value
        properties = {"starts": ints_attr(starts), "sizes": ints_attr(sizes), "steps": ints_attr(steps)}
        return self.insert(graph.SliceOp.make([value], None, properties))

    def take(self, value: SSAValue, axis: int, start: int, size: int, step: int = 1) -> SSAValue:
        """A slice along one axis."""
        shape = list(shape_of(value))
        starts, steps = [0] * len(shape), [1] * len(shape)
        starts[axis], shape[axis], steps[axis] = start, size, step
        return self.slice(value, starts, shape, steps)

    def concat(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """One after another along an axis; the value itself if there is one."""
        if len(values) == 1:
            return values[0]
        return self.insert(graph.ConcatOp.make(values, None, {"axis": IntegerAttr(axis, i64)}))

    def pad(self, value: SSAValue, low: Sequence[int], high: Sequence[int], number: float = 0.0) -> SSAValue:
        """Constant elements before and after; the value itself if there are none."""
        if not any(low) and not any(high):
            return value
        is_float = element(value.type).kind == "float"
        fill = FloatAttr(float(number), f64) if is_float else IntegerAttr(int(number), i64)
        properties = {"low": ints_attr(low), "high": ints_attr(high), "value": fill}
        return self.insert(graph.PadOp.make([value], None, properties))

    def matmul(self, a: SSAValue, b: SSAValue, **flags: bool) -> SSAValue:
        """Matrix product; flags transpose_a, transpose_b."""
        return self.insert(graph.MatmulOp.make([a, b], None, {name: UnitAttr() for name, on in flags.items() if on}))

    def contract(self, spec: str, a: SSAValue, b: SSAValue, kind: str | None = None) -> SSAValue:
        """A two-operand einsum."""
        properties = {"spec": StringAttr(spec)}
        if kind is None:
            return self.insert(graph.ContractOp.make([a, b], None, properties))
        inferred = graph.ContractOp.infer_types([a.type, b.type], properties)[0]
        type_ = tensor_type(by_name(kind).attribute, static_shape(inferred))
        return self.insert(graph.ContractOp.make([a, b], type_, properties))

    def named(self, cls: type[GraphOp], *values: SSAValue, **properties: Attribute) -> SSAValue:
        """Any other op whose result type is inferred."""
        return self.insert(cls.make(values, None, properties))


def integer(value: int) -> Attribute:
    """`value : i64`."""
    return IntegerAttr(value, i64)


def integers(values: Sequence[int]) -> Attribute:
    """`array<i64: …>`."""
    return ints_attr(values)


def number(value: float) -> Attribute:
    """`value : f64`."""
    return FloatAttr(float(value), f64)


def strings(values: Sequence[str]) -> Attribute:
    """`["…", …]`."""
    return ArrayAttr([StringAttr(v) for v in values])
