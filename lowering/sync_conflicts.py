"""Which instructions of different engines touch common bytes: what the events of a kernel have to order.

A *cell* is the bytes of one view at one address. Cells that share a byte are found once; walking the trace then shows,
for every instruction, how far each other engine must have come before it may start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from ..dialects import hardware
from .affine_bounds import Range
from .bufferize_layout import linear
from .sync_bytes import Region, bounding_counters, overlap, regions_of, runs_of, view_of
from .sync_clip import Roots, place_of
from .sync_trace import Body, Instruction, Trace, values_of


@dataclass(frozen=True)
class Pair:
    """Instructions with a conflict, and the least number of iterations of their innermost common body between them."""

    first: Instruction
    second: Instruction
    distance: int


@dataclass(frozen=True)
class Conflicts:
    """What must be ordered: per instance of the trace, and per pair of instructions.

    `needs`: (number of the instruction, row) → per engine, how many of its instances must have completed; only where
    that is more than what an earlier instance of the same engine needs.
    """

    needs: Mapping[tuple[int, int], tuple[int, ...]]
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, eq=False)
class _Cell:
    space: object
    instruction: Instruction
    writes: bool
    region: Region
    base: int
    low: int
    high: int


def conflicts_of(trace: Trace, roots: Roots) -> Conflicts:
    """The conflicts of a trace."""
    cells, accesses = _cells(trace, roots)
    meets = _meets(cells)
    needs: dict[tuple[int, int], tuple[int, ...]] = {}
    pairs: dict[tuple[int, int], int] = {}
    rows = _RowMaps()
    for core in range(trace.root.rows):
        _look(trace, core, cells, accesses, meets, rows, needs, pairs)
    table = trace.instructions
    return Conflicts(needs, tuple(Pair(table[a], table[b], distance) for (a, b), distance in pairs.items()))


def _look(
    trace: Trace,
    core: int,
    cells: Sequence[_Cell],
    accesses: Sequence[Sequence[Sequence[int]]],
    meets: Sequence[Sequence[int]],
    rows: _RowMaps,
    needs: dict[tuple[int, int], tuple[int, ...]],
    pairs: dict[tuple[int, int], int],
) -> None:
    """Adds what one core has to order."""
    last: dict[int, tuple[int, int]] = {}  # cell → instances of its engine up to its last access, and the row of that
    passed = [0] * len(trace.engines)
    needed = [[0] * len(trace.engines) for _ in trace.engines]
    for instruction, row in trace.walk(core):
        counts = needed[instruction.engine]
        touched = accesses[instruction.number][row]
        grown = False
        for cell in touched:
            for other in meets[cell]:
                if other not in last:
                    continue
                count, other_row = last[other]
                first = cells[other].instruction
                distance = rows.distance(first, other_row, instruction, row)
                key = (first.number, instruction.number)
                if distance < pairs.get(key, distance + 1):
                    pairs[key] = distance
                if counts[first.engine] < count:
                    counts[first.engine] = count
                    grown = True
        passed[instruction.engine] += 1
        for cell in touched:
            if meets[cell]:
                last[cell] = passed[instruction.engine], row
        if grown:
            needs[instruction.number, row] = tuple(counts)


def common_body(left: Body, right: Body) -> Body:
    """The innermost body around two others."""
    common = left.chain()[0]
    for a, b in zip(left.chain(), right.chain(), strict=False):
        if a is not b:
            break
        common = a
    return common


class _RowMaps:
    """Rows of a body as rows of the bodies around it."""

    def __init__(self) -> None:
        self.maps: dict[tuple[Body, Body], list[int]] = {}
        self.pairs: dict[tuple[Body, Body], tuple[list[int], list[int]]] = {}

    def distance(self, first: Instruction, first_row: int, second: Instruction, second_row: int) -> int:
        key = (first.body, second.body)
        found = self.pairs.get(key)
        if found is None:
            common = common_body(*key)
            found = self.pairs[key] = self.up(first.body, common), self.up(second.body, common)
        return found[1][second_row] - found[0][first_row]

    def up(self, body: Body, outer: Body) -> list[int]:
        found = self.maps.get((body, outer))
        if found is None:
            if body is outer:
                found = list(range(body.rows))
            else:
                assert body.parent is not None
                above = self.up(body.parent, outer)
                found = [above[row] for row in body.parent_rows]
            self.maps[body, outer] = found
        return found


def _cells(trace: Trace, roots: Roots) -> tuple[list[_Cell], list[list[list[int]]]]:
    """All cells, and per instruction and row the cells of its views."""
    cells: list[_Cell] = []
    accesses: list[list[list[int]]] = []
    for instruction in trace.instructions:
        body, op = instruction.body, instruction.op
        touched: list[list[int]] = [[] for _ in range(body.rows)]
        regions = _regions(instruction)
        for number, operand in enumerate(op.views):
            view = view_of(operand)
            space, start = place_of(view.buffer, roots)
            offsets = values_of(view.offset.data.results[0], view.counters, body)
            swept = _swept(view, body)
            known: dict[tuple[Region, int], int] = {}
            for row, offset in enumerate(offsets.tolist()):
                region = regions[row][number]
                if region is None:
                    continue
                for count, stride in swept[row]:
                    region, offset = region.swept(count, stride), offset + min(0, stride * (count - 1))
                cell = known.get((region, offset))
                if cell is None:
                    cell = known[region, offset] = len(cells)
                    base, runs = start + offset, runs_of(region)
                    low, high = base + int(runs[0, 0]), base + int(runs[-1, 1])
                    cells.append(_Cell(space, instruction, operand is op.output, region, base, low, high))
                touched[row].append(cell)
        accesses.append(touched)
    return cells, accesses


def _regions(instruction: Instruction) -> list[tuple[Region | None, ...]]:
    """Per row, the active regions of the views over the iterations that the row stands for."""
    body, op = instruction.body, instruction.op
    counters = bounding_counters(op)
    if not counters:
        return [regions_of(op, {})] * body.rows
    columns = [(body.counters[counter].tolist(), body.slack[counter].tolist()) for counter in counters]
    known: dict[tuple[Range, ...], tuple[Region | None, ...]] = {}
    found: list[tuple[Region | None, ...]] = []
    for row in range(body.rows):
        ranges = tuple((values[row], values[row] + slack[row]) for values, slack in columns)
        if ranges not in known:
            known[ranges] = regions_of(op, dict(zip(counters, ranges, strict=True)))
        found.append(known[ranges])
    return found


def _swept(view: hardware.ViewOp, body: Body) -> list[list[tuple[int, int]]]:
    """Per row, what the offset of a view sweeps over in the iterations that the row stands for: count and stride."""
    form = linear(view.offset.data.results[0])
    if form is None:  # slots only, or a loop that is kept whole
        form = _outside_mod(view.offset.data.results[0])
    columns = [(coefficient, body.slack[view.counters[d]].tolist()) for d, coefficient in form[1].items()]
    columns = [column for column in columns if any(column[1])]
    if not columns:
        return [[]] * body.rows
    return [[(slack[row] + 1, stride) for stride, slack in columns if slack[row]] for row in range(body.rows)]


def _outside_mod(expr: AffineExpr) -> tuple[int, dict[int, int]]:
    """The linear part of an offset, without what `mod` and `floordiv` make."""
    if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.Add:
        left, right = _outside_mod(expr.lhs), _outside_mod(expr.rhs)
        both = {d: left[1].get(d, 0) + right[1].get(d, 0) for d in {*left[1], *right[1]}}
        return left[0] + right[0], both
    return linear(expr) or (0, {})


def _meets(cells: Sequence[_Cell]) -> list[list[int]]:
    """Per cell, those of other engines that share a byte with it, at least one of the two being written."""
    result: list[list[int]] = [[] for _ in cells]
    spaces: dict[object, list[int]] = {}
    for number, cell in enumerate(cells):
        spaces.setdefault(cell.space, []).append(number)
    for members in spaces.values():
        if len({cells[n].instruction.engine for n in members}) < 2 or not any(cells[n].writes for n in members):
            continue
        members.sort(key=lambda n: cells[n].low)
        around: list[int] = []
        for n in members:
            here = cells[n]
            around = [other for other in around if cells[other].high > here.low]
            for other in around:
                there = cells[other]
                if (
                    (here.writes or there.writes)
                    and here.instruction.engine != there.instruction.engine
                    and overlap(there.region, here.region, here.base - there.base)
                ):
                    result[n].append(other)
                    result[other].append(n)
            around.append(n)
    return result
