"""Many iterations at once: the same results and the same errors as one instruction after another."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from machine_programs import layout, lines, local, loop, parsed, program, row_pipeline, view
from mutant_programs import PROGRAMS
from mutants import mutants
from random_programs import Case, inputs_of, programs
from test_machine_access import addresses, regions
from test_random_machine import TARGETS, lowered
from tilewright.dialects.errors import UserError
from tilewright.dialects.layout import Layout
from tilewright.dialects.transfer import Region
from tilewright.runtime.half import rounded_to_half
from tilewright.runtime.machine import Machine, MachineOptions, batch, data, plan, replay, tiles
from tilewright.runtime.machine.balance import in_list_order
from tilewright.runtime.machine.forward import MISSING, POISON, Written, indices, selection
from tilewright.runtime.machine.queues import in_program_order, walk
from tilewright.runtime.machine.values import Values

import tilewright
from tilewright.arrays import gather_inputs

ROW = (1, 64)
X = [np.random.default_rng(3).normal(size=(8, 64)).astype(np.float32)]


def outcome(machine: Machine, inputs: list[Any], batched: bool, check: bool = True) -> object:
    """Outputs and counts, or the error's message. Races are not looked for: the data must speak for itself."""
    options = MachineOptions(check=check, check_order=False, batch=batched)
    try:
        result = machine.run(inputs, options)
    except UserError as error:
        return error.message
    return tuple(array.tobytes() for array in result.outputs), result.kernels, result.links


def iterations(machine: Machine) -> list[int]:
    """Of the batched loops of the first kernel; nothing where it has no plan."""
    found = machine.plan(machine.program.launches[0].kernel)
    return [] if found is None else [prod(segment.loops.values()) for segment in found.segments if segment.calls]


@pytest.mark.parametrize("target", TARGETS)
def test_random_programs(target: str) -> None:
    planned = Counter[bool]()

    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs(), st.booleans())
    def check(case: Case, checks: bool) -> None:
        machine, inputs = Machine(lowered(case, target)), inputs_of(case.module, 0)
        assert outcome(machine, inputs, True, checks) == outcome(machine, inputs, False, checks)
        planned.update(machine.plan(launch.kernel) is not None for launch in machine.program.launches)

    check()
    assert planned[True] > planned[False]


@pytest.mark.parametrize("name", ["attention", "layer norm", "product with epilogue", "gate"])
def test_programs_with_something_wrong(name: str) -> None:
    target, text = PROGRAMS[name]
    compiled = tilewright.compile(tilewright.load(text), target)
    inputs = list(gather_inputs(compiled.source, None, 0))
    kinds = Counter[type]()
    for mutant in random.Random(2).sample(list(mutants(compiled.module)), 12):
        try:
            machine = Machine(mutant.of(compiled.module))
        except UserError:
            continue
        walked = outcome(machine, inputs, False)
        assert outcome(machine, inputs, True) == walked, f"{mutant.kind}, {mutant.what}"
        kinds[type(walked)] += 1
    assert kinds[str] and kinds[tuple]


def test_compiled_loops_are_batched() -> None:
    text = "func.func @f(%x: tensor<96x64xf16>) -> tensor<96x64xf16> {{ %y = graph.{op} %x{more}\n func.return %y }}"
    for op, more in (("exp", ""), ("softmax", " {axis = -1 : i64}")):
        compiled = tilewright.compile(tilewright.load(text.format(op=op, more=more)), "davinci{memory.ub.bytes=4KiB}")
        assert max(iterations(compiled.snapshot("hardware").machine)) > 1


# --- flow between iterations ------------------------------------------------------------------------------------------


def row(name: str, buffer: str, offset: str = "0", memory: str = "ub", **more: Any) -> str:
    return view(name, buffer, ROW, "f32", memory, offset=offset, counters=("i",) if "d0" in offset else (), **more)


def kernel(*body: str, count: int = 8, after: str = "", before: str = "") -> str:
    """Rows of x0 to rows of y0 by way of %a (two slots) and %b."""
    buffers = (local("a", 0, ROW, "f32", "ub", slots=2), local("b", 1024, ROW, "f32", "ub"))
    text = lines(*buffers, before, loop("i", count, lines(*body)), after)
    return program(text, [((8, 64), "f32")], [((8, 64), "f32"), ((8, 64), "f32")])


def load(offset: str = "d0 * 256", slot: str = "0", name: str = "a", fresh: str = ", fresh") -> str:
    source, destination = row(f"s{name}", "x0", offset, "gm"), row(f"l{name}", name, slot)
    return lines(source, destination, f'hardware.dma %s{name}, %l{name} {{engine = "mte2"{fresh}}}')


def store(offset: str = "d0 * 256", slot: str = "0", name: str = "a", number: str = "0") -> str:
    source, destination = row(f"r{number}", name, slot), row(f"t{number}", "y0", offset, "gm")
    return lines(source, destination, f'hardware.dma %r{number}, %t{number} {{engine = "mte3"}}')


ADD = lines(row("p", "b"), row("q", "a"), row("o", "b"), 'hardware.vector %p, %q, %o {fn = "add", engine = "vector"}')
NEXT = "(d0 + 1) mod 8 * 256"
FIRST = lines(
    view("s", "x0", ROW, "f32", "gm"), view("l", "a", ROW, "f32", "ub", offset="256"),
    'hardware.dma %s, %l {engine = "mte2", fresh}',
)  # fmt: skip
ZERO = lines(row("z", "b"), 'hardware.fill %z {value = 0.0 : f32, engine = "vector", fresh}')
OTHER = local("c", 0, ROW, "f32", "ub")
OVERLAPPING = lines(
    view("so", "x0", (2, 32), "f32", "gm"), view("lo", "a", (2, 32), "f32", "ub", layout([2, 4], [32, 4])),
    'hardware.dma %so, %lo {engine = "mte2", fresh}',
    view("ro", "a", (1, 33), "f32", "ub"), view("to", "y0", (1, 33), "f32", "gm"),
    'hardware.dma %ro, %to {engine = "mte3"}',
)  # fmt: skip
BLOCKS = lines(
    view("sb", "x0", ROW, "f32", "gm", layout([1, 256], [16, 4, 4, 64]), "1852", start="0, 2", valid="1, 7"),
    view("lb", "b", ROW, "f32", "ub"),
    'hardware.dma %sb, %lb {engine = "mte2", fresh}',
    view("rb", "b", ROW, "f32", "ub", start="0, 2", valid="1, 7"),
    view("tb", "y0", ROW, "f32", "gm", start="0, 2", valid="1, 7"),
    'hardware.dma %rb, %tb {engine = "mte3"}',
)
LAST = "%x0, %y1, %y0 {callee = @k}\nhardware.launch %y1, %y0, %x0"
TWICE = "%x0, %y0, %y1 {callee = @k}\nhardware.launch %x0, %y1, %y0"
BACK = "%x0, %y0, %y1 {callee = @k}\nhardware.launch %x0, %y1, %y0 {callee = @k}\nhardware.launch %y0, %y0, %y1"
SHAPES: dict[str, tuple[str, str, list[int], bool]] = {
    "independent": (kernel(load(), store()), TWICE, [8], True),
    "two slots": (kernel(load(slot="d0 mod 2 * 256"), store(slot="d0 mod 2 * 256")), TWICE, [8], True),
    "a sum over iterations": (kernel(load(), ADD, store(name="b"), before=ZERO), TWICE, [1], True),
    "what the iteration before loaded": (
        kernel(store(slot="(d0 + 1) mod 2 * 256"), load(slot="d0 mod 2 * 256"), before=FIRST), TWICE, [1], True
    ),
    "what the last iteration left": (kernel(load(), store(), after=store("0", number="1")), TWICE, [1], True),
    "rows written twice": (kernel(load(), store(), store(NEXT, number="1")), TWICE, [1], True),
    "a row that all iterations write": (kernel(load(), store(), store("0", number="1")), TWICE, [1], True),
    "in place": (kernel(load(), store("1792 - d0 * 256")), BACK, [8], True),
    "in place, each row after it was read": (kernel(load(), store()), BACK, [8], True),
    "in place, two loops": (
        kernel(load(), store(), after=loop("j", 8, lines(load().replace("%i", "%j"), store().replace("%i", "%j")))),
        BACK, [8, 8], True,
    ),
    "what nobody wrote": (kernel(load(), store()), "%y1, %y0, %x0", [8], False),
    "a row too many": (kernel(load(), store(), count=9), TWICE, [], False),
    "half of a slot": (kernel(load(slot="d0 mod 2 * 256"), store(slot="d0 mod 2 * 224")), TWICE, [], False),
    "an empty buffer": (kernel(load(), store(name="b")), TWICE, [], False),
    "bytes of another buffer": (kernel(load(), load(name="c"), store(), before=OTHER), TWICE, [], False),
    "elements that share bytes": (kernel(load(), store(), after=OVERLAPPING), TWICE, [], True),
    "blocks that leave the memory": (kernel(load(), store(), after=BLOCKS), LAST, [8, 1], False),
    "unlike iterations": (row_pipeline(valid="d0 * -2 + 7, 64", rows=8), "", [3, 1], False),
}  # fmt: skip
"""The kernel's text, what the launches take, iterations of its batched loops, and whether the program is right."""


def machine_of(name: str) -> Machine:
    text, launches, *_ = SHAPES[name]
    return Machine(parsed(text.replace("%x0, %y0, %y1 {", launches + " {")))


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_flow(name: str) -> None:
    *_, batched, right = SHAPES[name]
    machine = machine_of(name)
    walked = outcome(machine, X, False)
    assert outcome(machine, X, True) == walked
    assert iterations(machine) == batched
    assert isinstance(walked, tuple) == right, walked


def _nothing(*_: Any, **__: Any) -> None:
    pass


def _true(*_: Any) -> bool:
    return True


GUARDS: list[tuple[object, str, Callable[..., Any], str]] = [
    (tiles.Tiles, "poison", _nothing, "a sum over iterations"),
    (plan._Walk, "disjoint", _true, "rows written twice"),
    (replay.Replay, "_apart", _true, "in place"),
    (replay.Replay, "_defined", _true, "what nobody wrote"),
    (plan, "inside", _true, "half of a slot"),
    (tiles, "_share", lambda *_: False, "bytes of another buffer"),
    (plan._Walk, "same", lambda _, value: int(np.asarray(value).flat[0]), "unlike iterations"),
]


@pytest.mark.parametrize(("owner", "name", "without", "shape"), GUARDS)
def test_no_guard_can_be_left_out(
    owner: object, name: str, without: Callable[..., Any], shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = outcome(machine_of(shape), X, False)
    monkeypatch.setattr(owner, name, without)
    assert outcome(machine_of(shape), X, True) != walked


def test_blocks_are_not_read_beyond_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements that are not wanted lie there: without the look at them NumPy is given too few bytes."""
    assert "leave memory 'gm'" in str(outcome(machine_of("blocks that leave the memory"), X, True))
    monkeypatch.setattr(replay.Replay, "_within", _true)
    with pytest.raises(ValueError, match="strides is incompatible"):
        outcome(machine_of("blocks that leave the memory"), X, True)


def test_what_is_overwritten_in_place_is_batched(monkeypatch: pytest.MonkeyPatch) -> None:
    walked = outcome(machine_of("in place, each row after it was read"), X, False)
    monkeypatch.setattr(data.DataRun, "_walked", _nothing)
    assert outcome(machine_of("in place, each row after it was read"), X, True) == walked


def nested() -> Machine:
    """Row 2i + j plus row i, for i < 4 and j < 2, in loops of which one is directly in the other."""

    def at(name: str, buffer: str, offset: str, *counters: str) -> str:
        return view(name, buffer, ROW, "f32", "gm", offset=offset, counters=counters)

    body = lines(
        at("sa", "x0", "d0 * 256", "i"), row("la", "a"), 'hardware.dma %sa, %la {engine = "mte2", fresh}',
        at("sb", "x0", "d0 * 512 + d1 * 256", "i", "j"), row("lb", "b"),
        'hardware.dma %sb, %lb {engine = "mte2", fresh}',
        ADD, at("t", "y0", "d0 * 512 + d1 * 256", "i", "j"), 'hardware.dma %o, %t {engine = "mte3"}',
    )  # fmt: skip
    buffers = (local("a", 0, ROW, "f32", "ub"), local("b", 1024, ROW, "f32", "ub"))
    text = program(lines(*buffers, loop("i", 4, loop("j", 2, body))), [((8, 64), "f32")], [((8, 64), "f32")])
    return Machine(parsed(text))


@pytest.mark.parametrize("rows", range(1, 9))
def test_nested_loops_are_taken_in_parts(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = nested()
    walked = outcome(machine, X, False)
    monkeypatch.setattr(data.DataRun, "_walked", _nothing)
    monkeypatch.setattr(replay, "PART", rows * 64)
    assert iterations(machine) == [8] and outcome(machine, X, True) == walked


@given(st.lists(st.integers(2, 7), max_size=3), st.data(), st.integers(1, 90))
@settings(max_examples=60, deadline=None)
def test_parts_are_all_iterations_once(counts: list[int], draw: st.DataObject, most: int) -> None:
    loops = dict(enumerate(counts))
    axes = st.frozensets(st.sampled_from([*loops])) if loops else st.just(frozenset[int]())
    segment = batch.Segment(loops, widths=draw.draw(st.dictionaries(axes, st.integers(1, 20))))
    listed: list[tuple[int, ...]] = []
    for part in segment.parts(most):
        listed += product(*(range(low, high) for low, high in part.values()))
        for needed, width in segment.widths.items():
            extents = [part[axis][1] - part[axis][0] for axis in needed]
            assert width * prod(extents) <= most or prod(extents) == 1
    assert sorted(listed) == list(product(*map(range, counts)))


@given(st.integers(0, 5), st.integers(0, 40), st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_region_put_together(seed: int, cut: int, scattered: bool) -> None:
    """Elements [0, cut) of 5 × 8 from one value, the others from another."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(40) if scattered else np.arange(40)
    places = [np.arange(cut), np.arange(cut, 40)]
    values = Values(Machine(parsed(row_pipeline())).program.launches[0].kernel)
    made = [
        (values.apply([], lambda: np.zeros(()), (5, 8), np.dtype(np.float32)), at, order[at])
        for at in places
        if at.size
    ]
    values.gathered(made, (5, 8), np.dtype(np.float32))
    call = values.segments[-1].calls[-1]
    assert isinstance(call, batch.Apply)
    arrays = [rng.normal(size=(3, 5, 8)).astype(np.float32) for _ in made]
    wanted = np.empty((3, 40), np.float32)
    for array, (_, at, index) in zip(arrays, made, strict=True):
        wanted[:, at] = array.reshape(3, 40)[:, index]
    np.testing.assert_array_equal(call.function(*arrays), wanted.reshape(3, 5, 8))


# --- elements of one view as elements of another ----------------------------------------------------------------------


@given(regions(), regions(), st.integers(-3, 6))
@settings(max_examples=150, deadline=None)
def test_elements_are_found_by_their_bytes(
    tile: tuple[Layout, Region], wanted: tuple[Layout, Region], shift: int
) -> None:
    layout, valid = tile
    written = Written(layout, tuple((0, extent) for extent in layout.shape), valid)
    touched = {int(p) + b for p in layout.addresses().flat for b in range(layout.element_bytes)}
    values = {int(p): number for number, p in enumerate(addresses(layout, valid).flat)}
    found = indices(written, *wanted, shift)
    width = wanted[0].element_bytes
    for place, index in zip((addresses(*wanted) + shift).flat, found.flat, strict=True):
        clear = not any(int(place) + b in touched for b in range(width))
        assert index == (MISSING if clear else values.get(int(place), POISON))
    part = selection(written, *wanted, shift)
    if part is not None:
        array: npt.NDArray[Any] = np.arange(len(values)).reshape([high - low for low, high in valid])
        np.testing.assert_array_equal(part.of(array), found)
        np.testing.assert_array_equal(part.of(np.stack([array, array + 1]))[1], found + 1)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=3), st.lists(st.integers(1, 4), min_size=3, max_size=3))
@settings(max_examples=50, deadline=None)
def test_places_as_strides(steps: list[int], extents: list[int]) -> None:
    positions = np.indices(extents[: len(steps)])
    even = 100 + sum(step * p for step, p in zip(steps, positions, strict=True))
    for at in (even, even % 7):
        covered: list[int] = []
        for first, (shape, strides) in batch.Places.of(at).leads():
            covered += (first + sum(s * p for s, p in zip(strides, np.indices(shape), strict=True))).flat
        assert covered == list(at.flat)


@pytest.mark.parametrize("name", ["attention", "product with epilogue"])
def test_list_order_is_judged_without_walking(name: str) -> None:
    target, text = PROGRAMS[name]
    compiled = tilewright.compile(tilewright.load(text), target)
    found = Counter[bool]()
    for mutant in [m for m in mutants(compiled.module) if "signal" in m.kind or "wait" in m.kind or "credit" in m.kind]:
        try:
            machine = Machine(mutant.of(compiled.module))
        except UserError:
            continue
        for kernel in {launch.kernel for launch in machine.program.launches}:
            try:
                order = [step for step, _ in in_program_order(kernel)]
                listed = order == list(walk(kernel.body, [0] * kernel.depth))
            except UserError:
                listed = False
            assert in_list_order(kernel) == listed, f"{mutant.kind}, {mutant.what}"
            found[listed] += 1
    assert found[True] and found[False]


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("negative", [False, True])
def test_rounding_to_half(large: bool, negative: bool) -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (halves[:-1] + halves[1:]) / 2  # ties
    near = np.nextafter(between, np.float32(np.inf)), np.nextafter(between, np.float32(0))
    any_ = np.random.default_rng(0).integers(0, 2**31, 1 << 16, np.uint32).view(np.float32)
    array = np.concatenate([halves, between, *near, any_, np.asarray([65520, 1e9, np.inf, np.nan], np.float32)])
    array = np.concatenate([array, -array]) if negative else array
    array = array if large else array[np.abs(array) < 2**15]
    with np.errstate(all="ignore"):
        wanted = array.astype(np.float16).astype(np.float32)
        np.testing.assert_array_equal(rounded_to_half(array).view(np.uint32), wanted.view(np.uint32))
