"""What became one kernel, and why not more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.operators import KERNEL, MATCH
from tilewright.lowering.handwritten import kernel_of
from tilewright.lowering.online_text import MASKS, ONLINE, WALKS
from tilewright.lowering.reference import group_names
from tilewright.runtime.report import Json

from ..program import Program
from ..render import table
from .lines import Place, places_of
from .section import Heading, Part, Section, Subject


def fusion_section(subject: Subject) -> Section | None:
    """Per kernel: the operations of the source that it does, and what kept it apart from those it reads from."""
    groups = fused_groups(subject.program)
    if not groups:
        return None
    sources = _source_ops(subject.program.snapshots[0].module)
    made = table("kernel", "does", "reads", "gives")
    refusals: dict[str, Json] = {}
    rows: list[Json] = []
    for name, fused in groups.items():
        counts = Counter(sources[place] for place in places_of(fused) if place in sources)
        done = [f"{count} {op}" if count > 1 else op for op, count in counts.items()]
        inputs, outputs = [_name(v) for v in fused.args], [_name(v) for v in fused.res]
        by_hand = kernel_of(fused)
        kernel = None if by_hand is None else by_hand.sym_name.data
        made.add_row(
            name if kernel is None else f"{name} (@{kernel})", ", ".join(done), " ".join(inputs), " ".join(outputs)
        )
        reasons = list(_strings(fused, "tilewright.refusals"))
        makers = [value.owner for value in fused.args if isinstance(value.owner, FusedOp)]
        if makers and any(KERNEL in op.attributes for op in (fused, *makers)):
            reasons.append("nothing is fused with a kernel that is written by hand")
        refusals[name] = [*reasons]
        found: dict[str, Json] = {"kernel": name, "by_hand": kernel, "does": [*done], "reads": [*inputs]}
        rows.append({**found, "gives": [*outputs], "refusals": [*reasons]})
    parts: list[Part] = [f"{_plural(len(groups), 'kernel')} of {_plural(len(sources), 'operation')}.", made]
    kept = {name: reasons for name, reasons in refusals.items() if reasons}
    if kept:
        why = table("kernel", "is not one with what it reads from because")
        for name, reasons in kept.items():
            why.add_row(name, "\n".join(map(str, reasons if isinstance(reasons, list) else [])))
        parts += [Heading("Why not more"), why]
    elif len(groups) > 1:
        parts.append("No kernel reads what another one gives.")
    for title, attribute, key in (
        ("One walk for reductions that wait for one another (x′ is x after a step)", ONLINE, "online"),
        ("Reductions with a walk of their own", WALKS, "walks"),
        ("What masks leave out", MASKS, "masks"),
    ):
        listed = table("kernel", {ONLINE: "rules", WALKS: "because", MASKS: "loops"}[attribute])
        for row, (name, fused) in zip(rows, groups.items(), strict=True):
            lines = list(_strings(fused, attribute))
            assert isinstance(row, dict)
            row[key] = [*lines]
            if lines:
                listed.add_row(name, "\n".join(lines))
        parts += [Heading(title), listed] if listed.row_count else []
    return Section("fusion", "What was fused", parts, rows)


def fused_groups(program: Program) -> dict[str, FusedOp]:
    """Kernel name → its group, from the last snapshot that has groups: with schedules, if it came that far."""
    for snapshot in reversed(program.snapshots):
        found = group_names(snapshot.module)
        if found:
            return found
    return {}


def _source_ops(module: ModuleOp) -> dict[Place, str]:
    """Place in the source → the operation there, as `matmul`; constants and what is not of the graph dialect apart."""
    found: dict[Place, str] = {}
    libraries = [op for op in module.ops if MATCH in op.attributes]
    for op in (op for top in module.ops if top not in libraries for op in top.walk()):
        dialect, _, name = op.name.partition(".")
        if dialect == "graph" and name not in ("constant", "weight", "yield", "fused"):
            for place in places_of(op):
                found.setdefault(place, name)
    return found


def _strings(fused: Operation, name: str) -> Iterator[str]:
    attr = fused.attributes.get(name)
    if isinstance(attr, ArrayAttr):
        yield from (reason.data for reason in cast(ArrayAttr[Attribute], attr) if isinstance(reason, StringAttr))


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
