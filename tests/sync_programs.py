"""Random kernels of instructions: nests of loops over buffers that overlap, in slots or piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from tilewright.dialects import hardware
from tilewright.dialects.hardware_types import ViewType
from tilewright.dialects.layout import Layout, LayoutAttr
from tilewright.dialects.target import set_target
from tilewright.dialects.tile_types import BufferType
from xdsl.dialects.builtin import (
    AffineMapAttr,
    Float32Type,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

F32 = Float32Type()
PIECE = 32
"""Bytes of one view: 8 f32."""
ROW = LayoutAttr.from_layout(Layout.row_major((8,), 4))
MOVES = {("gm", "ub"): "mte2", ("gm", "l1"): "mte2", ("ub", "gm"): "mte3", ("ub", "l1"): "mte3"}


class Case:
    """A generated module; hypothesis shows it as text."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module

    def __repr__(self) -> str:
        return f"\n{self.module}\n"


@dataclass
class Slot:
    """A buffer used in turn by the iterations of the loops around `depth`, or one piece of it per iteration."""

    value: SSAValue
    memory: str
    slots: int
    depth: int
    pieces: bool


@dataclass
class Nest:
    block: Block
    counters: list[SSAValue] = field(default_factory=list[SSAValue])
    trips: list[int] = field(default_factory=list[int])

    def view(self, slot: Slot) -> SSAValue:
        depth = min(slot.depth, len(self.counters))
        offset: AffineExpr = AffineConstantExpr(0)
        if slot.pieces and depth:
            offset = AffineDimExpr(depth - 1) * PIECE
        elif slot.slots > 1 and depth:
            linear: AffineExpr = AffineDimExpr(0)
            for d in range(1, depth):
                linear = linear * self.trips[d] + AffineDimExpr(d)
            offset = linear % slot.slots * PIECE
        made = hardware.ViewOp.create(
            operands=[slot.value, *self.counters],
            result_types=[ViewType((8,), F32, slot.memory)],
            properties={"offset": AffineMapAttr(AffineMap(len(self.counters), 0, (offset,))), "layout": ROW},
        )
        self.block.add_op(made)
        return made.res

    def add(self, kind: type[hardware.InstructionOp], engine: str, slots: Sequence[Slot]) -> None:
        views = [self.view(slot) for slot in slots]
        properties: dict[str, Attribute] = {"engine": StringAttr(engine)}
        if kind is hardware.VectorOp:
            properties["fn"] = StringAttr("add" if len(slots) == 3 else "neg")
        self.block.add_op(kind.create(operands=views, properties=properties))


@st.composite
def kernels(draw: st.DrawFn, most: int = 9, most_trips: int = 7) -> Case:
    """A program of one kernel on target davinci, without events."""
    body = Block(arg_types=[BufferType((8,), F32, "gm", ROW)] * 3)
    buffers: list[Slot] = [Slot(arg, "gm", 1, 0, False) for arg in body.args]
    for _ in range(draw(st.integers(1, 4))):
        slots, pieces = draw(st.integers(1, 3)), draw(st.booleans())
        memory = draw(st.sampled_from(["ub", "ub", "l1"]))
        extent = 8 * (most_trips if pieces else 1)
        kind = BufferType((extent,), F32, memory, LayoutAttr.from_layout(Layout.row_major((extent,), 4)))
        made = hardware.BufferOp.create(
            result_types=[kind],
            properties={
                "offset": IntegerAttr(PIECE * draw(st.integers(0, 4)), i64),
                "slots": IntegerAttr(1 if pieces else slots, i64),
                "role": StringAttr("local"),
            },
        )
        body.add_op(made)
        buffers.append(Slot(made.res, memory, slots, draw(st.integers(0, 3)), pieces))
    fill(draw, Nest(body), buffers, [draw(st.integers(2, most))], most_trips)
    kernel = hardware.KernelOp.create(properties={"sym_name": StringAttr("k")}, regions=[Region(body)])
    module = ModuleOp([kernel, program(len(body.args))])
    set_target(module, "davinci")
    module.verify()
    return Case(module)


def fill(draw: st.DrawFn, nest: Nest, buffers: Sequence[Slot], left: list[int], most_trips: int) -> None:
    """Instructions and loops, until `left` instructions are made."""
    for _ in range(draw(st.integers(1, 4))):
        if left[0] <= 0:
            return
        if len(nest.counters) < 3 and draw(st.booleans()):
            trips = draw(st.integers(1, most_trips))
            inner = Block(arg_types=[IndexType()])
            fill(draw, Nest(inner, [*nest.counters, inner.args[0]], [*nest.trips, trips]), buffers, left, most_trips)
            bound = {"lower": AffineMapAttr.constant_map(0), "upper": AffineMapAttr.constant_map(trips)}
            nest.block.add_op(hardware.ForOp.build(operands=[[], []], properties=bound, regions=[Region(inner)]))
        else:
            left[0] -= 1
            instruction(draw, nest, buffers)


def instruction(draw: st.DrawFn, nest: Nest, buffers: Sequence[Slot]) -> None:
    ub = [slot for slot in buffers if slot.memory == "ub"]
    if ub and draw(st.booleans()):
        count = draw(st.integers(2, 3))
        nest.add(hardware.VectorOp, "vector", [draw(st.sampled_from(ub)) for _ in range(count)])
        return
    pairs = [(a, b) for a in buffers for b in buffers if (a.memory, b.memory) in MOVES]
    source, destination = draw(st.sampled_from(pairs))
    nest.add(hardware.DmaOp, MOVES[source.memory, destination.memory], [source, destination])


def program(arguments: int) -> Operation:
    """Launches the kernel on as many buffers."""
    body = Block()
    made: list[SSAValue] = []
    for number in range(arguments):
        buffer = hardware.BufferOp.create(
            result_types=[BufferType((8,), F32, "gm", ROW)],
            properties={"offset": IntegerAttr(PIECE * number, i64), "role": StringAttr("workspace")},
        )
        body.add_op(buffer)
        made.append(buffer.res)
    body.add_op(hardware.LaunchOp.create(operands=made, properties={"callee": SymbolRefAttr("k")}))
    return hardware.ProgramOp("main", Region(body))


def without_event(module: ModuleOp, key: tuple[str, str, str, int]) -> ModuleOp:
    """A copy without the signals and waits of one event (kernel, from, to, number)."""
    copy = module.clone()
    for op in list(copy.walk()):
        if isinstance(op, hardware.EventOp) and event_key(op) == key:
            op.detach()
            op.erase()
    return copy


def event_key(op: hardware.EventOp) -> tuple[str, str, str, int]:
    kernel: Operation | None = op
    while not isinstance(kernel, hardware.KernelOp):
        assert kernel is not None
        kernel = kernel.parent_op()
    return kernel.sym_name.data, op.from_engine.data, op.to_engine.data, op.event.value.data


def event_keys(module: ModuleOp) -> list[tuple[str, str, str, int]]:
    """All events of a module."""
    return sorted({event_key(op) for op in module.walk() if isinstance(op, hardware.EventOp)})
