"""The estimated cost of a candidate group, remembered by the text of its logic: groups repeat."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from pydantic import TypeAdapter
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.errors import UserError
from ..dialects.graph_fused import YieldOp
from ..dialects.target_model import Target
from .axes import NotFusable
from .cache import remembered
from .group_build import read_group
from .known_inputs import digest, known_inputs
from .search import Choice, Objective, search

_log = logging.getLogger(__name__)

CYCLES_ERROR = 0.05
"""Estimated cycles closer than this (assumed) say nothing about which kernel is faster: fewer bytes decide."""


def group_block(ops: Sequence[Operation], inputs: Sequence[SSAValue], outputs: Sequence[SSAValue]) -> Block:
    """A copy of ops as the body of a `graph.fused`: inputs become arguments, outputs are yielded."""
    block = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value, arg in values.items():
        arg.name_hint = value.name_hint
    for op in ops:
        copy = op.clone(values)
        copy.location = op.location
        block.add_op(copy)
    block.add_op(YieldOp.create(operands=[values[value] for value in outputs]))
    return block


def block_key(block: Block) -> str:
    """The logic of a block as text, without names and locations, and what is known of its inputs."""
    numbers: dict[SSAValue, int] = {}
    lines: list[str] = [", ".join(str(arg.type) for arg in block.args)]
    lines += [f"{number}: {digest(known)}" for number, known in known_inputs(block).items()]
    for arg in block.args:
        numbers[arg] = len(numbers)
    for op in block.ops:
        operands = [numbers[value] for value in op.operands]
        properties = sorted((name, str(value)) for name, value in op.properties.items())
        lines.append(f"{op.name} {operands} {properties} {[str(result.type) for result in op.results]}")
        for result in op.results:
            numbers[result] = len(numbers)
    return "\n".join(lines)


class Cost(Protocol):
    """Off-chip bytes and cycles, estimated or measured."""

    @property
    def bytes(self) -> int: ...

    @property
    def cycles(self) -> int: ...


_FIRST: TypeAdapter[Choice | str] = TypeAdapter(Choice | str)
THOROUGH = 6
"""A group that does not pay at first sight is searched for as many times longer."""


class Costs:
    """Searches each distinct group once."""

    def __init__(self, target: Target, objective: Objective, effort: int, skew: bool = True) -> None:
        self.target = target
        self.objective: Objective = objective
        self.effort = effort
        self.skew = skew
        self.memo: dict[tuple[str, int, bool], list[Choice] | str] = {}
        self.firsts: dict[tuple[str, int], Choice | str] = {}

    def choices(self, block: Block, times: int = 1) -> list[Choice]:
        """Schedules of a block, best first, by a search that is `times` longer. Raises NotFusable if there is none."""
        found = self.all(block_key(block), block, times, kinds=True)
        if isinstance(found, str):
            raise NotFusable(found)
        return found

    def best(self, block: Block, times: int = 1) -> Choice:
        """The best schedule by estimate, which the cache may know. Raises NotFusable if there is none."""
        key = block_key(block), times
        if key in self.firsts:
            _log.debug("a group that was searched before")
        else:

            def find() -> Choice | str:
                found = self.all(key[0], block, times, kinds=False)
                return found if isinstance(found, str) else found[0]

            self.firsts[key] = remembered("estimate", self.question(*key), _FIRST, find)
        found = self.firsts[key]
        if isinstance(found, str):
            raise NotFusable(found)
        return found

    def question(self, group: str, times: int) -> tuple[object, ...]:
        """Everything that the search for schedules of a group depends on."""
        return group, self.target.canonical, self.objective, self.effort * times, self.skew

    def all(self, group: str, block: Block, times: int, kinds: bool) -> list[Choice] | str:
        """What the search finds, or why it finds nothing; `group` is the block's key."""
        found = self.memo.get((group, times, kinds))
        if found is None:
            found = self.memo[group, times, kinds] = self.look(block, self.effort * times, kinds)
            _log.debug("searched a group: %s", found if isinstance(found, str) else f"{len(found)} schedules")
        else:
            _log.debug("a group that was searched before")
        return found

    def look(self, block: Block, effort: int, kinds: bool) -> list[Choice] | str:
        try:
            found = search(read_group(block), self.target, self.objective, effort, self.skew, kinds)
        except NotFusable as reason:
            return str(reason)
        except UserError as error:
            return error.message
        return found or "its smallest tiles do not fit on chip"

    def weigh(self, estimate: Cost) -> tuple[int, int]:
        """What the objective counts, and the other figure for ties."""
        if self.objective == "traffic":
            return estimate.bytes, estimate.cycles
        return estimate.cycles, estimate.bytes

    def pays(self, together: tuple[int, int], apart: tuple[int, int]) -> bool:
        """Whether one kernel is worth it. Bytes are exact and decide alone; cycles are estimates, and where they differ
        by less than their error fewer bytes decide."""
        if together <= apart:
            return True
        close = together[0] <= apart[0] * (1 + CYCLES_ERROR) and together[1] < apart[1]
        return self.objective == "time" and close

    def cost(self, block: Block, times: int = 1) -> tuple[int, int]:
        """What the objective counts, and the other figure for ties. Raises NotFusable."""
        return self.weigh(self.best(block, times).estimate)
