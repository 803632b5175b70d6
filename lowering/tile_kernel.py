"""Emits one `tile.kernel` from a nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    FunctionType,
    IndexType,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.attributes import scalar_attribute
from ..dialects.dtypes import accumulator_type, compute_type, element, is_float
from ..dialects.graph_primitives import IotaOp, MapOp, ReduceOp
from ..dialects.graph_types import Tensor, static_shape
from ..dialects.locations import fuse_locations
from ..dialects.scalar import monoid
from ..dialects.tile_types import TileType
from .axes import Axis, Linear
from .group import Node, Output
from .nest import Accumulate, Compute, Item, Load, Loop, Nest, Slice, Store
from .regions import Counters, Frame, RegionDim, add, affine_map, frame_of, region_of, scaled, total


@dataclass(frozen=True, eq=False)
class Tile:
    """An SSA tile and what its dimensions stand for."""

    value: SSAValue
    frame: Frame

    @property
    def element(self) -> Attribute:
        return tile.element_of(self.value)


@dataclass(frozen=True, eq=False)
class Region_:
    """A loaded region."""

    value: SSAValue
    dims: list[RegionDim]
    fixed: frozenset[Axis]


class KernelEmitter:
    """Walks a nest and appends ops to blocks; `emit` returns the kernel."""

    def __init__(self, nest: Nest, name: str) -> None:
        self.nest = nest
        self.group = nest.group
        self.name = name
        self.order: list[Axis] = []
        self.counters: list[SSAValue] = []
        self.tiles: list[dict[Node, Tile]] = [{}]
        self.casts: list[dict[tuple[Node, Attribute], Tile]] = [{}]
        self.regions: dict[Node, Region_] = {}
        self.accumulators: dict[Node, Tile] = {}
        self.block = Block()
        self.uses = self.count_uses()
        self.slots = dict(zip(self.group.loads, nest.schedule.slots, strict=True))
        sched = nest.schedule
        self.inner = dict(zip(self.group.axes, sched.inner or sched.tiles, strict=True))

    def emit(self) -> tile.KernelOp:
        results = self.group.results
        kinds = [*self.group.inputs, *results]
        self.block = Block(arg_types=kinds)
        self.args = self.block.args
        top = self.block
        self.items(self.nest.items)
        return tile.KernelOp.create(
            properties={
                "sym_name": StringAttr(self.name),
                "function_type": FunctionType.from_lists(self.group.inputs, results),
                "schedule": self.nest.schedule.to_attr(),
            },
            regions=[Region(top)],
        )

    # --- bookkeeping ----------------------------------------------------------------------------------------------

    def count_uses(self) -> dict[Node, list[Node | Output]]:
        uses: dict[Node, list[Node | Output]] = {node: [] for node in self.group.nodes}
        for node in self.group.nodes:
            for source in node.inputs:
                uses[source].append(node)
        for output in self.group.outputs:
            uses[output.node].append(output)
        return uses

    def add(self, op: Operation, node: Node | None) -> Operation:
        if node is not None and node.location is not None:
            op.location = fuse_locations([node.location])
        self.block.add_op(op)
        return op

    def reach(self) -> Counters:
        return Counters(self.order)

    def tile_type(self, frame: Frame, kind: Attribute) -> TileType:
        return TileType(self.extents(frame), kind)

    def extents(self, frame: Frame) -> list[int]:
        return [1 if axis is None else self.nest.tiles[axis] for axis in frame]

    def valid(self, frame: Frame) -> AffineMapAttr:
        reach = self.reach()
        results = [AffineConstantExpr(1) if axis is None else reach.left(axis, self.nest.tiles[axis]) for axis in frame]
        return AffineMapAttr(affine_map(reach.count, results))

    def lookup(self, node: Node) -> Tile:
        for level in reversed(self.tiles):
            if node in level:
                return level[node]
        if node.kind == "constant":
            return self.constant(node)
        raise AssertionError(f"value of kind {node.kind} is used before it is computed")

    def define(self, node: Node, value: Tile) -> None:
        self.tiles[-1][node] = value

    def frame(self, node: Node) -> Frame:
        return frame_of(self.group, node.present, self.nest.tiles)

    def framed(self, source: Tile, wanted: Frame) -> SSAValue:
        """The tile with its dimensions in the places of `wanted`; a slice that moves nothing where they differ."""
        mine = {axis for axis in source.frame if axis is not None}
        shape = [1 if axis is None or axis not in mine else self.nest.tiles[axis] for axis in wanted]
        same = len(wanted) == len(source.frame) and all(
            have is want or (want not in mine and (have is None or self.nest.tiles[have] == 1))
            for have, want in zip(source.frame, wanted, strict=True)
        )
        if same:
            return source.value
        count = len(self.order)
        place = {axis: AffineDimExpr(count + p) for p, axis in enumerate(wanted) if axis is not None}
        results = [AffineConstantExpr(0) if a is None else place[a] for a in source.frame]
        reach = self.reach()
        valid = [
            AffineConstantExpr(1) if a is None or a not in mine else reach.left(a, self.nest.tiles[a]) for a in wanted
        ]
        op = tile.SliceOp.create(
            operands=[source.value, *self.counters],
            result_types=[TileType(shape, source.element)],
            properties={
                "map": AffineMapAttr(affine_map(count + len(wanted), results)),
                "valid": AffineMapAttr(affine_map(count, valid)),
            },
        )
        self.add(op, None)
        return op.results[0]

    def as_type(self, node: Node, source: Tile, kind: Attribute) -> Tile:
        """The tile rounded to an element type."""
        if source.element == kind:
            return source
        for level in reversed(self.casts):
            if (node, kind) in level:
                return level[node, kind]
        op = tile.MapOp.create(
            operands=[source.value],
            result_types=[TileType(tile.shape_of(source.value), kind)],
            properties={"fn": StringAttr("cast")},
        )
        self.add(op, node)
        made = Tile(op.results[0], source.frame)
        self.casts[-1][node, kind] = made
        return made

    # --- items ----------------------------------------------------------------------------------------------------

    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            match item:
                case Load():
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
        before = [self.accumulators[node] for node in item.carried]
        outer, body = self.block, Block(arg_types=[IndexType(), *(acc.value.type for acc in before)])
        body.args[0].name_hint = self.group.names[item.axis]
        self.block = body
        self.order.append(item.axis)
        self.counters.append(body.args[0])
        self.tiles.append({})
        self.casts.append({})
        for node, acc, arg in zip(item.carried, before, body.args[1:], strict=True):
            self.accumulators[node] = Tile(arg, acc.frame)
        self.items(item.body)
        body.add_op(tile.YieldOp.create(operands=[self.accumulators[node].value for node in item.carried]))
        self.tiles.pop()
        self.casts.pop()
        self.order.pop()
        self.counters.pop()
        self.block = outer
        kind = "stream" if item.axis in self.group.reduced else "grid"
        op = tile.ForOp(
            self.nest.trips(item.axis),
            [acc.value for acc in before],
            Region(body),
            self.group.names[item.axis],
            kind,
        )
        self.add(op, item.carried[0] if item.carried else None)
        for node, acc, value in zip(item.carried, before, op.results, strict=True):
            self.accumulators[node] = Tile(value, acc.frame)
            if node in fresh:
                self.define(node, self.accumulators.pop(node))

    def load(self, item: Load) -> None:
        node, reach = item.node, self.reach()
        dims = region_of(self.nest, node, item.fixed)
        shape = [dim.extent for dim in dims] or [1]
        count = reach.count
        place = {dim.axis: AffineDimExpr(count + p) for p, dim in enumerate(dims)}
        rank = len(shape)

        def at(expr: Linear) -> AffineExpr:
            """The input index of a position of the region."""
            parts: list[AffineExpr] = [AffineConstantExpr(expr.offset)]
            window = expr.overlapping()
            for axis, coefficient in expr.terms.items():
                if axis in item.fixed:
                    parts.append(scaled(reach.start(axis, self.nest.tiles[axis]), coefficient))
                if axis in place and not window:
                    parts.append(scaled(place[axis], coefficient))
            if window:
                parts += [place[d.axis] for d in dims if d.window is not None and d.axis in expr.terms]
            return total(parts)

        valid = [self.region_valid(node, dim, item.fixed, reach) for dim in dims] or [AffineConstantExpr(1)]
        properties: dict[str, Attribute] = {
            "map": AffineMapAttr(affine_map(count + rank, [at(expr) for expr in node.index])),
            "valid": AffineMapAttr(affine_map(count, valid)),
        }
        if node.inside:
            properties["inside"] = AffineMapAttr(affine_map(count + rank, [at(expr) for expr in node.inside]))
        if node.fill is not None:
            properties["fill"] = node.fill
        if self.slots[node] > 1:
            properties["slots"] = IntegerAttr(self.slots[node], i64)
        op = tile.LoadOp.create(
            operands=[self.args[node.arg], *self.counters],
            result_types=[TileType(shape, node.element)],
            properties=properties,
        )
        self.add(op, node)
        region = Region_(op.results[0], dims, item.fixed)
        self.regions[node] = region
        frame: Frame = tuple(dim.axis for dim in dims) or (None,)
        self.define(node, Tile(op.results[0], frame))

    def region_valid(self, node: Node, dim: RegionDim, fixed: frozenset[Axis], reach: Counters) -> AffineExpr:
        axis = dim.axis
        left = reach.left(axis, self.nest.tiles[axis]) if axis in fixed else AffineConstantExpr(axis.extent)
        if dim.window is None:
            return left
        expr = node.index[dim.index]
        step = expr.terms[axis]
        spread = sum((tap.extent - 1) * expr.terms[tap] for tap in dim.window.taps)
        return add(scaled(left, step), AffineConstantExpr(1 - step + spread))

    def slice(self, node: Node) -> None:
        region, frame, reach = self.regions[node], self.frame(node), self.reach()
        count = reach.count
        place = {axis: AffineDimExpr(count + p) for p, axis in enumerate(frame) if axis is not None}

        def within(axis: Axis) -> AffineExpr:
            """The position along an axis, from the start of the region."""
            start = AffineConstantExpr(0) if axis in region.fixed else reach.start(axis, self.nest.tiles[axis])
            return add(start, place.get(axis, AffineConstantExpr(0)))

        results: list[AffineExpr] = []
        for dim in region.dims:
            if dim.window is None:
                results.append(within(dim.axis))
            else:
                terms = node.index[dim.index].terms
                results.append(total([scaled(within(axis), coefficient) for axis, coefficient in terms.items()]))
        op = tile.SliceOp.create(
            operands=[region.value, *self.counters],
            result_types=[self.tile_type(frame, node.element)],
            properties={
                "map": AffineMapAttr(affine_map(count + len(frame), results or [AffineConstantExpr(0)])),
                "valid": self.valid(frame),
            },
        )
        self.add(op, node)
        self.define(node, Tile(op.results[0], frame))

    # --- computation ----------------------------------------------------------------------------------------------

    def kept_type(self, node: Node) -> Attribute:
        """The element type a computed tile is kept in: f32 for narrower floats, unless a cast asks for less or the
        value only leaves for a tensor or a matrix operand of that type."""
        if not is_float(node.element) or is_cast(node):
            return node.element
        uses = self.uses[node]
        if all(isinstance(use, Output) or use.kind == "contract" for use in uses):
            return node.element
        wanted = {use.element for use in uses if isinstance(use, Node) and is_cast(use)}
        if len(wanted) == 1 and all(isinstance(use, Node) and is_cast(use) for use in uses):
            return wanted.pop()
        return compute_type(node.element)

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

    def constant(self, node: Node, frame: Frame = (None,)) -> Tile:
        value = node.immediate
        assert value is not None
        op = tile.FillOp.create(
            operands=list(self.counters),
            result_types=[self.tile_type(frame, node.element)],
            properties={"value": value, "valid": self.valid(frame)},
        )
        self.add(op, node)
        return Tile(op.results[0], frame)

    def map(self, node: Node) -> None:
        frame = self.frame(node)
        if is_cast(node) and node.inputs[0].kind != "constant":
            source = self.lookup(node.inputs[0])
            if source.element == node.element:  # its producer rounded already
                self.define(node, source)
                return
        if node.kind == "expand" and node.inputs[0].kind == "constant":
            self.define(node, self.constant(node.inputs[0], frame))
            return
        operands: list[SSAValue] = []
        slots: list[Attribute] = []
        for source in node.inputs:
            immediate = source.immediate
            if immediate is not None:
                slots.append(immediate)
            else:
                slots.append(IntegerAttr.from_index_int_value(len(operands)))
                operands.append(self.framed(self.lookup(source), frame))
        properties: dict[str, Attribute] = {"fn": StringAttr("identity")}
        if node.kind == "map":
            assert isinstance(node.op, MapOp)
            properties["fn"] = node.op.fn
            if node.op.params is not None:
                properties["params"] = node.op.params
        if len(operands) != len(slots):
            properties["immediates"] = ArrayAttr(slots)
        kind = self.kept_type(node) if node.kind == "map" else tile.element_of(operands[0])
        op = tile.MapOp.create(operands=operands, result_types=[self.tile_type(frame, kind)], properties=properties)
        self.add(op, node)
        self.define(node, Tile(op.results[0], frame))

    def iota(self, node: Node) -> None:
        assert isinstance(node.op, IotaOp)
        frame, reach = self.frame(node), self.reach()
        place = {axis: AffineDimExpr(reach.count + p) for p, axis in enumerate(frame) if axis is not None}
        parts: list[AffineExpr] = []
        scale = 1
        for axis in reversed(node.dims[node.op.dim.value.data % len(node.dims)]):
            position = add(reach.start(axis, self.nest.tiles[axis]), place.get(axis, AffineConstantExpr(0)))
            parts.append(scaled(position, scale))
            scale *= axis.extent
        op = tile.IotaOp.create(
            operands=list(self.counters),
            result_types=[self.tile_type(frame, node.element)],
            properties={
                "map": AffineMapAttr(affine_map(reach.count + len(frame), [total(parts)])),
                "valid": self.valid(frame),
            },
        )
        self.add(op, node)
        self.define(node, Tile(op.results[0], frame))

    def reduced(self, node: Node) -> Tile:
        """The reduction of the part of the axes that lies within a tile."""
        assert isinstance(node.op, ReduceOp)
        source = self.lookup(node.inputs[0])
        axes = [p for p, axis in enumerate(source.frame) if axis in node.reduced and self.extents(source.frame)[p] > 1]
        kind = accumulator_type(source.element)
        frame: Frame = tuple(None if axis in node.reduced else axis for axis in source.frame)
        if not axes:
            return Tile(self.as_type(node, source, kind).value, frame)
        op = tile.ReduceOp.create(
            operands=[source.value],
            result_types=[self.tile_type(frame, kind)],
            properties={"monoid": node.op.monoid, "axes": DenseArrayBase.from_list(i64, axes)},
        )
        self.add(op, node)
        return Tile(op.results[0], frame)

    def initial(self, node: Node) -> Tile:
        """The accumulator of a reduction before its loops."""
        frame = self.frame(node)
        properties: dict[str, Attribute] = {"valid": self.valid(frame)}
        kind = self.accumulated_type(node)
        if node.kind == "reduce":
            assert isinstance(node.op, ReduceOp)
            identity = monoid(node.op.monoid.data).identity(element(kind))
            properties["value"] = scalar_attribute(identity, kind)
        made = tile.FillOp if node.kind == "reduce" else tile.EmptyOp
        op = made.create(
            operands=list(self.counters), result_types=[self.tile_type(frame, kind)], properties=properties
        )
        self.add(op, node)
        return Tile(op.results[0], frame)

    def accumulated_type(self, node: Node) -> Attribute:
        return accumulator_type(node.inputs[0].element)

    def accumulate(self, item: Accumulate) -> None:
        node = item.node
        acc = self.accumulators[node]
        if node.kind == "contract":
            self.accumulators[node] = self.contract(node, acc, item.loops)
            return
        assert isinstance(node.op, ReduceOp)
        part = self.framed(self.reduced(node), acc.frame)
        op = tile.MapOp.create(
            operands=[acc.value, part],
            result_types=[acc.value.type],
            properties={"fn": StringAttr(monoid(node.op.monoid.data).combine.name)},
        )
        self.add(op, node)
        self.accumulators[node] = Tile(op.results[0], acc.frame)

    # --- contraction ----------------------------------------------------------------------------------------------

    def contract(self, node: Node, acc: Tile | None, loops: tuple[Axis, ...]) -> Tile:
        """A product of tiles, in pieces of the inner tile sizes where the schedule has them."""
        frames = [self.frame(source) for source in node.inputs]
        frame = self.frame(node)
        if (None,) in (*frames, frame):  # a unit dimension is a letter of its own in both operands
            frames = [f if f == (None,) else (None, *f) for f in frames]
        sources: list[Tile] = []
        for source, wanted in zip(node.inputs, frames, strict=True):
            have = self.as_type(source, self.lookup(source), source.element)
            sources.append(Tile(self.framed(have, wanted), wanted))
        axes = [a for a in self.group.axes if any(a in t.frame for t in (*sources, Tile(sources[0].value, frame)))]
        pieces = [axis for axis in axes if self.inner[axis] < self.nest.tiles[axis]]
        steps = [axis for axis in pieces if axis not in node.reduced] + [a for a in pieces if a in node.reduced]
        if acc is None and steps:
            acc = self.initial(node)
        counted = [self.counters[self.order.index(axis)] for axis in loops]
        if not steps:
            return self.product(node, sources, frame, acc, counted)
        assert acc is not None
        return self.pieces(node, sources, acc, counted, steps)

    def pieces(self, node: Node, sources: list[Tile], acc: Tile, counted: list[SSAValue], steps: list[Axis]) -> Tile:
        """Nested inner loops over `steps`, each carrying the accumulator."""
        outer, value, opened = self.block, acc.value, list[tuple[Block, SSAValue]]()
        inner: list[SSAValue] = []
        for axis in steps:
            body = Block(arg_types=[IndexType(), value.type])
            body.args[0].name_hint = f"{self.group.names[axis]}_inner"
            opened.append((self.block, value))
            self.block, value = body, body.args[1]
            inner.append(body.args[0])
            counted = [*counted, body.args[0]] if axis in node.reduced else counted
        step_of = dict(zip(steps, inner, strict=True))
        cut = [self.piece(source, step_of) for source in sources]
        whole = Tile(value, acc.frame)
        part = self.piece(whole, step_of)
        made = self.product(node, cut, acc.frame, part, counted)
        insert = tile.InsertOp.create(
            operands=[made.value, value, *self.counters, *inner],
            result_types=[value.type],
            properties={"map": self.piece_map(acc.frame, step_of)},
        )
        self.add(insert, node)
        result: SSAValue = insert.results[0]
        for axis, (block, before) in zip(reversed(steps), reversed(opened), strict=True):
            self.block.add_op(tile.YieldOp.create(operands=[result]))
            body, self.block = self.block, block
            trips = -(-self.nest.tiles[axis] // self.inner[axis])
            loop = tile.ForOp(trips, [before], Region(body), self.group.names[axis], "inner")
            self.add(loop, node)
            result = loop.results[0]
        assert self.block is outer
        return Tile(result, acc.frame)

    def piece_map(self, frame: Frame, steps: dict[Axis, SSAValue]) -> AffineMapAttr:
        """(counters, inner counters, positions of the piece) → position in the whole."""
        count, names = len(self.order), list(steps)
        base = count + len(names)
        results: list[AffineExpr] = []
        for p, axis in enumerate(frame):
            position: AffineExpr = AffineDimExpr(base + p)
            if axis in steps:
                position = add(scaled(AffineDimExpr(count + names.index(axis)), self.inner[axis]), position)
            results.append(position)
        return AffineMapAttr(affine_map(base + len(frame), results))

    def piece(self, source: Tile, steps: dict[Axis, SSAValue]) -> Tile:
        if not any(axis in steps for axis in source.frame):
            return source
        reach, names = self.reach(), list(steps)
        shape: list[int] = []
        valid: list[AffineExpr] = []
        for axis in source.frame:
            if axis is None:
                shape.append(1)
                valid.append(AffineConstantExpr(1))
                continue
            left = reach.left(axis, self.nest.tiles[axis])
            if axis in steps:
                left = self.capped(left, axis)
                left = add(left, scaled(AffineDimExpr(reach.count + names.index(axis)), -self.inner[axis]))
            shape.append(self.inner[axis] if axis in steps else self.nest.tiles[axis])
            valid.append(left)
        op = tile.SliceOp.create(
            operands=[source.value, *self.counters, *steps.values()],
            result_types=[TileType(shape, source.element)],
            properties={
                "map": self.piece_map(source.frame, steps),
                "valid": AffineMapAttr(affine_map(reach.count + len(names), valid)),
            },
        )
        self.add(op, None)
        return Tile(op.results[0], source.frame)

    def capped(self, left: AffineExpr, axis: Axis) -> AffineExpr:
        """Elements left in the tile: the pieces of a tile must not reach into the next one."""
        if self.nest.tiles[axis] % self.inner[axis] == 0 or isinstance(left, AffineConstantExpr):
            whole = AffineConstantExpr(self.nest.tiles[axis])
            return left if not isinstance(left, AffineConstantExpr) or left.value < whole.value else whole
        raise AssertionError("inner tiles divide the tiles of looped axes")

    def product(self, node: Node, sources: list[Tile], frame: Frame, acc: Tile | None, counted: list[SSAValue]) -> Tile:
        names = self.group.names

        def letters(of: Frame) -> str:
            return "".join("Z" if axis is None else names[axis] for axis in of)

        spec = f"{letters(sources[0].frame)},{letters(sources[1].frame)}->{letters(frame)}"
        kind = acc.value.type if acc is not None else self.tile_type(frame, self.accumulated_type(node))
        properties: dict[str, Attribute] = {"spec": StringAttr(spec)}
        operands = [source.value for source in sources]
        if acc is not None:
            operands.append(acc.value)
            properties["accumulate"] = UnitAttr()
            init = [AffineDimExpr(p) for p in range(len(counted))]
            properties["init"] = AffineMapAttr(affine_map(len(counted), init))
            operands += counted
        op = tile.ContractOp.create(operands=operands, result_types=[kind], properties=properties)
        self.add(op, node)
        return Tile(op.results[0], frame)

    # --- results --------------------------------------------------------------------------------------------------

    def store(self, output: Output) -> None:
        node = output.node
        destination = self.args[len(self.group.inputs) + output.number]
        kind = cast(Tensor, destination.type)
        wanted = element(kind).attribute
        source = self.lookup(node)
        if node.kind != "contract":
            source = self.as_type(node, source, wanted)
        frame = frame_of(self.group, frozenset(a for e in output.index for a in e.terms), self.nest.tiles)
        value = self.framed(source, frame)
        reach = self.reach()
        place = {axis: AffineDimExpr(reach.count + p) for p, axis in enumerate(frame) if axis is not None}

        def at(expr: Linear) -> AffineExpr:
            parts: list[AffineExpr] = [AffineConstantExpr(expr.offset)]
            for axis, coefficient in expr.terms.items():
                parts.append(scaled(reach.start(axis, self.nest.tiles[axis]), coefficient))
                if axis in place:
                    parts.append(scaled(place[axis], coefficient))
            return total(parts)

        assert len(output.index) == len(static_shape(kind))
        properties: dict[str, Attribute] = {
            "map": AffineMapAttr(affine_map(reach.count + len(frame), [at(expr) for expr in output.index])),
            "valid": self.valid(frame),
        }
        if self.nest.schedule.store_slots > 1:
            properties["slots"] = IntegerAttr(self.nest.schedule.store_slots, i64)
        op = tile.StoreOp.create(operands=[value, destination, *self.counters], properties=properties)
        self.add(op, node)


def is_cast(node: Node) -> bool:
    return node.kind == "map" and isinstance(node.op, MapOp) and node.op.fn.data == "cast"
