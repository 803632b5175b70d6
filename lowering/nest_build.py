"""Loop placement: which loops a group needs for a schedule, and what stands in each of them.

Every value is computed at the outermost place where the looped axes it varies along are fixed. A reduction over a
looped axis gets a loop of its own inside that place; reductions (and stores) that do not wait for one another share
it. Softmax of long rows, axis a the rows and b looped over:

    for a:  for b: load x, max           two reductions that wait for one another, then the store:
            for b: load x, exp, sum      three passes over b, x loaded in each
            for b: load x, exp, div, store

With the whole row in a tile there is no loop over b, and the same rule gives a single pass. Where the schedule says
`online`, reductions that wait for one another are derived (`online.py`) so that one loop serves them:

    for a:  for b: load x, max so far, exp and sum so far
            for b: load x, exp, div, store
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..dialects.errors import UserError
from ..dialects.schedule import Schedule
from .axes import Axis
from .cuts import Cutter
from .group import Group, Node, Output
from .matrix_sums import by_products
from .nest import Accumulate, Compute, Goal, Item, Load, Loop, Nest, Pin, Slice, Store, is_cut
from .online import derive
from .pins import pinned


def build_nest(group: Group, schedule: Schedule) -> Nest:
    """Places everything. Raises UserError if the schedule does not fit the group, its strategy included."""
    nest = place_nest(group, schedule)
    for axis in nest.cores:
        if axis not in nest.divisible:
            raise UserError(
                f"schedule divides axis '{group.names[axis]}' among cores, but not every result is written in a loop "
                "over it"
            )
    if nest.strategy != schedule.strategy:
        raise UserError(f"schedule strategy is '{schedule.strategy}', but these tiles make it '{nest.strategy}'")
    return nest


def place_nest(group: Group, schedule: Schedule) -> Nest:
    """Places everything; the nest says which strategy that is."""
    names = group.names
    if schedule.axes != "".join(names.values()) or schedule.extents != tuple(a.extent for a in group.axes):
        found = ", ".join(f"{name}:{axis.extent}" for axis, name in names.items())
        raise UserError(
            f"the schedule is for axes '{schedule.axes}' of {list(schedule.extents)}, the group has {found}"
        )
    schedule.check(len(group.loads))
    tiles = dict(zip(group.axes, schedule.tiles, strict=True))
    if schedule.sums == "matrix":
        group = by_products(group)
    if schedule.strategy == "online":
        group = derive(
            group, frozenset(axis for axis in group.reduced if tiles[axis] < axis.extent), schedule.sums
        ).group
    for tap in group.taps:
        if tiles[tap] != 1:
            raise UserError(f"schedule tile of axis '{names[tap]}' must be 1: it steps through a window")
    builder = _Builder(group, schedule, tiles)
    items = builder.scope((), list(group.outputs))
    nest = Nest(group, schedule, items, tiles, builder.passes, Cutter(group), builder.pins)
    if nest.pins and nest.cuts:
        raise UserError("schedule pins: masks leave out tiles of the loops, and such loops are not split again")
    return nest


class _Builder:
    def __init__(self, group: Group, schedule: Schedule, tiles: dict[Axis, int]) -> None:
        by_name = {name: axis for axis, name in group.names.items()}
        self.group = group
        self.looped = frozenset(axis for axis in group.axes if tiles[axis] < axis.extent)
        self.rank = {by_name[letter]: position for position, letter in enumerate(schedule.order)}
        self.hold = {
            load: frozenset(by_name[letter] for letter in held)
            for load, held in zip(group.loads, schedule.hold, strict=True)
        }
        for load, held in self.hold.items():
            missing = load.chosen & self.looped - held
            if missing:
                letters = "".join(sorted(group.names[axis] for axis in missing))
                raise UserError(f"schedule does not hold a load at axis '{letters}', along which it gathers rows")
            extra = held - (load.present & self.looped) | held & load.taps
            if extra:
                letters = "".join(sorted(group.names[axis] for axis in extra))
                raise UserError(f"schedule holds a load at axis '{letters}', which it does not vary along")
        self.pins = {
            load: pinned(group, load, self.hold[load], self.rank, tiles, count)
            for load, count in zip(group.loads, schedule.pins, strict=bool(schedule.pins))
            if count
        }
        self.available: list[set[Node]] = []
        self.loaded: list[set[Node]] = []
        self.pinned: list[set[Node]] = []
        self.passes = 0
        self.states: dict[str, dict[Node, Node]] = {"previous": {}, "running": {}}
        for node in group.nodes:
            if node.source is not None:
                self.states[node.kind][node.source] = node
        self.uniform = uniform(group)
        self.kept: dict[Node, frozenset[Axis]] = {}
        self.keep_together()

    def needs(self, node: Node) -> frozenset[Axis]:
        """A node is computed where all of these are fixed."""
        if node in self.uniform:
            return frozenset()
        return (node.present | self.kept.get(node, frozenset())) & self.looped

    def keep_together(self) -> None:
        """The reductions of a cascade are computed in one place: where the axes of all of them are fixed. So is what
        needs one of them, though it may not vary along all these axes."""
        for node in self.group.nodes:
            together = [member.present for member in node.cascade]
            together += [self.kept[source] for source in node.inputs if source in self.kept]
            if together:
                self.kept[node] = frozenset[Axis]().union(*together) - node.reduced

    def walks(self, node: Node) -> frozenset[Axis]:
        """Looped axes that a reduction sums over."""
        return node.reduced & self.looped if node.is_reduction else frozenset()

    def has(self, node: Node) -> bool:
        return node.kind == "constant" or any(node in level for level in self.available)

    def scope(self, path: tuple[Axis, ...], goals: Sequence[Goal]) -> list[Item]:
        """The items of one loop body (or of the kernel): reach all goals with the axes of `path` fixed."""
        self.available.append(set())
        self.loaded.append(set())
        self.pinned.append(set())
        fixed = frozenset(path)
        items: list[Item] = []
        pending = list(goals)
        for goal in goals:
            for node in self.roots(goal):
                self.collect(node, fixed, pending, set())
        level = _Levels(self, fixed, pending)
        loops = [goal for goal in pending if self.missing(goal, fixed)]
        phases = sorted({level.phase(goal) for goal in loops})
        for phase in phases:
            ready = [goal for goal in loops if level.phase(goal) == phase]
            for axis in sorted({self.first(goal, fixed) for goal in ready}, key=lambda a: self.rank[a]):
                mine = [goal for goal in ready if self.first(goal, fixed) is axis]
                for goal in mine:
                    for node in self.roots(goal):
                        self.hoist(node, fixed, items, set())
                carried = [goal for goal in mine if isinstance(goal, Node)]
                loop = Loop(axis, carried)
                items.append(loop)
                loop.body = self.scope((*path, axis), mine)
                self.available[-1].update(carried)
        self.count_passes(items)
        here = self.by_steps([goal for goal in pending if goal not in loops])
        self.enter_state("previous", here)
        for goal in here:
            for node in self.roots(goal):
                self.hoist(node, fixed, items, set())
                if not self.has(node):
                    raise UserError("schedule order: a loop inside needs what this step has not reached", node.location)
            if isinstance(goal, Output):
                items.append(Store(goal))
            else:
                own = tuple(axis for axis in path if axis in goal.reduced)
                items.append(Accumulate(goal, own))
                self.enter_state("running", [goal])
        self.available.pop()
        self.loaded.pop()
        self.pinned.pop()
        return loads_last(items)

    def count_passes(self, items: Sequence[Item]) -> None:
        walked = [item.axis for item in items if isinstance(item, Loop) and item.carried]
        self.passes = max([self.passes, *(walked.count(axis) for axis in walked)])

    def by_steps(self, goals: list[Goal]) -> list[Goal]:
        """Goals of one step in an order in which each finds the running values that it looks at."""
        watched = {goal: self.watched(goal) for goal in goals}
        ordered: list[Goal] = []
        while goals:
            waiting = set(goals)
            free = [goal for goal in goals if not watched[goal] & waiting]
            assert free, "running values that wait for one another"
            ordered += free
            goals = [goal for goal in goals if watched[goal] & waiting]
        return ordered

    def watched(self, goal: Goal) -> set[Goal]:
        """The reductions whose running values lie under a goal."""
        found: set[Goal] = set()
        pending, seen = self.roots(goal), set[Node]()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if node.kind == "running" and node.source is not None:
                found.add(node.source)
            pending += node.inputs
        return found

    def ready(self, node: Node) -> bool:
        """Whether a value can be computed; those of a reduction before and after a step come with the step."""
        return node.source is None and all(self.has(source) for source in node.inputs)

    def enter_state(self, kind: str, goals: Sequence[Goal]) -> None:
        """Makes the values of reductions before or after a step available."""
        known = self.states[kind]
        self.available[-1].update(known[goal] for goal in goals if isinstance(goal, Node) and goal in known)

    def roots(self, goal: Goal) -> list[Node]:
        if isinstance(goal, Output):
            return [goal.node]
        return [*goal.inputs] if goal.carry is None else [*goal.inputs, goal.carry]

    def missing(self, goal: Goal, fixed: frozenset[Axis]) -> frozenset[Axis]:
        """Loops still to open before a goal can be reached."""
        if isinstance(goal, Output):
            written = frozenset(axis for expr in goal.index for axis in expr.terms)
            return (self.needs(goal.node) | written & self.looped) - fixed
        return (self.needs(goal) | self.walks(goal)) - fixed

    def first(self, goal: Goal, fixed: frozenset[Axis]) -> Axis:
        return min(self.missing(goal, fixed), key=lambda axis: self.rank[axis])

    def unavailable(self, root: Node, seen: set[Node]) -> Iterator[Node]:
        """The values under `root` that are not available here, operands first; none that is in `seen`, which grows."""
        stack = [(root, False)]
        while stack:
            node, entered = stack.pop()
            if entered:
                yield node
            elif node not in seen and not self.has(node):
                seen.add(node)
                stack.append((node, True))
                stack.extend((source, False) for source in reversed(self.under(node)))

    @staticmethod
    def under(node: Node) -> list[Node]:
        """What has to be there first; of the running value of a reduction, that reduction."""
        if node.source is not None:
            return [node.source]
        return node.inputs if node.carry is None else [*node.inputs, node.carry]

    def collect(self, root: Node, fixed: frozenset[Axis], pending: list[Goal], seen: set[Node]) -> None:
        """Adds the reductions over looped axes whose results belong at this place."""
        for node in self.unavailable(root, seen):
            if self.walks(node) and self.needs(node) <= fixed and node not in pending:
                inside = self.walks(node) & fixed
                if inside:
                    letters = ", ".join(sorted(f"'{self.group.names[axis]}'" for axis in inside))
                    raise UserError(
                        f"schedule order: a reduction over {letters} is needed inside the loop over it; put that loop "
                        "inside the others, or take the axis whole",
                        node.location,
                    )
                pending.append(node)

    def hoist(self, root: Node, fixed: frozenset[Axis], items: list[Item], seen: set[Node]) -> None:
        """Computes here every value under `root` that can be (all of whose axes are fixed), operands first."""
        for node in self.unavailable(root, seen):
            here = self.needs(node) <= fixed
            if node.kind == "load":
                held, pin = self.hold[node], self.pins.get(node)
                if not all(self.has(source) for source in node.inputs):
                    continue
                if pin is not None and pin.fixed <= fixed and not any(node in level for level in self.pinned):
                    items.append(Pin(node, pin.fixed))
                    self.pinned[-1].add(node)
                if held <= fixed and not any(node in level for level in self.loaded):
                    items.append(Load(node, held))
                    self.loaded[-1].add(node)
                if here:
                    if is_cut(node, held, self.looped):
                        items.append(Slice(node))
                    self.available[-1].add(node)
            elif (
                here
                and node.source is None
                and not self.walks(node)
                and all(self.has(source) for source in node.inputs)
            ):
                items.append(Compute(node))
                self.available[-1].add(node)


def uniform(group: Group) -> set[Node]:
    """Tiles of equal numbers that are the same in every iteration: the other operand of a product says how much of them
    counts. What a reduction reads of them has to end where its axis does."""
    equal = {node for node in group.nodes if node.kind == "expand" and node.inputs[0].kind == "constant"}
    found = equal - {output.node for output in group.outputs}
    for node in group.nodes:
        for source in equal & set(node.inputs):
            other = next((each for each in node.inputs if each not in equal), None)
            if node.kind != "contract" or other is None or not source.present <= other.present:
                found.discard(source)
    return found


def loads_last(items: Sequence[Item]) -> list[Item]:
    """The items with each load just before the first that uses it: its bytes are not held longer than needed."""
    ordered: list[Item] = []
    waiting: list[Load | Pin] = []
    for item in items:
        needed = [load for load in waiting if uses(item, load.node)]
        ordered += needed
        waiting = [load for load in waiting if load not in needed]
        if isinstance(item, Load | Pin):
            waiting.append(item)
        else:
            ordered.append(item)
    return [*ordered, *waiting]


def uses(item: Item, load: Node) -> bool:
    """Whether an item reads a load, itself or in its loops."""
    match item:
        case Loop():
            return any(uses(inner, load) for inner in item.body)
        case Store():
            return item.output.node is load
        case Compute() | Accumulate():
            return load in item.node.inputs
        case Load() if item.node.gathers is not None:
            return load in item.node.inputs
        case _:
            return item.node is load


class _Levels:
    """How many reductions of this place a value waits for, one after another.

    The running value of a reduction waits for what the reduction waits for; the reductions of a cascade wait together.
    """

    def __init__(self, builder: _Builder, fixed: frozenset[Axis], goals: Sequence[Goal]) -> None:
        self.builder = builder
        self.fixed = fixed
        self.memo: dict[Node, int] = {}
        values: dict[Node, None] = {}
        seen: set[Node] = set()
        for goal in goals:
            for root in (*builder.roots(goal), *([goal] if isinstance(goal, Node) else [])):
                values.update(dict.fromkeys(builder.unavailable(root, seen)))
        changed = True
        while changed:
            changed = False
            for value in values:
                found = self.found(value)
                if found > len(values):  # each level has a reduction of its own: these wait for each other
                    raise UserError(
                        "schedule strategy: reductions of one walk wait for each other's results", value.location
                    )
                if self.memo.get(value) != found:
                    self.memo[value], changed = found, True

    def found(self, value: Node) -> int:
        """The level of a value, given those of the values under it."""
        if value.source is not None:
            return max(self.memo.get(value.source, 1) - 1, 0)
        below = max((self.memo.get(source, 0) for source in self.builder.under(value)), default=0)
        counts = bool(self.builder.walks(value)) and self.builder.needs(value) <= self.fixed
        return max([below + counts, *(self.memo.get(member, 0) for member in value.cascade)])

    def phase(self, goal: Goal) -> int:
        return self.memo.get(goal.node, 0) if isinstance(goal, Output) else self.memo.get(goal, 1) - 1
