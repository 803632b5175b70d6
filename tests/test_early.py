"""Loads that begin before the launch before has ended: time, order, data, and what the compiler marks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from machine_programs import parsed, row_pipeline
from tilewright.dialects import hardware
from tilewright.dialects.cost import port_rate
from tilewright.lowering.pipeline import PIPELINE
from tilewright.runtime.machine import Machine, MachineError, MachineOptions, analyze, check_order, run
from tilewright.runtime.machine.early import early_loads
from tilewright.runtime.machine.options import Interleaving
from tilewright.runtime.machine.time import KernelSimulation
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64

import tilewright
from tilewright import Program

# davinci: launch 2000, port 100 bytes a cycle, latencies 1400 and 300; a tile is loaded or stored in 6 cycles.
LAUNCH, READ, WRITE, LOAD, STORE, EXP = 2000, 1400, 300, 6, 6, 14


def two_kernels(tiles: int = 1, apart: bool = True, chained: bool = False, early: bool = True) -> str:
    """@k on the first input, then @m, whose loads are early, on the second; `chained`: on what @k has written.
    `apart`: on other bytes on chip."""
    text = row_pipeline(tiles)
    head, _, rest = text.partition("hardware.kernel")
    kernel, _, program = rest.partition("hardware.program")
    second = kernel.replace("@k", "@m")
    if apart:
        second = second.replace("offset = 0 : i64, slots", "offset = 2048 : i64, slots")
        second = second.replace("offset = 1024 : i64, slots", "offset = 3072 : i64, slots")
    if early:
        second = second.replace('engine = "mte2", fresh', 'engine = "mte2", fresh, early')
    x0, y0 = (line for line in program.splitlines() if "hardware.buffer" in line)
    size = 4096 * tiles

    def other(line: str, name: str, offset: int) -> str:
        found = line.replace(line.split()[0], name, 1).replace("index = 0", "index = 1")
        return found.replace(f"offset = {line.split('offset = ')[1].split()[0]} ", f"offset = {offset} ")

    given = "%y0, %y1" if chained else "%x1, %y1"
    buffers = [x0, y0, other(x0, "%x1", size), other(y0, "%y1", 2 * size)]
    launches = ["hardware.launch %x0, %y0 {callee = @k}", f"hardware.launch {given} {{callee = @m}}"]
    program = "\n".join(['hardware.program {sym_name = "main"} ({', *buffers, *launches, "})", "}"])
    return f"{head}hardware.kernel{kernel}hardware.kernel{second}{program}"


def inputs(tiles: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((2 * tiles, 64)).astype(np.float32) for _ in range(2)]


def test_a_load_is_hidden_behind_the_launch() -> None:
    """The next launch comes one launch after the first has begun, which ends before that: the load begins then."""
    first, second = analyze(parsed(two_kernels())).kernels
    assert first.cycles == LAUNCH + LOAD + READ + EXP + STORE + WRITE
    assert second.cycles == LAUNCH + EXP + STORE + WRITE
    later = Machine(parsed(two_kernels())).times()[1]
    assert later.early == {"mte2": LAUNCH - (2 * LAUNCH - first.cycles)}
    assert [kernel.cycles for kernel in analyze(parsed(two_kernels(early=False))).kernels] == [first.cycles] * 2


def test_a_load_begins_when_the_port_is_free() -> None:
    """A longer kernel ends with a store: what comes after it, its latency and a launch, is there for the load."""
    machine = Machine(parsed(two_kernels(tiles=4)))
    assert machine.times()[1].early == {"mte2": WRITE + LAUNCH}
    _, profiles = machine.profile()
    for profile in profiles:
        for engine in profile.engines:
            early = profile.early if engine.name == "mte2" else 0
            assert engine.busy + engine.stalled + engine.queued + engine.idle == profile.cycles - LAUNCH + early
    assert profiles[1].span == profiles[1].cycles + WRITE
    assert max(profiles[1].shares.values()) <= 1


def test_what_waits_for_the_kernel_is_not_early() -> None:
    """Two slots are loaded early, of eight tiles: the third load waits for the first tile's exp."""
    (second,) = [p for p in Machine(parsed(two_kernels(tiles=8))).profile()[1] if p.name == "m"]
    plain = Machine(parsed(two_kernels(tiles=8, early=False))).times()[1]
    assert plain.cycles - second.cycles == LOAD + READ
    (kernel,) = [one.kernel for one in Machine(parsed(two_kernels(tiles=8))).program.launches if one.kernel.name == "m"]
    assert [counters for _, counters in early_loads(kernel)] == [(0,), (1,)]


@pytest.mark.parametrize("interleaving", ["program", "eager", "late", "random"])
def test_results_are_those_of_list_order(interleaving: Interleaving) -> None:
    given = inputs(4)
    found = run(parsed(two_kernels(tiles=4)), given, MachineOptions(interleaving=interleaving)).outputs
    for output, value in zip(found, given, strict=True):
        np.testing.assert_allclose(output, np.exp(value), rtol=1e-6)


def test_bytes_that_the_launch_before_still_uses() -> None:
    text = two_kernels(tiles=4, apart=False)
    with pytest.raises(MachineError) as caught:
        check_order(parsed(text))
    assert caught.value.message == (
        "'hardware.dma' on engine 'mte2' at i=0: race: an early load writes %in, bytes [0, 512) of 'ub', while the "
        "launch before, of @k, may not have ended: 'hardware.vector' on engine 'vector' at i=0 reads some of them as "
        "%in"
    )
    assert caught.value.location != caught.value.notes[0][1]
    check_order(parsed(two_kernels(tiles=4, apart=False, early=False)))
    # Unchecked, an order in which transfers come first shows it: the first kernel computes on the second's input.
    given = inputs(4)
    eager = MachineOptions(interleaving="eager", check=False)
    assert not np.allclose(run(parsed(text), given, eager).outputs[0], np.exp(given[0]))


def test_bytes_that_the_launch_before_still_writes() -> None:
    with pytest.raises(MachineError, match=r"an early load reads %\w+, bytes \[.*\) of 'gm', .* writes some of them"):
        check_order(parsed(two_kernels(tiles=4, chained=True)))
    check_order(parsed(two_kernels(tiles=4, chained=True, early=False)))


def test_only_loads_from_off_chip_are_early() -> None:
    text = row_pipeline().replace('engine = "mte3"}', 'engine = "mte3", early}', 1)
    with pytest.raises(MachineError, match="only loads from off chip can be early, not a move from 'ub'"):
        Machine(parsed(text))


LOOKUPS = """func.func @lookups(%t: tensor<200x64xf16>, %i: tensor<11xi32>, %j: tensor<13xi32>)
    -> (tensor<11x64xf16>, tensor<13x64xf16>) {
  %a = graph.gather %t, %i {axis = 0 : i64}
  %b = graph.gather %t, %j {axis = 0 : i64}
  func.return %a, %b : tensor<11x64xf16>, tensor<13x64xf16>
}"""


def test_rows_that_indices_choose_are_not_early() -> None:
    """The indices of the second kernel can be loaded early, the rows that they choose cannot."""
    program = compiled(LOOKUPS, "davinci", early=True)
    loads = [op for op in program.module.walk() if isinstance(op, hardware.DmaOp)]
    gathers = [op for op in loads if op.gather is not None]
    assert len(gathers) == 2 and not any(op.early for op in gathers)
    assert any(op.early for op in loads)
    gathers[1].properties["early"] = UnitAttr()
    with pytest.raises(MachineError, match="rows that indices choose cannot be early"):
        Machine(program.module)


CHAIN = """func.func @chain(%x: tensor<64x128xf16>, %w: tensor<128x256xf16>, %v: tensor<256x128xf16>)
    -> tensor<64x128xf16> {
  %a = graph.matmul %x, %w
  %b = graph.relu %a
  %c = graph.matmul %b, %v
  func.return %c : tensor<64x128xf16>
}"""
PROJECTIONS = """func.func @project(%x: tensor<64x64xf16>, %p: tensor<64x64xf16>, %q: tensor<64x64xf16>)
    -> (tensor<64x64xf16>, tensor<64x64xf16>) {
  %a = graph.matmul %x, %p
  %b = graph.matmul %x, %q
  func.return %a, %b : tensor<64x64xf16>, tensor<64x64xf16>
}"""


def compiled(text: str, target: str, early: bool) -> Program:
    passes = ",".join(PIPELINE).replace("fuse", "fuse{unfused=true}")
    return tilewright.compile(
        text, target=target, pipeline=passes.replace("sync", f"sync{{early={str(early).lower()}}}")
    )


@pytest.mark.parametrize("target", ["davinci", "davinci{cores=1}", "unified"])
@pytest.mark.parametrize("text", [CHAIN, PROJECTIONS])
def test_compiled_programs(text: str, target: str) -> None:
    plain, early = compiled(text, target, False), compiled(text, target, True)
    assert "early" in str(early.ir("hardware"))
    module = early.snapshot("hardware").module
    machine = Machine(module)
    before, after = plain.analyze(), machine.analyze()
    assert after.links == before.links
    assert after.cycles < before.cycles if "davinci" in target else after.cycles <= before.cycles
    assert after.cycles == sum(kernel.cycles for kernel in after.kernels)
    if machine.program.target.cores == 1:
        moved = sum(kernel.read_bytes + kernel.write_bytes for kernel in after.kernels)
        assert after.cycles >= moved / port_rate(machine.program.target)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(external.shape).astype(np.float16) for external in machine.program.role("input")]
    wanted = run(plain.snapshot("hardware").module, given).outputs
    for interleaving in ("program", "eager", "random"):
        found = machine.run(given, MachineOptions(interleaving=interleaving)).outputs
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def edited(module: ModuleOp, edit: Callable[[hardware.KernelOp], None]) -> ModuleOp:
    """A copy with something changed in every kernel."""
    copy = module.clone()
    for op in copy.ops:
        if isinstance(op, hardware.KernelOp):
            edit(op)
    return copy


def mark_all(kernel: hardware.KernelOp) -> None:
    """Every load from off chip becomes early."""
    for op in kernel.walk():
        if isinstance(op, hardware.DmaOp) and op.engine.data == "mte2":
            op.properties["early"] = UnitAttr()


def move_back(kernel: hardware.KernelOp) -> None:
    """Its buffers lie where they would without early loads: at the start of the memory."""
    buffers = [op for op in kernel.walk() if isinstance(op, hardware.BufferOp) and '"l1"' in str(op.res.type)]
    by = min((op.offset.value.data for op in buffers), default=0)
    for op in buffers:
        op.properties["offset"] = IntegerAttr(op.offset.value.data - by, i64)


@pytest.mark.parametrize(("text", "edit"), [(CHAIN, mark_all), (PROJECTIONS, move_back)])
def test_wrong_decisions_of_the_compiler_are_caught(text: str, edit: Callable[[hardware.KernelOp], None]) -> None:
    module = compiled(text, "davinci", True).snapshot("hardware").module
    check_order(module)
    with pytest.raises(MachineError, match="race: an early load"):
        check_order(edited(module, edit))


LOADS = """func.func @loads(%x: tensor<64x64xf16>, %w: tensor<4096x64xf16>)
    -> (tensor<64x64xf16>, tensor<4096x64xf16>) {
  %a = graph.exp %x
  %b = graph.exp %w
  func.return %a, %b : tensor<64x64xf16>, tensor<4096x64xf16>
}"""


@pytest.mark.parametrize("text", [two_kernels(tiles=60), LOADS])
def test_repeating_iterations_are_skipped_as_they_are_walked(text: str) -> None:
    byhand = "hardware.program" in text
    machine = Machine(parsed(text) if byhand else compiled(text, "davinci", True).snapshot("hardware").module)
    freed = machine.times()[0].freed
    launch = machine.program.launches[1]
    assert launch.kernel.early
    target = machine.program.target
    walked = [KernelSimulation(s, target, machine.cases, False, freed=freed).run() for s in launch.kernel.shares]
    assert max(time.cycles for time in walked) == machine.times()[1].cycles
    skipped = [KernelSimulation(s, target, machine.cases, freed=freed).run() for s in launch.kernel.shares]
    assert skipped == walked


def test_a_program_without_launches_runs() -> None:
    text = row_pipeline().replace("hardware.launch %x0, %y0 {callee = @k}", "")
    with pytest.raises(MachineError, match="nothing was written there"):
        run(parsed(text), inputs(4)[:1])
    assert analyze(parsed(text)).cycles == 0
