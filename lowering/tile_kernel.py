"""Emits one `tile.kernel` from a nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from xdsl.dialects.builtin import FunctionType, IndexType, StringAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.locations import fuse_locations
from .absorb import combine_of
from .axes import Axis
from .bound_maps import bound_map, exact_map
from .cuts import Cut
from .group import Node
from .nest import Accumulate, Compute, Item, Load, Loop, Nest, Pin, Slice, Store
from .regions import affine_map
from .tile_base import Start, Tile
from .tile_contract import ContractEmitter
from .tile_moves import MoveEmitter


class KernelEmitter(MoveEmitter, ContractEmitter):
    """Walks a nest and appends ops to blocks; `emit` returns the kernel."""

    def __init__(self, nest: Nest, name: str, apart: bool) -> None:
        super().__init__(nest, apart)
        self.name = name
        self.accumulators: dict[Node, Tile] = {}
        self.kept: frozenset[Node] = frozenset()
        self.states = {(node.kind, node.source): node for node in nest.group.nodes if node.source is not None}

    def emit(self) -> tile.KernelOp:
        top = self.block
        self.items(self.nest.items)
        return tile.KernelOp.create(
            properties={
                "sym_name": StringAttr(self.name),
                "function_type": FunctionType.from_lists(self.group.inputs, self.group.results),
                "schedule": self.nest.schedule.to_attr(),
            },
            regions=[Region(top)],
        )

    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            match item:
                case Load() | Slice() | Compute() if self.full is not None and self.full.leaves_out(item.node):
                    pass
                case Load() if item.node in self.kept:
                    self.take_pinned(item)
                case Load() | Pin():
                    self.load(item)
                case Slice():
                    self.slice(item.node)
                case Compute():
                    self.compute(item.node)
                case Accumulate():
                    self.accumulate(item)
                case Store():
                    self.store(item.output)
                case Loop():
                    self.loop(item)

    def loop(self, item: Loop) -> None:
        fresh = [node for node in item.carried if node not in self.accumulators]
        for node in fresh:
            self.accumulators[node] = self.initial(node)
        cut = self.nest.cuts.get(item)
        if cut is None:
            self.split(item)
        else:
            self.sections(item, cut)
        for node in fresh:
            self.define(node, self.accumulators.pop(node))

    def split(self, item: Loop) -> None:
        """One loop, or one after another where the pinned tiles of a load end."""
        around, lower = self.kept, 0
        for upper in (*self.nest.splits(item), self.nest.trips(item.axis)):
            here = {node for node, pin in self.nest.pins.items() if pin.axis is item.axis and pin.count >= upper}
            self.kept = around | here
            bounds = [AffineConstantExpr(lower)], [AffineConstantExpr(upper)]
            self.walk(item, *bounds, cores=self.nest.divided(item))
            lower = upper
        self.kept = around

    def sections(self, item: Loop, cut: Cut) -> None:
        """The loops that a cut loop becomes, one after another, in a loop over rounds where there are some."""
        outer = tuple(self.counters[self.order.index(axis)] for axis in cut.outer)
        slope = Fraction(self.nest.tiles[cut.outer[-1]], self.nest.tiles[item.axis]) if cut.outer else Fraction(1)
        start = Start(exact_map(cut.first, slope), outer)
        depth = len(self.counters)

        def once() -> None:
            counters = (*outer, *self.counters[depth:])
            for section in cut.sections:
                lower = bound_map(section.lower, "lower", cut.length, slope)
                upper = bound_map(section.upper, "upper", cut.length, slope)
                self.full = cut if section.full else None
                self.walk(item, lower, upper, counters, start)
                self.full = None

        most = int(cut.rounds.max())
        if most == 1:
            once()
        else:
            upper = bound_map(cut.rounds, "upper", most, Fraction(0))
            self.repeat(Axis(most, -1), item.carried, once, ([AffineConstantExpr(0)], upper), outer)

    def walk(
        self,
        item: Loop,
        lower: Sequence[AffineExpr],
        upper: Sequence[AffineExpr],
        outer: Sequence[SSAValue] = (),
        start: Start | None = None,
        cores: int = 1,
    ) -> None:
        """One loop, from the greatest of `lower` to the least of `upper`: expressions of the counters `outer`."""

        def body() -> None:
            if start is not None:
                self.starts[self.counters[-1]] = start
            for node in item.carried:
                self.enter_state("previous", node)
            self.items(item.body)

        self.repeat(item.axis, item.carried, body, (lower, upper), outer, cores)

    def repeat(
        self,
        axis: Axis,
        carried: Sequence[Node],
        fill: Callable[[], None],
        bounds: tuple[Sequence[AffineExpr], Sequence[AffineExpr]],
        outer: Sequence[SSAValue],
        cores: int = 1,
    ) -> None:
        """A loop that carries accumulators, with the body that `fill` appends; over rounds, `axis` is none of the
        group's."""
        before = [self.accumulators[node] for node in carried]
        block, body = self.block, Block(arg_types=[IndexType(), *(acc.value.type for acc in before)])
        name = self.group.names.get(axis)
        body.args[0].name_hint = name or "round"
        self.block = body
        self.order.append(axis)
        self.counters.append(body.args[0])
        self.tiles.append({})
        self.casts.append({})
        for node, acc, arg in zip(carried, before, body.args[1:], strict=True):
            arg.location = fuse_locations(self.locations(node))
            self.accumulators[node] = Tile(arg, acc.frame)
        fill()
        body.add_op(tile.YieldOp.create(operands=[self.accumulators[node].value for node in carried]))
        self.tiles.pop()
        self.casts.pop()
        self.order.pop()
        self.counters.pop()
        self.block = block
        lower, upper = (bound_of(bound, outer) for bound in bounds)
        kind = "stream" if carried else "grid"
        op = tile.ForOp(upper, [acc.value for acc in before], Region(body), name, kind, lower, cores)
        op.location = fuse_locations(inner.location for inner in body.ops)
        self.block.add_op(op)
        for node, acc, value in zip(carried, before, op.results, strict=True):
            self.accumulators[node] = Tile(value, acc.frame)

    def compute(self, node: Node) -> None:
        match node.kind:
            case "map" | "expand":
                self.map(node)
            case "iota":
                self.iota(node)
            case "reduce":
                self.define(node, self.reduced(node))
            case "contract":
                self.define(node, self.contract(node, None, ()))
            case _:
                raise AssertionError(node.kind)

    def enter_state(self, kind: str, reduction: Node) -> None:
        """The value of a reduction before or after this step, where something looks at it."""
        node = self.states.get((kind, reduction))
        if node is not None:
            self.define(node, self.accumulators[reduction])

    def accumulate(self, item: Accumulate) -> None:
        node = item.node
        acc = self.accumulators[node]
        if node.carry is not None:
            moved = self.lookup(node.carry)
            acc = Tile(self.framed(moved, acc.frame), acc.frame)
        if node.kind == "contract" and not (node.cascade and self.apart):
            self.accumulators[node] = self.contract(node, acc, item.loops)
        else:
            part = self.contract(node, None, ()) if node.kind == "contract" else self.reduced(node)
            op = tile.MapOp.create(
                operands=[acc.value, self.framed(part, acc.frame)],
                result_types=[acc.value.type],
                properties={"fn": StringAttr(combine_of(node))},
            )
            self.add(op, node)
            self.accumulators[node] = Tile(op.results[0], acc.frame)
        self.enter_state("running", node)


def bound_of(exprs: Sequence[AffineExpr], counters: Sequence[SSAValue]) -> tile.Bound:
    """A bound over the counters that its expressions use."""
    used = sorted({dim.position for expr in exprs for dim in expr.dfs() if isinstance(dim, AffineDimExpr)})
    renumber: list[AffineExpr] = [AffineConstantExpr(0)] * len(counters)
    for position, dim in enumerate(used):
        renumber[dim] = AffineDimExpr(position)
    results = [expr.replace_dims_and_symbols(renumber, []) for expr in exprs]
    return affine_map(len(used), results), [counters[dim] for dim in used]
