"""The headers that functions, kernels, loops and modules have of their own, as parts of an operation."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    StringAttr,
    i32,
)
from xdsl.ir import SSAValue

from .attributes import MAX_NUMBER, AttributeReader
from .op_info import OpInfo
from .parts import Argument, Parts
from .scope import Scope
from .syntax import Bound, CallableNode, LoopNode, ModuleNode, OpNode, Output, Param

SEGMENTS = "operandSegmentSizes"


def header_parts(node: OpNode, info: OpInfo, reader: AttributeReader, scope: Scope) -> Parts | None:
    """The parts of an operation with a header; None for any other. Raises SourceError."""
    match node:
        case ModuleNode():
            return _module(node, info, reader)
        case CallableNode():
            return _callable(node, info, reader)
        case LoopNode():
            return _loop(node, info, reader, scope)
        case _:
            return None


def unknown_arguments(node: OpNode) -> Sequence[Argument] | None:
    """The block arguments of a header in error: names without types."""
    match node:
        case CallableNode():
            params = [*node.inputs, *node.named_outputs]
            return [Argument(param.name, None) for param in params if param.name is not None]
        case LoopNode():
            names = [node.counter, *(name for name, _ in node.carried)]
            return [Argument(name, None) for name in names if name is not None]
        case ModuleNode():
            return ()
        case _:
            return None


def _module(node: ModuleNode, info: OpInfo, reader: AttributeReader) -> Parts:
    parts = Parts(arguments=())
    if node.symbol is not None:
        parts.properties["sym_name"] = StringAttr(reader.symbol(node.symbol))
    _rest(node, info, reader, parts)
    return parts


def _callable(node: CallableNode, info: OpInfo, reader: AttributeReader) -> Parts:
    assert node.symbol is not None
    parts = Parts(properties={"sym_name": StringAttr(reader.symbol(node.symbol))})
    params = [*node.inputs, *node.named_outputs]
    inputs = [reader.type(param.type) for param in node.inputs]
    outputs = [reader.type(output.type) for output in (*node.outputs, *node.named_outputs)]
    if "function_type" in info.properties:
        parts.properties["function_type"] = FunctionType.from_lists(inputs, outputs)
    if node.visibility is not None:
        parts.properties["sym_visibility"] = StringAttr(node.visibility.value)
    for name, members in (("arg_attrs", params), ("res_attrs", node.outputs)):
        _member_attributes(name, members, info, reader, parts)
    if node.regions:
        arguments: list[Argument] = []
        for param, type_ in zip(params, [*inputs, *(outputs if node.named_outputs else ())], strict=True):
            if param.name is None:
                raise reader.error("an argument of a body needs a name, as in '%x: T'", param.type)
            location = reader.here(param.name) if param.location is None else reader.location(param.location)
            arguments.append(Argument(param.name, type_, location))
        parts.arguments = arguments
    _rest(node, info, reader, parts)
    return parts


def _member_attributes(
    name: str, members: Sequence[Param] | Sequence[Output], info: OpInfo, reader: AttributeReader, parts: Parts
) -> None:
    """The attributes of arguments or results: one dictionary each, if there are any."""
    written = [member.attributes for member in members]
    if not any(written):
        return
    if name not in info.properties:
        key = next(node.items[0].key for node in written if node is not None and node.items)
        raise reader.error(f"arguments of '{info.cls.name}' have no attributes", key)
    parts.properties[name] = ArrayAttr([DictionaryAttr(reader.dictionary(node)) for node in written])


def _loop(node: LoopNode, info: OpInfo, reader: AttributeReader, scope: Scope) -> Parts:
    assert node.counter is not None and node.lower is not None and node.upper is not None
    parts = Parts()
    lower, lowers = _bound(node.lower, reader, scope)
    upper, uppers = _bound(node.upper, reader, scope)
    inits = scope.lookup([token for _, token in node.carried])
    if "inits" not in info.operands and node.carried:
        raise reader.error(f"'{info.cls.name}' carries no values", node.carried[0][0])
    if lowers is None or uppers is None or inits is None or len(inits) != len(node.carried):
        if inits is not None and lowers is not None and uppers is not None:
            raise reader.error("one initial value for each carried value", node.carried[0][1])
        parts.unknown = True
        parts.arguments = unknown_arguments(node)
        return parts
    groups = [lowers, uppers, *([inits] if "inits" in info.operands else [])]
    parts.operands = [*lowers, *uppers, *inits]
    parts.properties = {
        SEGMENTS: DenseArrayBase.from_list(i32, [len(group) for group in groups]),
        "lower": lower,
        "upper": upper,
    }
    carried = [init.type for init in inits]
    parts.types = carried
    if node.types is not None:
        parts.types = [reader.type(token) for token in node.types]
        for written, type_, token in zip(parts.types, carried, node.types, strict=False):
            if written != type_:
                raise reader.error(f"the written type {written} disagrees with the carried {type_}", token)
        if len(parts.types) != len(carried):
            raise reader.error(f"{len(parts.types)} result types for {len(carried)} carried values", node.types[0])
    parts.arguments = [
        Argument(node.counter, IndexType(), reader.here(node.counter)),
        *(Argument(name, type_, reader.here(name)) for (name, _), type_ in zip(node.carried, carried, strict=True)),
    ]
    _rest(node, info, reader, parts)
    return parts


def _bound(bound: Bound, reader: AttributeReader, scope: Scope) -> tuple[AffineMapAttr, list[SSAValue] | None]:
    if bound.map.type == "INT":
        value = int(bound.map.value, 0) if len(bound.map) <= 15 else MAX_NUMBER + 1
        if abs(value) > MAX_NUMBER:
            raise reader.error("this number is too large: at most 2^40", bound.map)
        return AffineMapAttr.constant_map(value), []
    attribute = reader.named(bound.map)
    if not isinstance(attribute, AffineMapAttr):
        raise reader.error("a loop bound is an integer or an affine map of counters", bound.map)
    operands = scope.lookup(bound.operands)
    if operands is not None and len(operands) != attribute.data.num_dims:
        message = f"the map takes {attribute.data.num_dims} counters, got {len(operands)}"
        raise reader.error(message, bound.map)
    return attribute, operands


def _rest(node: OpNode, info: OpInfo, reader: AttributeReader, parts: Parts) -> None:
    """The dictionary of a header; what the header itself says may not be repeated there."""
    given = set(parts.properties)
    for item in node.attributes.items if node.attributes is not None else ():
        if item.key.value in given:
            raise reader.error(f"'{item.key}' is given by the header", item.key)
    if node.attributes is not None:
        parts.split(node.attributes, info, reader)
