"""Reads the region of a `graph.fused` (or of a candidate for one) as a group over named axes.

Views disappear: a permutation, split, merge or broadcast renames axes; a slice, pad or window of an input becomes part
of how that input is loaded (`Node.index`, `Node.inside`); a piecewise view that is yielded becomes one store per piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from ..dialects.attributes import int_values
from ..dialects.dtypes import element, splat
from ..dialects.graph_fused import YieldOp
from ..dialects.graph_primitives import ConstantOp, ContractOp, IotaOp, MapOp, ReduceOp, TakeOp, ViewOp, parse_spec
from ..dialects.graph_types import static_shape
from .axes import Axis, AxisSpace, Linear, NotFusable
from .axis_order import canonical_axes
from .group import Group, Node, Output, Window
from .group_views import load_view, rename_view
from .known_inputs import known_inputs
from .known_table import Table


def read_group(block: Block) -> Group:
    """The group of a block of primitives that ends in `graph.yield`; of the operands of the `graph.fused` that it is
    in, those that are constants are known (`known_inputs`).

    Raises NotFusable if its ops have no common axes.
    """
    return _Builder(block).build()


class _Builder:
    def __init__(self, block: Block) -> None:
        self.block = block
        self.space = AxisSpace()
        self.nodes: list[Node] = []
        self.values: dict[SSAValue, Node] = {}
        self.templates: dict[SSAValue, Node] = {}  # loads whose axes nothing else shares
        self.loads: dict[SSAValue, list[Node]] = {}  # loads made from them, one per use
        self.known = known_inputs(block)

    def build(self) -> Group:
        for number, arg in enumerate(self.block.args):
            shape = static_shape(arg.type)
            dims = [[self.space.fresh(extent)] for extent in shape]
            index = [Linear({axes[0]: 1}) for axes in dims]
            self.templates[arg] = Node("load", element(arg.type).attribute, shape, dims, arg=number, index=index)
        outputs: list[Output] = []
        last: Operation | None = None
        for op in self.block.ops:
            last = op
            if isinstance(op, YieldOp):
                for number, value in enumerate(op.args):
                    outputs += self.outputs(number, value)
            else:
                self.visit(op)
        assert isinstance(last, YieldOp)
        return self.finish(outputs, [value.type for value in last.args])

    # --- ops ------------------------------------------------------------------------------------------------------

    def visit(self, op: Operation) -> None:
        match op:
            case MapOp():
                self.define(op, self.map(op))
            case ReduceOp():
                self.define(op, self.reduce(op))
            case ContractOp():
                self.define(op, self.contract(op))
            case ViewOp():
                if len(op.args) == 1:
                    self.view(op)
                elif op.fill is not None:
                    raise NotFusable("a piecewise view with a fill value")
            case TakeOp():
                self.define(op, self.take(op))
            case IotaOp():
                node = self.new(op, "iota")
                node.present = frozenset(self.atoms(node.dims[op.dim.value.data]))
                self.define(op, node)
            case ConstantOp():
                if splat(op.value) is None:
                    raise NotFusable("a constant with many values is an input")
                node = self.new(op, "constant")
                self.define(op, node)
            case _:
                raise NotFusable(f"'{op.name}' is not a primitive")

    def new(self, op: Operation, kind: str, inputs: Sequence[Node] = ()) -> Node:
        shape = static_shape(op.results[0].type)
        dims = [[self.space.fresh(extent)] for extent in shape]
        return Node(kind, element(op.results[0].type).attribute, shape, dims, op, list(inputs))

    def define(self, op: Operation, node: Node) -> None:
        self.nodes.append(node)
        self.values[op.results[0]] = node

    def value(self, value: SSAValue) -> Node:
        """The node of a value; each use of an input (or of a view of one) is a load with axes of its own."""
        if value in self.values:
            return self.values[value]
        if value not in self.templates:
            raise NotFusable("a piecewise view is read inside the group")
        node = self.instantiate(self.templates[value])
        self.nodes.append(node)
        self.loads.setdefault(value, []).append(node)
        return node

    def instantiate(self, template: Node) -> Node:
        """A copy of a load with axes of its own."""
        fresh = {axis: self.space.fresh(axis.extent) for axes in template.dims for axis in axes}
        rename = {old: Linear({new: 1}) for old, new in fresh.items()}
        return Node(
            "load",
            template.element,
            template.shape,
            [[fresh[axis] for axis in axes] for axes in template.dims],
            template.op,
            arg=template.arg,
            index=[expr.substitute(rename) for expr in template.index],
            inside=[expr.substitute(rename) for expr in template.inside],
            fill=template.fill,
        )

    def atoms(self, axes: Sequence[Axis]) -> list[Axis]:
        return self.space.atoms(axes)

    def map(self, op: MapOp) -> Node:
        node = self.new(op, "map", [self.value(arg) for arg in op.args])
        rank = len(node.shape)
        for source in node.inputs:
            for d, axes in enumerate(source.dims):
                if source.shape[d] != 1:
                    self.space.unify(node.dims[rank - len(source.dims) + d], axes)
        return node

    def reduce(self, op: ReduceOp) -> Node:
        source = self.value(op.args[0])
        node = self.new(op, "reduce", [source])
        axes = {axis % len(source.shape) for axis in int_values(op.axes)}
        for d, dim in enumerate(source.dims):
            if d not in axes:
                self.space.unify(node.dims[d], dim)
        node.letters = [{"r": [axis for d in sorted(axes) for axis in source.dims[d]]}]
        return node

    def contract(self, op: ContractOp) -> Node:
        node = self.new(op, "contract", [self.value(arg) for arg in op.args])
        seen: dict[str, list[Axis]] = {}
        for letters, dims in zip(
            parse_spec(op.spec.data), (*(source.dims for source in node.inputs), node.dims), strict=True
        ):
            here: dict[str, list[Axis]] = {}
            for letter, axes in zip(letters, dims, strict=True):
                here[letter] = axes
                if letter in seen:
                    self.space.unify(seen[letter], axes)
                else:
                    seen[letter] = axes
            node.letters.append(here)
        return node

    def take(self, op: TakeOp) -> Node:
        """A load whose place along one dimension of the input is a value of the group."""
        table, indices = op.args
        if table not in self.templates:
            raise NotFusable("rows are gathered from a value that the group computes")
        chosen, source = self.value(indices), self.instantiate(self.templates[table])
        place = op.axis.value.data % len(source.dims)
        rows = source.dims[place]
        at = [d for d, expr in enumerate(source.index) if set(expr.terms) & set(rows)]
        whole = len(rows) == len(at) == 1 and source.index[at[0]] == Linear({rows[0]: 1}) and not source.inside
        if not whole or rows[0].extent != static_shape(self.block.args[source.arg].type)[at[0]]:
            raise NotFusable("rows are gathered from a part or another arrangement of an input")
        node = self.new(op, "load", [chosen])
        node.dims = [list(axes) for axes in (*source.dims[:place], *chosen.dims, *source.dims[place + 1 :])]
        node.arg, node.gathers = source.arg, at[0]
        node.index = [Linear() if d == at[0] else expr for d, expr in enumerate(source.index)]
        return node

    # --- views ----------------------------------------------------------------------------------------------------

    def view(self, op: ViewOp) -> None:
        result = op.results[0]
        shape = static_shape(result.type)
        map_, box = op.affine_maps[0], op.boxes[0]
        source = op.args[0]
        if source in self.templates:
            self.templates[result] = load_view(self.space, self.templates[source], op, map_, shape, box)
            return
        node = self.value(source)
        if any((low, high) != (0, size) for (low, high), size in zip(box, shape, strict=True)):
            raise NotFusable("a padded view of a computed value")
        self.values[result] = self.renamed(node, map_, shape, op)

    def renamed(self, node: Node, map_: AffineMap, shape: tuple[int, ...], op: Operation) -> Node:
        self.nodes.append(rename_view(self.space, node, map_, shape, op))
        return self.nodes[-1]

    # --- results --------------------------------------------------------------------------------------------------

    def outputs(self, number: int, value: SSAValue) -> list[Output]:
        owner = value.owner
        if isinstance(owner, ViewOp) and len(owner.args) > 1:
            return [self.piece(number, owner, p) for p in range(len(owner.args))]
        node = self.value(value)
        return [Output(number, node, [self.position(axes) for axes in node.dims])]

    def position(self, axes: Sequence[Axis], offset: int = 0) -> Linear:
        return Linear({axis: prod(a.extent for a in axes[k + 1 :]) for k, axis in enumerate(axes)}, offset)

    def piece(self, number: int, op: ViewOp, p: int) -> Output:
        """Piece p of a piecewise view: the part of its operand, stored at the corner of its box."""
        box = op.boxes[p]
        shape = tuple(high - low for low, high in box)
        shift = AffineMap(
            len(box), 0, tuple(AffineMap.identity(len(box)).results[d] + box[d][0] for d in range(len(box)))
        )
        map_ = op.affine_maps[p].compose(shift)
        whole = [(0, size) for size in shape]
        if op.args[p] in self.templates:
            node = self.instantiate(load_view(self.space, self.templates[op.args[p]], op, map_, shape, whole))
            self.nodes.append(node)
        else:
            node = self.renamed(self.value(op.args[p]), map_, shape, op)
        return Output(number, node, [self.position(axes, box[d][0]) for d, axes in enumerate(node.dims)])

    # --- closing --------------------------------------------------------------------------------------------------

    def finish(self, outputs: list[Output], results: list[Attribute]) -> Group:
        """Resolves every expression to atomic axes, finds what each value varies along, orders the axes."""
        if not self.distinct():
            raise NotFusable("a value and another arrangement of it are needed at once")
        through = self.shared_loads()
        self.nodes = [node for node in self.nodes if node not in through]
        nodes: list[Node] = []
        for node in self.nodes:
            node.dims = [self.atoms(axes) for axes in node.dims]
            if node.kind == "view":
                through[node] = through.get(node.inputs[0], node.inputs[0])
                continue
            node.inputs = [through.get(source, source) for source in node.inputs]
            self.close(node, nodes)
            nodes.append(node)
        closed = [
            Output(o.number, through.get(o.node, o.node), [expr.resolved(self.space) for expr in o.index])
            for o in outputs
        ]
        for output in closed:
            wanted = frozenset(axis for expr in output.index for axis in expr.terms)
            output.node = self.expanded(output.node, wanted, nodes)
        inputs: list[Attribute] = [arg.type for arg in self.block.args]
        live = _live(nodes, closed)
        return Group(inputs, results, live, closed, canonical_axes(live, closed))

    def distinct(self) -> bool:
        """Whether the dimensions of every value, and the letters of every contraction, are axes of their own.

        Only then does an index of the group name one element of each value: in `y + transpose(y)` the axes of y's two
        dimensions are unified with each other, and the group would compute the diagonal.
        """
        for node in self.nodes:
            atoms = self.atoms([axis for axes in node.dims for axis in axes])
            if node.kind == "contract":
                letters = {letter: axes for side in node.letters for letter, axes in side.items()}
                atoms = self.atoms([axis for axes in letters.values() for axis in axes])
            if len(set(atoms)) != len(atoms):
                return False
        return True

    def shared_loads(self) -> dict[Node, Node]:
        """Uses of an input that can have the same axes become one load: each further load → the one it is."""
        same: dict[Node, Node] = {}
        for loads in self.loads.values():
            kept: list[Node] = []
            for load in loads:
                found = next((other for other in kept if self.share(load, other)), None)
                if found is None:
                    kept.append(load)
                else:
                    same[load] = found
        return same

    def share(self, left: Node, right: Node) -> bool:
        """Unifies the axes of two loads of the same value, where everything stays distinct."""
        mark = self.space.mark()
        try:
            for these, those in zip(left.dims, right.dims, strict=True):
                for this, other in zip(these, those, strict=True):
                    self.space.unify([this], [other])
        except NotFusable:
            self.space.undo(mark)
            return False
        if self.distinct():
            return True
        self.space.undo(mark)
        return False

    def close(self, node: Node, nodes: list[Node]) -> None:
        if node.kind == "load":
            node.index = [expr.resolved(self.space) for expr in node.index]
            node.inside = self.needed(node)
            node.windows = self.windows(node)
            node.present = frozenset(axis for expr in (*node.index, *node.inside) for axis in expr.terms) | node.chosen
            if node.arg in self.known and node.gathers is None:
                node.table = Table.of(self.known[node.arg], node.index, node.inside)
        elif node.kind == "iota":
            assert isinstance(node.op, IotaOp)
            node.present = frozenset(node.dims[node.op.dim.value.data % len(node.dims)])
        elif node.is_reduction:
            node.reduced = frozenset(self.summed(node))
            if node.kind == "reduce":
                node.inputs[0] = self.expanded(node.inputs[0], node.reduced, nodes)
            else:
                node.inputs = [self.expanded(source, node.reduced, nodes) for source in node.inputs]
            node.present = frozenset(axis for source in node.inputs for axis in source.present) - node.reduced
        else:
            node.present = frozenset(axis for source in node.inputs for axis in source.present)

    def windows(self, node: Node) -> list[Window | None]:
        """Which dimensions of the input have to be read as one stretch."""
        shape = static_shape(self.block.args[node.arg].type)
        found: list[Window | None] = []
        for expr, extent in zip(node.index, shape, strict=True):
            low, high = expr.bounds()
            leaves = low < 0 or high >= extent or any(len(set(expr.terms) & set(c.terms)) > 1 for c in node.inside)
            shared = any(set(expr.terms) & set(other.terms) for other in node.index if other is not expr)
            if leaves and shared and len(expr.terms) > 1:
                raise NotFusable("a window with borders along an axis that indexes another dimension too")
            windowed = len(expr.terms) > 1 and not shared and (leaves or expr.overlapping())
            if windowed and min(expr.terms.values()) < 0:
                raise NotFusable("a window that walks backwards")
            found.append(Window.of(expr) if windowed else None)
        for condition in node.inside:
            for expr, window in zip(node.index, found, strict=True):
                if window is not None and set(expr.terms) & set(condition.terms):
                    condition.multiple_of(expr)
        return found

    def summed(self, node: Node) -> list[Axis]:
        if node.kind == "reduce":
            return self.atoms(node.letters[0]["r"])
        lhs, rhs, out = node.letters
        return [axis for letter, axes in {**lhs, **rhs}.items() if letter not in out for axis in self.atoms(axes)]

    def expanded(self, node: Node, wanted: frozenset[Axis], nodes: list[Node]) -> Node:
        """The value repeated along axes that it does not vary along (a broadcast that must be materialised)."""
        if wanted <= node.present:
            return node
        copy = Node("expand", node.element, node.shape, node.dims, node.op, [node])
        copy.present = node.present | wanted
        nodes.append(copy)
        return copy

    def needed(self, node: Node) -> list[Linear]:
        """The `inside` conditions that the bounds of the input do not already say."""
        shape = static_shape(self.block.args[node.arg].type)
        kept: list[Linear] = []
        for condition in (expr.resolved(self.space) for expr in node.inside):
            if condition.bounds()[0] >= 0:
                continue
            implied = any(
                (condition.terms == expr.terms and condition.offset >= expr.offset)
                or (condition.terms == expr.negated().terms and condition.offset >= extent - 1 - expr.offset)
                for expr, extent in zip(node.index, shape, strict=True)
            )
            if not implied:
                kept.append(condition)
        return kept


def _live(nodes: list[Node], outputs: list[Output]) -> list[Node]:
    """The nodes that outputs need, in order."""
    wanted = {output.node for output in outputs}
    kept: list[Node] = []
    for node in reversed(nodes):
        if node in wanted:
            kept.append(node)
            wanted.update(node.inputs)
    return kept[::-1]
