"""Plans the data run of a kernel: the loops whose iterations can be executed at once, and the values between calls.

The nest is walked once in list order, without data. A loop is *batched* if nothing flows from one of its iterations to
another: its counter is an array, and its body is walked once for all of them. Every read on chip is traced to the
writes that gave its bytes (tiles.py), so that what is computed is handed on as arrays and no byte of on-chip memory is
touched. All checks of the machine are made on the way, on the addresses of all iterations.

Whatever cannot be proven, errors of the program among it, ends the attempt. Then one loop more is executed serially, or
cut where its iterations differ (`Cut`), and the walk starts again. Where no loop is left the kernel has no plan, and is
executed instruction by instruction, with the same checks on bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...dialects import hardware
from ...dialects.errors import UserError
from ...dialects.transfer import Region
from . import compute
from .access import Access
from .batch import Move, Plan, Transfer, finished
from .cases import Case, Cases
from .forward import Written
from .program import EventStep, Instruction, Kernel, Loop, Node, View
from .tiles import Places, Tiles, Unproven, inside
from .values import Value, Values

Array: TypeAlias = npt.NDArray[Any]

MOST_ELEMENTS = 1 << 23
"""Elements of one value in one iteration of the loops that are taken in parts, where others inside can be cut."""


class Cut(Exception):
    """The iterations of a batched loop are not alike: those from each of `places` on differ from the ones before."""

    def __init__(self, loop: Loop, places: Iterable[int]) -> None:
        super().__init__()
        self.loop, self.places = loop, set(places)


def plan(kernel: Kernel, cases: Mapping[Instruction, Cases], sizes: Mapping[str, int]) -> Plan | None:
    """The plan of a kernel whose list order is a legal one, None if there is none.

    `sizes` are the bytes of every memory.
    """
    if any(isinstance(step.op, hardware.DmaOp) and step.op.gather is not None for step in kernel.instructions()):
        return None  # what is read depends on data
    serial: set[Loop] = set()
    cuts: dict[Loop, set[int]] = {}
    alike: set[object] = set()
    while True:
        walk = _Walk(kernel, cases, sizes, serial, cuts, alike)
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
            return None  # the walk through the instructions will meet it again, and say where


class _Walk:
    """One attempt. `counters` are numbers or arrays, `first` the first value of each; `scope` are the batched loops.

    `alike` are instructions and iterations of the loops around that were found to have the same region.
    """

    def __init__(
        self,
        kernel: Kernel,
        cases: Mapping[Instruction, Cases],
        sizes: Mapping[str, int],
        serial: set[Loop],
        cuts: Mapping[Loop, set[int]],
        alike: set[object],
    ) -> None:
        self.kernel, self.cases, self.sizes, self.serial, self.cuts = kernel, cases, sizes, serial, cuts
        self.counters: list[Any] = [0] * kernel.depth
        self.first = [0] * kernel.depth
        self.scope: list[Loop] = []
        self.tiles: Tiles[Value] = Tiles(kernel)
        self.values = Values(kernel)
        self.stores: list[Transfer] = []
        self.alike = alike
        self.instructions, self.links = 0, Counter[str]()
        self.clock = 0
        self.moves: list[Move] = []

    def plan(self) -> Plan:
        """Raises Cut, Unproven, or UserError for what no plan can hold."""
        read = {view.buffer for step in self.kernel.instructions() for view in step.views[:-1]}
        written = {step.output.buffer for step in self.kernel.instructions()}
        if any(number < self.kernel.arguments for number in read & written):
            raise Unproven
        self.block(self.kernel.body)
        return Plan(finished(self.values.segments), self.values.count, self.instructions, self.links, self.moves)

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
                if loop.cores:  # memories of its own
                    self.tiles.poison(self.own(loop), loop)
                self.iterations(loop, value, value + 1)
            return
        written = self.own(loop)
        cuts = (place for place in self.cuts.get(loop, ()) if lower < place < upper)
        nest = [*self.scope, loop]
        direct = all([n for n in a.body if not isinstance(n, EventStep)] == [b] for a, b in pairwise(nest))
        for low, high in pairwise([lower, *sorted(cuts), upper] if lower < upper else []):
            self.tiles.poison(written, loop)
            self.batch(loop, low, high, direct)
        self.tiles.poison(written, loop)

    def own(self, loop: Loop) -> set[int]:
        """The buffers on chip that are written in a loop."""
        return {step.output.buffer for step in loop.instructions()} - set(range(self.kernel.arguments))

    def batch(self, loop: Loop, low: int, high: int, direct: bool) -> None:
        """`direct`: nothing but this loop is in the batched ones around it: all of them can be taken in parts."""
        outermost = not self.scope
        if outermost:
            self.stores = []
        if direct:
            self.values.begin({**{n.depth: self.values.sizes[n.depth] for n in self.scope}, loop.depth: high - low})
        self.scope.append(loop)
        self.iterations(loop, low, high)
        self.scope.pop()
        if outermost:
            self.values.end()
            if not self.disjoint():
                raise Unproven(loop)

    def iterations(self, loop: Loop, low: int, high: int) -> None:
        depth, count = loop.depth, high - low
        along = [-1 if d == depth else 1 for d in range(self.kernel.depth)]
        self.counters[depth] = np.arange(low, high).reshape(along) if count > 1 else low
        self.first[depth], self.values.sizes[depth] = low, count
        begin, self.clock, moved = self.clock, 0, len(self.moves)
        self.block(loop.body)
        self.counters[depth], self.values.sizes[depth] = low, 1
        when = begin + np.arange(count).reshape(along) * self.clock
        self.moves[moved:] = [replace(move, when=move.when + when) for move in self.moves[moved:]]
        self.clock = begin + count * self.clock

    def moving(self) -> list[Loop]:
        """Batched loops of more than one iteration."""
        return [loop for loop in self.scope if self.values.sizes[loop.depth] > 1]

    def same(self, value: Any) -> int:
        """A number that is the same in all iterations. Raises Cut where it is not."""
        if not isinstance(value, np.ndarray):
            return int(value)
        found = np.asarray(value, np.int64)
        for loop in reversed(self.moving()):
            others = tuple(d for d in range(found.ndim) if d != loop.depth)
            changes = np.flatnonzero(np.diff(found, axis=loop.depth).any(axis=others))
            if changes.size:
                raise Cut(loop, (self.first[loop.depth] + 1 + int(n) for n in changes))
        return int(found.flat[0])

    def case(self, step: Instruction) -> Case:
        """The case of an instruction, the same in all iterations."""
        cases = self.cases[step]
        moving = [loop.depth for loop in self.moving() if loop.depth in step.depends]
        key = (step, tuple((self.first[depth], self.values.sizes[depth]) for depth in sorted(step.depends)))
        if moving and key not in self.alike:
            kinds: dict[Region, int] = {}
            numbers: list[int] = []
            at = list(self.first)
            for offsets in product(*(range(self.values.sizes[depth]) for depth in moving)):
                for depth, offset in zip(moving, offsets, strict=True):
                    at[depth] = self.first[depth] + offset
                numbers.append(kinds.setdefault(cases.at(at).region, len(kinds)))
            extents = [self.values.sizes[d] if d in moving else 1 for d in range(self.kernel.depth)]
            self.same(np.asarray(numbers).reshape(extents))
            self.alike.add(key)
        return cases.at(self.first)

    # --- instructions ---------------------------------------------------------------------------------------------

    def instruction(self, step: Instruction) -> None:
        case, times = self.case(step), prod(self.values.sizes)
        self.instructions += times
        self.clock += 1
        if case.link is not None:
            self.links[case.link[0]] += case.link[1] * times
        bases = [self.base(view) for view in step.views]
        for view, base, part in zip(step.views, bases, case.accesses, strict=True):
            if part is not None:
                self.check(view, base, part)
        if case.whole is not None:
            self.check(step.output, bases[-1], case.whole)
        self.write(step, case, bases[-1], None if case.empty else self.value(step, case, bases))
        segment = self.values.segments[-1]
        loops = [loop for loop in self.moving()[1:] if loop.depth not in segment.loops]
        if loops and max(segment.widths.values(), default=1) > MOST_ELEMENTS:
            depth = loops[-1].depth
            raise Cut(loops[-1], [self.first[depth] + self.values.sizes[depth] // 2])

    def base(self, view: View) -> Places:
        """The address of a view: absolute on chip, relative to its buffer off chip."""
        return (self.kernel.buffers[view.buffer].offset or 0) + view.offset.at(self.counters)

    def check(self, view: View, base: Places, part: Access) -> None:
        if not inside(self.kernel.buffers[view.buffer], view.align, base, part, self.sizes[view.memory]):
            raise Unproven

    def value(self, step: Instruction, case: Case, bases: Sequence[Places]) -> Value:
        """What is written to the active region of the output."""
        region, dtype = case.region, step.output.element.numpy
        extents = tuple(high - low for low, high in _region(step.axes[-1], region))
        match step.op:
            case hardware.MatmulOp():
                return self.product(step, step.op, case, bases, extents)
            case hardware.FillOp():
                filled = compute.filled(step, step.op)
                return self.values.apply([], lambda: filled, extents, dtype)
            case hardware.IotaOp():
                assert step.map is not None

                def counted(at: Sequence[int | Array]) -> Array:
                    return compute.iota(step, at, region)

                return self.values.counting(self.counters, step.map.depends, counted, extents, dtype)
            case _:
                inputs = [self.read(step, case, bases, n) for n in range(len(step.views) - 1)]
                operator = compute.operator(step)
                lifted = [self.values.lifted(value, t) for value, t in zip(inputs, operator.types, strict=True)]
                moves = isinstance(step.op, hardware.DmaOp) and not step.op.computes
                made = lifted[0] if moves else self.values.apply(lifted, operator.apply, extents, operator.computed)
                return self.values.converted(made, operator.result)

    def product(
        self, step: Instruction, op: hardware.MatmulOp, case: Case, bases: Sequence[Places], extents: tuple[int, ...]
    ) -> Value:
        """The operands are brought into the form that a product takes once, however many products take them."""
        starts = op.overwrite is not None
        if not starts and step.init is not None:
            going = sum(np.abs(np.asarray(value)) for value in step.init.at(self.counters))
            starts = not self.same(going != 0)
        before = [] if starts else [self.read(step, case, bases, 2)]
        region, dtype = case.region, step.output.element.numpy
        if case.accesses[0] is None or case.accesses[1] is None:  # no valid element of k
            return before[0] if before else self.values.apply([], lambda: np.zeros((), dtype), extents, dtype)
        sides = [self.matrices(step, op, side, self.read(step, case, bases, side)) for side in (0, 1)]

        def multiplied(lhs: Array, rhs: Array, total: Array | None = None) -> Array:
            return compute.product(step, op, region, lhs, rhs, total)

        return self.values.apply([*sides, *before], multiplied, extents, dtype)

    def matrices(self, step: Instruction, op: hardware.MatmulOp, side: int, value: Value) -> Value:
        lifted = self.values.lifted(value, compute.product_type(step))
        shape = compute.matrices(op, side, np.empty(value.extents, np.bool_)).shape

        def made(array: Array) -> Array:
            return compute.matrices(op, side, array)

        key = ("matrices", lifted.number, op.spec.data, side)
        return self.values.once(key, lambda: self.values.apply([lifted], made, shape, lifted.dtype))

    def read(self, step: Instruction, case: Case, bases: Sequence[Places], number: int) -> Value:
        view, part, base = step.views[number], case.accesses[number], bases[number]
        if part is None:
            raise Unproven
        region = _region(step.axes[number], case.region)
        if view.buffer < self.kernel.arguments:
            at = self.moved(view, part, base, False)
            key = (view.buffer, view.element.name, view.layout, region, at.shape, at.tobytes())
            return self.values.once(key, lambda: self.values.load(view, part, at))
        found = self.tiles.read(view, base, part, region)
        if isinstance(found, tuple):
            return self.values.selected(*found)
        return self.values.gathered(found, part.logical, view.element.numpy)

    def write(self, step: Instruction, case: Case, base: Places, value: Value | None) -> None:
        view, part = step.output, case.accesses[-1]
        touched = case.whole if case.whole is not None else part
        if touched is None:
            return
        valid = _region(step.axes[-1], case.region)
        if view.buffer >= self.kernel.arguments:
            whole = tuple((0, extent) for extent in view.shape) if case.whole is not None else valid
            self.tiles.write(view, base, part or touched, touched, Written(view.layout, whole, valid), value)
            return
        if value is None or part is None or part.trim is not None or case.whole not in (None, part):
            raise Unproven
        at = self.moved(view, part, base, True)
        for loop in self.moving():
            if at.shape[loop.depth] == 1:
                raise Unproven(loop)  # all iterations write the same bytes
        self.stores.append(self.values.store(view, part, at, value))

    def moved(self, view: View, part: Access, base: Places, writes: bool) -> npt.NDArray[np.int64]:
        """The addresses of a move off chip, one per iteration, an axis for every loop."""
        at = base if isinstance(base, np.ndarray) else np.full((1,) * self.kernel.depth, base, np.int64)
        self.moves.append(Move(view, part, at, np.full((1,) * self.kernel.depth, self.clock), writes))
        return at

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


def _region(axes: Sequence[int], region: Region) -> Region:
    """Of one view of an instruction on a region."""
    return tuple((0, 1) if axis < 0 else region[axis] for axis in axes)
