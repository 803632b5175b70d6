"""Executes a decoded program on bytes, checks every access and counts traffic."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from ...dialects import hardware
from ...dialects.dtypes import convert, dense_array
from ...dialects.errors import UserError
from . import compute
from .access import Access, access
from .affine import Counters
from .batch import Plan
from .cases import Case, Cases
from .early import early_loads
from .errors import MachineError
from .history import last_write
from .memory import MemoryBytes
from .options import MachineOptions
from .places import check_place
from .program import EventStep, External, Instruction, Kernel, Launch, Program, View
from .queues import interleaved
from .replay import Replay

Array: TypeAlias = npt.NDArray[Any]
Loaded: TypeAlias = "tuple[Instruction, tuple[int, ...]]"
"""A load and the counters of the loops around it."""
Loader: TypeAlias = Callable[[str, str], Array]


@dataclass
class Counted:
    """What one launch moved and how many instructions it executed."""

    links: Counter[str] = field(default_factory=Counter[str])
    instructions: int = 0


@dataclass
class _Coming:
    """Early loads of the next launch, their engines, and how many instructions these still have to execute before."""

    items: list[Loaded] = field(default_factory=list[Loaded])
    engines: set[str] = field(default_factory=set[str])
    left: int = 0


class DataRun:
    """The memories of one run. `cases` are shared with the time simulation, `plans` with other runs."""

    def __init__(
        self,
        program: Program,
        cases: dict[Instruction, Cases],
        plans: Callable[[Kernel], Plan | None],
        options: MachineOptions,
    ) -> None:
        self.program, self.cases, self.plans, self.options = program, cases, plans, options
        self.target = program.target
        self.loaded: list[Loaded] = []
        try:
            self.memories = {
                name: MemoryBytes(size, options.poison, options.check_owner)
                for name, size in sorted(program.peaks.items())
            }
        except (MemoryError, ValueError):
            raise MachineError(
                f"this computer cannot hold the memories of the program ({program.peaks} bytes)"
            ) from None

    # --- inputs and outputs ---------------------------------------------------------------------------------------

    def fill(self, inputs: Sequence[Array], loader: Loader | None) -> None:
        """Puts inputs, constants and weights into off-chip memory. Raises UserError for those that do not fit."""
        wanted = self.program.role("input")
        if len(wanted) != len(inputs):
            raise UserError(f"the program takes {len(wanted)} inputs, got {len(inputs)}")
        for number, (external, value) in enumerate(zip(wanted, inputs, strict=True)):
            self._put(external, np.asarray(value), f"input {number}")
        for external in self.program.role("constant"):
            value = external.op.value
            if not isinstance(value, DenseIntOrFPElementsAttr):
                raise UserError(f"the value of constant {external.name} is not dense", external.op.location)
            self._put(external, dense_array(cast(DenseIntOrFPElementsAttr[Any], value)), f"constant {external.name}")
        for external in self.program.role("weight"):
            assert external.op.key is not None and external.op.file is not None
            if loader is None:
                raise UserError(f"weight {external.name} cannot be read: no loader", external.op.location)
            stored = loader(external.op.file.data, external.op.key.data)
            self._put(external, stored, f"weight '{external.op.key.data}'")

    def _put(self, external: External, value: Array, what: str) -> None:
        if value.size != np.prod(external.shape, dtype=np.int64) or (
            external.op.role.data != "constant" and value.shape != external.shape
        ):
            raise UserError(
                f"{what} has shape {list(value.shape)}, the program has {list(external.shape)}", external.op.location
            )
        memory, whole = self.memories[self.target.offchip], _whole(external)
        stored = convert(value, external.element).reshape(external.shape)
        whole.write(memory.data, external.offset, external.element.numpy, stored)
        memory.define(whole, external.offset, external.element.bytes, external.owner)

    def outputs(self) -> list[Array]:
        """The outputs in order. Raises MachineError where an element was never written."""
        memory, found = self.memories.get(self.target.offchip), list[Array]()
        for number, external in enumerate(self.program.role("output")):
            assert memory is not None
            whole = _whole(external)
            position = memory.first_poison(whole, external.offset, external.element.bytes, external.owner)
            if position is not None:
                raise MachineError(
                    f"output {number} ({external.name}) is poison at {list(position)}: nothing was written there",
                    external.op.location,
                )
            found.append(whole.read(memory.data, external.offset, external.element.numpy).copy())
        return found

    # --- execution ------------------------------------------------------------------------------------------------

    def launch(self, launch: Launch, following: Launch | None = None) -> Counted:
        """Runs one kernel. On-chip memories start as poison, but for what has been loaded early. Where transfers do not
        keep list order, early loads of the `following` launch come as soon as their engines are through."""
        with np.errstate(all="ignore"):
            return self._planned(launch) or self._walked(launch, following)

    def _planned(self, launch: Launch) -> Counted | None:
        """By its plan, if it has one that fits; it stands for list order."""
        found = self.plans(launch.kernel) if self.options.interleaving == "program" and self.options.batch else None
        if found is None:
            return None
        replay = Replay(found, launch, self.memories[self.target.offchip])
        if not replay.possible():
            return None
        replay.run()
        return Counted(found.links, found.instructions)

    def _walked(self, launch: Launch, following: Launch | None) -> Counted:
        """Instruction by instruction, on the bytes of all memories."""
        counted = Counted()
        for share in self._in_turn(launch.kernel):
            for name, memory in self.memories.items():
                if name != self.target.offchip:
                    memory.forget()
            loaded = Counter(step.engine for step, _ in self.loaded)
            for step, counters in self.loaded:
                self._define(launch, step, self.cases[step].at(counters), counters)
            self.loaded = []
            coming = self._coming(share, following)
            if not coming.left:
                self._load(following, coming)
            for step, counters in interleaved(share, self.target, self.options):
                if isinstance(step, EventStep):
                    continue
                case = self.cases[step].at(counters)
                if loaded[step.engine]:
                    loaded[step.engine] -= 1
                else:
                    self._execute(launch, step, case, counters)
                counted.instructions += 1
                if case.link is not None:
                    counted.links[case.link[0]] += case.link[1]
                if step.engine in coming.engines:
                    coming.left -= 1
                    if not coming.left:
                        self._load(following, coming)
        for memory in self.memories.values():
            memory.check_place()
        return counted

    def _coming(self, share: Kernel, following: Launch | None) -> _Coming:
        """Early loads of the next launch, where transfers do not keep list order."""
        wanted = following is not None and following.kernel.early and self.options.interleaving in ("eager", "random")
        if not wanted or following is None or share.cores > 1 or following.kernel.cores > 1:
            return _Coming()
        items = list(early_loads(following.kernel))
        engines = {step.engine for step, _ in items}
        order = interleaved(share, self.target, self.options)
        left = sum(step.engine in engines and isinstance(step, Instruction) for step, _ in order)
        return _Coming(items, engines, left)

    def _load(self, launch: Launch | None, coming: _Coming) -> None:
        for step, counters in coming.items:
            assert launch is not None
            self._execute(launch, step, self.cases[step].at(counters), counters)
        self.loaded = coming.items

    def _in_turn(self, kernel: Kernel) -> list[Kernel]:
        """The shares of the cores, in an order that the interleaving decides: no core may depend on another's."""
        match self.options.interleaving:
            case "program":
                return kernel.shares
            case "random":
                return random.Random(self.options.seed).sample(kernel.shares, len(kernel.shares))
            case _:
                return kernel.shares[::-1]

    def _execute(self, launch: Launch, step: Instruction, case: Case, counters: Counters) -> None:
        bases = launch.bases
        places = [bases[view.buffer] + view.offset.at(counters) for view in step.views]
        if not case.empty:
            for view, place, part in zip(step.views, places, case.accesses, strict=True):
                if part is not None:
                    self._check_place(launch, step, view, place, part, counters)
        if case.whole is not None:
            self._check_place(launch, step, step.output, places[-1], case.whole, counters)
        value = None if case.empty else self._value(launch, step, case, places, counters)
        memory, out, place = self.memories[step.output.memory], step.output, places[-1]
        if case.whole is not None and case.whole is not case.accesses[-1]:
            memory.poison(case.whole, place, out.element.bytes)
        part = case.accesses[-1]
        if part is None:
            return
        if value is None:
            memory.poison(part, place, out.element.bytes)
            return
        part.write(memory.data, place, out.element.numpy, value)
        self._define(launch, step, case, counters)

    def _define(self, launch: Launch, step: Instruction, case: Case, counters: Counters) -> None:
        """The region that an instruction writes holds values of its output's buffer."""
        out, part = step.output, case.accesses[-1]
        if part is not None:
            place = launch.bases[out.buffer] + out.offset.at(counters)
            self.memories[out.memory].define(part, place, out.element.bytes, launch.owners[out.buffer])

    def _value(
        self, launch: Launch, step: Instruction, case: Case, places: Sequence[int], counters: Counters
    ) -> Array | None:
        """What is written to the active region of the output, None where it becomes poison."""
        try:
            match step.op:
                case hardware.MatmulOp():
                    return self._product(launch, step, step.op, case, places, counters)
                case hardware.FillOp():
                    return compute.filled(step, step.op)
                case hardware.IotaOp():
                    return compute.iota(step, counters, case.region)
                case hardware.DmaOp() if step.op.gather is not None:
                    return self._rows(launch, step, case, places, counters)
                case _:
                    if any(part is None for part in case.accesses[:-1]):
                        return None  # nothing is combined
                    inputs = [self._read(launch, step, case, n, places, counters) for n in range(len(step.views) - 1)]
                    return compute.operator(step)(inputs)
        except UserError as error:
            raise error if error.location is not None else step.error(counters, error.message) from None

    def _product(
        self,
        launch: Launch,
        step: Instruction,
        op: hardware.MatmulOp,
        case: Case,
        places: Sequence[int],
        counters: Counters,
    ) -> Array:
        starts = op.overwrite is not None or (step.init is not None and not any(step.init.at(counters)))
        before = None if starts else self._read(launch, step, case, 2, places, counters)
        if case.accesses[0] is None or case.accesses[1] is None:  # no valid element of k
            return np.zeros((), step.output.element.numpy) if before is None else before
        kind = compute.product_type(step)
        lhs, rhs = (self._read(launch, step, case, n, places, counters).astype(kind, copy=False) for n in (0, 1))
        matrices = compute.matrices(op, 0, lhs), compute.matrices(op, 1, rhs)
        return compute.product(step, op, case.region, *matrices, before)

    def _rows(
        self, launch: Launch, step: Instruction, case: Case, places: Sequence[int], counters: Counters
    ) -> Array | None:
        """The rows of a table that indices choose. Raises MachineError for an index that is no row's."""
        table, part = step.views[0], case.accesses[0]
        if part is None or case.accesses[1] is None:
            return None
        indices = self._read(launch, step, case, 1, places, counters)
        outside = (indices < 0) | (indices >= table.shape[0])
        if outside.any():
            where = tuple(int(i) for i in np.unravel_index(int(np.argmax(outside)), outside.shape))
            raise step.error(
                counters,
                f"index {int(indices[where])}, element {list(where)} of {step.views[1].name}, is none of the "
                f"{table.shape[0]} rows of {table.name}",
            )
        mesh = np.ix_(*(np.arange(extent) for extent in part.logical[1:]))
        chosen, memory = (indices, *mesh), self.memories[table.memory]
        owner, width = launch.owners[table.buffer], table.element.bytes
        position = memory.first_poison(part, places[0], width, owner, chosen)
        if position is not None:
            shape = np.broadcast_shapes(*(index.shape for index in chosen))
            where = [int(np.broadcast_to(index, shape)[position]) for index in chosen]
            where = [w + (0 if axis < 0 else case.region[axis][0]) for w, axis in zip(where, step.axes[0], strict=True)]
            raise self._poison(launch, step, table, where, places[0] + table.layout.address(where), counters)
        return part.read(memory.data, places[0], table.element.numpy)[chosen]

    def _read(
        self, launch: Launch, step: Instruction, case: Case, number: int, places: Sequence[int], counters: Counters
    ) -> Array:
        view, part, place = step.views[number], case.accesses[number], places[number]
        assert part is not None
        memory = self.memories[view.memory]
        position = memory.first_poison(part, place, view.element.bytes, launch.owners[view.buffer])
        if position is not None:
            lows = [0 if axis < 0 else case.region[axis][0] for axis in step.axes[number]]
            where = [low + i for low, i in zip(lows, position, strict=True)]
            raise self._poison(launch, step, view, where, place + view.layout.address(where), counters)
        return part.read(memory.data, place, view.element.numpy)

    def _poison(
        self, launch: Launch, step: Instruction, view: View, where: list[int], byte: int, counters: Counters
    ) -> MachineError:
        """The error of an element that nobody wrote as an element of its buffer, with whoever touched its bytes."""
        owner = self.memories[view.memory].owner_of(byte, view.element.bytes)
        others = zip(launch.kernel.buffers, launch.bases, launch.owners, strict=True)
        stale = next(
            (b for b, base, o in others if b.memory == view.memory and o == owner and base <= byte < base + b.size),
            None,
        )
        why = f", still holds what was written to {stale.name}" if stale is not None else ""
        message = f"reads poison: element {where} of {view.name}, byte {byte} of '{view.memory}'{why}"
        order = interleaved(launch.kernel, self.target, self.options)
        last = last_write(launch, order, self.cases, view.memory, byte, (step, counters))
        if last is None:
            return step.error(
                counters, message, ("nothing wrote the buffer", launch.kernel.buffers[view.buffer].location)
            )
        return step.error(counters, message, (f"the last to touch it: {last[0].place(last[1])}", last[0].op.location))

    def _check_place(
        self, launch: Launch, step: Instruction, view: View, place: int, part: Access, counters: Counters
    ) -> None:
        check_place(launch, step, view, place, part, counters)
        if place + part.offset < 0 or place + part.end > self.memories[view.memory].size:
            raise step.error(counters, f"its blocks of {view.name} leave memory '{view.memory}'")


def _whole(external: External) -> Access:
    return access(external.layout, tuple((0, extent) for extent in external.shape))
