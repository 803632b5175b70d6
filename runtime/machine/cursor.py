"""Where one engine stands in its nest of loops: an iterator over its steps that can be moved on by whole iterations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .program import Loop, Node


@dataclass(eq=False, slots=True)
class Frame:
    """A block being executed: `index` of its next node and, for a loop's body, the loop, its counter and its bounds."""

    nodes: Sequence[Node]
    index: int
    loop: Loop | None = None
    value: int = 0
    lower: int = 0
    upper: int = 0


class Cursor:
    """The steps of a nest in list order. `counters` are those of the step last given.

    `frames[0]` is the kernel's block, `frames[d + 1]` the body of the loop at depth d. Loops in `whole` are given as
    they are, not entered.
    """

    def __init__(self, body: Sequence[Node], depth: int, whole: frozenset[Loop] = frozenset()) -> None:
        self.whole = whole
        self.counters = [0] * depth
        self.frames = [Frame(body, 0)]

    def __iter__(self) -> Iterator[Node]:
        return self

    def __next__(self) -> Node:
        frames = self.frames
        while frames:
            frame = frames[-1]
            if frame.index < len(frame.nodes):
                node = frame.nodes[frame.index]
                frame.index += 1
                if not isinstance(node, Loop) or node in self.whole:
                    return node
                lower, upper = node.lower.at(self.counters), node.upper.at(self.counters)
                if lower < upper:
                    frames.append(Frame(node.body, 0, node, lower, lower, upper))
                    self.counters[node.depth] = lower
            elif frame.loop is not None and frame.value + 1 < frame.upper:
                frame.value += 1
                frame.index = 0
                self.counters[frame.loop.depth] = frame.value
            else:
                frames.pop()
        raise StopIteration

    def inside(self, loop: Loop, counters: Sequence[int]) -> Frame | None:
        """The frame of a loop if the cursor stands in it, the counters around it being `counters`."""
        depth = loop.depth
        if len(self.frames) <= depth + 1 or self.counters[:depth] != counters:
            return None
        frame = self.frames[depth + 1]
        return frame if frame.loop is not None and frame.loop.op is loop.op else None

    def position(self, depth: int) -> tuple[int, ...]:
        """What tells apart the places inside one iteration of the loop at `depth`."""
        inner = self.frames[depth + 1 :]  # of the first of them only the index matters: the counter is what repeats
        return (*(frame.index for frame in inner), *(frame.value for frame in inner[1:]))
