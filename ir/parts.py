"""What an operation is made of, gathered from its syntax: the uniform and the generic form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from lark import Token
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    LocationAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue

from ..dialects.errors import UserError
from .attributes import AttributeReader
from .diagnostics import SourceError, did_you_mean
from .op_info import OpInfo
from .scope import Scope
from .syntax import ConstantNode, Dict, Item, OpNode

_SPELLING: dict[type[Attribute], str] = {
    DenseArrayBase: "a list of integers, as in {0} = [0, 1]",
    UnitAttr: "just its name, as in {{{0}}}, or left out",
    IntegerAttr: "an integer, as in {0} = 1",
    FloatAttr: "a number with its type, as in {0} = 0.5 : f32",
    StringAttr: 'a string, as in {0} = "text"',
    AffineMapAttr: "a map, as in {0} = affine_map<(d0) -> (d0)>",
}
"""How a property of a kind is written."""


@dataclass(slots=True)
class Argument:
    """A block argument that a header gives. Without a type it stands for a header in error."""

    name: Token
    type: Attribute | None
    location: LocationAttr | None = None


@dataclass(slots=True)
class Parts:
    """The arguments of `Operation.create`, but for regions and location.

    `arguments` are the block arguments where a header gives them (the body has then one block). `unknown`: an operand
    comes from an operation in error, so this one cannot be built and nothing more should be said about it.
    """

    operands: Sequence[SSAValue] = ()
    types: Sequence[Attribute] = ()
    properties: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    successors: Sequence[Block] = ()
    arguments: Sequence[Argument] | None = None
    unknown: bool = False

    def split(self, node: Dict, info: OpInfo, reader: AttributeReader) -> None:
        """Sorts the entries of a dictionary into properties and attributes by the operation's definition.

        Raises SourceError at a name that is neither a property nor has a dialect in front, and at a value of another
        kind than the property's.
        """
        entries = reader.dictionary(node)
        for item, (name, value) in zip(node.items, entries.items(), strict=True):
            if name in info.properties and name not in self.properties:
                self.properties[name] = _fitting(item, value, info.properties[name], reader)
            elif info.strict and "." not in name:
                suggestion = did_you_mean(name, info.properties)
                raise reader.error(f"'{info.cls.name}' has no attribute '{name}'", item.key, suggestion)
            else:
                self.attributes[name] = value


def _fitting(item: Item, value: Attribute, wanted: type[Attribute] | None, reader: AttributeReader) -> Attribute:
    """The value of a property; `[1, 2]` stands for `array<i64: 1, 2>` where that is asked for."""
    if wanted is None or isinstance(value, wanted):
        return value
    if wanted is DenseArrayBase and isinstance(value, ArrayAttr):
        entries = list(cast("ArrayAttr[Attribute]", value))
        numbers = [cast("IntegerAttr[Any]", entry).value.data for entry in entries if isinstance(entry, IntegerAttr)]
        if len(numbers) == len(entries):
            return DenseArrayBase.from_list(i64, numbers)
    name = item.key.value
    how = _SPELLING.get(wanted, f"of kind {wanted.name}").format(name)
    raise reader.error(f"'{name}' is {how}; got {value}", item.key)


def plain_parts(node: OpNode, info: OpInfo, reader: AttributeReader, scope: Scope) -> Parts:
    """The uniform form, the generic form and the constant. Raises SourceError or, from type rules, UserError."""
    parts = Parts()
    operands = scope.lookup(node.operands) if node.operands else []
    if node.properties is not None:
        parts.properties = reader.dictionary(node.properties)
    if node.attributes is not None:
        parts.split(node.attributes, info, reader)
    if node.successors:
        parts.successors = [_successor(label, reader, scope) for label in node.successors]
    if isinstance(node, ConstantNode):
        _constant(node, info, parts, reader)
    if operands is None:
        parts.unknown = True
        return parts
    parts.operands = operands
    if node.signature is not None:
        signature = reader.signature(node.signature)
        _check_operands(node, operands, signature.inputs.data, reader, scope)
        parts.types = signature.outputs.data
    elif node.types is not None:
        parts.types = [reader.type(token) for token in node.types]
        if not info.has_results:
            _check_operands(node, operands, parts.types, reader, scope)
            parts.types = ()
    elif info.infers is not None:
        parts.types = info.infers.infer_types([operand.type for operand in operands], parts.properties)
        return parts
    elif node.results is not None and info.has_results:
        raise reader.error(f"'{info.cls.name}' needs its result types, as in ': T'", node.name)
    if info.checks is not None and len(parts.types) == 1:
        _check_result(node, info, operands, parts, reader)
    return parts


def _successor(label: Token, reader: AttributeReader, scope: Scope) -> Block:
    block = scope.labels[-1].get(label.value)
    if block is None:
        raise reader.error(f"no block '{label}' in this region", label, did_you_mean(label, scope.labels[-1]))
    return block


def _constant(node: ConstantNode, info: OpInfo, parts: Parts, reader: AttributeReader) -> None:
    assert node.value is not None and node.types is not None
    if "value" not in info.properties:
        raise reader.error(f"'{info.cls.name}' has no constant value", node.value)
    parts.properties["value"] = reader.constant(node.value, node.types[0])


def _check_operands(
    node: OpNode, operands: Sequence[SSAValue], types: Sequence[Attribute], reader: AttributeReader, scope: Scope
) -> None:
    """Written operand types against those of the definitions."""
    at = node.signature or (node.types[0] if node.types else node.name)
    if len(operands) != len(types):
        raise reader.error(f"{len(types)} operand types for {len(operands)} operands", at)
    for index, (operand, type_) in enumerate(zip(operands, types, strict=True)):
        if operand.type is type_ or operand.type == type_:
            continue
        name, token, offset = scope.nth(node.operands, index)
        error = reader.error(f"'{name}' is written as {type_}, but is {operand.type}", token, "", offset, len(name))
        raise SourceError([replace(error.diagnostics[0], notes=scope.definition_notes(operand))])


def _check_result(
    node: OpNode, info: OpInfo, operands: Sequence[SSAValue], parts: Parts, reader: AttributeReader
) -> None:
    """A written result type against what the operation's rule allows."""
    assert info.checks is not None
    operand_types = [operand.type for operand in operands]
    try:
        info.checks.check_types(operand_types, parts.properties, parts.types[0])
    except UserError as error:
        at = node.name
        try:
            # If the rule has a result for these operands, then it is the written type that is wrong.
            info.checks.infer_types(operand_types, parts.properties)
            at = node.signature or (node.types or [node.name])[0]
        except UserError:
            pass
        raise reader.error(error.message, at) from None
