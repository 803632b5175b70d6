"""The values of a plan while it is made: numbered, each with what is known of its array; equal ones made once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...dialects.dtypes import ElementType, convert
from ..half import rounded_to_half
from .access import Access
from .batch import Apply, Call, Counting, Places, Segment, Transfer
from .errors import MachineError
from .forward import Indices, Selection, box, in_steps
from .program import Kernel, View

Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = np.dtype[Any]
Function: TypeAlias = Callable[..., Array]

MOST_CALLS = 1 << 16
"""Calls of a plan; a kernel that needs more is executed instruction by instruction."""


@dataclass(frozen=True, eq=False)
class Value:
    """axes     depths of the loops whose counters it depends on
    extents  of the region that it holds
    source   the value it is selected of, and how
    wide     the f32 numbers that it is, rounded to f16
    """

    number: int
    axes: frozenset[int]
    extents: tuple[int, ...]
    dtype: DType
    source: tuple[Value, Selection] | None = None
    wide: Value | None = None


class Values:
    """`sizes` are the iterations of the loops around, 1 where they are not batched; the walk keeps them up to date."""

    def __init__(self, kernel: Kernel) -> None:
        self.depth = kernel.depth
        self.sizes = [1] * kernel.depth
        self.segments = [Segment()]
        self.calls = self.count = 0
        self.known: list[dict[object, Value]] = [{}]

    def begin(self, loops: Mapping[int, int]) -> None:
        """What follows is done for the iterations of loops, each directly in the one before: how many, by depth."""
        if len(self.known) > 1:
            self.known.pop()  # and has nothing to do with what was made since the last `begin`
        self.segments.append(Segment({depth: count for depth, count in loops.items() if count > 1}))
        self.known.append({})

    def end(self) -> None:
        """What follows is done once; what was made since `begin` is out of reach."""
        self.segments.append(Segment())
        self.known.pop()

    def once(self, key: object, made: Callable[[], Value]) -> Value:
        """The value known by a key, or a new one."""
        for layer in self.known:
            if key in layer:
                return layer[key]
        value = self.known[-1][key] = made()
        return value

    def apply(self, inputs: Sequence[Value], function: Function, extents: tuple[int, ...], dtype: DType) -> Value:
        """A function of values over a region, to which its result is broadcast."""

        def whole(*arrays: Array) -> Array:
            return self._whole(function(*arrays), extents)

        axes = frozenset[int]().union(*(value.axes for value in inputs))
        self._widen(axes, prod(extents))
        numbers = tuple(value.number for value in inputs)
        return self._add(Apply(numbers, self.count, self._taken(axes), function=whole), axes, extents, dtype)

    def counting(
        self, counters: Sequence[int | Array], depends: frozenset[int], function: Function, extents: tuple[int, ...],
        dtype: DType,
    ) -> Value:  # fmt: skip
        """A function of the counters at some depths over a region."""

        def whole(found: Sequence[int | Array]) -> Array:
            return self._whole(function(found), extents)

        axes = frozenset(depth for depth in depends if depth < self.depth and self.sizes[depth] > 1)
        self._widen(axes, prod(extents))
        call = Counting((), self.count, self._taken(axes), counters=tuple(counters), function=whole)
        return self._add(call, axes, extents, dtype)

    def load(self, view: View, part: Access, at: npt.NDArray[np.int64]) -> Value:
        """What lies off chip at these places."""
        axes = frozenset(d for d, n in enumerate(at.shape) if n > 1)
        call = Transfer((), self.count, self._taken(axes), view=view, part=part, places=Places.of(at))
        return self._add(call, axes, part.logical, view.element.numpy)

    def store(self, view: View, part: Access, at: npt.NDArray[np.int64], value: Value) -> Transfer:
        """Writes a value to these places off chip."""
        call = Transfer(
            (value.number,), None, frozenset(self.segments[-1].loops), view=view, part=part, places=Places.of(at)
        )
        self._append(call)
        return call

    def lifted(self, value: Value, dtype: DType) -> Value:
        """A value in another type; what is selected of a value is selected of that in the other type."""
        if value.dtype == dtype:
            return value
        if value.source is not None:
            source, part = value.source
            return self.selected(self.lifted(source, dtype), part)

        def function(array: Array) -> Array:
            return array.astype(dtype)

        def made() -> Value:
            if value.wide is not None and value.wide.dtype == dtype:
                return self.apply([value.wide], rounded_to_half, value.extents, dtype)
            return self.apply([value], function, value.extents, dtype)

        return self.once(("lifted", value.number, dtype), made)

    def converted(self, value: Value, to: ElementType) -> Value:
        """A value rounded to an element type."""
        if value.dtype == to.numpy:
            return value

        def function(array: Array) -> Array:
            return convert(array, to)

        made = self.apply([value], function, value.extents, to.numpy)
        return replace(made, wide=value) if (value.dtype, to.name) == (np.float32, "f16") else made

    def selected(self, value: Value, part: Selection) -> Value:
        """Elements of a value."""
        if part.identity(value.extents):
            return value

        def made() -> Value:
            call = Apply((value.number,), self.count, self._taken(value.axes), function=part.of)
            return self._add(call, value.axes, part.shape, value.dtype, (value, part))

        return self.once((value.number, part), made)

    def gathered(
        self, pieces: Sequence[tuple[Value, Indices, Indices]], extents: tuple[int, ...], dtype: DType
    ) -> Value:
        """A region put together: elements (flat) of each value, and where in the region they come to lie."""
        copies = [_copy(value, places, indices, extents) for value, places, indices in pieces]

        def function(*arrays: Array) -> Array:
            lead = np.broadcast_shapes(*(array.shape[: self.depth] for array in arrays))
            whole = np.empty((*lead, *extents), dtype)
            for array, copy in zip(arrays, copies, strict=True):
                copy(array, whole)
            return whole

        return self.apply([value for value, _, _ in pieces], function, extents, dtype)

    def _whole(self, array: Array, extents: tuple[int, ...]) -> Array:
        """`array` over the whole of its region, with an axis per loop in front."""
        lead = array.shape[: self.depth] if array.ndim == self.depth + len(extents) else (1,) * self.depth
        return array if array.shape == (*lead, *extents) else np.broadcast_to(array, (*lead, *extents))

    def _widen(self, axes: frozenset[int], elements: int) -> None:
        widths, taken = self.segments[-1].widths, self._taken(axes)
        widths[taken] = max(widths.get(taken, 1), elements * prod(self.sizes[axis] for axis in axes - taken))

    def _taken(self, axes: frozenset[int]) -> frozenset[int]:
        """Those that the segment is taken in parts along."""
        return axes.intersection(self.segments[-1].loops)

    def _add(
        self, call: Call, axes: frozenset[int], extents: tuple[int, ...], dtype: DType,
        source: tuple[Value, Selection] | None = None,
    ) -> Value:  # fmt: skip
        self._append(call)
        self.count += 1
        return Value(self.count - 1, axes, extents, dtype, source)

    def _append(self, call: Call) -> None:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise MachineError(f"a plan of more than {MOST_CALLS} calls")
        self.segments[-1].calls.append(call)


def _copy(value: Value, places: Indices, indices: Indices, extents: tuple[int, ...]) -> Callable[[Array, Array], None]:
    """Copies elements of a value's array to their places in the array of a region, as strided parts where they are."""
    part = box(places, extents)
    steps = in_steps(indices.reshape([high - low for low, high in part]), value.extents) if part is not None else None
    rank = len(extents)

    def strided(source: Array, whole: Array) -> None:
        assert part is not None and steps is not None
        whole[(..., *(slice(low, high) for low, high in part))] = steps.of(source)

    def scattered(source: Array, whole: Array) -> None:
        flat = whole.reshape(*whole.shape[: whole.ndim - rank], -1)  # shares its memory: it is dense
        flat[..., places] = source.reshape(*source.shape[: source.ndim - len(value.extents)], -1)[..., indices]

    return strided if steps is not None else scattered
