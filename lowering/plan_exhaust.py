"""Depth-first search through partial plans: splitting into independent windows, failed states, a limit of nodes.

A state is a window of sections, the buffers of it that are not placed, and a floor per section below which none of
them may go. A rule says how a state branches; all rules share the table of failed states, because "these buffers do not
fit above these floors" does not depend on how it was found. Neither does it depend on time: only nodes are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from .plan_floors import State, Step, bits, raise_floors
from .plan_problem import Problem

TABLE = 6_000_000
"""Words of eight bytes kept in the table of failed states before it is emptied: floors and sets of buffers."""


Branch: TypeAlias = Callable[[Problem, State, list[float]], list[Step]]
"""The steps out of a state, the most promising one last. If the buffers fit at all, they fit after one of them."""


@dataclass
class _Frame:
    """A state on the way, the steps not tried, and the windows of the step taken that are not solved yet."""

    state: State
    steps: list[Step]
    placed: int
    pending: list[State] = field(default_factory=list[State])


class Exhaustive:
    """The searches of one problem at one target (in the units of the sizes); `table`: see TABLE."""

    def __init__(self, problem: Problem, target: int, table: int = TABLE) -> None:
        self.problem = problem
        self.target = target
        self.table = table
        self.nodes = 0
        self._failed: dict[int, list[tuple[int, ...]]] = {}
        self._held = 0
        self._words = (problem.count + 63) // 64 + 1

    def run(self, branch: Branch, weight: list[float], limit: int) -> list[int] | bool:
        """The offset of every buffer; False if there is no plan within the target, a proof; True if `limit` nodes do
        not decide it. `weight`: per buffer, the higher, the earlier it is tried."""
        problem = self.problem
        if problem.lower_bound > self.target:
            return False
        slack = [self.target - live for live in problem.live]
        whole = State((1 << problem.count) - 1, 1, problem.sections, [0] * len(slack), slack, [])
        placed: list[tuple[int, int]] = []
        stack = [_Frame(whole, [], 0, self._split(whole))]
        last = self.nodes + limit
        while stack:
            if not stack[-1].pending:
                stack.pop()
                continue
            if self.nodes >= last:
                return True
            self.nodes += 1
            state = stack[-1].pending.pop()
            if raise_floors(problem, state) and not self._known(state):
                stack.append(_Frame(state, branch(problem, state, weight), len(placed)))
            if not self._advance(stack, placed):
                return False
        offsets = [0] * problem.count
        for buffer, height in placed:
            offsets[buffer] = height
        return offsets

    def _advance(self, stack: list[_Frame], placed: list[tuple[int, int]]) -> bool:
        """Takes the next step of the innermost state that has one; False if there is none left."""
        while len(stack) > 1:
            frame = stack[-1]
            del placed[frame.placed :]
            while frame.steps:
                step = frame.steps.pop()
                after = self._after(frame.state, step)
                if after is not None:
                    if step.buffer is not None:
                        placed.append((step.buffer, step.height))
                    frame.pending = self._split(after)
                    return True
            self._fail(frame.state)
            stack.pop()
        return False

    def _after(self, state: State, step: Step) -> State | None:
        """What a step leads to, with lists of its own; None if it leaves too little room in a section."""
        waiting, floor, slack = state.waiting, state.floor.copy(), state.slack.copy()
        if step.buffer is None:
            slack[step.section] -= step.height - floor[step.section]
            floor[step.section] = step.height
        else:
            if step.others:
                for section in range(state.first, state.last + 1):
                    wasted = step.others - floor[section]
                    if wasted > 0:
                        slack[section] -= wasted
                        if slack[section] < 0:
                            return None
                        floor[section] = step.others
            first, end = self.problem.first[step.buffer], self.problem.last[step.buffer] + 1
            for section in range(first, end):
                # Nothing is wasted below a buffer on the floor; below a pinned one there may be a gap.
                slack[section] -= step.height - floor[section]
                if slack[section] < 0:
                    return None
            floor[first:end] = [step.height + self.problem.size[step.buffer]] * (end - first)
            waiting &= ~(1 << step.buffer)
        return State(waiting, state.first, state.last, floor, slack, [])

    def _split(self, state: State) -> list[State]:
        """Windows that share nothing; the smallest is solved first (the last of the list)."""
        problem = self.problem
        windows = problem.windows(state.waiting, state.first, state.last)
        if len(windows) == 1:
            state.first, state.last = windows[0]
            return [state]
        parts = [
            State(state.waiting & problem.within(*window), *window, state.floor.copy(), state.slack.copy(), [])
            for window in windows
        ]
        return sorted(parts, key=lambda part: -part.waiting.bit_count())

    def _known(self, state: State) -> bool:
        """Whether the same buffers are known not to fit above floors that are nowhere higher."""
        now = state.floor[state.first : state.last + 1]
        return any(
            all(high >= low for high, low in zip(now, before, strict=True))
            for before in self._failed.get(state.waiting, ())
        )

    def _fail(self, state: State) -> None:
        floors = tuple(state.floor[state.first : state.last + 1])
        if self._held > self.table:
            self._failed.clear()
            self._held = 0
        self._held += len(floors) + self._words
        self._failed.setdefault(state.waiting, []).append(floors)

    def failed(self) -> Iterator[tuple[int, tuple[int, int], tuple[int, ...]]]:
        """The table of failed states: waiting buffers, first and last section they cover, floors of these."""
        for waiting, entries in self._failed.items():
            members = bits(waiting)
            window = min(self.problem.first[b] for b in members), max(self.problem.last[b] for b in members)
            for floors in entries:
                yield waiting, window, floors
