"""A profile as tables: kernels and their classes, engines, source operations and theirs, gaps."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from .profile_costs import Costs
from .profiling import Profile, place
from .render import bytes_text, count_text, table

LONGEST = 12
"""Rows of operations and waits that are shown."""


def summary(profile: Profile) -> str:
    """Time, traffic, intensity, and what the time cannot be less than."""
    target, cycles = profile.program.target, profile.result.cycles
    seconds = cycles / target.clock_hz
    name, share = max(profile.roofline.items(), key=lambda item: item[1])
    intensity = profile.operations / profile.off_chip if profile.off_chip else 0.0
    bandwidth = profile.off_chip / seconds / 1e9 if cycles else 0.0
    return (
        f"{cycles} cycles, {seconds * 1e6:.1f} µs on {target.name}; {count_text(profile.operations)} operations, "
        f"{bytes_text(profile.off_chip)} off chip ({bandwidth:.1f} GB/s), {intensity:.1f} operations per byte\n"
        f"roofline: the {name} alone takes {share:.1%} of the time"
    )


def kernel_table(profile: Profile) -> Table:
    """Per launch: class, cycles, share of the time, bytes, bandwidth, use of the units, and what bounds it: what works
    most of the time, else what it waits for in the gaps."""
    right = ("cycles", "share", "off chip", "GB/s", "of the units")
    made = table("kernel", "class", *right, "bound by", right=right)
    whole = max(profile.result.cycles, 1)
    for kernel, counted in zip(profile.kernels, profile.result.kernels, strict=True):
        moved = counted.read_bytes + counted.write_bytes
        costs = Costs.of(kernel.instructions, kernel.waits)
        figures = (str(kernel.cycles), f"{kernel.cycles / whole:.1%}", bytes_text(moved),
                   _bandwidth(profile, moved, kernel.cycles), f"{costs.utilization:.0%}")  # fmt: skip
        made.add_row(kernel.name, profile.kernel_class(kernel), *figures, kernel.bound)
    return made


def at(profile: Profile, where: str) -> str:
    """A place as it is shown: without the file where that is the program's."""
    file = profile.program.source.source.file
    return where.removeprefix(f"{file}:").rpartition("/")[2]


def _bandwidth(profile: Profile, moved: int, cycles: int) -> str:
    return f"{moved * profile.program.target.clock_hz / max(cycles, 1) / 1e9:.1f}"


def engine_table(profile: Profile) -> Table:
    """Per engine, over all kernels: shares of the time."""
    right = ("busy", "at waits", "at the port", "idle")
    made = table("engine", *right, "waits longest for", right=right)
    whole = max(profile.result.cycles, 1)
    for name in profile.program.target.engines:
        rows = [engine for kernel in profile.kernels for engine in kernel.engines if engine.name == name]
        sums = [sum(getattr(row, key) for row in rows) for key in ("busy", "stalled", "queued")]
        sums.append(whole - sum(sums))  # launches, and kernels in which it has no part, included
        longest = next((f"{b} ({n / whole:.1%})" for a, b, n in profile.waits() if a == name), "")
        if rows:
            made.add_row(name, *(f"{n / whole:.1%}" for n in sums), longest)
    return made


def source_table(profile: Profile) -> Table:
    """Per operation of the source: where it stands, its class and costs."""
    made = table("operation", "at", "class", *_COSTS, "bound by", right=_COSTS)
    for row in profile.sources[:LONGEST]:
        made.add_row(row.name, at(profile, row.place), row.kind, *_costs(profile, row.costs), row.costs.bound)
    return made


def class_table(profile: Profile) -> Table:
    """Per class of operation, whatever kernel it is in: its costs."""
    made = table("class of operation", *_COSTS, "bound by", right=_COSTS)
    for kind, costs in profile.classes.items():
        made.add_row(kind, *_costs(profile, costs), costs.bound)
    return made


def kernel_class_table(profile: Profile) -> Table:
    """Per class of kernel: how many, their time, the part of it in which the busiest engine does nothing, bytes."""
    right = ("kernels", "time", "share", "gaps", "off chip", "GB/s", "of the units")
    made = table("class of kernel", *right, "bound by", right=right)
    whole = max(profile.result.cycles, 1)
    for kind, one in profile.kernel_classes.items():
        gaps = f"{one.idle / max(one.cycles, 1):.0%}"
        figures = (str(one.kernels), str(one.cycles), f"{one.cycles / whole:.1%}", gaps,
                   bytes_text(one.costs.bytes), _bandwidth(profile, one.costs.bytes, one.cycles),
                   f"{one.costs.utilization:.0%}")  # fmt: skip
        made.add_row(kind, *figures, one.costs.bound)
    return made


def gap_table(profile: Profile) -> Table:
    """The longest waits: which engine stands before what, and after which instruction of whom it goes on."""
    right = ("cycles", "share")
    made = table("gap of", "before", "waits for", "to do", "at", *right, right=right)
    found = [(wait, kernel) for kernel in profile.kernels for wait in kernel.waits]
    whole = max(profile.result.cycles, 1)
    for wait, _ in sorted(found, key=lambda row: -row[0].cycles)[:LONGEST]:
        before, after = (one.what if one else "" for one in (wait.before, wait.after))
        where = at(profile, place(wait.after.location)) if wait.after else ""
        made.add_row(wait.engine, before, wait.source, after, where, str(wait.cycles), f"{wait.cycles / whole:.1%}")
    return made


_COSTS = ("cycles", "share", "off chip", "GB/s", "of unit", "waiting")


def _costs(profile: Profile, costs: Costs) -> tuple[str, ...]:
    """Engine cycles and their share of all, bytes, bytes over the time of the program, use, cycles that engines stood
    at waits and at the port before it."""
    total = max(sum(one.cycles for one in profile.classes.values()), 1)
    return (
        str(costs.cycles), f"{costs.cycles / total:.1%}", bytes_text(costs.bytes),
        _bandwidth(profile, costs.bytes, profile.result.cycles), f"{costs.utilization:.0%}",
        str(costs.waited + costs.queued),
    )  # fmt: skip


def tables(profile: Profile) -> Iterator[Table]:
    """All of them, in the order of a report; classes of kernels where there are several kernels."""
    yield kernel_table(profile)
    if len(profile.kernels) > 1:
        yield kernel_class_table(profile)
    yield engine_table(profile)
    yield source_table(profile)
    yield class_table(profile)
    if any(kernel.waits for kernel in profile.kernels):
        yield gap_table(profile)
