"""What masks save in a scheduled group, in words: tiles left out, masks left out, and what that takes for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .axes import Axis
from .cuts import Cut, Judgement
from .group import Node
from .nest import Item, Loop, Nest


def mask_lines(nest: Nest, names: Sequence[str]) -> list[str]:
    """A line for each loop over a reduced axis that masks say something of; `names` are those of the inputs."""
    return [
        _line(nest, loop, path, names)
        for loop, path in _loops(nest.items, ())
        if loop.carried and _told(nest, loop, path)
    ]


def _loops(items: Sequence[Item], path: tuple[Axis, ...]) -> Iterator[tuple[Loop, tuple[Axis, ...]]]:
    for item in items:
        if isinstance(item, Loop):
            yield item, path
            yield from _loops(item.body, (*path, item.axis))


def _told(nest: Nest, loop: Loop, path: tuple[Axis, ...]) -> Judgement | None:
    return nest.cutter.judge(loop.axis, loop.carried, path, nest.tiles)


def _line(nest: Nest, loop: Loop, path: tuple[Axis, ...], names: Sequence[str]) -> str:
    name = f"loop over {nest.group.names[loop.axis]}"
    cut = nest.cuts.get(loop)
    told = _told(nest, loop, path)
    assert told is not None
    parts = [f"{name}: {_saved(cut, nest.trips(loop.axis))}"] if cut is not None else [f"{name}: walked whole"]
    if cut is not None and cut.assumed:
        inputs = sorted({node.arg for node in cut.assumed})
        finite = "is finite" if len(inputs) == 1 else "are finite"
        parts.append(f"assumes that {', '.join(names[arg] for arg in inputs)} {finite}")
    if cut is None or cut.walked[0].all():
        changed = next((s.changed for s, a in zip(told.steps, told.aliases, strict=True) if s.changed and not a), None)
        changed = changed or next((step.changed for step in told.steps if step.changed is not None), None)
        if changed is not None:
            parts.append(f"no tile is left out, as {_reduction(nest, changed)} may change where the mask is constant")
    return "; ".join(parts)


def _saved(cut: Cut, trips: int) -> str:
    everything, masked = cut.walked
    total = int(np.prod(cut.shape[:-1])) * trips
    walked = int(everything.sum())
    return f"{walked} of {total} tiles walked, {walked - int(masked.sum())} of them without masks"


def _reduction(nest: Nest, node: Node) -> str:
    letters = "".join(sorted(nest.group.names[axis] for axis in node.reduced))
    kind = getattr(getattr(node.op, "monoid", None), "data", "sum")
    return f"the {kind} over {letters}"
