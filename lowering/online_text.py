"""The update rules of a derived group in readable mathematics.

    m′ = max(m, max_d(s))
    l′ = l·exp(m − m′) + Σ_d exp(s − m′)

A reduction is named r1, r2, … in the order of the loop; x′ is x after a step, x what it was before.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr

from ..dialects.graph_fused import FusedOp
from ..dialects.graph_primitives import ReduceOp
from ..dialects.schedule import Schedule
from .axes import Axis
from .cut_text import mask_lines
from .group import Group, Node
from .group_build import read_group
from .nest_build import place_nest
from .online import Derived, derive
from .online_nodes import fn_of, number

ONLINE = "tilewright.online"
"""The attribute of a group: its update rules."""
WALKS = "tilewright.walks"
"""The attribute of a group: why reductions take walks of their own."""
MASKS = "tilewright.masks"
"""The attribute of a group: what masks save, and on which assumption."""
LONGEST = 160
"""Characters of a formula; what is longer is cut in the middle."""
_FINITE = 1e38
"""Beyond it a number is the greatest of f32 or f64 (`States.finite`): it says nothing about the mathematics."""
INFIX = {"add": " + ", "sub": " − ", "mul": "·", "div": " / "}
BINDS = {"add": 1, "sub": 1, "mul": 2, "div": 2}


def rules(derived: Derived, names: Sequence[str]) -> list[str]:
    """A line for each reduction of the cascades; `names` are those of the group's inputs."""
    writer = _Writer(derived.group, names)
    return [writer.update(member) for cascade in derived.cascades for member in cascade]


def refusals(derived: Derived, group: Group) -> list[str]:
    """A line for each reduction that needs a walk of its own, and why."""
    letters = group.names
    return [
        f"{node.kind} over {''.join(sorted(letters[axis] for axis in node.reduced))}: {reason}"
        for node, reason in derived.refusals.items()
    ]


def explain(fused: FusedOp) -> None:
    """Writes on a scheduled group what its online form is, or why reductions take walks of their own; and what its
    masks save."""
    assert fused.schedule is not None
    schedule = Schedule.from_attr(fused.schedule)
    group = read_group(fused.body.block)
    looped = frozenset(axis for axis, letter in group.names.items() if letter in schedule.looped)
    derived = derive(group, looped & group.reduced)
    names = [arg.name_hint or f"x{arg.index}" for arg in fused.body.block.args]
    found = {
        ONLINE: list[str](),
        WALKS: refusals(derived, group),
        MASKS: mask_lines(place_nest(group, schedule), names),
    }
    if schedule.strategy == "online":
        found[ONLINE] = rules(derived, names)
    for name, lines in found.items():
        fused.attributes.pop(name, None)
        if lines:
            fused.attributes[name] = ArrayAttr([StringAttr(line) for line in lines])


class _Writer:
    def __init__(self, group: Group, names: Sequence[str]) -> None:
        self.letters, self.names = group.names, names
        self.reductions: dict[Node, str] = {}
        for node in group.nodes:
            if node.cascade:
                self.reductions[node] = f"r{len(self.reductions) + 1}"
        self.seen: dict[Node, tuple[str, int]] = {}

    def update(self, node: Node) -> str:
        name = self.reductions[node]
        carried = name if node.carry is None else self.text(node.carry)[0]
        return cut(f"{name}′ = {self.joined(node, carried, self.part(node))}")

    def part(self, node: Node) -> str:
        """What one step adds."""
        over = self.over(node.reduced)
        if node.kind == "contract":
            left, right = (self.bound(source, 2) for source in node.inputs)
            return f"Σ_{over} {left}·{right}"
        assert isinstance(node.op, ReduceOp)
        inside, _ = self.text(node.inputs[0])
        monoid = node.op.monoid.data
        return f"Σ_{over} {self.bound(node.inputs[0], 2)}" if monoid == "sum" else f"{monoid}_{over}({inside})"

    def joined(self, node: Node, carried: str, part: str) -> str:
        monoid = node.op.monoid.data if isinstance(node.op, ReduceOp) else "sum"
        return f"{carried} + {part}" if monoid == "sum" else f"{monoid}({carried}, {part})"

    def over(self, axes: frozenset[Axis]) -> str:
        return "".join(letter for axis, letter in self.letters.items() if axis in axes)

    def bound(self, node: Node, level: int) -> str:
        """A formula in brackets where it binds less than its surroundings."""
        found, binds = self.text(node)
        return found if binds >= level else f"({found})"

    def text(self, root: Node) -> tuple[str, int]:
        """A formula and how strongly it binds."""
        stack = [(root, False)]
        while stack:
            node, entered = stack.pop()
            if node in self.seen:
                continue
            if not entered and node.source is None and node not in self.reductions:
                stack.append((node, True))
                stack += [(source, False) for source in node.inputs]
                continue
            self.seen[node] = self.form(node)
        return self.seen[root]

    def form(self, node: Node) -> tuple[str, int]:
        if node in self.reductions:
            return self.reductions[node], 3
        match node.kind:
            case "previous" | "running":
                assert node.source is not None
                return self.reductions[node.source] + ("′" if node.kind == "running" else ""), 3
            case "load":
                return self.names[node.arg] if node.arg < len(self.names) else f"x{node.arg}", 3
            case "constant":
                value = number(node)
                return ("?" if value is None else f"{value:.4g}"), 3
            case "iota":
                return f"position_{self.over(node.present)}", 3
            case "expand":
                return self.seen[node.inputs[0]]
            case "reduce" | "contract":
                return self.part(node), 1
            case _:
                return self.map(node)

    def map(self, node: Node) -> tuple[str, int]:
        fn = fn_of(node)
        if fn in INFIX:
            binds = BINDS[fn]
            left, right = node.inputs
            text = self.bound(left, binds) + INFIX[fn] + self.bound(right, binds + (fn in ("sub", "div")))
            return cut(text), binds
        if settles(node):  # a base before the step, or after it where there was none
            return self.seen[node.inputs[2]]
        inside = [self.seen[source][0] for source in node.inputs]
        if fn == "square":
            return f"{self.bound(node.inputs[0], 3)}²", 3
        if fn in ("cast", "identity"):
            return self.seen[node.inputs[0]]
        lowest = fn in ("max", "min") and any(abs(number(s) or 0.0) > _FINITE for s in node.inputs)
        if lowest:  # a base kept finite
            return self.seen[node.inputs[0]]
        return cut(f"{'−' if fn == 'neg' else fn}({', '.join(inside)})"), 3


def settles(node: Node) -> bool:
    """Whether a node is a previous base that gives way to the running one (`States.settled`)."""
    if fn_of(node) != "select":
        return False
    condition = node.inputs[0]
    ends = condition.kind == "map" and fn_of(condition) == "eq"
    return ends and abs(number(condition.inputs[1]) or 0.0) > _FINITE


def cut(text: str) -> str:
    """The two ends of a formula that is too long."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} … {text[-half:]}"
