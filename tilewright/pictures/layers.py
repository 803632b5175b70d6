"""Where the nodes of a directed graph without cycles stand: in layers, few edges crossing.

Longest paths give the layers, then each node goes to the mean place of its neighbours, layer by layer, down and up
again (the barycentre heuristic). Source: Sugiyama, Tagawa and Toda, "Methods for visual understanding of hierarchical
system structures", IEEE Trans. Systems, Man and Cybernetics 11(2), 1981. The layout programs that could do it are
either no Python package or not under a licence that can be passed on.
"""

from __future__ import annotations

from collections.abc import Sequence

SWEEPS = 8
"""Times that all layers are put in order; crossings hardly get fewer after a handful."""


def layered(count: int, edges: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Nodes 0 … count − 1 by layer, in order within each. Every edge leads to a later layer.

    >>> layered(4, [(0, 2), (1, 2), (2, 3)])
    [[0, 1], [2], [3]]
    """
    depth = _depths(count, edges)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node in range(count):
        layers[depth[node]].append(node)
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for start, end in edges:
        after[start].append(end)
        before[end].append(start)
    place = [0.0] * count
    for layer in layers:
        _settle(layer, place)
    best, fewest = [list(layer) for layer in layers], crossings(layers, edges)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            layer.sort(key=lambda node: _mean((before if down else after)[node], place, place[node]))
            _settle(layer, place)
        now = crossings(layers, edges)
        if now < fewest:
            best, fewest = [list(layer) for layer in layers], now
    return best


def crossings(layers: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]]) -> int:
    """Pairs of edges between the same two layers that cross."""
    where = {node: (depth, place) for depth, layer in enumerate(layers) for place, node in enumerate(layer)}
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for start, end in edges:
        (a, i), (b, j) = where[start], where[end]
        found.setdefault((a, b), []).append((i, j))
    total = 0
    for pairs in found.values():
        pairs.sort()
        ends = [j for _, j in pairs]
        total += sum(1 for n, (i, j) in enumerate(pairs) for m in range(n) if ends[m] > j and pairs[m][0] < i)
    return total


def _depths(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest path to each node; nodes that nothing leads to stand just before what they lead to."""
    after: list[list[int]] = [[] for _ in range(count)]
    open_ = [0] * count
    for start, end in edges:
        after[start].append(end)
        open_[end] += 1
    sources = [node for node in range(count) if not open_[node]]
    depth, ready = [0] * count, list(sources)
    while ready:
        node = ready.pop()
        for other in after[node]:
            depth[other] = max(depth[other], depth[node] + 1)
            open_[other] -= 1
            if not open_[other]:
                ready.append(other)
    for node in sources:
        depth[node] = min((depth[other] for other in after[node]), default=1) - 1
    return depth


def _settle(layer: Sequence[int], place: list[float]) -> None:
    for number, node in enumerate(layer):
        place[node] = number - (len(layer) - 1) / 2


def _mean(nodes: Sequence[int], place: Sequence[float], otherwise: float) -> float:
    return sum(place[node] for node in nodes) / len(nodes) if nodes else otherwise
