"""How a value moves when the base of a cascade moves.

While a row streams by, values that need a finished reduction d (its maximum, its mean) are computed from a *base* b
in its place, and moved when the base does. What can be moved is a `Core`: a vector of values f(x, b) with

    f(x, b') = T(b' − b) · f(x, b)

where every entry of T is a sum of products of differences of bases and of their exponentials (`Term`). Sums of f over
the positions seen so far move by the same T. exp(x − b) has T = exp(b − b'), (x − b)² is the first entry of the core
((x − b)², x − b, 1). T is never written as a product of a part for b and one for b': that loses all digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .axes import NotFusable
from .group import Node
from .number_kinds import Kind


class NotOnline(NotFusable):
    """Why a reduction has no online form; the search goes on with several passes."""


@dataclass(eq=False)
class Base:
    """What stands for a finished value inside the loop: expressions over running and previous values, and at the end.

    `true` is the value itself; `final` what the running one has become at the end of the loop: the same, but kept from
    the infinities that a row begins with (`kept`: which). `settled` is the previous one, or where that is still such an
    infinity the running one: nothing was summed yet.
    """

    value: Node
    running: Node
    previous: Node
    settled: Node
    final: Node
    true: Node
    kept: Kind = Kind.NONE


Move: TypeAlias = tuple[tuple[Base, Node | None, float], ...]
"""How much a value grows when bases move: Σ sign · factor · (difference of the base); no factor is 1."""


@dataclass(frozen=True)
class Term:
    """coefficient · Π differences · Π fn(difference)."""

    coefficient: float = 1.0
    moves: tuple[Move, ...] = ()
    powers: tuple[tuple[str, Move], ...] = ()

    def times(self, other: Term) -> Term:
        return Term(self.coefficient * other.coefficient, self.moves + other.moves, self.powers + other.powers)

    def key(self) -> tuple[object, ...]:
        return sorted(map(id, self.moves)), sorted((fn, id(move)) for fn, move in self.powers)


Row: TypeAlias = dict[int, list[Term]]


@dataclass(eq=False)
class Core:
    """Entries and, for each of them, the row of T."""

    entries: list[Node]
    rows: list[Row]

    @staticmethod
    def fixed(node: Node) -> Core:
        """A value that no base moves."""
        return Core([node], [{0: [Term()]}])

    @property
    def is_fixed(self) -> bool:
        return all(row == {j: [Term()]} for j, row in enumerate(self.rows))

    def moves(self) -> list[Move]:
        """Every difference that T is made of."""
        terms = [term for row in self.rows for sums in row.values() for term in sums]
        return [move for term in terms for move in (*term.moves, *(m for _, m in term.powers))]

    def with_moves(self, change: Callable[[Move], Move]) -> Core:
        """The same with other moves."""

        def changed(term: Term) -> Term:
            powers = tuple((fn, change(move)) for fn, move in term.powers)
            return Term(term.coefficient, tuple(change(move) for move in term.moves), powers)

        rows = [{j: [changed(term) for term in terms] for j, terms in row.items()} for row in self.rows]
        return Core(self.entries, rows)

    def product(self, other: Core, entry: Callable[[Node, Node], Node]) -> Core:
        """All products of an entry of this and one of the other; equal ones are kept once."""
        made = [entry(a, b) for a in self.entries for b in other.entries]
        width = len(other.entries)
        rows: list[Row] = []
        for i in range(len(self.entries)):
            for k in range(width):
                row: Row = {}
                for j, left in self.rows[i].items():
                    for m, right in other.rows[k].items():
                        row[j * width + m] = [a.times(b) for a in left for b in right]
                rows.append(row)
        return Core(made, rows).merged()

    def merged(self) -> Core:
        """Equal entries as one: their columns of T are added."""
        first: dict[Node, int] = {}
        place = [first.setdefault(entry, len(first)) for entry in self.entries]
        rows: list[Row] = []
        for i, row in enumerate(self.rows):
            if place[i] < len(rows):
                continue
            columns: Row = {}
            for j, terms in row.items():
                columns.setdefault(place[j], []).extend(terms)
            rows.append({j: collected(terms) for j, terms in columns.items()})
        return Core(list(first), rows)


def collected(terms: list[Term]) -> list[Term]:
    """Like terms added up."""
    found: list[Term] = []
    for term in terms:
        same = next((k for k, other in enumerate(found) if other.key() == term.key()), None)
        if same is None:
            found.append(term)
        else:
            found[same] = Term(found[same].coefficient + term.coefficient, term.moves, term.powers)
    return found


@dataclass(eq=False)
class Settled:
    """A value that needs no reduction of this cascade."""

    node: Node


@dataclass(eq=False)
class Frontier:
    """A value that does not stream and needs finished reductions: a mean, 1/Σ."""

    node: Node


@dataclass(eq=False)
class Shifted:
    """A streamed value that grows by `move` when the bases move; `node` is it at the running bases, `origin` the value
    itself in the group that is derived from."""

    node: Node
    move: Move
    origin: Node


@dataclass(eq=False)
class Sums:
    """Σ factor · first entry of a core; a factor does not stream and waits until the loop is over."""

    parts: list[tuple[Node | None, Core]]


@dataclass(eq=False)
class Refused:
    """A value with no such form, and why."""

    reason: str


Value: TypeAlias = Settled | Frontier | Shifted | Sums | Refused
