"""What masks save: for every loop over a reduced axis the tiles that need not be walked, and those that need no mask.

Per tile of the loop and outer tile, static values are constants or not (`static_values.py`); a step in whose tile they
are such that it changes nothing (`absorb.py`) is left out. What is left is walked in sections (`cut_sections.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .absorb import Absorber, Facts, Step, needed_by
from .axes import Axis
from .cut_sections import EMPTY, FULL, MASKED, IntArray, Section, sections_of
from .group import Group, Node
from .number_kinds import NumberKinds
from .static_values import Array, Grid, constants, frontier

TELLING = (0.0, 1.0, np.inf, -np.inf)
"""Values that change what a step does: truth values, and the neutral and absorbing elements."""


@dataclass(frozen=True, eq=False)
class Cut:
    """How a loop over `axis` is walked. `outer`: the axes of outer loops that the bounds of sections depend on.

    In a section without masks `aliases` says which values are one of their operands, and `dead` is not computed.
    `assumed`: inputs that must be finite for the steps that are left out to change nothing.
    """

    axis: Axis
    outer: tuple[Axis, ...]
    sections: tuple[Section, ...]
    aliases: Mapping[Node, Node]
    dead: frozenset[Node]
    assumed: frozenset[Node]
    length: int

    @cached_property
    def walked(self) -> tuple[IntArray, IntArray]:
        """How often each tile is walked, per outer tile: in all sections, and in those with masks."""
        return self._table(self.sections), self._table([s for s in self.sections if not s.full])

    def leaves_out(self, node: Node) -> bool:
        """Whether sections without masks do not need a node."""
        return node in self.dead or node in self.aliases

    def _table(self, sections: Sequence[Section]) -> IntArray:
        trips = self.shape[-1]
        tile = np.arange(trips)
        total = np.zeros(self.shape, np.int64)
        for section in sections:
            inside = (tile >= section.lower[..., None]) & (tile < section.upper[..., None])
            total += inside.sum(axis=-2)
        return total

    @property
    def shape(self) -> tuple[int, ...]:
        """Outer tiles, then the tiles of the loop."""
        return (*self.sections[0].lower.shape[:-1], self.length)

    @property
    def rounds(self) -> IntArray:
        """Per outer tile how often the sections are gone through."""
        trips = np.zeros_like(self.sections[0].lower)
        for section in self.sections:
            trips += section.trips
        table = np.flip(trips > 0, axis=-1)
        return np.where(table.any(axis=-1), trips.shape[-1] - table.argmax(axis=-1), 0)

    @property
    def first(self) -> IntArray:
        """Per outer tile the first tile that is walked."""
        table = self.walked[0] > 0
        return np.where(table.any(axis=-1), table.argmax(axis=-1), 0)


@dataclass(frozen=True, eq=False)
class Judgement:
    """The different things that masks say of a tile: what is known (`facts`), what a step then does, which values are
    one of their operands. `where` has, per outer tile and tile of the loop, which of them holds."""

    outer: tuple[Axis, ...]
    facts: list[Facts]
    where: IntArray
    steps: list[Step]
    aliases: list[dict[Node, Node]]

    def plainest(self, empty: Sequence[bool]) -> int | None:
        """Of what is not left out, that which does without most; the most frequent of these."""
        counts = np.bincount(self.where.ravel(), minlength=len(self.facts))
        left = [k for k in range(len(self.facts)) if not empty[k]]
        return max(left, key=lambda k: (len(self.aliases[k]), counts[k]), default=None)


@dataclass(eq=False)
class Cutter:
    """The cuts of a group's loops, for any tiles: what can be told of a loop beforehand is remembered."""

    group: Group
    absorbers: dict[tuple[frozenset[Axis], tuple[Node, ...]], Absorber] = field(
        default_factory=dict[tuple[frozenset[Axis], tuple[Node, ...]], Absorber]
    )

    @cached_property
    def kinds(self) -> NumberKinds:
        return NumberKinds(self.group)

    @cached_property
    def masks(self) -> tuple[Node, ...]:
        return frontier(self.group)

    def judge(
        self, axis: Axis, carried: Sequence[Node], path: Sequence[Axis], tiles: Mapping[Axis, int]
    ) -> Judgement | None:
        """What masks say of the tiles of a loop inside those over `path`; None where they say nothing of any."""
        if not self.masks or not carried:
            return None
        fixed = frozenset((*path, axis))
        absorber = self.absorbers.setdefault((fixed, tuple(carried)), Absorber(self.group, carried, fixed, self.kinds))
        masks = [node for node in self.masks if node in absorber.under and node.present.intersection((*path, axis))]
        if not masks:
            return None
        outer = tuple(a for a in path if any(a in node.present for node in masks))
        grid = Grid((*outer, axis), tiles)
        table = constants(masks, grid)
        patterns, where = _patterns([table[node] for node in masks])
        if len(patterns) == 1 and np.isnan(patterns[0]).all():
            return None
        facts = [_facts(masks, pattern) for pattern in patterns]
        return Judgement(outer, facts, where, [absorber.step(f) for f in facts], [absorber.aliases(f) for f in facts])

    def cut(
        self,
        axis: Axis,
        carried: Sequence[Node],
        path: Sequence[Axis],
        tiles: Mapping[Axis, int],
        inner: Sequence[Node],
    ) -> Cut | None:
        """How a loop inside those over `path` is walked; None where it is walked whole, with its masks.

        It stores nothing, and no loop around it is cut. `inner`: the accumulators of loops inside it.
        """
        found = self.judge(axis, carried, path, tiles)
        if found is None:
            return None
        empty = [step.changed is None for step in found.steps]
        best = found.plainest(empty)
        aliases = {} if best is None else found.aliases[best]
        kind = [EMPTY if e else FULL if aliases and k == best else MASKED for k, e in enumerate(empty)]
        kinds = np.array(kind)[found.where]
        if any(node.kind == "contract" and not node.cascade for node in carried):
            kinds[(kinds == EMPTY).all(axis=-1), 0] = MASKED  # the first step is where its sum begins
        sections = () if (kinds == MASKED).all() else tuple(sections_of(kinds))
        if not sections:
            return None
        assumed = frozenset[Node]().union(*(step.assumed for step, e in zip(found.steps, empty, strict=True) if e))
        accumulators = [*carried, *inner]
        dead = frozenset(self.group.nodes) - needed_by(accumulators, aliases) - frozenset(accumulators)
        return Cut(axis, found.outer, sections, aliases, dead, assumed, kinds.shape[-1])


def _facts(masks: Sequence[Node], pattern: Sequence[float]) -> Facts:
    return {node: float(value) for node, value in zip(masks, pattern, strict=True) if not np.isnan(value)}


def _patterns(values: Sequence[Array]) -> tuple[Array, IntArray]:
    """The different combinations of constants, and which one each tile has."""
    codes = np.full((*values[0].shape, len(values)), len(TELLING))
    for position, value in enumerate(values):
        for code, telling in enumerate(TELLING):
            codes[..., position][value == telling] = code
    found, where = np.unique(codes.reshape(-1, len(values)), axis=0, return_inverse=True)
    return np.array((*TELLING, np.nan))[found], where.reshape(codes.shape[:-1])
