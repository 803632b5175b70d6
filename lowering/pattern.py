"""Where a function's body occurs in another: subgraphs of primitives that are equal up to what changes no result.

Two operations agree if they do the same to operands that agree: the operands of commutative scalar operators and of
products in either order, axes, letters and maps in whatever spelling, a constant of equal elements in any shape that
broadcasts alike. Types are compared exactly: a value that is rounded in between is another value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from typing import TypeAlias

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.graph_base import GraphOp
from ..dialects.graph_primitives import ConstantOp, ContractOp, MapOp
from ..dialects.scalar import lookup
from .pattern_ops import difference, product_orders, same_elements

Pair: TypeAlias = tuple[SSAValue, SSAValue, Operation | None]
"""A value of the pattern, one of the program, and the operation of the pattern that uses the former."""

STEPS = 20_000
"""Pairs of operations that one root may take; a body with many equal parts has more ways to match than are worth it."""


@dataclass(frozen=True)
class Occurrence:
    """What the arguments of the pattern, and its operations, stand for in the program."""

    ops: Mapping[Operation, Operation]
    args: Sequence[SSAValue]
    results: Sequence[SSAValue]

    @property
    def roots(self) -> set[Operation]:
        """The operations whose results the pattern gives."""
        return {value.owner for value in self.results if isinstance(value.owner, Operation)}

    @property
    def interior(self) -> set[Operation]:
        """Those whose results are only used inside of it."""
        return {*self.ops.values()} - self.roots


@dataclass(frozen=True)
class Mismatch:
    """The first place where an attempt fails."""

    reason: str
    wanted: SSAValue
    found: SSAValue


@dataclass(frozen=True)
class Attempt:
    """The operations of the pattern that agree, and where it fails first, if it does."""

    agreed: frozenset[Operation]
    mismatch: Mismatch | None = None


@dataclass
class Pattern:
    """The body of a function of primitives, looked for in a block of primitives."""

    function: FuncOp
    _agrees: dict[tuple[SSAValue, SSAValue], bool] = field(default_factory=dict[tuple[SSAValue, SSAValue], bool])
    _scores: dict[tuple[SSAValue, SSAValue], Attempt] = field(default_factory=dict[tuple[SSAValue, SSAValue], Attempt])

    @property
    def results(self) -> list[SSAValue]:
        last = self.function.body.block.last_op
        return list(last.operands) if isinstance(last, ReturnOp) else []

    @property
    def args(self) -> Sequence[SSAValue]:
        return self.function.body.block.args

    @property
    def size(self) -> int:
        """How many operations it has, constants among them."""
        return sum(isinstance(op, GraphOp) for op in self.function.body.block.ops)

    def unfindable(self) -> str | None:
        """Why no program can contain this body, if none can."""
        for number, value in enumerate(self.results):
            if not isinstance(value.owner, GraphOp) or isinstance(value.owner, ConstantOp):
                return f"its result {number} is not computed"
        for number, arg in enumerate(self.args):
            if not any(True for _ in arg.uses):
                return f"its argument {number} has no effect"
        return None if self.results else "it has no results"

    def occurrences(self, block: Block) -> Iterator[Occurrence]:
        """One for each operation that makes the first result of one, in order; they may share operations."""
        for op in block.ops:
            if isinstance(op, GraphOp):
                found = next(self._rooted(op.res, block), None)
                if found is not None:
                    yield found

    def nearest(self, block: Block) -> tuple[int, Mismatch] | None:
        """Of how many operations the best attempt at the first result agrees, and where it fails first.

        None where none begins to agree, or where one agrees in all of them (but not in which operands are the same).
        """
        best: tuple[int, Mismatch] | None = None
        for op in block.ops:
            if isinstance(op, GraphOp):
                found = self._score(self.results[0], op.res)
                count = len(found.agreed)
                if found.mismatch is not None and count and (best is None or count > best[0]):
                    best = count, found.mismatch
        return best

    # --- one root

    def _rooted(self, root: SSAValue, block: Block) -> Iterator[Occurrence]:
        steps = iter(range(STEPS))
        for bound in self._roots([root], block, {}, steps):
            args = [bound[arg] for arg in self.args]
            results = [bound[value] for value in self.results]
            ops = {p.owner: q.owner for p, q in bound.items() if isinstance(p.owner, Operation)}
            made = {p: q for p, q in ops.items() if isinstance(q, Operation)}
            found = Occurrence(made, args, results)
            if len(results) == 1 or _is_convex(found):
                yield found

    def _roots(
        self, given: Sequence[SSAValue], block: Block, bound: dict[SSAValue, SSAValue], steps: Iterator[int]
    ) -> Iterator[dict[SSAValue, SSAValue]]:
        """Matches the results one after another; those after the first may be anywhere in the block."""
        left = [value for value in self.results if value not in bound]
        if not left:
            yield bound
            return
        candidates = given or [op.res for op in block.ops if isinstance(op, GraphOp)]
        for candidate in candidates:
            for more in self._match([(left[0], candidate, None)], bound, steps):
                yield from self._roots([], block, more, steps)

    def _match(
        self, pending: list[Pair], bound: dict[SSAValue, SSAValue], steps: Iterator[int]
    ) -> Iterator[dict[SSAValue, SSAValue]]:
        """Every way in which the pairs agree, given what is bound already."""
        if not pending:
            yield bound
            return
        if next(steps, None) is None:
            return
        (want, have, user), *rest = pending
        if want in bound:
            if bound[want] is have or (isinstance(want.owner, ConstantOp) and self.agree(want, have, user)):
                yield from self._match(rest, bound, steps)
        elif self.agree(want, have, user):
            more = {**bound, want: have}
            if not isinstance(want.owner, GraphOp):
                yield from self._match(rest, more, steps)
                return
            assert isinstance(have.owner, GraphOp)
            for order in _orders(want.owner, have.owner):
                pairs = [(p, q, want.owner) for p, q in zip(want.owner.args, order, strict=True)]
                if all(self.agree(*pair) for pair in pairs):
                    yield from self._match([*pairs, *rest], more, steps)

    def agree(self, want: SSAValue, have: SSAValue, user: Operation | None = None) -> bool:
        """Whether two values could be equal, whatever the arguments are."""
        if isinstance(want.owner, ConstantOp) and isinstance(user, MapOp):
            return same_elements(want, have)
        key = want, have
        if key not in self._agrees:
            self._agrees[key] = self._agree(want, have)
        return self._agrees[key]

    def _agree(self, want: SSAValue, have: SSAValue) -> bool:
        if not isinstance(want.owner, GraphOp):
            return want.type == have.type
        if not isinstance(have.owner, GraphOp) or difference(want.owner, have.owner) is not None:
            return False
        return any(
            all(self.agree(p, q, want.owner) for p, q in zip(want.owner.args, order, strict=True))
            for order in _orders(want.owner, have.owner)
        )

    # --- attempts that fail

    def _score(self, want: SSAValue, have: SSAValue, user: Operation | None = None) -> Attempt:
        key = want, have
        if key not in self._scores:
            self._scores[key] = self._attempt(want, have, user)
        return self._scores[key]

    def _attempt(self, want: SSAValue, have: SSAValue, user: Operation | None) -> Attempt:
        op, other = want.owner, have.owner
        if not isinstance(op, GraphOp):
            same = want.type == have.type
            reason = f"a value of {have.type}, the operator takes {want.type}"
            return Attempt(frozenset(), None if same else Mismatch(reason, want, have))
        if isinstance(op, ConstantOp) and isinstance(user, MapOp) and same_elements(want, have):
            return Attempt(frozenset([op]))
        if not isinstance(other, GraphOp):
            return Attempt(frozenset(), Mismatch(f"a value that is given, the operator has '{op.name}'", want, have))
        reason = difference(op, other)
        if op.name != other.name or len(op.args) != len(other.args):
            return Attempt(frozenset(), Mismatch(str(reason), want, have))
        attempts = [
            [self._score(p, q, op) for p, q in zip(op.args, order, strict=True)] for order in _orders(op, other)
        ]
        best = max(attempts, key=lambda rows: len(frozenset[Operation]().union(*(row.agreed for row in rows))))
        agreed = frozenset[Operation]().union(*(row.agreed for row in best))
        if reason is not None:
            return Attempt(agreed, Mismatch(reason, want, have))
        return Attempt(agreed | {op}, next((row.mismatch for row in best if row.mismatch), None))


def _orders(op: GraphOp, other: GraphOp) -> list[Sequence[SSAValue]]:
    """The orders in which operands of the second may stand for those of the first."""
    if isinstance(op, MapOp) and lookup(op.fn.data).commutative:
        return [*permutations(other.args)]
    if isinstance(op, ContractOp) and (orders := product_orders(op, other)):
        return [*orders]
    return [other.args]


def _is_convex(found: Occurrence) -> bool:
    """Whether nothing that it takes is made from what it gives."""
    pending, seen = list(found.args), set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.owner in found.roots:
            return False
        if isinstance(value.owner, Operation):
            pending += value.owner.operands
    return True
