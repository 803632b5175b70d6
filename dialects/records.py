"""What passes write down for later passes and reports, in attributes called `tilewright.…`: the form each has.

A dump is edited by hand, so that whoever reads a record needs to know that it is one. The verifier asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from .attributes import int_values
from .errors import UserError


def _count(attribute: Attribute) -> bool:
    return isinstance(attribute, IntegerAttr) and cast("IntegerAttr[Any]", attribute).value.data >= 0


def _members(attribute: Attribute) -> list[Attribute] | None:
    return list(cast("ArrayAttr[Attribute]", attribute)) if isinstance(attribute, ArrayAttr) else None


def _texts(attribute: Attribute) -> bool:
    members = _members(attribute)
    return members is not None and all(isinstance(member, StringAttr) for member in members)


def _two_counts(attribute: Attribute) -> bool:
    members = _members(attribute)
    return members is not None and len(members) == 2 and all(map(_count, members))


def _by_memory(form: Callable[[Attribute], bool]) -> Callable[[Attribute], bool]:
    def check(attribute: Attribute) -> bool:
        return isinstance(attribute, DictionaryAttr) and all(map(form, attribute.data.values()))

    return check


def _offsets(attribute: Attribute) -> bool:
    return isinstance(attribute, DenseArrayBase)


RECORDS: Mapping[str, tuple[Callable[[Attribute], bool], str]] = {
    "tilewright.memory": (_by_memory(_two_counts), "two numbers of bytes for each memory, as in {gm = [64, 32]}"),
    "tilewright.dropped_slots": (_by_memory(_count), "a number for each memory, as in {l1 = 1}"),
    "tilewright.workspace": (_count, "a number of bytes"),
    "tilewright.offset": (_count, "a number of bytes"),
    "tilewright.arguments": (_offsets, "a list of offsets, as in array<i64: 0, 64>"),
    "tilewright.ahead": (_count, "a number of iterations"),
    "tilewright.refusals": (_texts, 'a list of texts, as in ["…"]'),
    "tilewright.online": (_texts, 'a list of texts, as in ["…"]'),
    "tilewright.walks": (_texts, 'a list of texts, as in ["…"]'),
    "tilewright.masks": (_texts, 'a list of texts, as in ["…"]'),
}
"""Attribute → whether a value has its form, and the form in words."""


def check_records(op: Operation) -> None:
    """Raises UserError for an attribute of an operation that is not what it is called."""
    for name, attribute in op.attributes.items():
        form, words = RECORDS.get(name, (None, ""))
        if form is not None and not form(attribute):
            raise UserError(f"'{name}' is {words}; got {attribute}", op.location)
    offsets = op.attributes.get("tilewright.arguments")
    if isinstance(op, FuncOp) and offsets is not None:
        wanted, found = len(op.function_type.inputs), len(int_values(offsets))
        if wanted != found:
            message = f"'tilewright.arguments' has an offset for each of {wanted} arguments, got {found}"
            raise UserError(f"{message}: run plan again", op.location)
