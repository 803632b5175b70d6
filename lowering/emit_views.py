"""Where the bytes of a tile-level buffer are at the hardware level, as affine expressions of the loop counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ..dialects import hardware
from ..dialects.errors import UserError
from ..dialects.hardware_types import ViewType
from ..dialects.layout import Layout, LayoutAttr
from .affine_bounds import Range, reach
from .bufferize_layout import linear
from .regions import add, scaled, total

Valid = tuple[AffineExpr | None, ...]
"""Per dimension how many elements are valid, None where all of the extent is."""


@dataclass(frozen=True)
class Place:
    """Bytes: a hardware buffer, the offset in it and the layout. Expressions are over all enclosing counters."""

    buffer: SSAValue
    memory: str
    element: Attribute
    shape: tuple[int, ...]
    layout: Layout
    offset: AffineExpr
    valid: Valid
    start: Valid = ()

    def with_valid(self, valid: Valid) -> Place:
        return replace(self, valid=valid)


class Loops:
    """The counters of the loops around the current place: dimension n of every expression is counter n."""

    def __init__(self) -> None:
        self.counters: list[SSAValue] = []
        self.rename: dict[SSAValue, SSAValue] = {}  # counter of a tile loop → that of the loop made from it
        self.ranges: list[Range] = []

    @property
    def depth(self) -> int:
        return len(self.counters)

    def enter(self, counter: SSAValue, made: SSAValue, values: Range) -> None:
        """Goes into the body of a loop whose counter is in `values`."""
        self.counters.append(counter)
        self.rename[counter] = made
        self.ranges.append(values)

    def leave(self) -> None:
        self.counters.pop()
        self.ranges.pop()

    def range(self, counter: SSAValue) -> Range:
        return self.ranges[self.counters.index(counter)]

    def dim(self, counter: SSAValue) -> AffineExpr:
        return AffineDimExpr(self.counters.index(counter))

    def linearised(self) -> AffineExpr:
        """One number that counts the iterations of all loops (a loop of varying bounds counts as its longest)."""
        result: AffineExpr = AffineConstantExpr(0)
        for position, (low, high) in enumerate(self.ranges):
            here = add(AffineDimExpr(position), AffineConstantExpr(-low))
            result = add(scaled(result, high - low + 1), here)
        return result

    def view(self, place: Place) -> hardware.ViewOp:
        """The `hardware.view` of a place, over the counters that it depends on."""
        exprs = [place.offset, *(e for e in (*place.valid, *place.start) if e is not None)]
        used = sorted({dim.position for expr in exprs for dim in expr.dfs() if isinstance(dim, AffineDimExpr)})
        renumber: list[AffineExpr] = [AffineConstantExpr(0)] * self.depth
        for position, dim in enumerate(used):
            renumber[dim] = AffineDimExpr(position)

        def attr(results: Sequence[AffineExpr]) -> AffineMapAttr:
            return AffineMapAttr(
                AffineMap(len(used), 0, tuple(e.replace_dims_and_symbols(renumber, []) for e in results))
            )

        properties: dict[str, Attribute] = {
            "offset": attr([place.offset]),
            "layout": LayoutAttr.from_layout(place.layout),
        }
        if any(expr is not None for expr in place.valid):
            ends = [AffineConstantExpr(n) if e is None else e for n, e in zip(place.shape, place.valid, strict=True)]
            properties["valid"] = attr(ends)
        if any(expr is not None for expr in place.start):
            properties["start"] = attr([AffineConstantExpr(0) if e is None else e for e in place.start])
        return hardware.ViewOp.create(
            operands=[place.buffer, *(self.rename[self.counters[d]] for d in used)],
            result_types=[ViewType(place.shape, place.element, place.memory)],
            properties=properties,
        )


def substituted(map_: AffineMap, counters: Sequence[AffineExpr], positions: Sequence[AffineExpr]) -> list[AffineExpr]:
    """Results of a map (counters…, positions…) over other expressions, in linear normal form where they have one."""
    return [simplified(e.replace_dims_and_symbols([*counters, *positions], [])) for e in map_.results]


def simplified(expr: AffineExpr) -> AffineExpr:
    """Constants folded, one term per counter."""
    found = linear(expr)
    if found is None:
        return expr
    return total([*(scaled(AffineDimExpr(n), c) for n, c in found[1].items()), AffineConstantExpr(found[0])])


def bounded(expr: AffineExpr, extent: int, ranges: Sequence[Range]) -> AffineExpr | None:
    """None for an extent that is always valid."""
    return None if reach(expr, ranges)[0] >= extent else expr


def meet(left: AffineExpr | None, right: AffineExpr | None) -> AffineExpr | None:
    """The smaller of two valid extents. Raises UserError where no affine expression says which that is."""
    if left is None or right is None:
        return right if left is None else left
    if left == right:
        return left
    if isinstance(left, AffineConstantExpr) and isinstance(right, AffineConstantExpr):
        return left if left.value <= right.value else right
    a, b = linear(left), linear(right)
    if a is not None and b is not None and a[1] == b[1]:
        return left if a[0] <= b[0] else right
    raise UserError(f"valid extents {left} and {right} of one dimension cannot be compared")


def address(layout: Layout, index: Sequence[AffineExpr]) -> AffineExpr:
    """Byte offset of the element at an index: strides times positions; floordiv and mod only inside blocks."""
    parts: list[AffineExpr] = []
    for atoms, position in zip(layout.dims, index, strict=True):
        parts += _digits(atoms, position)
    return simplified(total(parts))


def _digits(atoms: Sequence[tuple[int, int]], position: AffineExpr) -> list[AffineExpr]:
    if isinstance(position, AffineConstantExpr) and position.value == 0:
        return []
    if len(atoms) == 1:
        return [scaled(position, atoms[0][1])]
    block = 1
    for extent, _ in atoms[1:]:
        block *= extent
    found = linear(position)
    if found is not None and all(value % block == 0 for value in (found[0], *found[1].values())):
        whole = total(
            [
                *(scaled(AffineDimExpr(n), c // block) for n, c in found[1].items()),
                AffineConstantExpr(found[0] // block),
            ]
        )
        return [scaled(whole, atoms[0][1])]
    return [scaled(position // block, atoms[0][1]), *_digits(atoms[1:], position % block)]
