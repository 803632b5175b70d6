"""Whether a program made for larger sizes may stand in for one made for smaller sizes, its inputs padded.

Both are read and decomposed, and compared op by op. The claim for every value: at the indices that the value has in the
small program, the large one has the same elements, whatever stands behind them. Each op either keeps the claim (`map`,
`iota`, a reduction over other dimensions), keeps it once its operands are masked with what changes nothing (a reduction
or a product over a padded dimension), or is checked element by element (`view`, constants). What is left is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.dtypes import dense_array, element
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_functions import entry_function
from tilewright.dialects.graph_primitives import (
    ConstantOp,
    ContractOp,
    IotaOp,
    MapOp,
    ReduceOp,
    ViewOp,
    WeightOp,
    parse_spec,
)
from tilewright.dialects.graph_types import get_ints, static_shape
from tilewright.dialects.index_map import gather_box
from tilewright.dialects.registry import make_context
from tilewright.lowering.decompose import DecomposePass

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
Reader: TypeAlias = Callable[[str, str], Array]

_OUTSIDE = -2
"""In a table of where elements come from: behind the end of the small operand. -1 is the fill."""


@dataclass(frozen=True, order=True)
class Mask:
    """Operand `operand` of op `op` (by its place in the function) is to be masked along dimension `dim`."""

    op: int
    operand: int
    dim: int


@dataclass(frozen=True)
class Findings:
    """What makes padding harmless: masks, and stored constants (by their place) that depend on the sizes."""

    masks: frozenset[Mask]
    constants: frozenset[int]

    def __or__(self, other: Findings) -> Findings:
        return Findings(self.masks | other.masks, self.constants | other.constants)


@dataclass(frozen=True)
class Primitives:
    """A program in primitives, and what reads its weights."""

    module: ModuleOp
    read: Reader

    @staticmethod
    def of(module: ModuleOp, read: Reader) -> Primitives:
        """Raises UserError for what cannot be decomposed."""
        copy = module.clone()
        DecomposePass(kernels=False).apply(make_context(), copy)
        return Primitives(copy, read)

    @property
    def function(self) -> FuncOp:
        return entry_function(self.module)

    @property
    def ops(self) -> list[Operation]:
        return list(self.function.body.block.ops)

    def stored(self, op: ConstantOp | WeightOp) -> Array:
        """The elements of a constant."""
        return dense_array(op.value) if isinstance(op, ConstantOp) else self.read(op.file.data, op.key.data)


def compare(large: Primitives, small: Primitives, dims: str) -> Findings:
    """What makes the large program, its inputs padded, compute what the small one does. `dims` names what differs.

    Raises UserError, at the op, where that cannot be shown.
    """
    return _Comparison(large, small, dims).run()


class _Comparison:
    def __init__(self, large: Primitives, small: Primitives, dims: str) -> None:
        self.large, self.small, self.dims = large, small, dims
        self.twin: dict[SSAValue, SSAValue] = {}  # value of the large program → of the small one
        self.masks: set[Mask] = set()
        self.constants: set[int] = set()

    def refuse(self, op: Operation, why: str) -> UserError:
        return UserError(f"padding {self.dims} may change the results: {why}", op.location)

    def run(self) -> Findings:
        left, right = self.large.function.body.block, self.small.function.body.block
        if len(left.args) != len(right.args):
            raise self.refuse(self.large.function, "the sizes decide which inputs there are")
        self.twin.update(zip(left.args, right.args, strict=True))
        ops, others = self.large.ops, self.small.ops
        for place, (op, other) in enumerate(zip(ops, others, strict=False)):
            if _kind(op) != _kind(other) or [self.twin[v] for v in op.operands] != list(other.operands):
                raise self.refuse(op, "the sizes decide which operations there are")
            for one, two in zip(op.results, other.results, strict=True):
                self.twin[one] = two
                shape, less = static_shape(one.type), static_shape(two.type)
                if len(shape) != len(less) or element(one.type) != element(two.type):
                    raise self.refuse(op, f"'{op.name}' is of another rank or type at other sizes")
                if any(s > b for s, b in zip(less, shape, strict=True)):
                    raise self.refuse(op, f"'{op.name}' is larger at smaller sizes")
            self.check(place, op, other)
        if len(ops) != len(others):
            raise self.refuse(ops[-1], "the sizes decide which operations there are")
        return Findings(frozenset(self.masks), frozenset(self.constants))

    def is_padded(self, value: SSAValue, dim: int) -> bool:
        return static_shape(value.type)[dim] != static_shape(self.twin[value].type)[dim]

    def padded(self, value: SSAValue) -> list[int]:
        """The dimensions of a value that differ."""
        return [d for d in range(len(static_shape(value.type))) if self.is_padded(value, d)]

    def check(self, place: int, op: Operation, other: Operation) -> None:
        if isinstance(op, ConstantOp | WeightOp) and isinstance(other, ConstantOp | WeightOp):
            if not _is_start(self.small.stored(other), self.large.stored(op)):
                self.constants.add(place)
        elif isinstance(op, ViewOp) and isinstance(other, ViewOp):
            self.view(op, other)
        elif op.regions:
            raise self.refuse(op, f"'{op.name}' is not looked into")
        elif op.properties != other.properties:
            raise self.refuse(op, f"'{op.name}' has other attributes at other sizes")
        elif not any(self.padded(value) for value in (*op.operands, *op.results)):
            pass
        elif isinstance(op, MapOp):
            self.map(op)
        elif isinstance(op, ReduceOp):
            rank = len(static_shape(op.args[0].type))
            axes = [a % rank for a in get_ints(op.properties, "axes", None, op.what())]
            self.masks.update(Mask(place, 0, axis) for axis in axes if self.is_padded(op.args[0], axis))
        elif isinstance(op, ContractOp):
            left, right, result = parse_spec(op.spec.data)
            for operand, letters in enumerate((left, right)):
                dims = [d for d, letter in enumerate(letters) if letter not in result]
                self.masks.update(Mask(place, operand, d) for d in dims if self.is_padded(op.args[operand], d))
        elif not isinstance(op, IotaOp | ReturnOp):
            raise self.refuse(op, f"'{op.name}' is not known to leave padding alone")

    def map(self, op: MapOp) -> None:
        """Each dimension of an operand is either the result's or of extent 1, the same way at both sizes."""
        shape, small = static_shape(op.res.type), static_shape(self.twin[op.res].type)
        for value in op.args:
            own, less = static_shape(value.type), static_shape(self.twin[value].type)
            for d in range(-len(own), 0):
                if (own[d] == shape[d]) != (less[d] == small[d]) and not small[d] == less[d] == 1:
                    raise self.refuse(op, f"'{op.name}' repeats an operand at one of the sizes")

    def view(self, op: ViewOp, other: ViewOp) -> None:
        if op.properties == other.properties and not any(self.padded(v) for v in (*op.args, op.res)):
            return
        shape = static_shape(other.res.type)
        inside = [static_shape(value.type) for value in other.args]
        if op.fill != other.fill:
            raise self.refuse(op, "a view is filled in another way at other sizes")
        found, wanted = _origins(op, shape, inside), _origins(other, shape, inside)
        if not all(np.array_equal(one, two) for one, two in zip(found, wanted, strict=True)):
            raise self.refuse(op, "elements of the padding come between or beside those of the input")


def _kind(op: Operation) -> str:
    """The name of an op; how a constant is stored is no difference."""
    return ConstantOp.name if isinstance(op, WeightOp) else op.name


def _is_start(small: Array, large: Array) -> bool:
    """Whether an array is what another one begins with, in all dimensions."""
    if small is large:
        return True
    if any(s > b for s, b in zip(small.shape, large.shape, strict=True)):
        return False
    start = large[tuple(slice(size) for size in small.shape)]
    return start.tobytes() == small.tobytes()


def _origins(op: ViewOp, shape: Shape, inside: Sequence[Shape]) -> tuple[Array, Array]:
    """For the elements of a result's start of this shape: which operand they are from, and their place in the start of
    it that `inside` gives."""
    pieces, places = np.full(shape, -1), np.full(shape, -1, np.int64)
    for number, (map_, box, value) in enumerate(zip(op.affine_maps, op.boxes, op.args, strict=True)):
        cut = [(low, min(high, size)) for (low, high), size in zip(box, shape, strict=True)]
        if not all(low < high for low, high in cut):
            continue
        source = static_shape(value.type)
        part = tuple(slice(low, high) for low, high in cut)
        order = np.arange(math.prod(source)).reshape(source)
        flat = np.broadcast_to(gather_box(map_, cut, order), [high - low for low, high in cut])
        index = np.unravel_index(flat, source) if source else ()
        known = np.ones(flat.shape, bool)
        own = np.zeros(flat.shape, np.int64)
        for at, size in zip(index, inside[number], strict=True):
            known &= at < size
            own = own * size + at
        pieces[part], places[part] = number, np.where(known, own, _OUTSIDE)
    return pieces, places


def extents(program: Primitives, masks: Iterable[Mask]) -> dict[Mask, int]:
    """The extent of each masked dimension in one of the programs."""
    ops = program.ops
    return {mask: static_shape(ops[mask.op].operands[mask.operand].type)[mask.dim] for mask in masks}
