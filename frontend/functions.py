"""Operators that ONNX itself defines by a body of other operators: a node becomes its body."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol, cast

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TypeProto, helper

from .model import domain_of
from .values import Value


class Schema(Protocol):
    """The part of `onnx.defs.OpSchema` that is used here; the package's own stubs leave most of it out."""

    attributes: dict[str, Any]
    has_function: bool
    function_body: FunctionProto | None
    has_context_dependent_function: bool
    context_dependent_function_opset_versions: list[int]

    def get_context_dependent_function_with_opset_version(self, version: int, node: bytes, types: list[bytes]) -> bytes:
        """The body for operands of these types, as a serialized FunctionProto; empty if there is none."""
        ...


@cache
def _schema(name: str, domain: str, version: int) -> Schema | None:
    try:
        return cast(Schema, onnx.defs.get_schema(name, version, domain))
    except onnx.defs.SchemaError:
        return None


def body_of(
    proto: NodeProto, operands: Sequence[Value | None], version: int
) -> tuple[GraphProto, list[str], dict[str, int]] | None:
    """The graph that a node stands for, with its attributes put in; the names of its operands; the opsets it follows.

    Operands that are not given are left out. None for an operator that ONNX does not define this way.
    """
    schema = _schema(proto.op_type, domain_of(proto), version)
    if schema is None:
        return None
    function = FunctionProto()
    if schema.has_function:
        found = schema.function_body
        if found is None:
            return None
        function.CopyFrom(found)
    elif schema.has_context_dependent_function:
        # The body depends on the types, and (by its opset) on the version: the newest one that is not too new.
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        types = [type_of(v).SerializeToString() for v in operands]
        if not versions:
            return None
        raw = schema.get_context_dependent_function_with_opset_version(max(versions), proto.SerializeToString(), types)
        if not raw:
            return None
        function.ParseFromString(raw)
    else:
        return None
    graph = _bound(function, proto, schema, len(operands))
    return graph, list(function.input), {o.domain: o.version for o in function.opset_import}


def has_body(proto: NodeProto, version: int) -> bool:
    """Whether ONNX defines the operator of a node by a body."""
    schema = _schema(proto.op_type, domain_of(proto), version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def type_of(value: Value | None) -> TypeProto:
    """Element type and shape as ONNX writes them; empty for an operand that is not given."""
    if value is None:
        return TypeProto()
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def _bound(function: FunctionProto, proto: NodeProto, schema: Schema, given: int) -> GraphProto:
    """The body as a graph: attributes replaced, missing operands and everything named after them left out."""
    attributes = {a.name: a for a in proto.attribute}
    for name, declared in schema.attributes.items():
        if name not in attributes and declared.default_value.type != AttributeProto.UNDEFINED:
            attributes[name] = declared.default_value
    for declared in function.attribute_proto:
        attributes.setdefault(declared.name, declared)
    absent = {name for i, name in enumerate(function.input) if i >= given or not proto.input[i]}
    graph = GraphProto(name=function.name)
    for node in function.node:
        copy = graph.node.add()
        copy.CopyFrom(node)
        copy.name = f"{proto.name or proto.output[0]}/{node.name or node.output[0]}"
        _replace(copy, attributes, absent)
    graph.output.extend(helper.make_empty_tensor_value_info(name) for name in function.output)
    return graph


def _replace(node: NodeProto, attributes: dict[str, AttributeProto], absent: set[str]) -> None:
    for i, name in enumerate(node.input):
        if name in absent:
            node.input[i] = ""
    kept: list[AttributeProto] = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            source = attributes.get(attribute.ref_attr_name)
            if source is None:
                continue
            copy = AttributeProto()
            copy.CopyFrom(source)
            copy.name = attribute.name
            kept.append(copy)
        else:
            for inner in attribute.g.node if attribute.HasField("g") else ():
                _replace(inner, attributes, absent)
            kept.append(attribute)
    del node.attribute[:]
    node.attribute.extend(kept)
