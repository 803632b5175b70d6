"""A profile as tables: kernels, engines, source operations, their classes, waits."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from .profiling import Profile
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
    """Per launch: class, cycles, share of the time, bytes, bandwidth, what bounds it."""
    right = ("cycles", "share", "off chip", "GB/s")
    made = table("kernel", "class", *right, "bound by", right=right)
    clock, whole = profile.program.target.clock_hz, max(profile.result.cycles, 1)
    for kernel, counted in zip(profile.kernels, profile.result.kernels, strict=True):
        moved = counted.read_bytes + counted.write_bytes
        rate = f"{moved * clock / kernel.cycles / 1e9:.1f}"
        share = f"{kernel.cycles / whole:.1%}"
        kind = profile.kernel_class(kernel)
        made.add_row(kernel.name, kind, str(kernel.cycles), share, bytes_text(moved), rate, kernel.bound)
    return made


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
    """Per operation of the source: where it stands, its class, engine cycles, bytes, use of the engines."""
    right = ("cycles", "share", "off chip", "of the unit")
    made = table("operation", "at", "class", *right, right=right)
    total = max(sum(row.cycles for row in profile.sources), 1)
    for row in profile.sources[:LONGEST]:
        figures = (str(row.cycles), f"{row.cycles / total:.1%}", bytes_text(row.bytes), f"{row.utilization:.0%}")
        made.add_row(row.name, row.place.rpartition("/")[2], row.kind, *figures)
    return made


def class_table(profile: Profile) -> Table:
    """Per class of operation: engine cycles and bytes."""
    right = ("cycles", "share", "off chip")
    made = table("class", *right, right=right)
    total = max(sum(cycles for cycles, _ in profile.classes.values()), 1)
    for kind, (cycles, moved) in profile.classes.items():
        made.add_row(kind, str(cycles), f"{cycles / total:.1%}", bytes_text(moved))
    return made


def tables(profile: Profile) -> Iterator[Table]:
    """All of them, in the order of a report."""
    yield kernel_table(profile)
    yield engine_table(profile)
    yield source_table(profile)
    yield class_table(profile)
