"""Numbers for events: few per ordered pair of engines, shared wherever the k-th wait still finds the k-th signal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .sync_events import Event
from .sync_trace import Body, Instruction


def numbered(events: Sequence[Event], slots: int) -> tuple[dict[Event, int], Event | None]:
    """A number for each event, and the first event that finds none below `slots`."""
    places = _places(events)
    numbers: dict[Event, int] = {}
    groups: dict[tuple[int, int], list[list[Event]]] = {}
    for event in sorted(events, key=lambda e: _signal(e, places)):
        held = groups.setdefault((event.source, event.sink), [])
        free = [n for n, group in enumerate(held) if all(_compatible(event, other, places) for other in group)]
        number = free[0] if free else len(held)
        if number >= slots:
            return numbers, event
        if not free:
            held.append([])
        held[number].append(event)
        numbers[event] = number
    return numbers, None


def merged(events: Sequence[Event], crowded: Event) -> list[Event] | None:
    """The events with two of the crowded pair of engines made one: signal after the later of the two, wait before the
    earlier. The two that lie closest are taken. None where no two can be one."""
    rivals = [e for e in events if (e.source, e.sink) == (crowded.source, crowded.sink)]
    best: tuple[tuple[int, int], Event, Event, Event] | None = None
    for number, left in enumerate(rivals):
        for right in rivals[number + 1 :]:
            if left.body is not right.body:
                continue
            first, second = max(left.first, right.first), min(left.second, right.second)
            distance = min(left.distance, right.distance)
            if distance == 0 and first >= second:
                continue  # would wait for a signal that comes later
            apart = abs(left.first - right.first) + abs(left.second - right.second)
            cost = (abs(left.distance - right.distance), apart)
            if best is None or cost < best[0]:
                best = cost, left, right, replace(left, first=first, second=second, distance=distance)
    if best is None:
        return None
    _, left, right, made = best
    return [made if event is left else event for event in events if event is not right]


Places = dict[tuple[Body, int], tuple[int, int]]
"""Item of a body → first and last place in the text."""


def _places(events: Sequence[Event]) -> Places:
    places: Places = {}

    def visit(body: Body, count: int) -> int:
        for index, item in enumerate(body.items):
            first = count
            count = count + 1 if isinstance(item, Instruction) else visit(item, count + 1)
            places[body, index] = first, count - 1
        return count

    if events:
        visit(events[0].body.chain()[0], 0)
    return places


def _signal(event: Event, places: Places) -> tuple[int, int]:
    return places[event.body, event.first][1], places[event.body, event.second][0]


def _compatible(event: Event, other: Event, places: Places) -> bool:
    """Whether two events can share a number.

    Those of one body and distance can if their signals come in the order of their waits, others if the text of one
    ends before that of the other begins.
    """
    if event.body is other.body and event.distance == other.distance:
        return (event.first - other.first) * (event.second - other.second) > 0
    (low, high), (other_low, other_high) = _extent(event, places), _extent(other, places)
    return high < other_low or other_high < low


def _extent(event: Event, places: Places) -> tuple[int, int]:
    """First and last place of the text between whose ends all signals and waits of an event lie."""
    if event.distance:
        root = event.body.chain()[0]
        return places[root, root.items.index(event.outer)]
    return places[event.body, event.first][1], places[event.body, event.second][0]
