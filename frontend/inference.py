"""What ONNX's own inference says of one node: whether it is as the standard wants it, and how large its results are."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import onnx
import onnx.shape_inference
from onnx import NodeProto, TensorProto, TypeProto, helper, numpy_helper

from .functions import type_of
from .model import domain_of
from .values import Value

_DATA_LIMIT = 1 << 10
"""Most elements of an operand whose values are shown to the inference: shapes, axes and sizes are short."""

_NOISE = re.compile(r"\[\w+Error\]\s*|\(op_type:[^)]*\):\s*|Inference error\(s\):\s*")


def objection(proto: NodeProto, operands: Sequence[Value | None], opsets: Mapping[str, int]) -> str | None:
    """Why a node breaks the rules of its operator, in ONNX's words; None where ONNX has nothing against it."""
    try:
        _result_types(proto, operands, opsets)
    except Exception as error:  # the inference is C++: its exceptions have no common class
        return " ".join(_NOISE.sub("", str(error)).split()) or type(error).__name__
    return None


def result_elements(proto: NodeProto, operands: Sequence[Value | None], opsets: Mapping[str, int]) -> int | None:
    """How many elements the results of a node have together; None where ONNX cannot tell."""
    try:
        shapes = [found.tensor_type.shape.dim for found in _result_types(proto, operands, opsets).values()]
    except Exception:
        return None
    if not all(dim.HasField("dim_value") for shape in shapes for dim in shape):
        return None
    return sum(math.prod(dim.dim_value for dim in shape) for shape in shapes)


def _result_types(
    proto: NodeProto, operands: Sequence[Value | None], opsets: Mapping[str, int]
) -> Mapping[str, TypeProto]:
    domain = domain_of(proto)
    schema = onnx.defs.get_schema(proto.op_type, opsets.get(domain, 1), domain)
    given = {name: v for name, v in zip(proto.input, operands, strict=False) if name and v is not None}
    types = {name: type_of(value) for name, value in given.items()}
    data = {name: _stored(value) for name, value in given.items() if _is_short(value)}
    imports = [helper.make_opsetid(name, version) for name, version in opsets.items()]
    return onnx.shape_inference.infer_node_outputs(schema, proto, types, data, opset_imports=imports)


def _is_short(value: Value) -> bool:
    return value.array is not None and value.array.size <= _DATA_LIMIT


def _stored(value: Value) -> TensorProto:
    assert value.array is not None
    return numpy_helper.from_array(value.array)
