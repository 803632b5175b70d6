"""A program and libraries of custom operators as one module, before the first pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.errors import UserError
from ..dialects.operators import KERNELS, MATCH, is_generic
from ..dialects.tile import KernelOp
from .instances import Binding, free_name, instantiate, unify


def operators_of(library: ModuleOp) -> list[FuncOp]:
    """The private functions of a library that have a body."""
    return [op for op in library.ops if isinstance(op, FuncOp) and _is_private(op) and not op.is_declaration]


def link(module: ModuleOp, libraries: Sequence[ModuleOp]) -> None:
    """Adds the operators and kernels of libraries to a program, in front of it, the operators to be matched.

    1. A call of a function that the program lacks, or only declares, means the first library's operator of that name.
    2. Any other name that is taken already gets a number; calls and lists of kernels inside the library follow.
    3. Public functions of a library are left out: they are programs that try its operators.
    """
    first = module.body.block.first_op
    for library in libraries:
        taken = {name: op for op in module.ops if (name := symbol(op)) is not None and not _is_declaration(op)}
        copies = [op.clone() for op in library.ops if isinstance(op, KernelOp) or op in operators_of(library)]
        renamed: dict[str, str] = {}
        for copy in copies:
            name = symbol(copy)
            assert name is not None
            renamed[name] = free_name(name, {*taken, *renamed.values()})
            copy.properties["sym_name"] = StringAttr(renamed[name])
        for copy in copies:
            _rename(copy, renamed)
            if isinstance(copy, FuncOp):
                copy.attributes[MATCH] = UnitAttr()
            place = InsertPoint.before(first) if first is not None else InsertPoint.at_end(module.body.block)
            Rewriter.insert_op(copy, place)
        added = {symbol(copy) for copy in copies if isinstance(copy, FuncOp)}
        for op in [op for op in module.ops if _is_declaration(op) and symbol(op) in added]:
            first = op.next_op if op is first else first
            Rewriter.erase_op(op)


def instantiate_calls(module: ModuleOp) -> None:
    """Every call of a function for several types becomes one of the instance for the types of the call, made beside it.

    Raises UserError, at the call, for types that the function does not have. One that calls itself is found where calls
    are inlined.
    """
    made: dict[tuple[FuncOp, str, Attribute | None], FuncOp] = {}
    waiting = [op for op in module.ops if isinstance(op, FuncOp)]
    while waiting:
        for call in [op for op in waiting.pop(0).walk() if isinstance(op, CallOp)]:
            names = {name: op for op in module.ops if (name := symbol(op)) is not None}
            callee = names.get(call.callee.string_value())
            if not isinstance(callee, FuncOp) or callee.is_declaration or not is_generic(callee):
                continue
            binding = unify(callee, [value.type for value in (*call.arguments, *call.res)])
            if isinstance(binding, str):
                message = f"@{callee.sym_name.data} cannot be called here: {binding}"
                raise UserError(message, call.location, [("the function", callee.location)])
            if binding.is_itself(callee):
                continue
            key = callee, repr(binding.dims), binding.element
            if key not in made:
                made[key] = _instance(callee, binding, names)
                waiting.append(made[key])
            call.properties["callee"] = SymbolRefAttr(made[key].sym_name)


def _instance(callee: FuncOp, binding: Binding, names: dict[str, Operation]) -> FuncOp:
    instance = instantiate(callee, binding, free_name(callee.sym_name.data + binding.suffix(), names))
    assert isinstance(instance, FuncOp)
    Rewriter.insert_op(instance, InsertPoint.after(callee))
    return instance


def symbol(op: Operation) -> str | None:
    """The name of a function, kernel or program."""
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def _is_private(op: FuncOp) -> bool:
    return op.sym_visibility is not None and op.sym_visibility.data == "private"


def _is_declaration(op: Operation) -> bool:
    return isinstance(op, FuncOp) and op.is_declaration


def _rename(op: Operation, names: dict[str, str]) -> None:
    """Follows new names in what an operator calls and which kernels it lists."""

    def renamed(attr: Attribute) -> Attribute:
        name = attr.string_value() if isinstance(attr, SymbolRefAttr) else ""
        return SymbolRefAttr(names[name]) if name in names else attr

    listed = op.attributes.get(KERNELS)
    if isinstance(listed, ArrayAttr):
        op.attributes[KERNELS] = ArrayAttr([renamed(one) for one in cast("ArrayAttr[Attribute]", listed)])
    for inner in op.walk():
        if isinstance(inner, CallOp):
            inner.properties["callee"] = renamed(inner.callee)
