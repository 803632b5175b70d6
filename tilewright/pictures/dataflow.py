"""What flows where: tensors off chip, the kernels that read and write them, and the bytes that each of both moves."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from tilewright.runtime.report import Json

from ..profiling import Profile
from ..render import bytes_text
from ..tensors import Tensor, Traffic
from .layers import layered
from .picture import Picture
from .svg import FONT, INK, Drawing, colour, fitting

BOX, HIGH, ACROSS, DOWN, TOP, EDGE = 130, 30, 230, 46, 34, 6
"""Pixels: of a box, between left sides of layers, between boxes of a layer, above all, of the widest edge."""
HUES = {"input": 210, "output": 140, "constant": 45, "weight": 45, "workspace": 0, "local": 0}
KERNEL = colour(280, 0.85)


@dataclass(frozen=True)
class Node:
    """A launch of a kernel, or a tensor as it is between writes of it."""

    name: str
    kind: str
    size: int | None = None


@dataclass(frozen=True)
class Edge:
    """Bytes that a launch reads or writes."""

    start: int
    end: int
    bytes: int


def dataflow(profile: Profile) -> Picture:
    """`nodes` and `edges`; the bytes of all edges are the off-chip traffic."""
    nodes, edges = graph(profile.traffic)
    listed: list[Json] = [{**vars(node)} for node in nodes]
    data: dict[str, Json] = {
        "nodes": listed,
        "edges": [{"from": e.start, "to": e.end, "bytes": e.bytes} for e in edges],
    }
    return Picture("dataflow", "Dataflow", data, _drawing(nodes, edges, profile.off_chip))


def graph(found: Traffic) -> tuple[list[Node], list[Edge]]:
    """A tensor that is written again after it was read is another node from then on: there are no cycles."""
    nodes: list[Node] = []
    edges: list[Edge] = []
    current: dict[Tensor, int] = {}
    read: set[int] = set()

    def node(tensor: Tensor, anew: bool) -> int:
        if tensor not in current or anew:
            current[tensor] = len(nodes)
            nodes.append(Node(tensor.name, tensor.role, tensor.size))
        return current[tensor]

    for number, name in enumerate(found.names):
        flows = [flow for flow in found.flows if flow.launch == number]
        sources = [(node(flow.tensor, False), flow.read) for flow in flows if flow.read]
        read |= {source for source, _ in sources}
        kernel = len(nodes)
        nodes.append(Node(name, "kernel"))
        edges += [Edge(source, kernel, count) for source, count in sources]
        for flow in flows:
            if flow.written:
                edges.append(Edge(kernel, node(flow.tensor, current.get(flow.tensor) in read), flow.written))
    return nodes, edges


def _drawing(nodes: list[Node], edges: list[Edge], total: int) -> Drawing:
    layers = layered(len(nodes), [(edge.start, edge.end) for edge in edges])
    tallest = max((len(layer) for layer in layers), default=1)
    title = f"{bytes_text(total)} off chip"
    drawing = Drawing(max(len(layers), 1) * ACROSS, TOP + tallest * DOWN + 10, title)
    drawing.text(10, 16, title)
    places: dict[int, tuple[float, float]] = {}
    for depth, layer in enumerate(layers):
        free = (tallest - len(layer)) * DOWN / 2
        for number, node in enumerate(layer):
            places[node] = 10 + depth * ACROSS, TOP + free + number * DOWN
    most = max((edge.bytes for edge in edges), default=1)
    for edge in edges:
        (x, y), (u, v) = places[edge.start], places[edge.end]
        x, y, v, middle = x + BOX, y + HIGH / 2, v + HIGH / 2, (x + BOX + u) / 2
        what = f"{nodes[edge.start].name} → {nodes[edge.end].name}: {edge.bytes} bytes"
        drawing.curve(f"M{x:g},{y:g} C{middle:g},{y:g} {middle:g},{v:g} {u:g},{v:g}", "#8889",
                      1 + (EDGE - 1) * sqrt(edge.bytes / most), what)  # fmt: skip
        drawing.text(middle, (y + v) / 2 - 3, bytes_text(edge.bytes), "middle")
    for number, node in enumerate(nodes):
        x, y = places[number]
        fill = KERNEL if node.kind == "kernel" else colour(HUES[node.kind], 0.88)
        size = "" if node.size is None else f": {node.size} bytes"
        drawing.rect(x, y, BOX, HIGH, fill, f"{node.kind} {node.name}{size}", "#333")
        drawing.text(x + BOX / 2, y + HIGH / 2 + FONT / 3, fitting(node.name, BOX - 8), "middle", INK)
    return drawing
