"""Kernels on several cores: the same results and bytes as counted, times of the slowest core, races between cores."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from example_programs import EXAMPLES, Example
from lowering_cases import fused_in, group_of
from machine_programs import lines, local, parsed, program, view
from tilewright.dialects.errors import UserError
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import load_target, target_of
from tilewright.lowering.core_grids import core_grids
from tilewright.lowering.costs import Costs
from tilewright.lowering.measure import measure
from tilewright.lowering.nest_build import build_nest, place_nest
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import Machine, MachineOptions, analyze, check_order, run
from tilewright.runtime.machine.time import KernelSimulation
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import tilewright

TARGETS = ("davinci{cores=32}", "unified{cores=5}", "ascend910b{cores=24}")
SMALL = [e for e in EXAMPLES if str(e) in ("softmax_rows", "mlp", "residual_layernorm_gelu", "attention_any-500")]
COLUMNS = """
func.func @main(%x: tensor<24x40xf32>) -> (tensor<24x40xf32>, tensor<1x40xf32>) {
  %y = graph.map %x {fn = "exp"}
  %s = graph.reduce %x {monoid = "sum", axes = array<i64: 0>}
  func.return %y, %s : tensor<24x40xf32>, tensor<1x40xf32>
}
"""
ROWS = """
func.func @main(%x: tensor<24x40xf32>) -> tensor<24x40xf32> {
  %y = graph.map %x {fn = "exp"}
  func.return %y : tensor<24x40xf32>
}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("example", SMALL, ids=str)
def test_examples_run_on_all_cores(example: Example, target: str) -> None:
    compiled = tilewright.compile(example.load(), target=target)
    machine = compiled.snapshot("hardware").machine
    kernels = {launch.kernel for launch in machine.program.launches}
    assert max(kernel.cores for kernel in kernels) > 1
    result = compiled.run(seed=0)
    assert max(error for error in result.errors().values() if error is not None) < 2e-3
    module = compiled.snapshot("hardware").module
    assert predict(module) == {link: size for link, size in result.traffic.links.items() if size}


def hardware(example: Example, target: str) -> ModuleOp:
    return tilewright.compile(example.load(), target=target, to="hardware").module


@pytest.mark.parametrize("example", SMALL[:2], ids=str)
def test_the_order_of_cores_makes_no_difference(example: Example) -> None:
    module = hardware(example, "davinci{cores=32}")
    machine = Machine(module)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(e.shape).astype(e.element.numpy) for e in machine.program.role("input")]
    want = machine.run(inputs).outputs
    for options in (
        MachineOptions(batch=False),
        MachineOptions(interleaving="eager"),
        MachineOptions(interleaving="random", seed=3),
    ):
        for found, first in zip(machine.run(inputs, options).outputs, want, strict=True):
            np.testing.assert_array_equal(found, first)


@pytest.mark.parametrize("example", SMALL[:3], ids=str)
def test_cores_that_count_as_alike_take_the_same_time(example: Example) -> None:
    machine = Machine(hardware(example, "davinci{cores=7}"))
    for launch, time in zip(machine.program.launches, machine.times(), strict=True):
        alone = [KernelSimulation(s, machine.program.target, machine.cases).run() for s in launch.kernel.shares]
        assert time.cycles == max(one.cycles for one in alone)
        assert time.instructions == sum(one.instructions for one in alone)
        assert time.links == sum((one.links for one in alone), start=type(time.links)())


@pytest.mark.parametrize("target", ["davinci{cores=8}"])
@pytest.mark.parametrize("example", SMALL, ids=str)
def test_estimated_bytes_are_those_that_move(example: Example, target: str) -> None:
    module = tilewright.compile(example.load(), target=target, to="fuse").module
    divided = 0
    for fused in fused_in(module):
        costs = Costs(target_of(module), "time", 30)
        for choice in costs.choices(fused.body.block)[:4]:
            try:
                counted = measure(Context(), fused, choice.schedule, costs.target)
            except UserError:
                continue  # does not fit after all
            assert choice.estimate.bytes == counted.bytes, choice.schedule
            divided += choice.schedule.taking_part > 1
    assert divided


def test_more_cores_are_faster_until_the_pool_is_what_counts() -> None:
    """Rows of bytes in and out: 8 MiB, of which all cores together get 992 a cycle, one core 100."""
    text = "func.func @main(%x: tensor<2048x1024xf16>) -> tensor<2048x1024xf16> { %y = graph.exp %x return %y : t }"
    text = text.replace(": t }", ": tensor<2048x1024xf16> }")
    found = {n: tilewright.compile(text, target=f"davinci{{cores={n}}}").analyze().cycles for n in (1, 32)}
    size, fixed = 2 * 2048 * 1024 * 2, 2000 + 300  # launch, and the last write's latency
    for cores, rate in ((1, 100), (32, 992)):
        assert size / rate + fixed <= found[cores] <= 1.25 * size / rate + fixed + 1400, (cores, found)


def test_many_more_cores_than_tiles_change_nothing() -> None:
    """And the search takes no longer: which grids there are for loops of so many tiles is found once."""
    text = "func.func @main(%x: tensor<16x64xf32>) -> tensor<16x64xf32> { %y = graph.softmax %x return %y : t }"
    text = text.replace(": t }", ": tensor<16x64xf32> }")
    few, many = (tilewright.compile(text, f"unified{{cores={n} max_cores={n}}}").analyze() for n in (1024, 100_000))
    assert few.cycles == many.cycles


def schedule(**fields: object) -> Schedule:
    base = Schedule("ab", (24, 40), (8, 16), "ab", "resident", hold=("ab",), slots=(1,))
    return base.with_(**fields)


def test_every_result_is_written_by_one_core() -> None:
    """Column sums are stored outside of the loop over rows: rows cannot be divided, columns can."""
    group = group_of(COLUMNS)
    online = schedule(order="ba", strategy="online")
    nest = place_nest(group, online)
    assert [group.names[axis] for axis in nest.divisible] == ["b"]
    build_nest(group, online.with_(cores=(1, 3)))
    with pytest.raises(UserError, match="divides axis 'a' among cores, but not every result"):
        build_nest(group, online.with_(cores=(3, 1)))


@pytest.mark.parametrize(
    ("cores", "message"),
    [
        ((2,), "'cores' has an entry for each of 2 axes, got 1"),
        ((4, 1), "cores of axis 'a' are between 1 and its 3 tiles, got 4"),
        ((0, 1), "cores of axis 'a' are between 1 and its 3 tiles, got 0"),
    ],
)
def test_cores_that_do_not_fit_are_rejected(cores: tuple[int, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_nest(group_of(ROWS), schedule(cores=cores))


def test_a_schedule_by_hand_is_obeyed_or_rejected() -> None:
    module = tilewright.compile(ROWS, target="davinci{cores=4}", to="fuse").module
    (fused,) = fused_in(module)
    four = measure(Context(), fused, schedule(tiles=(4, 40), order="a", hold=("a",), cores=(4, 1)), target_of(module))
    one = measure(Context(), fused, schedule(tiles=(4, 40), order="a", hold=("a",)), target_of(module))
    assert four.bytes == one.bytes and four.cycles < one.cycles
    with pytest.raises(UserError, match="divided among 6 cores, the target has 4"):
        measure(Context(), fused, schedule(tiles=(4, 40), order="a", hold=("a",), cores=(6, 1)), target_of(module))


def test_grids_leave_the_fewest_tiles_on_the_busiest_core() -> None:
    group = group_of(ROWS)
    for tiles, available in product([(8, 16), (2, 8), (1, 40)], (1, 2, 5, 7, 32)):
        looped = "".join(n for n, t, e in zip("ab", tiles, (24, 40), strict=True) if t < e)
        nest = place_nest(group, schedule(tiles=tiles, order=looped, hold=(looped,)))
        trips = [-(-e // t) for e, t in zip((24, 40), tiles, strict=True)]
        every = [(a, b) for a in range(1, trips[0] + 1) for b in range(1, trips[1] + 1) if a * b <= available]
        least = min(-(-trips[0] // a) * -(-trips[1] // b) for a, b in every)
        first, *_ = grids = core_grids(nest, available)
        a, b = first or (1, 1)
        assert -(-trips[0] // a) * -(-trips[1] // b) == least and a * b <= available
        assert grids[-1] == ()


STORE = """
hardware.for %c = 0 to 4 {{core}} {{
  {body}
}}
"""


def on_cores(offset: str, reads: str | None = None) -> str:
    """Every core writes 64 bytes of 256, at `offset` of its number; before that it reads 64 bytes at `reads`."""
    tile = (16,)
    parts = [
        view("t", "y0", tile, "f32", "gm", offset=offset, counters=("c",)),
        view("a", "in", tile, "f32", "ub"),
        'hardware.fill %a {value = 1.0 : f32, engine = "vector", fresh}',
    ]
    if reads is not None:
        parts += [
            view("s", "y0", tile, "f32", "gm", offset=reads, counters=("c",)),
            view("b", "other", tile, "f32", "ub"),
        ]
    parts += [
        'hardware.signal {event = 0 : i64, from = "vector", to = "mte3"}',
        'hardware.wait {event = 0 : i64, from = "vector", to = "mte3"}',
        'hardware.dma %a, %t {engine = "mte3"}',
    ]
    if reads is not None:
        parts += [
            'hardware.signal {event = 0 : i64, from = "mte3", to = "mte2"}',
            'hardware.wait {event = 0 : i64, from = "mte3", to = "mte2"}',
            'hardware.dma %s, %b {engine = "mte2"}',
        ]
    body = STORE.format(body=lines(*parts))
    return program(
        lines(local("in", 0, tile, "f32", "ub"), local("other", 64, tile, "f32", "ub"), body),
        [],
        [((64,), "f32")],
        target="davinci{cores=4}",
    )


def test_cores_that_keep_to_themselves_pass() -> None:
    for text in (on_cores("d0 * 64"), on_cores("d0 * 64", "d0 * 64")):
        check_order(parsed(text))
    assert run(parsed(on_cores("d0 * 64")), []).outputs[0].tolist() == [1.0] * 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (on_cores("d0 * 32"), "core 1 writes bytes of .* that core 0 writes"),
        (on_cores("(d0 mod 2) * 64"), "core 2 writes bytes of .* that core 0 writes"),
        (on_cores("d0 * 64", "((d0 + 1) mod 4) * 64"), "core . (reads|writes) bytes of .* that core . (reads|writes)"),
    ],
)
def test_cores_that_touch_the_same_bytes_race(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_order(parsed(text))


def test_a_core_knows_nothing_of_what_another_left_on_chip() -> None:
    """Core 0 fills a buffer that all cores store."""
    text = on_cores("d0 * 64").replace(
        "hardware.fill %a", "hardware.for %k = 0 to affine_map<(d0) -> (1 - d0)>(%c) {\nhardware.fill %a"
    )
    text = re.sub(r"(hardware.fill [^\n]*)", r"\1\n}", text)
    for batch in (True, False):
        with pytest.raises(UserError, match="poison"):
            run(parsed(text), [], MachineOptions(batch=batch))


def test_a_kernel_has_no_more_cores_than_the_target() -> None:
    text = on_cores("d0 * 64").replace("cores=4}", "cores=2}")
    with pytest.raises(UserError, match=r"kernel @.* runs on 4 cores, target 'davinci.*' has 2"):
        analyze(parsed(text))


def test_the_pool_is_shared() -> None:
    """A transfer of a core takes longer the more of them there are: bytes ÷ (992 ÷ cores), at most 100 a cycle."""
    example = next(e for e in EXAMPLES if str(e) == "unary_chain")
    for cores in (1, 9, 16):
        machine = Machine(hardware(example, f"davinci{{cores={cores}}}"))
        for launch in machine.program.launches:
            rate = min(100.0, 992 / launch.kernel.cores)
            for step in launch.kernel.instructions():
                for case in machine.cases[step].known.values() or [machine.cases[step].only]:
                    if case is not None and case.offchip and case.link is not None:
                        assert case.port_cycles == -(-case.link[1] // rate)


def test_one_core_is_what_targets_have_unless_told() -> None:
    assert load_target("davinci").cores == 1
    module = hardware(EXAMPLES[0], "davinci")
    assert "core" not in str(module).replace("tilewright.target", "")
