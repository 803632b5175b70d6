"""Control flow that is decided when the program is compiled: branches on constants, loops of known length."""

from __future__ import annotations

import numpy as np

from ..errors import Unsupported
from ..node import Handler, Node
from ..values import Value

MOST_ITERATIONS = 4096
"""Loops are unrolled; longer ones would make programs nobody wants."""


def branch(node: Node) -> list[Value]:
    """The branch that the constant condition chooses."""
    chosen = bool(node.number(0, "the condition"))
    return node.subgraph(node.graph("then_branch" if chosen else "else_branch"), [])


def loop(node: Node) -> list[Value]:
    """The body as often as the trip count says; its condition must be known each time."""
    count = int(node.number(0, "the trip count")) if node.has(0) else MOST_ITERATIONS + 1
    if node.has(1) and not bool(node.number(1, "the condition")):
        count = 0
    body = node.graph("body")
    carried = [node.value(i) for i in range(2, len(node.operands))]
    scans: list[list[Value]] = []
    for i in range(count):
        if i == MOST_ITERATIONS:
            raise Unsupported(f"it runs more than {MOST_ITERATIONS} times and would be unrolled")
        index, condition = Value("i", array=np.asarray(i, np.int64)), Value("condition", array=np.asarray(True))
        found = node.subgraph(body, [index, condition, *carried])
        if found[0].array is None:
            raise Unsupported("how often it runs depends on the data")
        carried = found[1 : 1 + len(carried)]
        scans.append(found[1 + len(carried) :])
        if not bool(found[0].array):
            break
    if not scans and node.count > len(carried):
        raise Unsupported("it does not run: what it collects has no elements")
    return [*carried, *(_stacked(node, [row[k] for row in scans], 0) for k in range(node.count - len(carried)))]


def scan(node: Node) -> list[Value]:
    """The body over slices of the operands, unrolled."""
    if node.version < 9:
        raise Unsupported("Scan of opset 8 is not supported", "export the model with a newer opset")
    body, inputs = node.graph("body"), node.int("num_scan_inputs")
    states = [node.value(i) for i in range(len(node.operands) - inputs)]
    sequences = [node.value(i) for i in range(len(states), len(node.operands))]
    outputs = node.count - len(states)
    axes = [a % len(s.shape) for a, s in zip(node.list("scan_input_axes", [0] * inputs), sequences, strict=True)]
    backwards = node.list("scan_input_directions", [0] * inputs)
    length = sequences[0].shape[axes[0]]
    if length > MOST_ITERATIONS:
        raise Unsupported(f"it runs more than {MOST_ITERATIONS} times and would be unrolled")
    rows: list[list[Value]] = []
    for step in range(length):
        slices: list[Value] = []
        for value, axis, back in zip(sequences, axes, backwards, strict=True):
            place = length - 1 - step if back else step
            part = node.build.take(node.materialize(value), axis, place, 1)
            shape = [s for d, s in enumerate(value.shape) if d != axis]
            slices.append(Value(f"{value.name}_{step}", ssa=node.build.reshape(part, shape), roots=value.roots))
        found = node.subgraph(body, [*states, *slices])
        states = found[: len(states)]
        rows.append(found[len(states) :])
    out_axes = node.list("scan_output_axes", [0] * outputs)
    out_backwards = node.list("scan_output_directions", [0] * outputs)
    stacked = [
        _stacked(node, [row[k] for row in (rows[::-1] if out_backwards[k] else rows)], out_axes[k])
        for k in range(outputs)
    ]
    return [*states, *stacked]


def _stacked(node: Node, parts: list[Value], axis: int) -> Value:
    axis = axis % (len(parts[0].shape) + 1)
    shape = [*parts[0].shape[:axis], 1, *parts[0].shape[axis:]]
    rows = [node.build.reshape(node.materialize(p), shape) for p in parts]
    roots = frozenset(r for p in parts for r in p.roots)
    return Value(parts[0].name, ssa=node.build.concat(rows, axis), roots=roots)


TABLE: dict[str, Handler] = {"If": branch, "Loop": loop, "Scan": scan}
