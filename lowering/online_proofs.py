"""What has to hold of infinities for a value to have an online form: proved from kinds of numbers (`number_kinds.py`).

A base that is an infinity so far (the maximum of a row of −∞) stands in the loop as the greatest number. What is summed
at it cannot be moved to a real base afterwards: it has to be nothing, as exp(x − max x) is where all of x is −∞. Of
exp(z − max x) that is not so; such a value has no online form unless the maximum is finite from the first tile on.
Data are assumed to be finite here, as for masks.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from .axes import Axis
from .group import Node
from .number_kinds import Kind, NumberKinds, passed
from .online_state import monoid_of
from .online_values import Base, Move, NotOnline, Shifted

SIDES = {"max": Kind.LOW, "min": Kind.HIGH}
"""Reductions and the infinity that they are of nothing, or of a row of it."""


class Proofs:
    """The questions that `online_rules.py` asks."""

    def __init__(self, kinds: NumberKinds, walk: frozenset[Axis]) -> None:
        self.kinds, self.walk = kinds, walk
        self.moves: dict[tuple[Move, Node, bool], Move] = {}

    def check(self, value: Shifted) -> None:
        """Whether a shifted value may be summed or exponentiated at bases still infinite. Raises NotOnline if not."""
        for base, _, _ in value.move:
            if base.kept and not self.vanishes(value.origin, base):
                raise NotOnline(
                    "a value that may be finite would be shifted by a reduction that may be infinite so far: what is "
                    "summed until then would be lost"
                )

    def vanishes(self, value: Node, base: Base) -> bool:
        """Whether a value that is shifted by a base is no finite number where the base is an infinity."""
        tops = self.tops(base)
        meant = self.kinds.meaning.get(base.value, base.value)
        if self.kinds.of(meant, dict.fromkeys(tops, Kind.FINITE)) & Kind.INFINITE:
            return False
        for top in tops:
            side = SIDES[monoid_of(top)]
            if not self.kinds.of(top) & side:
                continue  # an infinity on the other side is one for good
            facts = {top.inputs[0]: side, passed(top.inputs[0]): side, top: side, meant: Kind.FINITE}
            if self.kinds.of(value, facts) & Kind.FINITE:
                return False
        return True

    def tops(self, base: Base) -> list[Node]:
        """The maxima and minima under a base that may be infinite."""
        found: dict[Node, None] = {}
        meant = self.kinds.meaning.get(base.value, base.value)
        pending, seen = [meant], {meant}
        while pending:
            node = pending.pop()
            side = SIDES.get(monoid_of(node)) if node.kind == "reduce" else None
            if side is not None and node.reduced & self.walk and self.kinds.of(node) & Kind.INFINITE:
                found[node] = None
            pending += [source for source in node.inputs if source not in seen]
            seen.update(node.inputs)
        return list(found)

    def chosen(self, move: Move, condition: Node, holds: bool) -> Move:
        """How a value moves that counts only where a condition holds (or does not). Raises NotOnline.

        Of a row in which it counts nowhere the sum is 0, though the difference of the base to the true value be
        infinite at the end. That is left out where a position at which the condition holds makes the base finite.
        """
        key = (move, condition, holds)
        if key not in self.moves:
            self.moves[key] = tuple((self.chosen_base(b, condition, holds), factor, sign) for b, factor, sign in move)
        return self.moves[key]

    def chosen_base(self, base: Base, condition: Node, holds: bool) -> Base:
        meant = self.kinds.meaning.get(base.value, base.value)
        tops = self.tops(base)
        case = {condition: Kind.POSITIVE if holds else Kind.ZERO}
        of = partial(self.kinds.of, meant)
        if not base.kept or not of() & Kind.INFINITE:
            return base
        alive = all(not self.kinds.of(top.inputs[0], case) & SIDES[monoid_of(top)] for top in tops)
        beyond = any(self.kinds.of(top) & Kind.INFINITE & ~SIDES[monoid_of(top)] for top in tops)
        if not alive or beyond or of(dict.fromkeys(tops, Kind.FINITE)) & Kind.INFINITE:
            raise NotOnline(
                "a choice leaves out a value that is shifted by a reduction that may be infinite in a row of which "
                "nothing is chosen: 0 there, but not in the loop"
            )
        return replace(base, true=base.final)

    def check_factor(self, factor: Node) -> None:
        """Whether a finished factor may wait until what was chosen is summed. Raises NotOnline."""
        if self.kinds.of(factor) & ~Kind.FINITE:
            raise NotOnline(
                "a choice leaves out a product with a reduction that may be no finite number: 0 where it is left out, "
                "but not if the factor waits until the loop is over"
            )
