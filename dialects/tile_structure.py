"""Ops of the tile dialect that hold others or name bytes: kernels and launches, loops, buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import (
    AffineMapAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from .dtypes import byte_width
from .graph_types import symbols_of
from .tile_base import element_of, shape_of
from .tile_types import BufferType


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer. Inside a loop with `slots = N`, iteration i uses slot i mod N (loops linearised together).

    `offset` (bytes from the start of the memory, set by `plan`) is where slot 0 lies.
    """

    name = "tile.alloc"
    res = var_result_def(BufferType)
    slots = opt_prop_def(IntegerAttr)
    offset = opt_prop_def(IntegerAttr)

    def verify_(self) -> None:
        if len(self.res) != 1:
            raise VerifyException("'tile.alloc' has one result")
        if self.slots is not None and self.slots.value.data < 1:
            raise VerifyException("'tile.alloc' needs at least one slot")
        if self.offset is not None and self.offset.value.data < 0:
            raise VerifyException("'tile.alloc' offset must not be negative")
        kind = self.res[0].type
        if kind.layout.layout(byte_width(kind.element_type)).overlaps:
            raise VerifyException("'tile.alloc' layout puts two elements on the same bytes")


@irdl_op_definition
class AliasOp(IRDLOperation):
    """A contiguous tensor (or off-chip buffer) read with another shape of the same bytes."""

    name = "tile.alias"
    traits = traits_def(Pure())
    args = var_operand_def()
    res = var_result_def()

    def verify_(self) -> None:
        if len(self.args) != 1 or len(self.res) != 1:
            raise VerifyException("'tile.alias' takes one value and gives one")
        source, target = shape_of(self.args[0]), shape_of(self.res[0])
        if _count(source) != _count(target) or element_of(self.args[0]) != element_of(self.res[0]):
            raise VerifyException(f"'tile.alias' cannot read {list(source)} as {list(target)}")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a loop with the carried values of the next iteration."""

    name = "tile.yield"
    traits = traits_def(IsTerminator())
    args = var_operand_def()


Bound: TypeAlias = tuple[AffineMap, Sequence[SSAValue]]
"""A bound of a loop that is not constant: a map of counters, and these."""


@irdl_op_definition
class ForOp(IRDLOperation):
    """`%r = tile.for %i = 0 to 8 iter (%a = %init) {axis, kind} : T { … tile.yield %next }`.

    Bounds are affine maps of outer counters (constants included): from the greatest of the results of `lower` to the
    least of those of `upper`; no iteration where that is not above. `axis` names the axis of the group that the
    loop walks, `kind` is "grid" (independent iterations), "stream" or "inner". Carried values keep their types.
    `cores = n`: the iterations of a grid loop are divided among n cores, in order, each a run of as many as it can be;
    loops over the same axis alike.
    """

    name = "tile.for"
    lower_operands = var_operand_def(IndexType)
    upper_operands = var_operand_def(IndexType)
    inits = var_operand_def()
    res = var_result_def()
    lower = prop_def(AffineMapAttr)
    upper = prop_def(AffineMapAttr)
    axis = opt_prop_def(StringAttr)
    kind = opt_prop_def(StringAttr)
    cores = opt_prop_def(IntegerAttr)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        upper: int | Bound,
        inits: Sequence[SSAValue],
        body: Region,
        axis: str | None = None,
        kind: str | None = None,
        lower: int | Bound = 0,
        cores: int = 1,
    ) -> None:
        """A loop; a bound is a number, or a map and the counters that it is of."""
        (low, lowers), (high, uppers) = (
            (AffineMap.constant_map(bound), ()) if isinstance(bound, int) else bound for bound in (lower, upper)
        )
        super().__init__(
            operands=[list(lowers), list(uppers), list(inits)],
            result_types=[[init.type for init in inits]],
            properties={
                "lower": AffineMapAttr(low),
                "upper": AffineMapAttr(high),
                "axis": StringAttr(axis) if axis else None,
                "kind": StringAttr(kind) if kind else None,
                "cores": IntegerAttr(cores, i64) if cores > 1 else None,
            },
            regions=[body],
        )

    @property
    def counter(self) -> SSAValue:
        return self.body.block.args[0]

    @property
    def yielded(self) -> Operation:
        last = self.body.block.last_op
        assert last is not None
        return last

    def verify_(self) -> None:
        args = self.body.block.args
        if not args or not isinstance(args[0].type, IndexType):
            raise VerifyException("'tile.for' body starts with an index counter")
        carried = [arg.type for arg in args[1:]]
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("'tile.for' body ends in tile.yield")
        for what, types in (
            ("initial", [init.type for init in self.inits]),
            ("yielded", [value.type for value in last.args]),
            ("result", [result.type for result in self.res]),
        ):
            if types != carried:
                raise VerifyException(f"'tile.for' {what} types {_list(types)} differ from carried {_list(carried)}")
        verify_bounds(self.name, self.lower, len(self.lower_operands), self.upper, len(self.upper_operands))
        if self.kind is not None and self.kind.data not in ("grid", "stream", "inner"):
            raise VerifyException("'tile.for' kind is one of grid, stream, inner")
        if self.cores is not None:
            self.verify_cores(self.cores.value.data)

    def verify_cores(self, cores: int) -> None:
        """A loop divided among cores has independent iterations, and each core knows its own."""
        if cores < 1:
            raise VerifyException("'tile.for' is divided among at least one core")
        if self.kind is None or self.kind.data != "grid" or self.inits:
            raise VerifyException("'tile.for' divided among cores is of kind grid and carries nothing")
        if self.lower_operands or self.upper_operands:
            raise VerifyException("'tile.for' divided among cores has constant bounds")
        around = self.parent_op()
        while isinstance(around, ForOp):
            if around.kind is None or around.kind.data != "grid":
                raise VerifyException("'tile.for' divided among cores stands in grid loops only")
            around = around.parent_op()


def verify_bounds(name: str, lower: AffineMapAttr, lowers: int, upper: AffineMapAttr, uppers: int) -> None:
    """Loop bounds are maps with at least one result over as many counters as are given."""
    for what, attr, count in (("lower", lower, lowers), ("upper", upper, uppers)):
        if attr.data.num_dims != count or not attr.data.results:
            raise VerifyException(f"'{name}' {what} bound must map {count} counters to one value or more")


def verify_symbols(kernel: Operation, names: Sequence[str]) -> None:
    """The maps of a kernel use its symbolic dimensions (s0 is the first of `names`) and no other symbols."""
    for op in kernel.walk():
        maps = [attr.data for attr in op.properties.values() if isinstance(attr, AffineMapAttr)]
        if any(map_.num_symbols > len(names) for map_ in maps):
            has = f"its symbolic dimensions are {', '.join(names)}" if names else "it has no symbolic dimensions"
            raise VerifyException(f"a map of '{op.name}' uses symbols that '{kernel.name}' does not have: {has}")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """`tile.kernel @k(%x: T) -> (%o: T) { … }`: block arguments are the inputs, then the outputs.

    `function_type` gives inputs and outputs; `schedule` is the decision that produced the kernel.
    """

    name = "tile.kernel"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    schedule = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def verify_(self) -> None:
        kinds = [*self.function_type.inputs, *self.function_type.outputs]
        if [arg.type for arg in self.body.block.args] != kinds:
            raise VerifyException(f"'tile.kernel' @{self.sym_name.data} arguments differ from its function type")
        for kind in kinds:
            if not isinstance(kind, TensorType | BufferType):
                raise VerifyException(f"'tile.kernel' arguments are tensors or off-chip buffers, got {kind}")
        verify_symbols(self, symbols_of(kinds))

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        return tuple(self.body.block.args[: len(self.function_type.inputs)])

    @property
    def outputs(self) -> tuple[SSAValue, ...]:
        return tuple(self.body.block.args[len(self.function_type.inputs) :])


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """`%o = tile.launch %x {callee = @k} : T` (value form) or `tile.launch %x, %o {callee = @k, into}` (buffers)."""

    name = "tile.launch"
    args = var_operand_def()
    res = var_result_def()
    callee = prop_def(SymbolRefAttr)
    into = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        if self.into is not None and self.res:
            raise VerifyException("'tile.launch' with 'into' has no result")


def _list(types: Sequence[Attribute]) -> str:
    return "(" + ", ".join(map(str, types)) + ")"


def _count(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total
