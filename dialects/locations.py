"""Locations through the passes: where several ops become one, it keeps all their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    NameLoc,
    NoneAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

Location: TypeAlias = UnknownLoc | FileLineColLoc | CallSiteLoc | NameLoc | FusedLoc


def parts(location: Attribute) -> Iterator[Location]:
    """The places inside a location, fused ones taken apart; unknown ones are nothing."""
    if isinstance(location, FusedLoc):
        for inner in cast(ArrayAttr[Attribute], location.locations):
            yield from parts(inner)
    elif isinstance(location, FileLineColLoc | CallSiteLoc | NameLoc):
        yield location


def fuse_locations(locations: Iterable[Attribute]) -> Location:
    """One location for an op made from ops at these locations, each place once, in order."""
    distinct = list(dict.fromkeys(part for location in locations for part in parts(location)))
    if not distinct:
        return UnknownLoc()
    return distinct[0] if len(distinct) == 1 else FusedLoc(ArrayAttr(distinct), NoneAttr())
