"""Traffic of a program from its instructions, without executing them and without walking the iterations.

For each DMA the different active regions are counted over the counters that its bounds use; the bytes of one transfer
come from the layouts of its sides (`dialects.transfer`), which is also how the machine counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import hardware
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.hardware_types import ViewType
from ..dialects.layout import Layout
from ..dialects.target import target_of
from ..dialects.target_model import Target
from ..dialects.transfer import transfer

Grid: TypeAlias = Mapping[SSAValue, npt.NDArray[np.int64]]
Links: TypeAlias = Counter[str]


def predict(module: ModuleOp) -> dict[str, int]:
    """Bytes on each link ("gm->l1") over all launches of a hardware-level module; off-chip ones in granules."""
    total: Links = Counter()
    for links in predict_launches(module):
        total.update(links[1])
    return dict(total)


def predict_launches(module: ModuleOp) -> list[tuple[str, dict[str, int]]]:
    """Per launch, in order: the kernel's name and the bytes on each link."""
    target = target_of(module)
    kernels = {k.sym_name.data: kernel_links(k, target) for k in module.ops if isinstance(k, hardware.KernelOp)}
    found: list[tuple[str, dict[str, int]]] = []
    for program in [p for p in module.ops if isinstance(p, hardware.ProgramOp)]:
        for op in program.body.block.ops:
            if isinstance(op, hardware.LaunchOp):
                name = op.callee.string_value()
                found.append((name, dict(kernels[name])))
    return found


def kernel_links(kernel: hardware.KernelOp, target: Target) -> Links:
    """Bytes on each link of one run of a kernel."""
    links: Links = Counter()
    for op in kernel.walk():
        if isinstance(op, hardware.DmaOp):
            source, destination = (_view(value) for value in op.views)
            move = target.move(_type(source).memory.data, _type(destination).memory.data)
            if move is None:
                raise UserError(f"target '{target.name}' has no move for this transfer", op.location)
            layouts = [_layout(view) for view in (source, destination)]
            name = f"{move.source}->{move.destination}"
            for extents, times in regions(op, source, destination):
                moved = transfer(target, move, layouts[0], layouts[1], extents)
                links[name] += times * moved.link_bytes
    return links


def _view(value: SSAValue) -> hardware.ViewOp:
    assert isinstance(value.owner, hardware.ViewOp)
    return value.owner


def _type(view: hardware.ViewOp) -> ViewType:
    assert isinstance(view.res.type, ViewType)
    return view.res.type


def _layout(view: hardware.ViewOp) -> Layout:
    return view.layout.layout(byte_width(_type(view).element_type))


def loops_around(op: Operation) -> list[hardware.ForOp]:
    """The loops around an op, outermost first."""
    found: list[hardware.ForOp] = []
    parent = op.parent_op()
    while isinstance(parent, hardware.ForOp):
        found.append(parent)
        parent = parent.parent_op()
    return found[::-1]


def trips_of(loop: hardware.ForOp) -> int:
    """Constant trip count. Raises UserError for bounds that depend on counters."""
    low, high = loop.lower.data.results[0], loop.upper.data.results[0]
    if not isinstance(low, AffineConstantExpr) or not isinstance(high, AffineConstantExpr):
        raise UserError("a loop with bounds that depend on counters cannot be predicted", loop.location)
    return max(0, high.value - low.value)


def regions(op: Operation, source: hardware.ViewOp, destination: hardware.ViewOp) -> list[tuple[tuple[int, ...], int]]:
    """The extents that the active region of a transfer takes, and how many iterations have each; none that is empty."""
    loops = loops_around(op)
    bounding = [a for view in (source, destination) for a in (view.valid, view.start) if a is not None]
    used = {
        counter
        for view in (source, destination)
        for attr in (view.valid, view.start)
        if attr is not None
        for expr in attr.data.results
        for dim in expr.dfs()
        if isinstance(dim, AffineDimExpr)
        for counter in [view.counters[dim.position]]
    }
    inner = [loop for loop in loops if loop.counter in used]
    times = prod(trips_of(loop) for loop in loops if loop.counter not in used)
    if not bounding:
        return [(_type(source).shape, times)] if times else []
    axes = [np.arange(trips_of(loop), dtype=np.int64) for loop in inner]
    mesh: list[npt.NDArray[np.int64]] = list(np.meshgrid(*axes, indexing="ij")) if axes else []
    grid = {loop.counter: values.ravel() for loop, values in zip(inner, mesh, strict=True)}
    size = prod(len(axis) for axis in axes)
    rows: list[npt.NDArray[np.int64]] = []
    for d, extent in enumerate(_type(source).shape):
        low, high = np.zeros(size, np.int64), np.full(size, extent, np.int64)
        for view in (source, destination):
            low = np.maximum(low, _bound(view.start, view, d, 0, grid, size))
            high = np.minimum(high, _bound(view.valid, view, d, extent, grid, size))
        rows.append(np.maximum(high - low, 0))
    table = np.stack(rows, axis=1) if rows else np.zeros((size, 0), np.int64)
    values, counts = np.unique(table, axis=0, return_counts=True)
    return [
        (tuple(int(v) for v in row), int(count) * times)
        for row, count in zip(values, counts, strict=True)
        if all(row) and times
    ]


def _bound(
    attr: AffineMapAttr | None, view: hardware.ViewOp, d: int, default: int, grid: Grid, size: int
) -> npt.NDArray[np.int64]:
    if attr is None:
        return np.full(size, default, np.int64)
    counters = [grid.get(counter) for counter in view.counters]
    return np.broadcast_to(_evaluate(attr.data.results[d], counters), (size,))


def _evaluate(expr: AffineExpr, counters: Sequence[npt.NDArray[np.int64] | None]) -> npt.NDArray[np.int64]:
    match expr:
        case AffineConstantExpr(value=value):
            return np.array(value, np.int64)
        case AffineDimExpr(position=position):
            values = counters[position]
            assert values is not None
            return values
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = _evaluate(lhs, counters), _evaluate(rhs, counters)
            match kind:
                case AffineBinaryOpKind.Add:
                    return left + right
                case AffineBinaryOpKind.Mul:
                    return left * right
                case AffineBinaryOpKind.Mod:
                    return left % right
                case AffineBinaryOpKind.FloorDiv:
                    return left // right
                case _:
                    return -(-left // right)
        case _:
            raise UserError(f"cannot evaluate {expr}")
