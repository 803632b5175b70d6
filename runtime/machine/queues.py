"""Legal orders of execution: each engine in its own order, waits after their signals."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from ...dialects.target_model import DmaEngine, Target
from .affine import Counters
from .balance import check_spent, deadlock
from .options import MachineOptions
from .program import EventKey, EventStep, Instruction, Kernel, Loop, Node

Item: TypeAlias = "tuple[Instruction | EventStep, Counters]"
"""A step and the counters of the loops around it (a tuple, or a list that changes when the next item is asked for)."""


def interleaved(kernel: Kernel, target: Target, options: MachineOptions) -> Iterator[Item]:
    """All steps of one run of a kernel in an order that queues and events allow.

    Raises MachineError where no engine can go on, and at the end for signals that nothing waited for.
    """
    if options.interleaving == "program":
        return in_program_order(kernel)
    moving = [name for name in kernel.engines if isinstance(target.engines[name], DmaEngine)]
    others = [name for name in kernel.engines if name not in moving]
    if options.interleaving == "random":
        generator = random.Random(options.seed)
        return _by_choice(kernel, generator.choice)
    order = [*moving, *others] if options.interleaving == "eager" else [*others, *moving]
    rank = {name: number for number, name in enumerate(order)}
    return _by_choice(kernel, lambda ready: min(ready, key=rank.__getitem__))


def walk(body: Sequence[Node], counters: list[int]) -> Iterator[Instruction | EventStep]:
    """Every execution of every step in list order; `counters` are those of the step last given."""
    for node in body:
        if isinstance(node, Loop):
            depth = node.depth
            for value in range(node.lower.at(counters), node.upper.at(counters)):
                counters[depth] = value
                yield from walk(node.body, counters)
        else:
            yield node


def engine_part(body: Sequence[Node], engine: str) -> list[Node]:
    """The nest with the steps of one engine only."""
    return part_of(body, lambda step: step.engine == engine)


def part_of(body: Sequence[Node], keep: Callable[[Instruction | EventStep], bool]) -> list[Node]:
    """The nest with some of its steps only."""
    part: list[Node] = []
    for node in body:
        if isinstance(node, Loop):
            inner = part_of(node.body, keep)
            if inner:
                part.append(replace(node, body=inner))
        elif keep(node):
            part.append(node)
    return part


def in_program_order(kernel: Kernel) -> Iterator[Item]:
    """List order. An engine whose wait comes before its signal is passed over until the signal has come."""
    counts: Counter[EventKey] = Counter()
    queues: dict[str, deque[Item]] = {}
    counters = [0] * kernel.depth
    for step in walk(kernel.body, counters):
        if step.engine in queues:
            queues[step.engine].append((step, tuple(counters)))
        elif isinstance(step, EventStep):
            if not step.signals and counts[step.event] < step.times:
                queues[step.engine] = deque([(step, tuple(counters))])
                continue
            _count(counts, step)
            yield step, counters
            if step.signals and queues:
                yield from _resume(counts, queues)
        else:
            yield step, counters
    if queues:
        raise deadlock(kernel, [queue[0] for queue in queues.values()])
    check_spent(kernel, counts)


def _resume(counts: Counter[EventKey], queues: dict[str, deque[Item]]) -> Iterator[Item]:
    """Lets engines go on that could wait no longer, until all of them wait again."""
    again = True
    while again:
        again = False
        for engine in list(queues):
            queue = queues[engine]
            while queue and _ready(counts, queue[0]):
                step, counters = queue.popleft()
                if isinstance(step, EventStep):
                    _count(counts, step)
                again = True
                yield step, counters
            if not queue:
                del queues[engine]


def _by_choice(kernel: Kernel, choose: Callable[[Sequence[str]], str]) -> Iterator[Item]:
    counts: Counter[EventKey] = Counter()
    heads: dict[str, Item] = {}
    queues = {engine: _queue(kernel, engine) for engine in kernel.engines}

    def advance(engine: str) -> None:
        item = next(queues[engine], None)
        if item is None:
            heads.pop(engine, None)
        else:
            heads[engine] = item

    for engine in kernel.engines:
        advance(engine)
    while heads:
        ready = [engine for engine, item in heads.items() if _ready(counts, item)]
        if not ready:
            raise deadlock(kernel, list(heads.values()))
        engine = choose(ready)
        step = heads[engine][0]
        if isinstance(step, EventStep):
            _count(counts, step)
        yield heads[engine]
        advance(engine)
    check_spent(kernel, counts)


def _queue(kernel: Kernel, engine: str) -> Iterator[Item]:
    counters = [0] * kernel.depth
    for step in walk(engine_part(kernel.body, engine), counters):
        yield step, counters


def _ready(counts: Counter[EventKey], item: Item) -> bool:
    step = item[0]
    return not isinstance(step, EventStep) or step.signals or counts[step.event] >= step.times


def _count(counts: Counter[EventKey], step: EventStep) -> None:
    counts[step.event] += step.times if step.signals else -step.times
