"""The `fuse` pass: primitives become groups, each of them one kernel to be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.errors import UserError
from ..dialects.graph_fused import FusedOp
from ..dialects.graph_primitives import ConstantOp, MapOp, WeightOp
from ..dialects.graph_types import static_shape
from ..dialects.locations import fuse_locations
from ..dialects.operators import MATCH
from ..dialects.target import target_of
from .axes import NotFusable
from .block_order import sort_block
from .costs import THOROUGH, Costs, group_block
from .fuse_prepare import is_outside, is_reshape, prepare
from .group_build import read_group
from .known_inputs import candidate
from .options import objective_of
from .split import DividedCosts

_log = logging.getLogger(__name__)

REACH = 6
"""The most groups that are tried as one at once; pairs need no such limit."""
CLOSE = 2
"""How many times as much as its parts a whole may take at first sight and yet be searched again."""
IMPOSSIBLE = 1 << 62
"""The cost of what no kernel can do."""


@dataclass(eq=False)
class Cluster:
    """Ops that become one kernel, in function order."""

    ops: list[Operation]


@dataclass(frozen=True)
class FusePass(ModulePass):
    """Requires primitives only (after `decompose`); ensures every one of them lies in a `graph.fused`.

    1. each primitive starts as a group of its own; constants that fill a shape are copied into their users,
       views of one operand and iotas have one user each;
    2. a producer's group and its consumer's become one where no path leaves and re-enters it (convex), where their
       values have common axes, and where the best schedule of the whole costs no more than those of the parts
       (elementwise ops on elementwise ops need no search for that); so do up to six groups on the way from one to
       another, where no two of them gain alone;
    3. a reshape alone stays outside: it costs nothing (`tile` makes it an alias);
    4. results that are arguments, constants or given twice are copied by a group of their own.

    `unfused`: one group per named op of the source instead, as a framework would run it.
    """

    name = "fuse"
    unfused: bool = False
    effort: int = 48

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.effort < 1:
            raise UserError(f"the effort of fuse is at least 1, got {self.effort}")
        target = target_of(op)
        costs = DividedCosts(target, objective_of(op), self.effort)
        for function in [f for f in op.ops if isinstance(f, FuncOp) and not f.is_declaration]:
            _check(function)
            prepare(function, views=not self.unfused)
            partition = Partition(function, costs)
            if self.unfused:
                partition.by_origin()
            else:
                partition.merge()
            partition.build()
            groups = sum(isinstance(inner, FusedOp) for inner in function.body.block.ops)
            _log.info("@%s: operations: %d, groups: %d", function.sym_name.data, len(partition.place), groups)


def _check(function: FuncOp) -> None:
    if MATCH in function.attributes:
        raise UserError(
            f"@{function.sym_name.data} is still to be looked for: run match before fuse", function.location
        )
    for op in function.body.block.ops:
        known = op.name in ("graph.map", "graph.reduce", "graph.contract", "graph.view", "graph.take", "graph.iota")
        if not known and not isinstance(op, ConstantOp | WeightOp | ReturnOp | FusedOp):
            raise UserError(f"'{op.name}' is not a primitive: run decompose first", op.location)
        for result in op.results:
            if 0 in static_shape(result.type):
                raise UserError(f"'{op.name}' has a dimension of extent 0, which no kernel can tile", op.location)


class _Said:
    """Names of what some ops compute, put together only if a message is read."""

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.ops = ops

    def __str__(self) -> str:
        return ", ".join(f"%{hint}" if (hint := op.results[0].name_hint) else op.name for op in self.ops)


class Partition:
    """The clusters of one function and the rules of joining them."""

    def __init__(self, function: FuncOp, costs: Costs) -> None:
        self.function, self.costs = function, costs
        self.place: dict[Operation, int] = {}
        self.cluster: dict[Operation, Cluster] = {}
        self.refusals: dict[tuple[Operation, Operation], str] = {}  # why a producer's op and a consumer's stay apart
        for position, op in enumerate(function.body.block.ops):
            self.place[op] = position
            if not is_outside(op):
                self.cluster[op] = Cluster([op])

    # --- joining --------------------------------------------------------------------------------------------------

    def merge(self) -> None:
        changed = True
        while changed:
            changed = False
            for op in list(self.cluster):
                for operand in op.operands:
                    producer = operand.owner
                    if isinstance(producer, Operation) and producer in self.cluster:
                        changed |= self.join([self.cluster[producer], self.cluster[op]])
            changed = changed or self.widen()

    def widen(self) -> bool:
        """Joins more than two groups at once, where no two of them gain alone: what lies between a product and the
        next one may have to be stored unless all of it is one kernel. True if it did."""
        for cluster in dict.fromkeys(self.cluster.values()):
            for chain in self.chains(cluster):
                if self.join(chain):
                    return True
        return False

    def chains(self, first: Cluster) -> list[list[Cluster]]:
        """Groups from `first` on to one that it leads to, all that lie between included; the smallest sets first."""
        ahead: dict[Cluster, set[Cluster] | None] = {first: {first}}  # None: too many
        pending = [first]
        while pending:
            cluster = pending.pop(0)
            here = ahead[cluster]
            for follower in self.successors(cluster):
                known = ahead.get(follower, set[Cluster]())
                wider = None if here is None or known is None else known | here | {follower}
                if wider is not None and len(wider) > REACH:
                    wider = None
                if wider != known:
                    ahead[follower] = wider
                    pending.append(follower)
        found = sorted((hull for hull in ahead.values() if hull is not None and len(hull) > 2), key=len)
        return [sorted(hull, key=lambda c: self.place[c.ops[-1]]) for hull in found]

    def by_origin(self) -> None:
        """One cluster per named op, or as few as there are kernels for; what has no origin stays alone."""
        named: dict[Attribute, list[Operation]] = {}
        for op in list(self.cluster):
            if isinstance(op, ConstantOp):  # splat constants go with their users
                user = next((use.operation for use in op.results[0].uses), None)
                if user is not None and user in self.cluster:
                    self.unite(self.cluster[op], self.cluster[user])
            elif "tilewright.origin" in op.attributes:
                named.setdefault(op.attributes["tilewright.origin"], []).append(op)
        for ops in named.values():
            alone = {op: self.cluster[op] for op in ops}
            kept = {cluster: list(cluster.ops) for cluster in alone.values()}
            self.gather(ops, lambda cluster: True)
            if all(self.feasible(self.cluster[op].ops) for op in ops):
                continue
            for op in ops:
                alone[op].ops = kept[alone[op]]
                self.cluster.update(dict.fromkeys(alone[op].ops, alone[op]))
            self.gather(ops, self.feasible)

    def gather(self, ops: Sequence[Operation], allowed: Callable[[Sequence[Operation]], bool]) -> None:
        """Joins the clusters of ops, each with the one before it, where that is convex and the union is allowed."""
        for before, op in pairwise(ops):
            first, second = self.cluster[before], self.cluster[op]
            if first is not second and self.convex(first, second) and allowed(self.ordered([*first.ops, *second.ops])):
                self.unite(first, second)

    def feasible(self, ops: Sequence[Operation]) -> bool:
        """Whether there is a kernel for these ops."""
        try:
            self.costs.best(self.block(ops))
        except NotFusable:
            return False
        return True

    def join(self, clusters: Sequence[Cluster]) -> bool:
        """Makes clusters, in order, one where it is legal and pays. True if it did."""
        *producers, consumer = clusters
        if consumer in producers or (len(clusters) == 2 and not self.convex(*clusters)):
            return False
        union = self.ordered(op for cluster in clusters for op in cluster.ops)
        if all(isinstance(op, ConstantOp | MapOp) for op in union):
            self.unite_all(clusters)  # elementwise on elementwise: one pass instead of two, at any tile size
            return True
        edge = producers[0].ops[-1], consumer.ops[0]
        try:
            together = self.costs.cost(self.block(union))
        except NotFusable as reason:
            if len(clusters) == 2:
                self.refusals[edge] = str(reason)
            _log.debug("apart: %s: %s", _Said(union), reason)
            return False
        parts = [self.cost(cluster) for cluster in clusters]
        apart = (sum(cost for cost, _ in parts), sum(other for _, other in parts))
        if not self.costs.pays(together, apart) and together[0] <= CLOSE * apart[0]:
            together = min(together, self.costs.cost(self.block(union), THOROUGH))  # the whole has the larger space
        if not self.costs.pays(together, apart):
            unit = "cycles" if self.costs.objective == "time" else "bytes"
            message = f"one kernel would take {together[0]} {unit} by estimate, {len(parts)} take {apart[0]}"
            self.refusals[edge] = message
            _log.debug("apart: %s: %s", _Said(union), message)
            return False
        _log.debug("one group: %s: %d instead of %d", _Said(union), together[0], apart[0])
        self.unite_all(clusters)
        return True

    def unite_all(self, clusters: Sequence[Cluster]) -> None:
        for cluster in clusters[:-1]:
            self.unite(cluster, clusters[-1])

    def cost(self, cluster: Cluster) -> tuple[int, int]:
        ops = [op for op in cluster.ops if not isinstance(op, ConstantOp)]
        if all(is_reshape(op) for op in ops):
            return (0, 0)
        try:
            return self.costs.cost(self.block(cluster.ops))
        except NotFusable:
            return (IMPOSSIBLE, IMPOSSIBLE)  # alone; with a neighbour it may be possible

    def unite(self, producer: Cluster, consumer: Cluster) -> None:
        consumer.ops = self.ordered([*producer.ops, *consumer.ops])
        for op in producer.ops:
            self.cluster[op] = consumer

    def ordered(self, ops: Iterable[Operation]) -> list[Operation]:
        return sorted(ops, key=lambda op: self.place[op])

    def convex(self, producer: Cluster, consumer: Cluster) -> bool:
        """Whether no path leads from the producer to the consumer through a third cluster."""
        queue = [c for c in self.successors(producer) if c is not consumer]
        seen = set(queue)
        while queue:
            for cluster in self.successors(queue.pop()):
                if cluster is consumer:
                    return False
                if cluster not in seen and cluster is not producer:
                    seen.add(cluster)
                    queue.append(cluster)
        return True

    def successors(self, cluster: Cluster) -> list[Cluster]:
        found: dict[Cluster, None] = {}
        for op in cluster.ops:
            for result in op.results:
                for use in result.uses:
                    user = self.cluster.get(use.operation)
                    if user is not None and user is not cluster:
                        found[user] = None
        return list(found)

    # --- groups ---------------------------------------------------------------------------------------------------

    def ends(self, ops: Sequence[Operation]) -> tuple[list[SSAValue], list[SSAValue]]:
        """What a set of ops reads from outside, and which results others need."""
        inside = set(ops)
        inputs: dict[SSAValue, None] = {}
        for op in ops:
            for operand in op.operands:
                if operand.owner not in inside:
                    inputs[operand] = None
        outputs: list[SSAValue] = [
            r for op in ops for r in op.results if any(use.operation not in inside for use in r.uses)
        ]
        return list(inputs), outputs

    def block(self, ops: Sequence[Operation]) -> Block:
        inputs, outputs = self.ends(ops)
        return candidate(group_block(ops, inputs, outputs), inputs)

    def reunite(self) -> None:
        """Copies of a view or iota that ended in one cluster, or each alone, are one again: stored once, read once.

        Not where they lie along different axes of the cluster, as positions that mask rows and columns do.
        """
        seen: dict[tuple[object, ...], Operation] = {}
        for op in list(self.cluster):
            if op.name not in ("graph.view", "graph.iota"):
                continue
            cluster = self.cluster[op]
            where = cluster if len(cluster.ops) > 1 else None
            first = seen.setdefault((where, op.name, *op.operands, *op.result_types, *op.properties.items()), op)
            if first is op or "tilewright.copy" in op.attributes:
                continue
            uses = list(op.results[0].uses)
            op.results[0].replace_all_uses_with(first.results[0])
            left = [one for one in cluster.ops if one is not op]
            if where is not None and not self.is_group(left):
                for use in uses:
                    use.operation.operands[use.index] = op.results[0]
                continue
            cluster.ops = left
            del self.cluster[op]
            Rewriter.erase_op(op)

    def is_group(self, ops: Sequence[Operation]) -> bool:
        """Whether these ops have common axes."""
        try:
            read_group(self.block(ops))
        except NotFusable:
            return False
        return True

    def reasons(self, cluster: Cluster) -> list[str]:
        """Why a cluster is not one with those that it reads from."""
        found = (
            reason
            for (producer, consumer), reason in self.refusals.items()
            if self.cluster.get(consumer) is cluster and self.cluster.get(producer) is not cluster
        )
        return list(dict.fromkeys(found))

    def build(self) -> None:
        """Replaces clusters by `graph.fused` ops, in an order in which every value is made before it is used."""
        self.reunite()
        body = self.function.body.block
        clusters = list(dict.fromkeys(self.cluster.values()))
        made: dict[Cluster, Operation] = {}
        for cluster in clusters:
            ops = [op for op in cluster.ops if not isinstance(op, ConstantOp)]
            if len(ops) == 1 and is_reshape(ops[0]):
                continue
            inputs, outputs = self.ends(cluster.ops)
            fused = FusedOp(inputs, [v.type for v in outputs], Region(group_block(cluster.ops, inputs, outputs)))
            try:
                self.costs.best(fused.body.block)
            except NotFusable as reason:
                raise UserError(f"no kernel for this op: {reason}", ops[0].location) from None
            fused.location = fuse_locations([op.location for op in ops])
            if reasons := self.reasons(cluster):
                fused.attributes["tilewright.refusals"] = ArrayAttr([StringAttr(reason) for reason in reasons])
            Rewriter.insert_op(fused, InsertPoint.after(cluster.ops[-1]))
            for value, result in zip(outputs, fused.res, strict=True):
                result.name_hint = value.name_hint
                value.replace_all_uses_with(result)
            made[cluster] = fused
        for cluster in made:
            for op in reversed(cluster.ops):
                Rewriter.erase_op(op, safe_erase=False)
        sort_block(body)
