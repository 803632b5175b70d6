"""The `schedule` attribute: how one group is run. Data that the search writes, a user may write, `tile` obeys.

Text form: a dictionary, axes by their letters in canonical order.

    {axes = "abcd", extents = array<i64: 8, 512, 512, 64>, tiles = array<i64: 1, 64, 512, 64>, order = "ab",
     strategy = "resident", inner = array<i64: 1, 64, 128, 64>, hold = ["a", "a", "ab"], slots = array<i64: 2, 1, 1>}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, TypeAlias, TypeVar, cast, get_args

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from .attributes import int_values
from .errors import UserError

_A = TypeVar("_A", bound=Attribute)
NUMBERS = ("move_slots", "store_slots", "row_steps")
Sums: TypeAlias = Literal["vector", "matrix"]
SUMS: tuple[Sums, ...] = get_args(Sums)
STRATEGIES = ("resident", "online", "multipass", "recompute")


@dataclass(frozen=True)
class Schedule:
    """One decision for one group.

    axes, extents  the group's axes in canonical order, as a check that the schedule belongs to the group
    tiles          elements of each axis that a tile holds; an axis with a smaller tile than extent is looped over
    order          looped axes, outermost first
    strategy       resident: no reduced axis is looped over; online: one walk over such an axis computes the reductions
                   over it, if need be in their derived form; multipass: reductions that wait for one another walk it
                   one after another
    inner          elements of each axis in one operand of the matrix engine, where that has memories of its own
    hold           per load, the looped axes fixed when it is issued (others are loaded whole and sliced)
    slots          per load, copies of its buffer (multi-buffering); `move_slots` the same for moves on chip, and
                   `store_slots` for results on their way out
    pins           per load, whole tiles kept in a buffer of their own before the outer loop that would reload them
    skew           per stage of the loops that have several, iterations it runs ahead (software pipelining)
    row_steps      2: reductions along rows take two steps where that is faster; 1: never, which needs less memory
    sums           matrix: sums of what a product over the same axes reads are products with ones; vector: they are not
    cores          per axis, cores among which the loop over its tiles is divided; the product takes part
    """

    axes: str
    extents: tuple[int, ...]
    tiles: tuple[int, ...]
    order: str
    strategy: str
    inner: tuple[int, ...] = ()
    hold: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    move_slots: int = 1
    store_slots: int = 1
    pins: tuple[int, ...] = ()
    skew: tuple[int, ...] = ()
    row_steps: int = 2
    sums: Sums = "vector"
    cores: tuple[int, ...] = ()

    def with_(self, **changes: object) -> Schedule:
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]

    def tile(self, axis: str) -> int:
        return self.tiles[self.axes.index(axis)]

    @property
    def taking_part(self) -> int:
        """Cores that execute the kernel."""
        return prod(self.cores)

    def extent(self, axis: str) -> int:
        return self.extents[self.axes.index(axis)]

    @property
    def looped(self) -> str:
        """Axes with more than one tile, in canonical order."""
        return "".join(a for a, e, t in zip(self.axes, self.extents, self.tiles, strict=True) if t < e)

    def check(self, loads: int) -> None:
        """Raises UserError unless the fields fit one another and a group with this many loads."""
        count = len(self.axes)
        if len(self.extents) != count or len(self.tiles) != count or (self.inner and len(self.inner) != count):
            raise UserError(f"schedule gives extents, tiles and inner tiles for each of the {count} axes '{self.axes}'")
        for axis, extent, tile in zip(self.axes, self.extents, self.tiles, strict=True):
            if not 1 <= tile <= max(extent, 1):
                raise UserError(f"schedule tile of axis '{axis}' is between 1 and its extent {extent}, got {tile}")
        for axis, tile, inner in zip(self.axes, self.tiles, self.inner or self.tiles, strict=True):
            if not 1 <= inner <= tile:
                raise UserError(f"schedule inner tile of axis '{axis}' is between 1 and its tile {tile}, got {inner}")
            if axis in self.looped and tile % inner:
                raise UserError(f"schedule inner tile {inner} of looped axis '{axis}' must divide its tile {tile}")
        if sorted(self.order) != sorted(self.looped):
            raise UserError(f"schedule order '{self.order}' must list the looped axes '{self.looped}', each once")
        if self.strategy not in STRATEGIES:
            raise UserError(f"schedule strategy is one of {', '.join(STRATEGIES)}, got '{self.strategy}'")
        for what, values in (("hold", self.hold), ("slots", self.slots)):
            if len(values) != loads:
                raise UserError(f"schedule '{what}' has an entry for each of {loads} loads, got {len(values)}")
        for held in self.hold:
            if set(held) - set(self.looped):
                raise UserError(f"schedule hold '{held}' names axes that are not looped over ('{self.looped}')")
        if min((*self.slots, self.move_slots, self.store_slots), default=1) < 1:
            raise UserError("schedule slots are at least 1")
        if self.pins and (len(self.pins) != loads or min(self.pins) < 0):
            raise UserError(f"schedule 'pins' has a number of tiles, at least 0, for each of {loads} loads")
        if self.row_steps not in (1, 2):
            raise UserError(f"schedule 'row_steps' is 1 or 2, got {self.row_steps}")
        if self.cores and len(self.cores) != count:
            raise UserError(f"schedule 'cores' has an entry for each of {count} axes, got {len(self.cores)}")
        for axis, extent, tile, cores in zip(
            self.axes, self.extents, self.tiles, self.cores or (1,) * count, strict=True
        ):
            if not 1 <= cores <= -(-extent // tile):
                raise UserError(
                    f"schedule cores of axis '{axis}' are between 1 and its {-(-extent // tile)} tiles, got {cores}"
                )
        if min(self.skew, default=0) < 0:
            raise UserError("schedule skew is how many iterations each stage runs ahead, at least 0")
        if self.sums not in SUMS:
            raise UserError(f"schedule 'sums' is one of {', '.join(SUMS)}, got '{self.sums}'")

    def to_attr(self) -> DictionaryAttr:
        """The attribute; fields that have their default are left out."""
        data: dict[str, Attribute] = {
            "axes": StringAttr(self.axes),
            "extents": _ints(self.extents),
            "tiles": _ints(self.tiles),
            "order": StringAttr(self.order),
            "strategy": StringAttr(self.strategy),
            "hold": ArrayAttr([StringAttr(held) for held in self.hold]),
            "slots": _ints(self.slots),
        }
        for name in ("inner", "pins", "skew", "cores"):
            values = cast("tuple[int, ...]", getattr(self, name))
            if values:
                data[name] = _ints(values)
        for name in NUMBERS:
            value = cast(int, getattr(self, name))
            if value != Schedule.__dataclass_fields__[name].default:
                data[name] = IntegerAttr(value, i64)
        if self.sums != "vector":
            data["sums"] = StringAttr(self.sums)
        return DictionaryAttr(data)

    @staticmethod
    def from_attr(attr: Attribute) -> Schedule:
        """Raises UserError for unknown, missing or malformed fields."""
        if not isinstance(attr, DictionaryAttr):
            raise UserError("a schedule is a dictionary")
        data = cast(Mapping[str, Attribute], attr.data)
        known = set(Schedule.__dataclass_fields__)
        unknown = sorted(set(data) - known)
        if unknown:
            raise UserError(f"schedule has no field '{unknown[0]}'; known are {', '.join(sorted(known))}")
        values: dict[str, object] = {}
        for name, value in data.items():
            match name:
                case "axes" | "order" | "strategy" | "sums":
                    values[name] = _expect(name, value, StringAttr, "a string").data
                case "hold":
                    entries = cast(Sequence[Attribute], _expect(name, value, ArrayAttr, "a list of strings").data)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
                    values[name] = tuple(_expect(name, e, StringAttr, "a list of strings").data for e in entries)
                case _ if name in NUMBERS:
                    values[name] = _expect(name, value, IntegerAttr, "an integer").value.data  # pyright: ignore[reportUnknownMemberType]
                case _:
                    _expect(name, value, DenseArrayBase, "integers, as in array<i64: 1, 2>")
                    values[name] = int_values(value)
        missing = [
            name for name in ("axes", "extents", "tiles", "order", "strategy", "hold", "slots") if name not in values
        ]
        if missing:
            raise UserError(f"schedule lacks '{missing[0]}'")
        return Schedule(**values)  # pyright: ignore[reportArgumentType]


def _ints(values: Sequence[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, list(values))


def _expect(name: str, value: Attribute, kind: type[_A], what: str) -> _A:
    if not isinstance(value, kind):
        raise UserError(f"schedule '{name}' is {what}, got {value}")
    return value
