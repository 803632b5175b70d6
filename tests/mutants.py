"""Compiled programs with one thing wrong, and what the tool chain says of each.

A mutant is a hardware-level module that differs from a compiled one by a single edit. It is *reported* if the machine
rejects it (`checks`), or if its results differ from the unmutated program's (`result`: what validation reports). One
that passes the checks and gives other results under another legal interleaving is `missed`: a hole in the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from tilewright.dialects import hardware
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import target_of
from tilewright.runtime.machine import MachineOptions, run
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr, AffineMap

Array = npt.NDArray[np.generic]
Edit = Callable[[list[Operation]], None]
"""Changes a module, given its operations in the order of the text."""


@dataclass(frozen=True)
class Mutant:
    """An edit: what kind, where, and how to make it."""

    kind: str
    what: str
    edit: Edit

    def of(self, module: ModuleOp) -> ModuleOp:
        """A changed copy."""
        copy = module.clone()
        self.edit(list(copy.walk()))
        return copy


@dataclass(frozen=True)
class Verdict:
    """`by`: checks, result, same (no interleaving changes a result), missed."""

    by: str
    message: str = ""


def mutants(module: ModuleOp) -> Iterator[Mutant]:
    """Every single edit of the kinds below."""
    for number, op in enumerate(module.walk()):
        for kind, edit in _edits(number, op, module):
            yield Mutant(kind, f"{op.name} number {number}", edit)


def judge(mutant: Mutant, module: ModuleOp, inputs: list[Array], seeds: int = 3) -> Verdict:
    """What the tool chain says of a mutant, and whether some interleaving tells it from the original."""
    changed, wanted = mutant.of(module), run(module, inputs).outputs
    try:
        found = run(changed, inputs).outputs
    except UserError as error:
        return Verdict("checks", error.message)
    if not _same(found, wanted):
        return Verdict("result")
    for interleaving, seed in [("eager", 0), ("late", 0), *(("random", seed) for seed in range(seeds))]:
        options = MachineOptions(check=False, interleaving=interleaving, seed=seed)  # type: ignore[arg-type]
        if not _same(run(changed, inputs, options).outputs, wanted):
            return Verdict("missed", f"{interleaving} {seed} gives another result")
    return Verdict("same")


def _same(left: list[Array], right: list[Array]) -> bool:
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(left, right, strict=True))


# --- kinds of edits ---------------------------------------------------------------------------------------------------


def _edits(number: int, op: Operation, module: ModuleOp) -> Iterator[tuple[str, Edit]]:
    match op:
        case hardware.EventOp():
            yield f"drop a {op.name.removeprefix('hardware.')}", lambda ops: _erase(ops[number])
            if isinstance(op, hardware.SignalOp):
                yield "drop an event", lambda ops: _drop_event(ops, number)
                if _movable(op.prev_op):
                    yield "signal earlier", lambda ops: _exchange(ops[number].prev_op, ops[number])
                if op.times > 1:
                    yield "one credit more", lambda ops: _recount(ops, number, 1)
                    yield "one credit less", lambda ops: _recount(ops, number, -1)
            elif _movable(op.next_op):
                yield "wait later", lambda ops: _exchange(ops[number], ops[number].next_op)
        case hardware.InstructionOp():
            yield from _instruction_edits(number, op)
        case hardware.ViewOp():
            kind = op.res.type
            memory = target_of(module).memories[kind.memory.data]
            step = max(memory.align, 1) if not memory.offchip else 2
            yield "offset up", lambda ops: _shift(ops[number], step)
            yield "offset down", lambda ops: _shift(ops[number], -step)
        case hardware.BufferOp() if op.slots is not None and op.slots.value.data > 1:
            slots = op.slots.value.data
            yield "a slot less", lambda ops: _reslot(ops[number], slots, slots - 1)
            yield "a slot more", lambda ops: _reslot(ops[number], slots, slots + 1)
        case _:
            pass


def _instruction_edits(number: int, op: hardware.InstructionOp) -> Iterator[tuple[str, Edit]]:
    follower = op.next_op
    while follower is not None and not isinstance(follower, hardware.InstructionOp | hardware.ForOp):
        follower = follower.next_op
    if isinstance(follower, hardware.InstructionOp) and follower.engine == op.engine:
        yield "swap two of an engine", lambda ops: _swap(ops, number)
    if isinstance(op, hardware.FillOp):
        yield "drop a fill", lambda ops: _erase(ops[number])
    if op.fresh is not None:
        yield "drop fresh", lambda ops: _drop_property(ops[number], "fresh")
    if isinstance(op, hardware.DmaOp):
        shape, source = op.shape(op.output), op.inputs[0].owner
        assert isinstance(source, hardware.ViewOp)
        ends = source.valid.data.results if source.valid is not None else [AffineConstantExpr(n) for n in shape]
        for axis, extent in enumerate(shape):
            # Where the source ends earlier than the tile, the last position of the tile is left out already.
            if extent > 1 and ends[axis] == AffineConstantExpr(extent):
                yield "shorten a dma", lambda ops, axis=axis: _shorten(ops[number], axis)


def _movable(op: Operation | None) -> bool:
    return isinstance(op, hardware.InstructionOp | hardware.EventOp)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def _exchange(first: Operation | None, second: Operation | None) -> None:
    """Two neighbours change places."""
    assert first is not None and second is not None
    block = first.parent
    assert block is not None
    first.detach()
    block.insert_op_after(first, second)


def _key(op: hardware.EventOp) -> tuple[object, ...]:
    return op.event, op.from_engine, op.to_engine


def _drop_event(ops: list[Operation], number: int) -> None:
    """All signals and waits of an event."""
    chosen = ops[number]
    assert isinstance(chosen, hardware.EventOp)
    for op in ops:
        if isinstance(op, hardware.EventOp) and _key(op) == _key(chosen):
            _erase(op)


def _recount(ops: list[Operation], number: int, change: int) -> None:
    """Credits and their drains."""
    chosen = ops[number]
    assert isinstance(chosen, hardware.EventOp)
    wanted = chosen.times
    for op in ops:
        if isinstance(op, hardware.EventOp) and _key(op) == _key(chosen) and op.times == wanted:
            op.count = IntegerAttr(wanted + change, i64)


def _shift(op: Operation, step: int) -> None:
    assert isinstance(op, hardware.ViewOp)
    old = op.offset.data
    op.offset = AffineMapAttr(AffineMap(old.num_dims, 0, (old.results[0] + step,)))


def _reslot(op: Operation, old: int, new: int) -> None:
    """Another number of slots, in the buffer and in every address that counts them."""
    assert isinstance(op, hardware.BufferOp)
    op.slots = IntegerAttr(new, i64)
    for use in op.res.uses:
        view = use.operation
        assert isinstance(view, hardware.ViewOp)
        map_ = view.offset.data
        view.offset = AffineMapAttr(AffineMap(map_.num_dims, 0, (_remod(map_.results[0], old, new),)))


def _remod(expr: AffineExpr, old: int, new: int) -> AffineExpr:
    if not isinstance(expr, AffineBinaryOpExpr):
        return expr
    left, right = _remod(expr.lhs, old, new), expr.rhs
    if expr.kind is AffineBinaryOpKind.Mod and right == AffineConstantExpr(old):
        return AffineConstantExpr(0) if new == 1 else left % new
    return AffineBinaryOpExpr(expr.kind, left, _remod(right, old, new))


def _swap(ops: list[Operation], number: int) -> None:
    """An instruction and the next one, with the views each takes, without what stands between them."""
    first = ops[number]
    second = first.next_op
    while not isinstance(second, hardware.InstructionOp):
        assert second is not None
        second = second.next_op
    block = first.parent
    assert block is not None
    for view in second.operands:
        owner = view.owner
        if isinstance(owner, hardware.ViewOp) and owner.parent is block and owner.next_op is not None:
            owner.detach()
            block.insert_op_before(owner, first)
    anchor = second.next_op
    second.detach()
    block.insert_op_before(second, first)
    first.detach()
    if anchor is not None:
        block.insert_op_before(first, anchor)
    else:
        block.add_op(first)


def _drop_property(op: Operation, name: str) -> None:
    del op.properties[name]


def _shorten(op: Operation, axis: int) -> None:
    """The last position along an axis is left out: of the destination's bounds, in a view of its own."""
    assert isinstance(op, hardware.DmaOp)
    view = op.output.owner
    assert isinstance(view, hardware.ViewOp)
    copy = view.clone()
    shape = op.shape(op.output)
    dims = len(view.counters)
    bounds = list(view.valid.data.results) if view.valid is not None else [AffineConstantExpr(n) for n in shape]
    bounds[axis] = AffineConstantExpr(shape[axis] - 1) if view.valid is None else bounds[axis] - 1
    copy.valid = AffineMapAttr(AffineMap(dims, 0, tuple(bounds)))
    block = op.parent
    assert block is not None
    block.insert_op_before(copy, op)
    op.operands[[*op.operands].index(op.output)] = copy.res
