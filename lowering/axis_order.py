"""The canonical order of a group's axes, which is the order of dimensions in every tile."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from .axes import Axis, Linear
from .group import Node, Output


def canonical_axes(nodes: Sequence[Node], outputs: Sequence[Output]) -> list[Axis]:
    """One order of all axes.

    The largest output's order first; other axes beside their neighbours in the tensors that have them, so that vector
    tiles lie as their tensors do; axes that only contractions sum over last (nearest in a matrix operand); the taps of
    windows first.
    """
    order: list[Axis] = []
    everything = [axis for node in nodes for axis in sorted(node.present | node.reduced, key=lambda a: a.serial)]
    contracted = {axis for node in nodes if node.kind == "contract" for axis in node.reduced}
    contracted -= {axis for node in nodes if node.kind == "reduce" for axis in node.reduced}

    def sequence(index: Sequence[Linear]) -> list[Axis]:
        return [axis for expr in index for axis, _ in sorted(expr.terms.items(), key=lambda term: -abs(term[1]))]

    def size(index: Sequence[Linear]) -> int:
        return prod(axis.extent for axis in sequence(index))

    sources = [output.index for output in sorted(outputs, key=lambda o: -size(o.index))]
    loads = [_read_at(node) for node in nodes if node.kind == "load"]
    sources += sorted(loads, key=lambda index: -size(index))
    for index in sources:
        axes = sequence(index)
        for position, axis in enumerate(axes):
            if axis in order or axis in contracted:
                continue
            after = next((order.index(a) for a in axes[position + 1 :] if a in order), len(order))
            order.insert(after, axis)
    for axis in [*everything, *(a for a in everything if a in contracted)]:
        if axis not in order:
            order.append(axis)
    taps = {tap for node in nodes for tap in node.taps}
    return [axis for axis in order if axis in taps] + [axis for axis in order if axis not in taps]


def _read_at(load: Node) -> list[Linear]:
    """The index of a load; in the place of a gathered dimension, the axes along which its rows differ."""
    if load.gathers is None:
        return load.index
    axes = [Linear({axis: 1}) for axis in sorted(load.chosen, key=lambda a: a.serial)]
    return [*load.index[: load.gathers], *axes, *load.index[load.gathers + 1 :]]
