"""What one instruction does on one active region: bytes it reaches, cycles, traffic. Computed once per region.

Cycles come from dialects/cost.py, bytes of transfers from dialects/transfer.py; nothing here has a formula of its own
except which numbers go in.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from operator import itemgetter

from ...dialects import cost, hardware
from ...dialects.dtypes import by_name, common_compute_type, type_name
from ...dialects.engine_limits import check_descriptor, check_product
from ...dialects.errors import UserError
from ...dialects.instruction_rules import is_position
from ...dialects.target_model import MatrixEngine, Target
from ...dialects.transfer import Region, transfer_region, transfer_rows
from .access import Access, access
from .affine import Counters
from .program import Instruction, View
from .reach import error_of


@dataclass(frozen=True, eq=False)
class Case:
    """An instruction on one region.

    step       the instruction
    region     [low, high) per axis
    accesses   per view, None where nothing of it is touched
    whole      the whole extent of the output, to poison before writing; None unless `fresh`
    empty      the instruction does nothing (but poison)
    cycles     its engine is occupied; port_cycles of them, from the start, the off-chip port too
    latency    cycles from then until it has completed
    link       name of the link and bytes counted on it; None for everything but transfers
    """

    step: Instruction
    region: Region
    accesses: tuple[Access | None, ...]
    whole: Access | None
    empty: bool
    cycles: int = 0
    port_cycles: int = 0
    latency: int = 0
    link: tuple[str, int] | None = None
    offchip: bool = False


_MOST = 1 << 17
"""Counter values remembered per instruction."""


class Cases:
    """The cases of one instruction: one if its bounds are constant, else found by the counters they depend on.

    `offchip`: whether it moves bytes through the off-chip port, on any region; `cores` share that."""

    def __init__(self, step: Instruction, target: Target, cores: int = 1) -> None:
        self.step, self.target, self.cores = step, target, cores
        self.known: dict[Region, Case] = {}
        self.recent: dict[object, Case] = {}
        self.key = itemgetter(*sorted(step.depends)) if step.depends else None
        self.offchip = _offchip(step, target)
        self.only: Case | None = None if step.depends else self._case(step.region(()), ())

    def at(self, counters: Counters) -> Case:
        """The case of an iteration. Raises MachineError where the target cannot do it."""
        if self.key is None:
            assert self.only is not None
            return self.only
        key: object = self.key(counters)
        case = self.recent.get(key)
        if case is None:
            region = self.step.region(counters)
            case = self.known.get(region)
            if case is None:
                case = self.known[region] = self._case(region, counters)
            if len(self.recent) >= _MOST:
                self.recent.clear()
            self.recent[key] = case
        return case

    def _case(self, region: Region, counters: Counters) -> Case:
        step = self.step
        whole = None
        if step.fresh and prod(step.output.shape):
            whole = access(step.output.layout, tuple((0, extent) for extent in step.output.shape))
        empty = _nothing(step, region)
        accesses = tuple(_access(view, axes, region) for view, axes in zip(step.views, step.axes, strict=True))
        if isinstance(step.op, hardware.DmaOp) and step.op.gather is not None and accesses[0] is not None:
            table, rows = step.views[0], [(0, 1) if axis < 0 else region[axis] for axis in step.axes[0][1:]]
            accesses = (access(table.layout, ((0, table.shape[0]), *rows)), *accesses[1:])  # any of its rows
        if empty:
            return Case(step, region, (None,) * len(step.views), whole, True)
        try:
            if isinstance(step.op, hardware.DmaOp):
                return self._transfer(region, accesses, whole)
            return Case(step, region, accesses, whole, False, cycles(step, region, self.target))
        except UserError as error:
            found = error_of(step, error)
            raise (step.error(counters, error.message) if error.location is None else found) from None

    def _transfer(self, region: Region, accesses: tuple[Access | None, ...], whole: Access | None) -> Case:
        source, *_, destination = self.step.views
        move = self.target.move(source.memory, destination.memory)
        assert move is not None  # reach.py has looked
        op = self.step.op
        gathers = isinstance(op, hardware.DmaOp) and op.gather is not None
        count = transfer_rows if gathers else transfer_region
        moved = count(self.target, move, source.layout, destination.layout, region)
        check_descriptor(self.target, moved.dims)
        offchip = cost.is_offchip(self.target, move)
        port = cost.ceil_div(moved.bus_bytes, cost.port_rate(self.target, self.cores)) if offchip else 0
        return Case(
            self.step,
            region,
            accesses,
            whole,
            False,
            moved.cycles(self.target, self.cores),
            port,
            cost.dma_latency(self.target, move),
            (f"{source.memory}->{destination.memory}", moved.link_bytes),
            offchip,
        )


def _offchip(step: Instruction, target: Target) -> bool:
    """Whether the instruction moves bytes through the off-chip port."""
    if not isinstance(step.op, hardware.DmaOp):
        return False
    move = target.move(step.views[0].memory, step.output.memory)
    return move is not None and cost.is_offchip(target, move)


def _nothing(step: Instruction, region: Region) -> bool:
    """Whether no element is written or combined."""
    out = [axis for axis in step.axes[-1] if axis >= 0]
    if isinstance(step.op, hardware.MatmulOp) and step.op.overwrite is None and step.op.init is None:
        return any(low >= high for low, high in region)
    if isinstance(step.op, hardware.MatmulOp | hardware.ReduceOp):
        return any(region[axis][0] >= region[axis][1] for axis in out)
    return any(low >= high for low, high in region)


def _access(view: View, axes: tuple[int, ...], region: Region) -> Access | None:
    part = tuple((0, 1) if axis < 0 else region[axis] for axis in axes)
    return access(view.layout, part) if all(low < high for low, high in part) else None


def _size(region: Region, axes: tuple[int, ...]) -> int:
    return prod(region[axis][1] - region[axis][0] for axis in axes if axis >= 0)


def cycles(step: Instruction, region: Region, target: Target) -> int:
    """Cycles that an instruction other than a transfer occupies its engine."""
    views, out = step.views, step.output
    match step.op:
        case hardware.MatmulOp():
            left, right, result = (set(axes) for axes in step.axes)

            def extent(axes: set[int]) -> int:
                return _size(region, tuple(axes))

            m, k, n = extent(left - right), extent(left & right - result), extent(right - left)
            batch = extent(left & right & result)
            lhs, rhs = views[0].element.name, views[1].element.name
            engine = target.engines[step.engine]
            assert isinstance(engine, MatrixEngine)  # reach.py has looked
            check_product(target, step.engine, engine.type_of(lhs, rhs), (m, k, n))
            return batch * cost.matmul_cycles(target, m, k, n, lhs, rhs, step.engine)
        case hardware.VectorOp():
            kinds = [view.element.attribute for view in views[:-1]]
            for slot in step.op.immediates or ():
                if not is_position(slot):
                    kinds.append(getattr(slot, "type"))  # noqa: B009
            compute = type_name(common_compute_type(kinds or [out.element.attribute]))
            widest = max(view.element.bytes for view in views)
            return cost.vector_cycles(
                target, step.op.fn.data, _size(region, step.axes[-1]), widest, compute, step.engine
            )
        case hardware.ReduceOp():
            source = views[0]
            reduced = {d for d, axis in enumerate(step.axes[-1]) if axis < 0}
            last = max((d for d, extent in enumerate(source.shape) if extent > 1), default=len(source.shape) - 1)
            compute = by_name(source.element.accumulator).name
            return cost.reduce_cycles(
                target, step.op.monoid.data, _size(region, step.axes[0]), source.element.bytes, compute,
                last in reduced, step.engine,
            )  # fmt: skip
        case _:
            elements = _size(region, step.axes[-1])
            return cost.fill_cycles(target, step.engine, out.memory, elements, out.element.bytes, out.element.compute)
