"""Plans the data run of a kernel: the loops whose iterations can be executed at once, and the values between calls.

The nest is walked once in list order, without data. A loop is *batched* if nothing flows from one of its iterations to
another: its counter is an array, and its body is walked once for all of them. Every read on chip is traced to the
writes that gave its bytes (tiles.py), so that what is computed is handed on as arrays and no byte of on-chip memory is
touched. All checks of the machine are made on the way, on the addresses of all iterations.

Whatever cannot be proven, errors of the program among it, ends the attempt. Then one loop more is executed serially, or
cut where its iterations differ (`Cut`), and the walk starts again. Where no loop is left the kernel has no plan, and is
executed byte by byte, with the same checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ...dialects import hardware
from ...dialects.errors import UserError
from ...dialects.transfer import Region
from . import compute
from .access import access
from .batch import Apply, Call, Counting, Places, Plan, Segment, Transfer, finished
from .cases import Case, Cases
from .forward import Selection, Written
from .program import Instruction, Kernel, Loop, Node, View
from .tiles import Tiles, Unproven, inside

Array: TypeAlias = npt.NDArray[Any]

MOST_CALLS = 1 << 16
"""Calls of a plan; a kernel that needs more is executed byte by byte."""
MOST_ELEMENTS = 1 << 23
"""Elements of one value in one iteration of the outermost batched loop."""


class Cut(Exception):
    """The iterations of a batched loop are not alike: those from each of `places` on differ from the ones before."""

    def __init__(self, loop: Loop, places: set[int]) -> None:
        super().__init__()
        self.loop, self.places = loop, places


def plan(kernel: Kernel, cases: Mapping[Instruction, Cases], sizes: Mapping[str, int]) -> Plan | None:
    """The plan of a kernel whose list order is a legal one, None if there is none.

    `sizes` are the bytes of every memory.
    """
    serial: set[Loop] = set()
    cuts: dict[Loop, set[int]] = {}
    while True:
        walk = _Walk(kernel, cases, sizes, serial, cuts)
        try:
            return walk.plan()
        except Cut as cut:
            cuts.setdefault(cut.loop, set()).update(cut.places)
        except Unproven as reason:
            loop = reason.loop if reason.loop is not None else walk.scope[-1] if walk.scope else None
            if loop is None or loop in serial:
                return None
            serial.add(loop)
        except UserError:
            return None


class _Walk:
    """One attempt. `counters` are numbers or arrays, `first` the first value of each; `scope` the batched loops."""

    def __init__(
        self,
        kernel: Kernel,
        cases: Mapping[Instruction, Cases],
        sizes: Mapping[str, int],
        serial: set[Loop],
        cuts: dict[Loop, set[int]],
    ) -> None:
        self.kernel, self.cases, self.sizes, self.serial, self.cuts = kernel, cases, sizes, serial, cuts
        self.counters: list[Any] = [0] * kernel.depth
        self.first = [0] * kernel.depth
        self.scope: list[Loop] = []
        self.tiles = Tiles(kernel)
        self.segments = [Segment()]
        self.axes: list[frozenset[int]] = []
        self.extents: list[tuple[int, ...]] = []
        self.types: list[np.dtype[Any]] = []
        self.parents: dict[int, tuple[int, Selection]] = {}
        self.known: list[dict[object, int]] = [{}]
        self.stores: list[Transfer] = []
        self.instructions, self.calls, self.links = 0, 0, Counter[str]()

    def plan(self) -> Plan:
        arguments = range(self.kernel.arguments)
        written = {step.output.buffer for step in self.kernel.instructions()}
        if any(view.buffer in written for s in self.kernel.instructions() for view in s.views[:-1] if view.buffer in arguments):
            raise Unproven
        self.block(self.kernel.body)
        return Plan(finished(self.segments), len(self.axes), self.instructions, self.links)

    # --- loops ----------------------------------------------------------------------------------------------------

    def block(self, body: Sequence[Node]) -> None:
        for node in body:
            if isinstance(node, Loop):
                self.loop(node)
            elif isinstance(node, Instruction):
                self.instruction(node)

    def loop(self, loop: Loop) -> None:
        lower, upper = self.same(loop.lower.at(self.counters)), self.same(loop.upper.at(self.counters))
        if loop in self.serial:
            for value in range(lower, upper):
                self.iterations(loop, value, value + 1)
            return
        written = {step.output.buffer for step in loop.instructions() if step.output.buffer >= self.kernel.arguments}
        ends = [lower, *sorted(place for place in self.cuts.get(loop, ()) if lower < place < upper), upper]
        for low, high in pairwise(ends):
            self.tiles.poison(written, loop)
            self.batch(loop, low, high)
        self.tiles.poison(written, loop)

    def iterations(self, loop: Loop, low: int, high: int) -> None:
        shape = [-1 if d == loop.depth else 1 for d in range(self.kernel.depth)]
        self.counters[loop.depth] = np.arange(low, high).reshape(shape) if high - low > 1 else low
        self.first[loop.depth] = low
        self.block(loop.body)
        self.counters[loop.depth] = low

    def batch(self, loop: Loop, low: int, high: int) -> None:
        outermost = not self.scope
        if outermost:
            self.segments.append(Segment(loop.depth, high - low))
            self.known.append({})
            self.stores = []
        self.scope.append(loop)
        self.iterations(loop, low, high)
        self.scope.pop()
        if outermost:
            if not self.disjoint():
                raise Unproven(loop)
            self.segments.append(Segment())
            self.known.pop()

    def extent(self, axes: frozenset[int]) -> int:
        """Iterations over the loops at some depths."""
        found = (self.counters[d] for d in axes)
        return prod(c.size for c in found if isinstance(c, np.ndarray))

    def moving(self) -> list[Loop]:
        """Batched loops of more than one iteration."""
        return [loop for loop in self.scope if isinstance(self.counters[loop.depth], np.ndarray)]

    def same(self, value: Any) -> int:
        """A number that is the same in all iterations. Raises Cut where it is not."""
        if not isinstance(value, np.ndarray):
            return int(value)
        for loop in reversed(self.moving()):
            changes = np.diff(value, axis=loop.depth).any(axis=tuple(d for d in range(value.ndim) if d != loop.depth))
            if changes.any():
                raise Cut(loop, {self.first[loop.depth] + 1 + int(n) for n in np.flatnonzero(changes)})
        return int(value.flat[0])

    def case(self, step: Instruction) -> Case:
        """The case of an instruction, the same in all iterations."""
        cases = self.cases[step]
        moving = [loop for loop in self.moving() if loop.depth in step.depends]
        if moving:
            shape = [self.counters[loop.depth].size for loop in moving]
            kinds: dict[Region, int] = {}
            trial, found = list(self.first), np.zeros([1] * self.kernel.depth + [0], np.int64)
            numbers: list[int] = []
            for offsets in product(*map(range, shape)):
                for loop, offset in zip(moving, offsets, strict=True):
                    trial[loop.depth] = self.first[loop.depth] + offset
                numbers.append(kinds.setdefault(cases.at(trial).region, len(kinds)))
            depths = {loop.depth: n for loop, n in zip(moving, shape, strict=True)}
            found = np.asarray(numbers).reshape([depths.get(d, 1) for d in range(self.kernel.depth)])
            self.same(found)
        return cases.at(self.first)

    # --- instructions ---------------------------------------------------------------------------------------------

    def instruction(self, step: Instruction) -> None:
        case, times = self.case(step), prod(self.counters[loop.depth].size for loop in self.moving())
        self.instructions += times
        if case.link is not None:
            self.links[case.link[0]] += case.link[1] * times
        bases = [self.base(view) for view in step.views]
        for view, base, part in zip(step.views, bases, case.accesses, strict=True):
            if part is not None:
                self.check(view, base, part)
        if case.whole is not None:
            self.check(step.output, bases[-1], case.whole)
        value = None if case.empty else self.value(step, case, bases)
        self.write(step, case, bases[-1], value)

    def base(self, view: View) -> Any:
        """The address of a view: absolute on chip, relative to its buffer off chip."""
        return (self.kernel.buffers[view.buffer].offset or 0) + view.offset.at(self.counters)

    def check(self, view: View, base: Any, part: Any) -> None:
        buffer = self.kernel.buffers[view.buffer]
        if not inside(buffer, view.align, base, part):
            raise Unproven
        if buffer.offset is not None and self.blocks_leave(view, base, part):
            raise Unproven

    def blocks_leave(self, view: View, base: Any, part: Any) -> bool:
        return bool(np.min(base) + part.offset < 0 or np.max(base) + part.end > self.sizes[view.memory])

    def value(self, step: Instruction, case: Case, bases: Sequence[Any]) -> int:
        extents = tuple(case.region[a][1] - case.region[a][0] if a >= 0 else 1 for a in step.axes[-1])
        kind = step.output.element.numpy
        match step.op:
            case hardware.MatmulOp():
                return self.product(step, step.op, case, bases, extents)
            case hardware.FillOp():
                filled = compute.filled(step, step.op)
                return self.apply((), lambda: filled, extents, kind)
            case hardware.IotaOp():
                assert step.map is not None
                axes = frozenset(step.map.depends) & {loop.depth for loop in self.scope}
                region = case.region
                return self.add(
                    Counting((), len(self.axes), self.varies(axes), (), tuple(self.counters),
                             lambda counters: self._lead(compute.iota(step, counters, region), extents)),
                    axes, extents, kind,
                )  # fmt: skip
            case _:
                inputs = [self.read(step, case, bases, n) for n in range(len(step.views) - 1)]
                operator = compute.operator(step)
                if isinstance(step.op, hardware.DmaOp) and step.views[0].element == step.output.element:
                    return inputs[0]
                lifted = tuple(self.lifted(value, t) for value, t in zip(inputs, operator.types, strict=True))
                return self.apply(lifted, operator.apply, extents, kind)

    def product(
        self, step: Instruction, op: hardware.MatmulOp, case: Case, bases: Sequence[Any], extents: tuple[int, ...]
    ) -> int:
        started = op.overwrite is not None
        if not started and step.init is not None:
            started = not self.same(sum(abs(np.asarray(value)) for value in step.init.at(self.counters)))
        before = () if started else (self.read(step, case, bases, 2),)
        kind = step.output.element.numpy
        if case.accesses[0] is None or case.accesses[1] is None:  # no valid element of k
            return before[0] if before else self.apply((), lambda: np.zeros((), kind), extents, kind)
        sides = tuple(self.matrices(step, op, side, self.read(step, case, bases, side)) for side in (0, 1))
        region = case.region

        def multiplied(lhs: Array, rhs: Array, total: Array | None = None) -> Array:
            return compute.product(step, op, region, lhs, rhs, total)

        return self.apply((*sides, *before), multiplied, extents, kind)

    def matrices(self, step: Instruction, op: hardware.MatmulOp, side: int, value: int) -> int:
        lifted = self.lifted(value, compute.product_type(step))

        def made() -> int:
            return self.apply((lifted,), lambda array: compute.matrices(op, side, array), None, self.types[lifted])

        return self.once(("matrices", lifted, op.spec.data, side), made)

    def read(self, step: Instruction, case: Case, bases: Sequence[Any], number: int) -> int:
        view, part = step.views[number], case.accesses[number]
        if part is None:
            raise Unproven
        region = tuple((0, 1) if axis < 0 else case.region[axis] for axis in step.axes[number])
        extents, kind = part.logical, view.element.numpy
        if view.buffer < self.kernel.arguments:
            at = self.offchip(bases[number])
            axes = frozenset(d for d, n in enumerate(at.shape) if n > 1)

            def load() -> int:
                call = Transfer(
                    (), len(self.axes), self.varies(axes), view=view, part=part, places=Places.of(at)
                )
                return self.add(call, axes, extents, kind)

            return self.once((view.buffer, kind, view.layout, region, at.shape, at.tobytes()), load)
        found = self.tiles.read(view, bases[number], part, region)
        if isinstance(found, tuple):
            return self.selected(*found)
        pieces = tuple(value for value, _, _ in found)

        def gathered(*arrays: Array) -> Array:
            lead = np.broadcast_shapes(*(array.shape[: self.kernel.depth] for array in arrays))
            whole = np.empty((*lead, prod(extents)), kind)
            for array, (_, places, indices) in zip(arrays, found, strict=True):
                flat = array.reshape(*array.shape[: self.kernel.depth], -1)
                whole[..., places] = flat[..., indices]
            return whole.reshape(*lead, *extents)

        return self.apply(pieces, gathered, extents, kind)

    def write(self, step: Instruction, case: Case, base: Any, value: int | None) -> None:
        view, part = step.output, case.accesses[-1]
        if part is None and case.whole is None:
            return
        if view.buffer < self.kernel.arguments:
            if value is None or part is None or part.trim is not None or case.whole not in (None, part):
                raise Unproven
            self.store(view, part, self.offchip(base), value)
            return
        valid = tuple((0, 1) if axis < 0 else case.region[axis] for axis in step.axes[-1])
        whole = tuple((0, extent) for extent in view.shape) if case.whole is not None else valid
        written = Written(view.layout, whole, valid)
        touched = case.whole if case.whole is not None else part
        assert touched is not None
        self.tiles.write(view, base, part if part is not None else touched, touched, written, value)

    # --- off chip -------------------------------------------------------------------------------------------------

    def offchip(self, base: Any) -> npt.NDArray[np.int64]:
        return base if isinstance(base, np.ndarray) else np.full((1,) * self.kernel.depth, base, np.int64)

    def store(self, view: View, part: Any, at: npt.NDArray[np.int64], value: int) -> None:
        for loop in self.moving():
            if at.shape[loop.depth] == 1:
                raise Unproven(loop)
        call = Transfer((value,), None, True, view=view, part=part, places=Places.of(at))
        self.stores.append(call)
        self.append(call)

    def disjoint(self) -> bool:
        """Whether no byte off chip is written twice in the outermost batched loop."""
        for number in {store.view.buffer for store in self.stores}:
            marked = np.zeros(self.kernel.buffers[number].size, np.bool_)
            total = 0
            for store in self.stores:
                if store.view.buffer == number:
                    for at, lead in store.places.leads():
                        covered = store.part.bytes(marked, at, lead)
                        if covered is None:
                            return False
                        covered[...] = True
                        total += covered.size
            if total != np.count_nonzero(marked):
                return False
        return True

    # --- values ---------------------------------------------------------------------------------------------------

    def append(self, call: Call) -> None:
        self.calls += 1
        if self.calls > MOST_CALLS:
            raise UserError("too many calls")
        self.segments[-1].calls.append(call)

    def add(self, call: Call, axes: frozenset[int], extents: tuple[int, ...] | None, kind: np.dtype[Any]) -> int:
        """Numbers the value of a call. `extents` are those of the region it holds, None where nobody asks."""
        self.append(call)
        self.axes.append(axes)
        self.extents.append(extents or ())
        self.types.append(kind)
        return len(self.axes) - 1

    def varies(self, axes: frozenset[int]) -> bool:
        return not self.scope or self.scope[0].depth in axes

    def apply(
        self, inputs: tuple[int, ...], function: Callable[..., Array], extents: tuple[int, ...] | None, kind: np.dtype[Any]
    ) -> int:
        axes = frozenset[int]().union(*(self.axes[value] for value in inputs))
        if extents is not None:
            segment, inner = self.segments[-1], axes - ({self.scope[0].depth} if self.scope else set())
            elements = prod(extents) * self.extent(frozenset(inner))
            segment.widest = max(segment.widest, elements)
            if elements > MOST_ELEMENTS and len(self.moving()) > 1:
                loop = self.moving()[-1]
                raise Cut(loop, {self.first[loop.depth] + self.counters[loop.depth].size // 2})
            plain = function
            function = lambda *arrays: self._lead(plain(*arrays), extents)  # noqa: E731
        return self.add(Apply(inputs, len(self.axes), self.varies(axes), (), function), axes, extents, kind)

    def _lead(self, array: Array, extents: tuple[int, ...]) -> Array:
        """`array` over the whole of its region, with an axis per loop in front."""
        rank = self.kernel.depth + len(extents)
        lead = array.shape[: self.kernel.depth] if array.ndim == rank else (1,) * self.kernel.depth
        return array if array.shape == (*lead, *extents) else np.broadcast_to(array, (*lead, *extents))

    def once(self, key: object, made: Callable[[], int]) -> int:
        """The value known by a key, or a new one."""
        for layer in self.known:
            if key in layer:
                return layer[key]
        value = self.known[-1][key] = made()
        return value

    def lifted(self, value: int, kind: np.dtype[Any]) -> int:
        """A value in another type; what is selected of a value is selected of it in that type."""
        if self.types[value] == kind:
            return value
        if value in self.parents:
            source, part = self.parents[value]
            return self.selected(self.lifted(source, kind), part)
        extents = self.extents[value]
        return self.once(
            ("lifted", value, kind), lambda: self.apply((value,), lambda array: array.astype(kind), extents, kind)
        )

    def selected(self, value: int, part: Selection) -> int:
        if part.identity(self.extents[value]):
            return value

        def made() -> int:
            call = Apply((value,), len(self.axes), self.varies(self.axes[value]), (), part.of)
            new = self.add(call, self.axes[value], part.shape, self.types[value])
            self.parents[new] = (value, part)
            return new

        return self.once((value, part), made)
