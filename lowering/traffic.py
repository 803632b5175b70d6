"""Traffic of a program from its instructions, without executing them and without walking all iterations.

The active region of a DMA is counted dimension by dimension: dimensions whose bounds use the same loop counters are
enumerated together over these counters alone, independent ones are multiplied. 512 rows in tiles of 96 and 100 columns
in tiles of 32, in loops of 6 × 4: 5 tiles of 96 rows and 1 of 32, 3 of 32 columns and 1 of 4, so 15 of 96 × 32, and so
on. The bytes of one transfer come from the layouts of its sides (dialects/transfer.py), as the machine's do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from ..dialects import hardware
from ..dialects.affine_eval import Indices, evaluate, lower_bound, upper_bound
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.hardware_types import ViewType
from ..dialects.target import target_of
from ..dialects.target_model import Target
from ..dialects.transfer import Region, transfer_region, transfer_rows
from .sync_clip import loops_around

IntArray: TypeAlias = npt.NDArray[np.int64]


def predict(module: ModuleOp) -> dict[str, int]:
    """Bytes on each link ("gm->l1") over all launches of a hardware-level module; off-chip ones in granules."""
    total: Counter[str] = Counter()
    for _, links in predict_kernels(module):
        total.update(links)
    return dict(total)


def predict_kernels(module: ModuleOp) -> list[tuple[str, dict[str, int]]]:
    """Per launch, in order: the kernel's name and the bytes on each link."""
    target = target_of(module)
    kernels = {k.sym_name.data: kernel_links(k, target) for k in module.ops if isinstance(k, hardware.KernelOp)}
    found: list[tuple[str, dict[str, int]]] = []
    for program in [p for p in module.ops if isinstance(p, hardware.ProgramOp)]:
        for op in program.body.block.ops:
            if isinstance(op, hardware.LaunchOp):
                name = op.callee.string_value()
                if name not in kernels:
                    raise UserError(f"there is no kernel @{name}", op.location)
                found.append((name, dict(kernels[name])))
    return found


def kernel_links(kernel: hardware.KernelOp, target: Target) -> dict[str, int]:
    """Bytes on each link of one run of a kernel; links that nothing moves along are left out."""
    links: Counter[str] = Counter()
    for op in kernel.walk():
        if isinstance(op, hardware.DmaOp):
            source, *_, destination = (_Side(value) for value in op.views)
            moved = transfer_region if op.gather is None else transfer_rows
            move = target.move(source.memory, destination.memory)
            if move is None:
                raise UserError(
                    f"target '{target.name}' has no move from '{source.memory}' to '{destination.memory}'", op.location
                )
            for region, times in regions(op).items():
                links[f"{move.source}->{move.destination}"] += (
                    times * moved(target, move, source.layout, destination.layout, region).link_bytes
                )
    return dict(links)


class _Side:
    def __init__(self, value: SSAValue) -> None:
        assert isinstance(value.owner, hardware.ViewOp) and isinstance(value.type, ViewType)
        self.view = value.owner
        self.shape, self.memory = value.type.shape, value.type.memory.data
        self.layout = self.view.layout.layout(byte_width(value.type.element_type))


def regions(op: hardware.DmaOp) -> Counter[Region]:
    """The active regions of a transfer that are not empty, each with how many iterations have it.

    A region in a dimension without blocks counts as one that begins at 0: it has as many bytes in as many pieces.
    """
    sides = [_Side(value) for value in (op.views if op.gather is None else op.views[1:])]
    loops = list(loops_around(op))[::-1]
    shape = sides[-1].shape
    users = [_counters(sides, d) for d in range(len(shape))]
    groups = _groups(users, loops)
    found: Counter[Region] = Counter({((0, 0),) * len(shape): 1})
    for group in groups:
        dims = [d for d, used in enumerate(users) if used & group or (not used and group == set[SSAValue]())]
        counters, rows = _iterations([loop for loop in loops if loop.counter in group])
        table = np.zeros((rows, len(dims), 2), np.int64)
        for position, d in enumerate(dims):
            low, high = _bounds(sides, d, shape[d], counters, rows)
            if all(len(side.layout.dims[d]) == 1 for side in sides):
                low, high = low * 0, high - low
            table[:, position, 0], table[:, position, 1] = low, high
        table = table[np.all(table[:, :, 1] > table[:, :, 0], axis=1)]
        values, counts = np.unique(table.reshape(len(table), 2 * len(dims)), axis=0, return_counts=True)
        parts = [(row.reshape(-1, 2).tolist(), int(count)) for row, count in zip(values, counts, strict=True)]
        joined: Counter[Region] = Counter()
        for (region, times), (part, count) in product(found.items(), parts):
            whole = list(region)
            for d, (low, high) in zip(dims, part, strict=True):
                whole[d] = (low, high)
            joined[tuple(whole)] += times * count
        found = joined
    return found


def _along(sides: Sequence[_Side], d: int) -> list[_Side]:
    """The sides that vary along a dimension: indices have extent 1 where the row does."""
    return [side for side in sides if side.shape[d] == sides[-1].shape[d]]


def _counters(sides: Sequence[_Side], d: int) -> set[SSAValue]:
    """The counters that the bounds of a dimension use."""
    found: set[SSAValue] = set()
    for side in _along(sides, d):
        for attr in (side.view.start, side.view.valid):
            if attr is not None:
                found |= _used(attr.data.results[d], side.view.counters)
    return found


def _used(expr: AffineExpr, counters: Sequence[SSAValue]) -> set[SSAValue]:
    return {counters[part.position] for part in expr.dfs() if isinstance(part, AffineDimExpr)}


def _groups(users: Sequence[set[SSAValue]], loops: Sequence[hardware.ForOp]) -> list[set[SSAValue]]:
    """Counters that must be enumerated together: those of one dimension, those of a loop and of its bounds. The first
    group is empty and stands for dimensions without counters."""
    together = [*users]
    for loop in loops:
        bounds = [_used(expr, loop.lower_operands) for expr in loop.lower.data.results]
        bounds += [_used(expr, loop.upper_operands) for expr in loop.upper.data.results]
        together.append({loop.counter}.union(*bounds))
    groups: list[set[SSAValue]] = []
    for one in together:
        if one:
            touching = [group for group in groups if group & one]
            groups = [group for group in groups if not group & one]
            groups.append(one.union(*touching))
    return [set(), *groups]


def _iterations(loops: Sequence[hardware.ForOp]) -> tuple[dict[SSAValue, IntArray], int]:
    """The values of the counters of nested loops (outermost first) in all their iterations, and how many there are."""
    counters: dict[SSAValue, IntArray] = {}
    rows = 1
    for loop in loops:
        low = _column(lower_bound(loop.lower.data.results, [counters[v] for v in loop.lower_operands]), rows)
        high = _column(upper_bound(loop.upper.data.results, [counters[v] for v in loop.upper_operands]), rows)
        trips = np.maximum(high - low, 0)
        first = np.repeat(low, trips)
        done = np.repeat(np.cumsum(trips) - trips, trips)
        counters = {counter: np.repeat(values, trips) for counter, values in counters.items()}
        rows = int(trips.sum())
        counters[loop.counter] = first + np.arange(rows, dtype=np.int64) - done
    return counters, rows


def _bounds(
    sides: Sequence[_Side], d: int, extent: int, counters: dict[SSAValue, IntArray], rows: int
) -> tuple[IntArray, IntArray]:
    low, high = np.zeros(rows, np.int64), np.full(rows, extent, np.int64)
    for side in _along(sides, d):
        if side.view.start is not None:
            low = np.maximum(low, _evaluated(side.view.start, d, side.view.counters, counters, rows))
        if side.view.valid is not None:
            high = np.minimum(high, _evaluated(side.view.valid, d, side.view.counters, counters, rows))
    return low, high


def _evaluated(
    attr: AffineMapAttr, result: int, operands: Sequence[SSAValue], counters: dict[SSAValue, IntArray], rows: int
) -> IntArray:
    return _column(evaluate(attr.data.results[result], [counters.get(value, 0) for value in operands]), rows)


def _column(found: Indices, rows: int) -> IntArray:
    return np.broadcast_to(np.asarray(found, np.int64), (rows,))
