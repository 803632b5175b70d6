"""From a hardware-level module to a decoded program, once; static rules of the machine are checked on the way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr

from ...dialects import hardware
from ...dialects.dtypes import element
from ...dialects.errors import UserError
from ...dialects.hardware_types import ViewType
from ...dialects.layout import Layout
from ...dialects.target import target_of
from ...dialects.target_model import Memory, Target
from ...dialects.tile_types import BufferType
from .affine import AffineList, Choose, compile_affine, compile_affines, compile_bound
from .axes import instruction_axes
from .errors import MachineError
from .owners import Span, owners
from .program import Buffer, EventStep, External, Instruction, Kernel, Launch, Loop, Node, Program, View
from .ranges import Range, range_of, without_idle
from .reach import check_event, check_instruction


def decode(module: ModuleOp) -> Program:
    """The program of a module. Raises UserError for what is not a hardware-level program, MachineError for what the
    target cannot do whatever the counters."""
    target = target_of(module)
    programs = [op for op in module.ops if isinstance(op, hardware.ProgramOp)]
    if len(programs) != 1:
        raise UserError(f"the machine executes one 'hardware.program', the module has {len(programs)}", module.location)
    kernels = {
        op.sym_name.data: _Decoder(op, target).kernel() for op in module.ops if isinstance(op, hardware.KernelOp)
    }
    return _Linker(programs[0], target, kernels).program()


def _memory(target: Target, kind: BufferType | ViewType, op: Operation) -> Memory:
    if kind.memory.data not in target.memories:
        known = ", ".join(target.memories)
        raise MachineError(f"target '{target.name}' has no memory '{kind.memory.data}' (it has {known})", op.location)
    return target.memories[kind.memory.data]


def _layout(kind: BufferType) -> Layout:
    return kind.layout.layout(element(kind.element_type).bytes)


def _slotted_bytes(kind: BufferType, memory: Memory, slots: int) -> int:
    """All slots lie at multiples of the first slot's footprint, rounded up to the alignment."""
    size = _layout(kind).size_bytes
    return size if slots == 1 else -(-size // memory.align) * memory.align * slots


def _name(value: SSAValue, fallback: str) -> str:
    return f"%{value.name_hint}" if value.name_hint else fallback


def placed_buffer(op: hardware.BufferOp, target: Target) -> Buffer:
    """A buffer with a planned offset. Raises MachineError where it leaves its memory or is not aligned."""
    kind = op.res.type
    assert isinstance(kind, BufferType)
    memory = _memory(target, kind, op)
    offset, name = op.offset.value.data, _name(op.res, "a buffer")
    slots = 1 if op.slots is None else op.slots.value.data
    size = _slotted_bytes(kind, memory, slots)
    if offset % memory.align:
        raise MachineError(
            f"{name} at byte {offset} of '{kind.memory.data}' is not aligned to {memory.align} bytes", op.location
        )
    if offset + size > memory.bytes:
        raise MachineError(
            f"{name} reaches byte {offset + size} of '{kind.memory.data}', which has {memory.bytes}", op.location
        )
    return Buffer(name, kind.memory.data, offset, size, op.location, slots)


def _local_owners(kernel: Kernel) -> list[int]:
    """The numbers of a kernel's own buffers; only those of one memory can share bytes."""
    found: dict[int, int] = {}
    local = list(enumerate(kernel.buffers))[kernel.arguments :]
    for memory in dict.fromkeys(buffer.memory for _, buffer in local):
        group = [(number, buffer) for number, buffer in local if buffer.memory == memory]
        numbers = owners(_spans(buffer for _, buffer in group))
        found.update(zip((number for number, _ in group), numbers, strict=True))
    return [found[number] for number, _ in local]


def _spans(buffers: Iterable[Buffer]) -> list[Span]:
    return [(buffer.offset, buffer.offset + buffer.size) for buffer in buffers if buffer.offset is not None]


class _Decoder:
    """One kernel. `counters` maps counters in scope to their depths."""

    def __init__(self, op: hardware.KernelOp, target: Target) -> None:
        self.op, self.target = op, target
        self.buffers: list[Buffer] = []
        self.numbers: dict[SSAValue, int] = {}
        self.views: dict[SSAValue, View] = {}
        self.counters: dict[SSAValue, int] = {}
        self.loops: tuple[str, ...] = ()
        self.ranges: list[Range | None] = []
        self.depth = 0
        self.engines: dict[str, None] = {}

    def kernel(self) -> Kernel:
        block = self.op.body.block
        for number, arg in enumerate(block.args):
            kind = arg.type
            assert isinstance(kind, BufferType)
            _memory(self.target, kind, self.op)
            self.numbers[arg] = number
            name = _name(arg, f"argument {number}")
            self.buffers.append(Buffer(name, kind.memory.data, None, _layout(kind).size_bytes, self.op.location))
        body = self.block(block)
        name, engines = self.op.sym_name.data, tuple(self.engines)
        made = Kernel(name, self.op, len(block.args), self.buffers, body, self.depth, engines)
        if made.cores > self.target.cores:
            raise MachineError(
                f"kernel @{name} runs on {made.cores} cores, target '{self.target.name}' has {self.target.cores}",
                self.op.location,
            )
        return made

    def block(self, block: Block) -> list[Node]:
        nodes: list[Node] = []
        for op in block.ops:
            match op:
                case hardware.BufferOp():
                    self.numbers[op.res] = len(self.buffers)
                    self.buffers.append(placed_buffer(op, self.target))
                case hardware.ViewOp():
                    self.views[op.res] = self.view(op)
                case hardware.ForOp():
                    nodes.append(self.loop(op))
                case hardware.EventOp():
                    nodes.append(self.event(op))
                case hardware.InstructionOp():
                    nodes.append(self.instruction(op))
                case _:
                    raise MachineError(f"'{op.name}' is no instruction of a kernel", op.location)
        return nodes

    def loop(self, op: hardware.ForOp) -> Loop:
        depth = len(self.loops)
        lower = compile_bound(op.lower.data.results, self.depths(op.lower_operands), max, op.location)
        upper = compile_bound(op.upper.data.results, self.depths(op.upper_operands), min, op.location)
        axis = op.axis.data if op.axis is not None else f"c{depth}"
        name = op.counter.name_hint or axis
        self.counters[op.counter] = depth
        self.loops = (*self.loops, name)
        first = self.bound_range(op.lower, op.lower_operands, max)
        last = self.bound_range(op.upper, op.upper_operands, min)
        self.ranges.append(None if first is None or last is None else (first[0], max(first[0], last[1] - 1)))
        self.depth = max(self.depth, depth + 1)
        body = self.block(op.body.block)
        self.loops = self.loops[:-1]
        self.ranges.pop()
        cores = 0 if op.core is None else upper.at(())
        return Loop(op, depth, name, lower, upper, body, cores)

    def depths(self, counters: tuple[SSAValue, ...]) -> list[int]:
        return [self.counters[counter] for counter in counters]

    def known_ranges(self, counters: Sequence[SSAValue]) -> list[Range] | None:
        """What the counters can be, None where one of them is not known."""
        found = [known for counter in counters if (known := self.ranges[self.counters[counter]]) is not None]
        return found if len(found) == len(counters) else None

    def bound_range(self, map_: AffineMapAttr, counters: Sequence[SSAValue], choose: Choose) -> Range | None:
        """What a bound of a loop can be: of all results the one that `choose` takes."""
        known = self.known_ranges(counters)
        found = [range_of(expr, known) for expr in map_.data.results] if known is not None else [None]
        ends = [each for each in found if each is not None]
        return (choose(low for low, _ in ends), choose(high for _, high in ends)) if len(ends) == len(found) else None

    def event(self, op: hardware.EventOp) -> EventStep:
        signals = isinstance(op, hardware.SignalOp)
        source, sink = op.from_engine.data, op.to_engine.data
        key = (source, sink, op.event.value.data)
        step = EventStep(op, source if signals else sink, self.loops, key, op.times, signals)
        check_event(step, self.target)
        self.engines.setdefault(step.engine)
        return step

    def view(self, op: hardware.ViewOp) -> View:
        kind = op.res.type
        assert isinstance(kind, ViewType)
        memory = _memory(self.target, kind, op)
        row = element(kind.element_type)
        layout = op.layout.layout(row.bytes)
        if len(layout.dims) != len(kind.shape) or any(e > n for e, n in zip(kind.shape, layout.shape, strict=True)):
            raise MachineError(f"a view of shape {list(kind.shape)} has a layout of {list(layout.shape)}", op.location)
        depths, known = self.depths(op.counters), self.known_ranges(op.counters)

        def bounds(attr: AffineMapAttr | None, idle: Sequence[int], at_most: bool) -> AffineList | None:
            if attr is None:
                return None
            exprs = attr.data.results
            kept = list(exprs) if known is None else without_idle(exprs, idle, known, at_most)
            idles = [AffineConstantExpr(value) for value in idle]
            return None if kept == idles else compile_affines(kept, depths, op.location)

        number = self.numbers[op.buffer]
        offset = compile_affine(op.offset.data.results[0], depths, op.location)
        return View(
            self.buffers[number].name, number, kind.memory.data, row, kind.shape, layout, offset,
            bounds(op.start, [0] * len(kind.shape), True), bounds(op.valid, kind.shape, False),
            1 if memory.offchip else memory.align,
        )  # fmt: skip

    def instruction(self, op: hardware.InstructionOp) -> Instruction:
        axes, extents = instruction_axes(op)
        depths, init, map_ = self.depths(op.counters), None, None
        if isinstance(op, hardware.MatmulOp) and op.init is not None:
            init = compile_affines(op.init.data.results, depths, op.location)
        if isinstance(op, hardware.IotaOp):
            # Positions stand behind the counters of the loops around the instruction.
            positions = range(len(self.loops), len(self.loops) + len(extents))
            map_ = compile_affines(op.map.data.results, [*depths, *positions], op.location)
        views = tuple(self.views[value] for value in op.views)
        step = Instruction(op, op.engine.data, self.loops, views, axes, extents, init, map_)
        check_instruction(step, self.target)
        self.engines.setdefault(step.engine)
        return step


class _Linker:
    """Gives launches the addresses of their buffers."""

    def __init__(self, op: hardware.ProgramOp, target: Target, kernels: dict[str, Kernel]) -> None:
        self.op, self.target, self.kernels = op, target, kernels
        self.result = Program(target, op.sym_name.data)
        self.buffers: dict[SSAValue, Buffer] = {}
        self.sources: dict[SSAValue, SSAValue] = {}
        self.owners: dict[SSAValue, int] = {}
        self.externals: dict[SSAValue, External] = {}

    def program(self) -> Program:
        launches: list[hardware.LaunchOp] = []
        for op in self.op.body.block.ops:
            match op:
                case hardware.BufferOp():
                    self.external(op)
                case hardware.AliasOp():
                    self.alias(op)
                case hardware.LaunchOp():
                    launches.append(op)
                case _:
                    raise MachineError(f"'{op.name}' has no place in a program", op.location)
        self.own()
        self.result.launches += [self.launch(op) for op in launches]
        return self.result

    def external(self, op: hardware.BufferOp) -> None:
        buffer, kind = placed_buffer(op, self.target), op.res.type
        assert isinstance(kind, BufferType)
        if buffer.memory != self.target.offchip:
            raise MachineError(f"a buffer of a program lies off chip, in '{self.target.offchip}'", op.location)
        self.buffers[op.res] = buffer
        self.sources[op.res] = op.res
        self.used(buffer)

    def alias(self, op: hardware.AliasOp) -> None:
        source, kind = self.buffers[op.source], op.res.type
        assert isinstance(kind, BufferType)
        size = _layout(kind).size_bytes
        if size > source.size:
            raise MachineError(f"an alias of {size} bytes leaves the {source.size} bytes of {source.name}", op.location)
        self.buffers[op.res] = Buffer(_name(op.res, source.name), source.memory, source.offset, size, op.location)
        self.sources[op.res] = self.sources[op.source]

    def own(self) -> None:
        """Numbers the bytes of all buffers, those of an alias as those of its source."""
        placed = [(value, buffer) for value, buffer in self.buffers.items() if self.sources[value] is value]
        numbers = dict(zip((value for value, _ in placed), owners(_spans(b for _, b in placed)), strict=True))
        self.owners = {value: numbers[source] for value, source in self.sources.items()}
        for value, buffer in placed:
            op, kind = value.owner, value.type
            assert isinstance(op, hardware.BufferOp) and isinstance(kind, BufferType)
            row, owner, offset = element(kind.element_type), self.owners[value], op.offset.value.data
            self.externals[value] = External(op, buffer.name, offset, owner, row, kind.shape, _layout(kind))
        self.result.externals += self.externals.values()

    def used(self, buffer: Buffer) -> None:
        assert buffer.offset is not None
        end = buffer.offset + buffer.size
        self.result.peaks[buffer.memory] = max(end, self.result.peaks.get(buffer.memory, 0))

    def launch(self, op: hardware.LaunchOp) -> Launch:
        name = op.callee.string_value()
        kernel = self.kernels.get(name)
        if kernel is None:
            raise MachineError(f"there is no kernel @{name}", op.location)
        args = kernel.op.body.block.args
        if len(args) != len(op.args):
            raise MachineError(f"kernel @{name} takes {len(args)} buffers, got {len(op.args)}", op.location)
        for number, (arg, given) in enumerate(zip(args, op.args, strict=True)):
            self.check_argument(op, name, number, arg, given)
        for buffer in kernel.buffers[kernel.arguments :]:
            self.used(buffer)
        offsets = [self.buffers[given].offset for given in op.args]
        offsets += [buffer.offset for buffer in kernel.buffers[kernel.arguments :]]
        numbers = (*(self.owners[given] for given in op.args), *_local_owners(kernel))
        arguments = tuple(self.externals[self.sources[given]] for given in op.args)
        return Launch(kernel, tuple(offset for offset in offsets if offset is not None), numbers, op, arguments)

    def check_argument(
        self, op: hardware.LaunchOp, name: str, number: int, arg: BlockArgument, given: SSAValue
    ) -> None:
        want, have = arg.type, given.type
        assert isinstance(want, BufferType) and isinstance(have, BufferType)
        if want != have:
            raise MachineError(f"argument {number} of kernel @{name} is {want}, got {have}", op.location)
