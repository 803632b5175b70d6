"""Which loops of a nest have stages: what `stages` will find in the kernel that is made from it."""

from __future__ import annotations

from collections.abc import Sequence

from .nest import Accumulate, Compute, Item, Loop


def staged_loops(items: Sequence[Item]) -> set[Loop]:
    """The innermost loops in which matrix and vector engine both compute."""
    found: set[Loop] = set()
    for item in items:
        if isinstance(item, Loop):
            inside = staged_loops(item.body)
            found |= inside or ({item} if len(kinds(item.body)) > 1 else set())
    return found


def kinds(items: Sequence[Item]) -> set[bool]:
    """Whether there are products (True) and other computations (False) among items and in their loops."""
    result: set[bool] = set()
    for item in items:
        match item:
            case Loop():
                result |= kinds(item.body)
            case Compute() | Accumulate():
                result.add(item.node.kind == "contract")
            case _:
                pass
    return result
