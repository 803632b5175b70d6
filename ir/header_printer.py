"""Prints the headers of functions, kernels, loops and modules, where an operation is of the shape they express."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IndexType,
    StringAttr,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr

from .headers import SEGMENTS
from .printer import UniformPrinter

_VISIBILITIES = ("private", "public", "nested")


def print_header(printer: UniformPrinter, op: Operation) -> bool:
    """Prints the op with its header and body; False, and nothing printed, if it has no header or does not fit it."""
    match op.name:
        case "builtin.module":
            return _module(printer, op)
        case "func.func":
            return _function(printer, op)
        case "tile.kernel" | "hardware.kernel":
            return _kernel(printer, op)
        case "tile.for" | "hardware.for":
            return _loop(printer, op)
        case _:
            return False


def _body(op: Operation) -> Block | None:
    """The one block of the op's one region."""
    blocks = op.regions[0].blocks if len(op.regions) == 1 else ()
    return blocks[0] if len(blocks) == 1 else None


def _symbol(op: Operation) -> str | None:
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def _without(op: Operation, printer: UniformPrinter, *names: str) -> dict[str, Attribute]:
    """Properties that the header does not say, and the attributes."""
    rest = {name: value for name, value in printer.in_order(op.properties).items() if name not in names}
    return rest | op.attributes


def _module(printer: UniformPrinter, op: Operation) -> bool:
    if _body(op) is None or ("sym_name" in op.properties and _symbol(op) is None):
        return False
    printer.print_string("module")
    name = _symbol(op)
    if name is not None:
        printer.print_string(" ")
        printer.print_symbol_name(name)
    printer.print_entries(_without(op, printer, "sym_name"), "attributes")
    printer.print_body(op.regions[0])
    return True


def _function(printer: UniformPrinter, op: Operation) -> bool:
    name, type_ = _symbol(op), op.properties.get("function_type")
    if name is None or not isinstance(type_, FunctionType) or len(op.regions) != 1:
        return False
    inputs, outputs = type_.inputs.data, type_.outputs.data
    entry = _body(op)
    if op.regions[0].blocks and (entry is None or tuple(entry.arg_types) != inputs):
        return False
    of_inputs = _member_attributes(op, "arg_attrs", len(inputs))
    of_outputs = _member_attributes(op, "res_attrs", len(outputs))
    visibility = op.properties.get("sym_visibility")
    if of_inputs is None or of_outputs is None:
        return False
    if visibility is not None and not (isinstance(visibility, StringAttr) and visibility.data in _VISIBILITIES):
        return False
    printer.print_string("func.func ")
    if isinstance(visibility, StringAttr):
        printer.print_string(f"{visibility.data} ")
    printer.print_symbol_name(name)
    _params(printer, entry.args if entry is not None else inputs, of_inputs)
    if outputs:
        printer.print_string(" -> ")
        bare = len(outputs) == 1 and not of_outputs[0] and not isinstance(outputs[0], FunctionType)
        printer.print_string("" if bare else "(")
        for index, (output, attributes) in enumerate(zip(outputs, of_outputs, strict=True)):
            printer.print_string(", " if index else "")
            printer.print_attribute(output)
            printer.print_entries(attributes)
        printer.print_string("" if bare else ")")
    said = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")
    printer.print_entries(_without(op, printer, *said), "attributes")
    if entry is not None:
        printer.print_body(op.regions[0])
    return True


def _member_attributes(op: Operation, name: str, count: int) -> Sequence[Mapping[str, Attribute]] | None:
    """One dictionary for each argument or result; None if the property is not of the form the header gives."""
    attribute = op.properties.get(name)
    if attribute is None:
        return [dict[str, Attribute]()] * count
    members = cast("ArrayAttr[Attribute]", attribute).data if isinstance(attribute, ArrayAttr) else ()
    result: list[Mapping[str, Attribute]] = []
    for member in members:
        if isinstance(member, DictionaryAttr):
            result.append(member.data)
    fits = len(result) == len(members) == count and any(result)
    return result if fits else None


def _params(
    printer: UniformPrinter,
    params: Sequence[BlockArgument] | Sequence[Attribute],
    attributes: Sequence[Mapping[str, Attribute]] = (),
) -> None:
    """`(%a: T {attrs} loc(…), …)`, or only the types of a declaration."""
    printer.print_string("(")
    for index, param in enumerate(params):
        printer.print_string(", " if index else "")
        if isinstance(param, BlockArgument):
            printer.print_ssa_value(param)
            printer.print_string(": ")
        printer.print_attribute(param.type if isinstance(param, BlockArgument) else param)
        if attributes:
            printer.print_entries(attributes[index])
        if printer.print_debuginfo and isinstance(param, BlockArgument):
            printer.print_string(" ")
            printer.print_attribute(param.location)
    printer.print_string(")")


def _kernel(printer: UniformPrinter, op: Operation) -> bool:
    name, entry, type_ = _symbol(op), _body(op), op.properties.get("function_type")
    if name is None or entry is None:
        return False
    inputs = len(entry.args)
    if op.name == "tile.kernel":
        if not isinstance(type_, FunctionType) or tuple(entry.arg_types) != (*type_.inputs.data, *type_.outputs.data):
            return False
        inputs = len(type_.inputs.data)
    printer.print_string(f"{op.name} ")
    printer.print_symbol_name(name)
    _params(printer, entry.args[:inputs])
    if len(entry.args) > inputs:
        printer.print_string(" -> ")
        _params(printer, entry.args[inputs:])
    said = ("sym_name", "function_type") if op.name == "tile.kernel" else ("sym_name",)
    printer.print_entries(_without(op, printer, *said), "attributes")
    printer.print_body(op.regions[0])
    return True


def _loop(printer: UniformPrinter, op: Operation) -> bool:
    entry, lower, upper = _body(op), op.properties.get("lower"), op.properties.get("upper")
    groups = _segments(op, 3 if op.name == "tile.for" else 2)
    if entry is None or groups is None or not isinstance(lower, AffineMapAttr) or not isinstance(upper, AffineMapAttr):
        return False
    lowers, uppers, inits = groups[0], groups[1], groups[2] if len(groups) > 2 else ()
    carried = [init.type for init in inits]
    if [*entry.arg_types] != [IndexType(), *carried] or [*op.result_types] != carried:
        return False
    if not (_is_bound(lower, lowers) and _is_bound(upper, uppers)):
        return False
    printer.print_string(f"{op.name} ")
    printer.print_ssa_value(entry.args[0])
    printer.print_string(" = ")
    _bound(printer, lower, lowers)
    printer.print_string(" to ")
    _bound(printer, upper, uppers)
    if inits:
        printer.print_string(" iter (")
        for index, (argument, init) in enumerate(zip(entry.args[1:], inits, strict=True)):
            printer.print_string(", " if index else "")
            printer.print_ssa_value(argument)
            printer.print_string(" = ")
            printer.print_ssa_value(init)
        printer.print_string(")")
    printer.print_entries(_without(op, printer, SEGMENTS, "lower", "upper"), before_body=True)
    if carried:
        printer.print_string(" : ")
        printer.print_list(carried, printer.print_attribute)
    printer.print_body(op.regions[0])
    return True


def _segments(op: Operation, count: int) -> list[Sequence[SSAValue]] | None:
    """The operands in groups as the segment sizes say."""
    sizes = op.properties.get(SEGMENTS)
    if not isinstance(sizes, DenseArrayBase):
        return None
    values = [int(size) for size in sizes.get_values()]
    if len(values) != count or sum(values) != len(op.operands):
        return None
    starts = [sum(values[:index]) for index in range(count)]
    return [op.operands[start : start + size] for start, size in zip(starts, values, strict=True)]


def _is_bound(attribute: AffineMapAttr, operands: Sequence[SSAValue]) -> bool:
    return attribute.data.num_dims == len(operands)


def _bound(printer: UniformPrinter, attribute: AffineMapAttr, operands: Sequence[SSAValue]) -> None:
    results = attribute.data.results
    if not operands and len(results) == 1 and isinstance(results[0], AffineConstantExpr):
        printer.print_string(str(results[0].value))
        return
    printer.print_attribute(attribute)
    printer.print_string("(")
    printer.print_list(operands, printer.print_ssa_value)
    printer.print_string(")")
