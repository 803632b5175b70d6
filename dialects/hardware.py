"""The hardware dialect: instructions on engines, views of memories, loops and counting events.

`args` is the one operand list of each op: views first (inputs, then the output last), then loop counters.
A view's *active region* is, per dimension, [max(start, 0), min(valid, extent)).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import IsolatedFromAbove, NoTerminator, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from .hardware_types import ViewType
from .instruction_rules import verify_map, verify_name, verify_reduce
from .layout import LayoutAttr
from .output_stage import OutputStage
from .scalar import MONOIDS, TABLE
from .tile_structure import verify_bounds, verify_symbols
from .tile_types import BufferType

ROLES = ("input", "output", "constant", "weight", "workspace", "local")


@irdl_op_definition
class BufferOp(IRDLOperation):
    """Bytes of one memory at a planned place.

    `offset` is the byte address of slot 0, `slots` how many copies lie behind one another. `role` says whose bytes
    they are; inputs and outputs are numbered by `index`; a constant has its `value`, a weight its `file` and `key`.
    """

    name = "hardware.buffer"
    res = result_def(BufferType)
    offset = prop_def(IntegerAttr)
    slots = opt_prop_def(IntegerAttr)
    role = prop_def(StringAttr)
    index = opt_prop_def(IntegerAttr)
    label = opt_prop_def(StringAttr)
    value = opt_prop_def(Attribute)
    file = opt_prop_def(StringAttr)
    key = opt_prop_def(StringAttr)

    def verify_(self) -> None:
        role = self.role.data
        if role not in ROLES:
            raise VerifyException(f"'hardware.buffer' role is one of {', '.join(ROLES)}, got '{role}'")
        if self.offset.value.data < 0 or (self.slots is not None and self.slots.value.data < 1):
            raise VerifyException("'hardware.buffer' offset is ≥ 0 and slots ≥ 1")
        if (role in ("input", "output")) != (self.index is not None):
            raise VerifyException("'hardware.buffer' has an index exactly if it is an input or an output")
        if (role == "constant") != (self.value is not None) or (role == "weight") != (self.key is not None):
            raise VerifyException("'hardware.buffer' has a value if constant, file and key if weight")


@irdl_op_definition
class ViewOp(IRDLOperation):
    """`args` = buffer, counters…: what one operand of an instruction touches.

    `offset`: counters → bytes from the buffer's start (may contain `mod`); `layout`: extents and strides;
    `valid`, `start`: counters → bounds of the active region (default: the whole extent, 0).
    """

    name = "hardware.view"
    traits = traits_def(Pure())
    args = var_operand_def()
    res = result_def(ViewType)
    offset = prop_def(AffineMapAttr)
    layout = prop_def(LayoutAttr)
    valid = opt_prop_def(AffineMapAttr)
    start = opt_prop_def(AffineMapAttr)

    @property
    def buffer(self) -> SSAValue:
        return self.args[0]

    @property
    def counters(self) -> tuple[SSAValue, ...]:
        return tuple(self.args[1:])

    def verify_(self) -> None:
        if not self.args or not isinstance(self.args[0].type, BufferType):
            raise VerifyException("'hardware.view' starts with a buffer")
        buffer, view = self.args[0].type, self.res.type
        assert isinstance(view, ViewType)
        if view.memory != buffer.memory or view.element_type != buffer.element_type:
            raise VerifyException("'hardware.view' keeps memory and element type of its buffer")
        counters = len(self.args) - 1
        rank = len(view.shape)
        for what, attr, results in (
            ("offset", self.offset, 1),
            ("valid", self.valid, rank),
            ("start", self.start, rank),
        ):
            if attr is not None and (attr.data.num_dims != counters or len(attr.data.results) != results):
                raise VerifyException(f"'hardware.view' {what} must map {counters} counters to {results} values")


class InstructionOp(IRDLOperation):
    """One instruction of one engine. Views first (inputs, then the output last), then counters.

    `fresh`: the output's whole extent is re-poisoned before its active region is written.
    """

    args = var_operand_def()
    engine = prop_def(StringAttr)
    fresh = opt_prop_def(UnitAttr)

    @property
    def views(self) -> tuple[SSAValue, ...]:
        return tuple(arg for arg in self.args if isinstance(arg.type, ViewType))

    @property
    def inputs(self) -> tuple[SSAValue, ...]:
        return self.views[:-1]

    @property
    def output(self) -> SSAValue:
        return self.views[-1]

    @property
    def counters(self) -> tuple[SSAValue, ...]:
        return tuple(arg for arg in self.args if isinstance(arg.type, IndexType))

    def shape(self, value: SSAValue) -> tuple[int, ...]:
        assert isinstance(value.type, ViewType)
        return value.type.shape

    def expect_inputs(self, *counts: int) -> None:
        if not self.views or len(self.inputs) not in counts:
            raise VerifyException(f"'{self.name}' takes {' or '.join(map(str, counts))} input views and one output")


@irdl_op_definition
class DmaOp(InstructionOp, OutputStage):
    """`args` = source, destination: copies the active region (equal shapes); scales, activates and casts on the way if
    the move can (`output_stage.py`).

    `early`: it loads from off chip, and where its engine has executed nothing else since the launch it need not wait
    for the launch before to end.

    `gather`: `args` = source, indices, destination. The source has one dimension more, the first: the rows to choose
    from. The row at each place of the destination is the one that the i32 there in `indices` says; a dimension of
    extent n of the destination has extent n in one of the two and 1 in the other.
    """

    name = "hardware.dma"
    gather = opt_prop_def(UnitAttr)
    early = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        if self.gather is not None:
            self.verify_gather()
            return
        self.expect_inputs(1)
        if self.shape(self.inputs[0]) != self.shape(self.output):
            raise VerifyException("'hardware.dma' views have the same shape")
        kind = self.inputs[0].type
        assert isinstance(kind, ViewType)
        self.verify_stage(kind.element_type)

    def verify_gather(self) -> None:
        """The rules of rows that indices choose."""
        self.expect_inputs(2)
        source, indices = self.inputs
        rows, out = self.shape(source), self.shape(self.output)
        pairs = list(zip(rows[1:], self.shape(indices), strict=False))
        if len(rows) != len(out) + 1 or len(self.shape(indices)) != len(out):
            raise VerifyException("'hardware.dma' gathers from a view with one dimension more than the destination")
        if any(1 not in pair or max(pair) != extent for pair, extent in zip(pairs, out, strict=True)):
            raise VerifyException(
                f"'hardware.dma' gathers {list(out)}: rows {list(rows[1:])} and indices {list(self.shape(indices))} "
                "have each extent between them"
            )
        kinds = [view.type.element_type for view in self.views if isinstance(view.type, ViewType)]
        if kinds[1] != i32 or kinds[0] != kinds[2] or self.computes:
            raise VerifyException("'hardware.dma' gathers by indices of i32 and neither computes nor converts")


@irdl_op_definition
class MatmulOp(InstructionOp):
    """`args` = lhs, rhs, accumulator, counters…: accumulator += lhs · rhs by `spec` (letters, as in einsum).

    Starts from zero where every result of `init` (counters → values) is 0, always if `overwrite` is set.
    """

    name = "hardware.matmul"
    spec = prop_def(StringAttr)
    init = opt_prop_def(AffineMapAttr)
    overwrite = opt_prop_def(UnitAttr)

    def letters(self) -> tuple[str, str, str]:
        operands, _, out = self.spec.data.partition("->")
        lhs, _, rhs = operands.partition(",")
        return lhs, rhs, out

    def verify_(self) -> None:
        self.expect_inputs(2)
        extents: dict[str, int] = {}
        for letters, view in zip(self.letters(), self.views, strict=True):
            if len(letters) != len(self.shape(view)):
                raise VerifyException(f"'hardware.matmul' spec '{self.spec.data}' does not fit its views")
            for letter, extent in zip(letters, self.shape(view), strict=True):
                if extents.setdefault(letter, extent) != extent:
                    raise VerifyException(f"'hardware.matmul' axis '{letter}' is both {extents[letter]} and {extent}")
        if self.init is not None and self.init.data.num_dims != len(self.counters):
            raise VerifyException("'hardware.matmul' init maps the counters given")


@irdl_op_definition
class VectorOp(InstructionOp):
    """`args` = inputs…, output: one scalar operator; extents are equal or 1. `immediates`, `params` as tile.map."""

    name = "hardware.vector"
    fn = prop_def(StringAttr)
    immediates = opt_prop_def(ArrayAttr[Attribute])
    params = opt_prop_def(DictionaryAttr)

    def verify_(self) -> None:
        if not self.views:
            raise VerifyException("'hardware.vector' has an output")
        shapes = [self.shape(view) for view in self.inputs]
        verify_name(self.name, "operator", self.fn.data, TABLE)
        verify_map(self.name, shapes, self.shape(self.output), self.immediates)


@irdl_op_definition
class ReduceOp(InstructionOp):
    """`args` = input, output: reduces `axes` of the active region to extent 1."""

    name = "hardware.reduce"
    monoid = prop_def(StringAttr)
    axes = prop_def(DenseArrayBase)

    def verify_(self) -> None:
        self.expect_inputs(1)
        verify_name(self.name, "monoid", self.monoid.data, MONOIDS)
        verify_reduce(self.name, self.shape(self.inputs[0]), self.shape(self.output), self.axes)


@irdl_op_definition
class FillOp(InstructionOp):
    """`args` = output: writes `value` to the active region."""

    name = "hardware.fill"
    value = prop_def(Attribute)

    def verify_(self) -> None:
        self.expect_inputs(0)


@irdl_op_definition
class IotaOp(InstructionOp):
    """`args` = output, counters…: each element is `map`(counters, positions)."""

    name = "hardware.iota"
    map = prop_def(AffineMapAttr)

    def verify_(self) -> None:
        self.expect_inputs(0)
        dims = len(self.counters) + len(self.shape(self.output))
        if self.map.data.num_dims != dims or len(self.map.data.results) != 1:
            raise VerifyException(f"'hardware.iota' map must map {dims} dimensions to one value")


class EventOp(IRDLOperation):
    """A counting event between two engines: `from` signals, `to` waits; `count` times at once (default 1)."""

    event = prop_def(IntegerAttr)
    from_engine = prop_def(StringAttr, prop_name="from")
    to_engine = prop_def(StringAttr, prop_name="to")
    count = opt_prop_def(IntegerAttr)

    @property
    def times(self) -> int:
        return 1 if self.count is None else self.count.value.data

    def verify_(self) -> None:
        if self.times < 1 or self.event.value.data < 0:
            raise VerifyException(f"'{self.name}' needs an event number ≥ 0 and a count ≥ 1")
        if self.from_engine == self.to_engine:
            raise VerifyException(f"'{self.name}' connects two different engines")


@irdl_op_definition
class SignalOp(EventOp):
    """Executed in order on engine `from`, when what it issued before has completed: the count goes up."""

    name = "hardware.signal"


@irdl_op_definition
class WaitOp(EventOp):
    """Executed in order on engine `to`: the k-th wait returns after the k-th signal."""

    name = "hardware.wait"


@irdl_op_definition
class ForOp(IRDLOperation):
    """`hardware.for %i = 0 to 8 {axis} { … }`; bounds are affine maps of outer counters, as those of `tile.for`.

    `core`: iteration n is executed by core n alone, on memories of its own; of several such loops the outer one counts
    slower. They stand around everything in a kernel but its buffers.
    """

    name = "hardware.for"
    lower_operands = var_operand_def(IndexType)
    upper_operands = var_operand_def(IndexType)
    lower = prop_def(AffineMapAttr)
    upper = prop_def(AffineMapAttr)
    axis = opt_prop_def(StringAttr)
    core = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def counter(self) -> SSAValue:
        return self.body.block.args[0]

    def verify_(self) -> None:
        args = self.body.block.args
        if len(args) != 1 or not isinstance(args[0].type, IndexType):
            raise VerifyException("'hardware.for' body has one index argument")
        verify_bounds(self.name, self.lower, len(self.lower_operands), self.upper, len(self.upper_operands))
        if self.core is not None:
            self.verify_core()

    def verify_core(self) -> None:
        around, beside = self.parent_op(), self.parent
        if not (isinstance(around, KernelOp) or (isinstance(around, ForOp) and around.core is not None)):
            raise VerifyException("'hardware.for' over cores stands in a kernel or in another loop over cores")
        assert beside is not None
        if any(op is not self and not isinstance(op, BufferOp) for op in beside.ops):
            raise VerifyException("'hardware.for' over cores stands around everything in the kernel but its buffers")
        bounds = (*self.lower.data.results, *self.upper.data.results)
        match bounds:
            case (AffineConstantExpr(value=0), AffineConstantExpr(value=cores)) if cores > 0:
                pass
            case _:
                raise VerifyException("'hardware.for' over cores goes from 0 to their number")


@irdl_op_definition
class KernelOp(IRDLOperation):
    """`hardware.kernel @k(%x: !tile.buffer<…>) { … }`: off-chip buffers in, instructions inside.

    `schedule` and `strategy` are kept for reports. All engines meet at its end.
    """

    name = "hardware.kernel"
    sym_name = prop_def(StringAttr)
    schedule = opt_prop_def(DictionaryAttr)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def verify_(self) -> None:
        for arg in self.body.block.args:
            if not isinstance(arg.type, BufferType):
                raise VerifyException(f"'hardware.kernel' arguments are off-chip buffers, got {arg.type}")
        verify_symbols(self, ())


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """`hardware.launch %x, %o {callee = @k}`: runs a kernel on these off-chip buffers (inputs, then outputs)."""

    name = "hardware.launch"
    args = var_operand_def(BufferType)
    callee = prop_def(SymbolRefAttr)


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """`hardware.program {sym_name = "main"} { buffers; launches }`: what the machine executes, in order."""

    name = "hardware.program"
    sym_name = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), SymbolOpInterface(), IsolatedFromAbove())

    def __init__(self, name: str, body: Region) -> None:
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])


@irdl_op_definition
class AliasOp(IRDLOperation):
    """The same bytes of an off-chip buffer with another contiguous shape."""

    name = "hardware.alias"
    traits = traits_def(Pure())
    source = operand_def(BufferType)
    res = result_def(BufferType)


INSTRUCTIONS: Sequence[type[InstructionOp]] = (DmaOp, MatmulOp, VectorOp, ReduceOp, FillOp, IotaOp)

Hardware = Dialect(
    "hardware",
    [
        BufferOp,
        ViewOp,
        *INSTRUCTIONS,
        SignalOp,
        WaitOp,
        ForOp,
        KernelOp,
        LaunchOp,
        ProgramOp,
        AliasOp,
    ],
    [ViewType],
)
