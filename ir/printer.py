"""Modules to text: the uniform form that grammar.lark reads, and the generic form of MLIR.

Both are canonical: properties come in the order of the operation's definition, so equal modules print equally.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from typing import Any, ClassVar, TypeAlias, cast

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, ModuleOp, UnitAttr, UnknownLoc, UnregisteredOp
from xdsl.dialects.func import ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

from .names import base_name
from .op_info import OpInfo

Dense: TypeAlias = DenseIntOrFPElementsAttr[Any]


class GenericPrinter(Printer):
    """xDSL's printer with canonical order of properties and readable text in strings."""

    def print_string_literal(self, string: str) -> None:
        # xDSL escapes every byte beyond ASCII and then reads such a string back as bytes; the characters themselves
        # are valid in a string.
        escaped = string.replace("\\", "\\\\").replace('"', "\\22")
        text = "".join(c if c >= " " and c.isprintable() else _escape(c) for c in escaped)
        self.print_string(f'"{text}"', indent=0)

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self._ssa_values.get(value)
        if name is None:
            base = base_name(value.name_hint)
            if base is None:
                name = self._get_new_valid_name_id()
            else:
                count = self.ssa_names.get(base, 0)
                self.ssa_names[base] = count + 1
                name = f"{base}_{count}" if count else base
            self._ssa_values[value] = name
        self.print_string(f"%{name}")
        return name

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, DenseIntOrFPElementsAttr) and not self._print_dense(cast(Dense, attribute)):
            return
        super().print_attribute(cast(Attribute, attribute))

    BITS_IN_STRINGS: ClassVar[bool] = True
    """Whether numbers of `dense` written as bits go into a string: xDSL reads the others as integers."""

    def _print_dense(self, attribute: Dense) -> bool:
        """Prints a constant of floats that xDSL's way would change; False if it did.

        xDSL takes -0.0 for 0.0 when it looks for a splat, and reads bits (of infinities, say) as an integer.
        """
        element = attribute.get_element_type()
        if not isinstance(element, AnyFloat):
            return True
        data, size = attribute.data.data, element.compile_time_size
        splat = data == data[:size] * (len(data) // size)
        if splat or len(data) <= 100 * size:
            values = attribute.get_values()
            seems_splat = not splat and values.count(values[0]) == len(values)
            text = "" if not self.BITS_IN_STRINGS else ",".join(map(_digits(element), values[:1] if splat else values))
            if not seems_splat and "0x" not in text:
                return True
        self.print_string(f'dense<"0x{(data[:size] if splat else data).hex().upper()}"> : ')
        self.print_attribute(attribute.type)
        return False

    def _print_op_properties(self, properties: dict[str, Attribute]) -> None:
        super()._print_op_properties(self.in_order(properties))

    def print_op(self, op: Operation) -> None:
        outer, self._order = self._order, OpInfo.of(type(op)).properties
        super().print_op(op)
        self._order = outer

    _order: Iterable[str] = ()

    def in_order(self, properties: Mapping[str, Attribute]) -> dict[str, Attribute]:
        """Properties in the order of the definition of the operation being printed, others behind them."""
        if len(properties) < 2:
            return dict(properties)
        first = {name: properties[name] for name in self._order if name in properties}
        return {**first, **properties}


def _escape(character: str) -> str:
    # Two hex digits per byte are all that the syntax has; beyond ASCII the string would no longer be read as text.
    return f"\\{ord(character):02X}" if ord(character) < 0x80 else character


def _digits(element: AnyFloat) -> Callable[[object], str]:
    """How xDSL prints one number of a type."""

    def digits(value: object) -> str:
        stream = StringIO()
        Printer(stream).print_float(cast(float, value), element)
        return stream.getvalue()

    return digits


class UniformPrinter(GenericPrinter):
    """Prints the uniform form and the headers; the generic form where an operation does not fit those."""

    BITS_IN_STRINGS = False

    def print_module(self, module: ModuleOp) -> None:
        """A whole module; one that says nothing itself is printed without its wrapper."""
        ops = list(module.body.blocks[0].ops) if len(module.body.blocks) == 1 else []
        plain = not module.properties and not module.attributes
        located = self.print_debuginfo and not isinstance(module.location, UnknownLoc)
        if not plain or located or not ops or (len(ops) == 1 and isinstance(ops[0], ModuleOp)):
            self.print_op(module)
            return
        for index, op in enumerate(ops):
            if index:
                self.print_string("\n")
            self.print_op(op)

    def print_op(self, op: Operation) -> None:
        from .header_printer import print_header

        outer, self._order = self._order, OpInfo.of(type(op)).properties
        self._print_results(op)
        isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
        if isolated:
            self.enter_scope()
        if isinstance(op, UnregisteredOp):
            self._print_unregistered(op)
        elif op.properties.keys() & op.attributes.keys():
            self._print_generic(op, op.name)
        elif print_header(self, op):
            self.print_location(op)
        elif op.name in HEADERS:
            # An operation that its header cannot express; its plain name would be read as the header.
            self._print_generic(op, op.name)
        else:
            self._print_uniform(op)
            self.print_location(op)
        if isolated:
            self.exit_scope()
        self._order = outer

    def _print_generic(self, op: Operation, name: str) -> None:
        self.print_string(f'"{name}"')
        self.print_op_with_default_format(op)

    def _print_unregistered(self, op: UnregisteredOp) -> None:
        name = op.op_name
        del op.attributes["op_name__"]
        self._print_generic(op, name.data)
        op.attributes["op_name__"] = name

    def _print_uniform(self, op: Operation) -> None:
        self.print_string(op.name)
        if _is_constant(op):
            self.print_string(" ")
            self.print_attribute(op.properties["value"])
            return
        if op.operands:
            self.print_string(" ")
            self.print_list(op.operands, self.print_ssa_value)
        self.print_successors(op.successors)
        self.print_entries(self.in_order(op.properties) | op.attributes)
        types = op.operand_types if isinstance(op, ReturnOp) else op.result_types
        if types:
            self.print_string(" : ")
            self.print_list(types, self.print_attribute)
        self.print_regions(op.regions)

    def print_entries(self, entries: Mapping[str, Attribute], keyword: str = "", before_body: bool = False) -> None:
        """` keyword {key = value, unit}`, or nothing without entries.

        `before_body`: a `{` of a region may follow, so dotted unit keys are written out (see DICT_OPEN in the grammar).
        """
        if not entries:
            return
        self.print_string(f" {keyword} {{" if keyword else " {")
        for index, (name, value) in enumerate(entries.items()):
            if index:
                self.print_string(", ")
            self.print_identifier_or_string_literal(name)
            if isinstance(value, UnitAttr):
                self.print_string(" = unit" if before_body and "." in name else "")
            else:
                self.print_string(" = ")
                self.print_attribute(value)
        self.print_string("}")

    def print_body(self, body: Region) -> None:
        """The one block of an operation whose header has printed its arguments."""
        self.print_string(" ")
        self.print_region(body, print_entry_block_args=False, print_empty_block=False)

    def print_location(self, op: Operation) -> None:
        """The location, where asked for."""
        if self.print_debuginfo:
            self.print_string(" ")
            self.print_attribute(op.location)


HEADERS = frozenset({"builtin.module", "func.func", "tile.kernel", "hardware.kernel", "tile.for", "hardware.for"})


def _is_constant(op: Operation) -> bool:
    """Whether the op is nothing but a dense value of its result's type."""
    value = op.properties.get("value")
    return (
        isinstance(value, DenseIntOrFPElementsAttr)
        and len(op.properties) == 1
        and not (op.attributes or op.operands or op.regions or op.successors)
        and [value.type] == [*op.result_types]  # pyright: ignore[reportUnknownMemberType]
    )
