"""Which occurrences of an operator may become calls of it, all at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation

from .pattern import Occurrence
from .pattern_ops import is_static


@dataclass(frozen=True)
class Rejected:
    """An operation inside of an occurrence whose value something else needs too, and what."""

    inside: Operation
    user: Operation


def legal(found: Sequence[Occurrence]) -> tuple[list[Occurrence], list[Rejected]]:
    """The occurrences to replace, in order, and why others are not.

    1. What one gives is not inside of another: of two such, the first one stays.
    2. A value inside is not needed elsewhere: it would be computed twice, once by the kernel and once beside it.
       Another occurrence may have it inside too (both kernels compute it then, as they would for two calls), and so may
       anything, if it is made of constants and positions only.
    """
    candidates, rejected = list(found), list[Rejected]()
    while True:
        accepted = _apart(candidates)
        replaced = {op for one in accepted for op in one.ops.values()}
        taken = {value.owner for one in accepted for value in one.args}
        wrong = {n: reason for n, one in enumerate(accepted) if (reason := _needed(one, replaced, taken)) is not None}
        if not wrong:
            return accepted, rejected
        rejected += wrong.values()
        dropped = [accepted[n] for n in wrong]
        candidates = [one for one in candidates if not any(one is other for other in dropped)]


def _apart(found: Sequence[Occurrence]) -> list[Occurrence]:
    roots, interior, kept = set[Operation](), set[Operation](), list[Occurrence]()
    for one in found:
        inside = {op for op in one.interior if not is_static(op)}
        if one.roots & (roots | interior) or inside & roots:
            continue
        roots |= one.roots
        interior |= inside
        kept.append(one)
    return kept


def _needed(one: Occurrence, replaced: set[Operation], taken: set[Operation | Block]) -> Rejected | None:
    for op in one.interior:
        if not is_static(op):
            if op in taken:  # an argument of an occurrence, of this one too
                return Rejected(op, op)
            for result in op.results:
                for use in result.uses:
                    if use.operation not in replaced:
                        return Rejected(op, use.operation)
    return None
