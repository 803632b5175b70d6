"""Results of kernels that may lie on the bytes of an operand: each tile is read before it is written, and only then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap

from ..dialects import tile
from .bufferize_layout import linear
from .buffers import root
from .liveness import Lifetime, number
from .plan_validate_launch import OVERWRITING_TILES


def launch_takeovers(
    function: FuncOp, kernels: Mapping[str, tile.KernelOp], lives: Sequence[Lifetime]
) -> list[tuple[Lifetime, Lifetime]]:
    """Pairs (operand, result) of intermediates of a function whose result may lie on the bytes of the operand.

    The operand is last used by the launch that makes the result, which takes it once, and the kernel is one that
    `overwrites` it. Each buffer is an operand of one pair, a result of one.
    """
    positions = number(function.body.block).first
    by_buffer: dict[SSAValue, Lifetime] = {life.alloc.res[0]: life for life in lives}
    known: dict[str, list[tuple[int, int]]] = {}
    given: set[tile.AllocOp] = set()
    pairs: list[tuple[Lifetime, Lifetime]] = []
    for op in function.body.block.ops:
        if not isinstance(op, tile.LaunchOp):
            continue
        name = op.callee.root_reference.data
        if name not in known:
            known[name] = overwrites(kernels[name]) if name in kernels else []
        roots = [root(value) for value in op.args]
        taken: set[int] = set()
        for source, result in known[name]:
            held, made = by_buffer.get(roots[source]), by_buffer.get(roots[result])
            if held is None or made is None or held.alloc in given or result in taken:
                continue
            once = roots.count(held.alloc.res[0]) == 1 and roots.count(made.alloc.res[0]) == 1
            if once and held.end == positions[op] == made.start and held.size == made.size:
                given.add(held.alloc)
                taken.add(result)
                pairs.append((held, made))
    return pairs


def overwrites(kernel: tile.KernelOp) -> list[tuple[int, int]]:
    """Pairs (argument, argument): the second may have the bytes of the first, in kernels in buffer form.

    One load reads the first and one store writes the second, in the same iteration of the same loops, the same elements
    of the same type; what is stored comes, among others, from what was loaded, so that it is there later; and no two
    iterations touch the same element.
    """
    args = kernel.body.block.args
    inputs = len(kernel.function_type.inputs)
    found_loads = ((n, _only_use(args[n])) for n in range(inputs))
    loads = {n: load for n, load in found_loads if isinstance(load, tile.LoadOp) and load.gather is None}
    found: list[tuple[int, int]] = []
    for result in range(inputs, len(args)):
        store = _only_use(args[result])
        if not isinstance(store, tile.StoreOp) or store.args[1] is not args[result] or not _disjoint(store):
            continue
        for source, load in loads.items():
            same = args[source].type == args[result].type and load.parent is store.parent and load.inside is None
            shape = tile.shape_of(load.target) == tile.shape_of(store.args[0])
            maps = load.map == store.map and load.valid == store.valid and _counters(load) == _counters(store)
            if same and shape and maps and _comes_from(store, load):
                found.append((source, result))
    return found


def _only_use(value: SSAValue) -> Operation | None:
    uses = list(value.uses)
    return uses[0].operation if len(uses) == 1 else None


def _counters(op: tile.LoadOp | tile.StoreOp) -> list[SSAValue]:
    return list(op.counters)


def _comes_from(store: tile.StoreOp, load: tile.LoadOp) -> bool:
    """Whether instructions lead from the load to the store, each of which waits for the one before."""
    block = load.parent
    assert block is not None
    reached: set[SSAValue] = {root(load.target)}
    after = False
    for op in _within(block):
        if op is store:
            return after and root(store.args[0]) in reached
        if after and any(root(value) in reached for value in op.operands):
            reached.add(root(op.operands[-1]))
        after = after or op is load
    return False


def _within(block: Block) -> Iterator[Operation]:
    for op in block.ops:
        if isinstance(op, tile.ForOp):
            yield from _within(op.body.block)
        elif not isinstance(op, tile.AllocOp | tile.SliceOp | tile.AliasOp | tile.YieldOp):
            yield op


def _disjoint(store: tile.StoreOp) -> bool:
    """Whether no two iterations store to one element: in each dimension of the tensor the counters are digits of a
    number, the positions within the tile the last one, and each loop around counts somewhere."""
    trips = _trips(store)
    if trips is None:
        return False
    counters, shape = list(store.counters), tile.shape_of(store.args[0])
    several = {value for value, count in trips.items() if count > 1}
    seen: set[SSAValue] = set()
    for expr in store.map.data.results:
        parts = linear(expr)
        if parts is None:
            return False
        digits = [
            (factor, trips[counters[n]], counters[n])
            for n, factor in parts[1].items()
            if n < len(counters) and counters[n] in several
        ]
        span = 1 + sum(
            abs(factor) * (shape[n - len(counters)] - 1) for n, factor in parts[1].items() if n >= len(counters)
        )
        for factor, count, value in sorted(digits, key=lambda digit: abs(digit[0])):
            if abs(factor) < span:
                return False
            span += abs(factor) * (count - 1)
            seen.add(value)
    return seen == several and prod(trips.values()) <= OVERWRITING_TILES


def _trips(op: Operation) -> dict[SSAValue, int] | None:
    """Counter → iterations of the loops around an op; None where they differ from one time to the next."""
    found: dict[SSAValue, int] = {}
    loop = op.parent_op()
    while isinstance(loop, tile.ForOp):
        low, high = _constant(loop.lower.data), _constant(loop.upper.data)
        if low is None or high is None:
            return None
        found[loop.counter] = max(high - low, 0)
        loop = loop.parent_op()
    return found


def _constant(map_: AffineMap) -> int | None:
    expr = map_.results[0]
    return expr.value if len(map_.results) == 1 and isinstance(expr, AffineConstantExpr) else None
