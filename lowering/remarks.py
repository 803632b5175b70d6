"""What a pass has to tell the user that is no error: kept in the module, as every decision is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute

REMARKS = "tilewright.remarks"
"""Attribute of a module: a list of {message, at, notes}, notes being a list of {message, at}; places are locations."""

Placed: TypeAlias = tuple[str, Attribute]
"""A sentence, and the location that it is about."""


def remark(module: ModuleOp, message: str, at: Attribute, notes: Sequence[Placed] = ()) -> None:
    """Adds a remark to a module, once."""
    entry = _entry(message, at)
    if notes:
        entry = DictionaryAttr({**entry.data, "notes": ArrayAttr([_entry(*note) for note in notes])})
    known = module.attributes.get(REMARKS)
    entries = list(cast("ArrayAttr[Attribute]", known)) if isinstance(known, ArrayAttr) else []
    if entry not in entries:
        module.attributes[REMARKS] = ArrayAttr([*entries, entry])


def remarks_of(module: ModuleOp) -> list[tuple[Placed, list[Placed]]]:
    """The remarks of a module with their notes; entries of another form are left out."""
    found = [(_placed(entry), entry) for entry in _entries(module.attributes.get(REMARKS))]
    return [
        (placed, [note for one in _entries(entry.data.get("notes")) if (note := _placed(one)) is not None])
        for placed, entry in found
        if placed is not None
    ]


def _entry(message: str, at: Attribute) -> DictionaryAttr:
    return DictionaryAttr({"message": StringAttr(message), "at": at})


def _entries(attr: Attribute | None) -> list[DictionaryAttr]:
    listed = list(cast("ArrayAttr[Attribute]", attr)) if isinstance(attr, ArrayAttr) else []
    return [entry for entry in listed if isinstance(entry, DictionaryAttr)]


def _placed(entry: DictionaryAttr) -> Placed | None:
    message, at = entry.data.get("message"), entry.data.get("at")
    return (message.data, at) if isinstance(message, StringAttr) and at is not None else None
