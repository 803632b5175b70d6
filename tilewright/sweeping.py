"""A program on many machines and at many sizes, compiled in processes beside one another."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

from tilewright.dialects.target import load_target
from tilewright.dialects.target_model import parse_size
from tilewright.ir.diagnostics import SourceError
from tilewright.lowering.cache import VARIABLE, is_off

from .api import DEFAULT_TARGET, Objective, compile
from .errors import diagnosed, plain_error
from .module import load

WITHOUT: Mapping[str, str] = {
    "canonicalize": "decompose,fuse,schedule,tile,place,bufferize,stages,plan,emit,skew,sync",
    "fuse": "canonicalize,decompose,fuse{unfused=true},schedule,tile,place,bufferize,stages,plan,emit,skew,sync",
    "skew": "canonicalize,decompose,fuse,schedule{skew=false},tile,place,bufferize,stages,plan,emit,skew,sync",
}
"""What can be left out and the program still means the same → the pipeline without it. The others lower the program:
without `fuse` every operation is a kernel of its own, without `skew` no stage of a loop runs ahead of another."""


@dataclass(frozen=True)
class Variation:
    """What is varied and over which values, as text: a field of the target, or `dim.NAME`."""

    name: str
    values: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Variation:
        """`cores=1,8,32`; `memory.ub.bytes=64KiB..1MiB`: 64, 128, 256, 512 KiB and 1 MiB. Raises SourceError."""
        name, equals, given = text.partition("=")
        if not name or not equals or not given:
            raise plain_error(f"'{text}' is not FIELD=VALUES, as in cores=1,8,32 or memory.ub.bytes=64KiB..1MiB")
        values = tuple(value for part in given.split(",") for value in _range(part.strip(), text))
        repeated = next((value for value in values if values.count(value) > 1), None)
        if repeated is not None:
            raise plain_error(f"'{text}' has {repeated} twice")
        return Variation(name.strip(), values)


def _range(part: str, text: str) -> Iterator[str]:
    """One value, or those from `low..high`, each twice the one before; the upper end is always one."""
    low, dots, high = part.partition("..")
    if not part:
        raise plain_error(f"'{text}' has an empty value")
    if not dots:
        yield part
        return
    try:
        first, last = parse_size(low), parse_size(high)
    except ValueError:
        raise plain_error(f"'{part}' in '{text}' is not LOW..HIGH of numbers or sizes, as in 64KiB..1MiB") from None
    assert isinstance(first, int) and isinstance(last, int)
    if not 0 < first <= last:
        raise plain_error(f"'{part}' in '{text}' does not go from a positive number up to one that is not less")
    while first < last:
        yield str(first)
        first *= 2
    yield str(last)


@dataclass(frozen=True)
class Point:
    """One program on one machine at one size: `settings` has what was varied, `without` what was left out. Bytes,
    cycles and kernels; or why there are none."""

    settings: tuple[tuple[str, str], ...]
    without: str = ""
    bytes: int | None = None
    cycles: int | None = None
    kernels: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Job:
    source: str | Path
    target: str
    objective: Objective | None
    dims: tuple[tuple[str, int], ...]
    point: Point


def sweep(
    source: str | Path,
    vary: Sequence[Variation],
    target: str = DEFAULT_TARGET,
    objective: Objective | None = None,
    dims: Mapping[str, int] | None = None,
    without: Sequence[str] = (),
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Point]:
    """Compiles and simulates a program (a path or text) for every combination of values, in `jobs` processes.

    With `without`, each combination also with each of these left out (see `WITHOUT`). `progress` is told how many
    points are done, and of how many. A point that does not compile says why. Raises SourceError for an unknown field,
    a value that its field cannot have, or a program that cannot be read.
    """
    work = list(_jobs(source, vary, target, objective, dict(dims or {}), without))
    found: dict[int, Point] = {}
    told = progress or _nothing
    told(0, len(work))
    if jobs == 1 or len(work) == 1:
        for number, job in enumerate(work):
            found[number] = _measured(job)
            told(len(found), len(work))
        return [found[number] for number in range(len(work))]
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start, initargs=(is_off(),))
    try:
        pending = {pool.submit(_measured, job): number for number, job in enumerate(work)}
        for future in as_completed(pending):
            found[pending[future]] = future.result()
            told(len(found), len(work))
    except BrokenProcessPool:
        raise plain_error("a process that compiled a point has ended: too little memory? try fewer --jobs") from None
    finally:
        pool.shutdown(wait=len(found) == len(work), cancel_futures=True)
    return [found[number] for number in range(len(work))]


def _nothing(done: int, total: int) -> None:
    pass


def _start(cache_off: bool) -> None:
    """Of a process beside the main one, which alone hears interrupts and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if cache_off:
        os.environ[VARIABLE] = "off"


def _jobs(
    source: str | Path,
    vary: Sequence[Variation],
    target: str,
    objective: Objective | None,
    dims: dict[str, int],
    without: Sequence[str],
) -> Iterator[_Job]:
    """All points; what is wrong with any of them in itself is said before the first is compiled."""
    names = [variation.name for variation in vary]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise plain_error(f"'{twice}' is varied twice")
    for name in without:
        if name not in WITHOUT:
            raise plain_error(f"'{name}' cannot be left out; what can: {', '.join(WITHOUT)}")
    checked: set[str] = set()
    for values in product(*(variation.values for variation in vary)):
        settings = tuple(zip(names, values, strict=True))
        sizes = dims | {name[4:]: _dimension(name, value) for name, value in settings if name.startswith("dim.")}
        spec = with_overrides(target, [(n, v) for n, v in settings if not n.startswith("dim.")])
        with diagnosed({}):
            load_target(spec)
        key = str(sorted(sizes))
        if key not in checked:
            load(source, sizes)
            checked.add(key)
        for left_out in ("", *without):
            yield _Job(source, spec, objective, tuple(sizes.items()), Point(settings, left_out))


def _dimension(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit() or not int(value):
        raise plain_error(f"the size of '{name}' is a positive integer, got '{value}'")
    return int(value)


def with_overrides(target: str, fields: Sequence[tuple[str, str]]) -> str:
    """A target with further fields overridden: `unified{cores=2}` and cores=4 → `unified{cores=2 cores=4}`."""
    if not fields:
        return target
    text = " ".join(f"{name}={value}" for name, value in fields)
    return f"{target[:-1]} {text}}}" if target.endswith("}") else f"{target}{{{text}}}"


def _measured(job: _Job) -> Point:
    """Compiles and simulates one point."""
    try:
        module = load(job.source, dict(job.dims))
        program = compile(module, job.target, WITHOUT.get(job.point.without), job.objective)
        analysis = program.analyze()
    except SourceError as error:
        return replace(job.point, reason=error.diagnostics[0].message)
    moved = sum(kernel.read_bytes + kernel.write_bytes for kernel in analysis.kernels)
    return replace(job.point, bytes=moved, cycles=analysis.cycles, kernels=len(analysis.kernels))


def pareto(points: Sequence[Point]) -> list[Point]:
    """The points than which no other has both fewer bytes and fewer cycles (or one as many), fewest bytes first."""
    best: list[Point] = []
    known = [point for point in points if point.bytes is not None and point.cycles is not None]
    for point in sorted(known, key=lambda p: (p.bytes or 0, p.cycles or 0)):
        if not best or (point.cycles or 0) < (best[-1].cycles or 0):
            best.append(point)
    return best
