"""Lookups as rows read by address: every level, and that nothing but the touched rows is moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sync_programs import event_keys, without_event
from tilewright.dialects import hardware
from tilewright.dialects.layout import Layout
from tilewright.dialects.target import load_target
from tilewright.dialects.transfer import transfer_rows
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import MachineError, MachineOptions, check_order

import tilewright
from tilewright import Program

BAG = """func.func @bag(%t: tensor<500x64xf16>, %i: tensor<13x5xi32>, %w: tensor<13x5x1xf16>) -> tensor<13x64xf16> {
  %r = graph.gather %t, %i {axis = 0 : i64}
  %a = graph.mul %r, %w
  %s = graph.reduce_sum %a {axes = [1]}
  func.return %s : tensor<13x64xf16>
}"""
NORM = """func.func @norm(%t: tensor<200x64xf16>, %i: tensor<2x11xi32>, %g: tensor<64xf16>) -> tensor<2x11x64xf16> {
  %r = graph.gather %t, %i {axis = 0 : i64}
  %o = graph.rms_norm %r, %g
  func.return %o : tensor<2x11x64xf16>
}"""
PRODUCT = """func.func @product(%t: tensor<600x32xf16>, %i: tensor<50xi32>, %w: tensor<32x48xf16>)
    -> tensor<50x48xf16> {
  %r = graph.gather %t, %i {axis = 0 : i64}
  %o = graph.matmul %r, %w
  func.return %o : tensor<50x48xf16>
}"""
PAGES = """func.func @pages(%q: tensor<2x24x32xf16>, %k: tensor<40x16x32xf16>, %v: tensor<40x16x32xf16>,
    %i: tensor<2x6xi32>)
    -> tensor<2x24x32xf16> {
  %kb = graph.gather %k, %i {axis = 0 : i64}
  %vb = graph.gather %v, %i {axis = 0 : i64}
  %kr = graph.reshape %kb : tensor<2x96x32xf16>
  %vr = graph.reshape %vb : tensor<2x96x32xf16>
  %s = graph.matmul %q, %kr {transpose_b}
  %p = graph.softmax %s {axis = -1}
  %o = graph.matmul %p, %vr
  func.return %o : tensor<2x24x32xf16>
}"""
MIDDLE = """func.func @middle(%t: tensor<3x200x32xf16>, %i: tensor<21xi32>) -> tensor<3x21x32xf16> {
  %r = graph.gather %t, %i {axis = 1 : i64}
  %o = graph.exp %r
  func.return %o : tensor<3x21x32xf16>
}"""


def inputs_of(program: Program, rows: int, seed: int = 0) -> list[npt.NDArray[Any]]:
    """Indices count from both ends."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(-rows, rows, spec.shape, np.int32)
        if spec.element.kind == "int"
        else rng.standard_normal(spec.shape).astype(spec.element.numpy)
        for spec in program.inputs
    ]


def gathers(program: Program) -> list[hardware.DmaOp]:
    return [op for op in program.module.walk() if isinstance(op, hardware.DmaOp) and op.gather is not None]


@pytest.mark.parametrize("target", ["davinci", "unified{memory.scratchpad.bytes=8KiB}", "trainium"])
@pytest.mark.parametrize(
    ("text", "rows"), [(BAG, 500), (NORM, 200), (PRODUCT, 600), (PAGES, 40), (MIDDLE, 200)],
    ids=["bag", "norm", "product", "pages", "middle"],
)  # fmt: skip
def test_one_kernel_reads_the_touched_rows(text: str, rows: int, target: str) -> None:
    program = tilewright.compile(text, target=target, objective="traffic")
    assert gathers(program)
    found = tilewright.validate(program, inputs=inputs_of(program, rows))
    assert found.blame is None and found.failure is None
    (kernel,) = program.analyze().kernels
    assert program.compulsory is not None
    # Granules of a few indices, weights and rows; the tables are 6 to 20 times the touched rows.
    assert kernel.read_bytes + kernel.write_bytes <= 1.15 * sum(program.compulsory) or text is PRODUCT
    run = program.run(inputs_of(program, rows, 1))
    assert predict(program.module) == run.machine.links


@pytest.mark.parametrize("interleaving", ["delayed", "random"])
def test_every_interleaving_gives_the_same(interleaving: Any) -> None:
    program = tilewright.compile(BAG, target="davinci{memory.ub.bytes=8KiB}")
    inputs = inputs_of(program, 500)
    plain = program.run(inputs).outputs
    other = program.run(inputs, check=MachineOptions(interleaving=interleaving, seed=3)).outputs
    for name, value in plain.items():
        assert np.array_equal(value, other[name])


def test_cores_share_the_rows() -> None:
    program = tilewright.compile(BAG, target="unified{cores=4 memory.scratchpad.bytes=8KiB}")
    assert tilewright.validate(program, inputs=inputs_of(program, 500)).blame is None


@given(
    rows=st.integers(30, 90), count=st.integers(1, 12), width=st.sampled_from([1, 5, 16, 40]),
    tail=st.sampled_from(["", "exp", "sum"]), kind=st.sampled_from(["f16", "f32"]), data=st.data(),
)  # fmt: skip
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_rows(rows: int, count: int, width: int, tail: str, kind: str, data: st.DataObject) -> None:
    ops = {
        "": f"func.return %r : tensor<{count}x{width}x{kind}>",
        "exp": f"%o = graph.exp %r\n func.return %o : tensor<{count}x{width}x{kind}>",
        "sum": f"%o = graph.reduce_sum %r {{axes = [0]}}\n func.return %o : tensor<{width}x{kind}>",
    }[tail]
    result = f"{width}x{kind}" if tail == "sum" else f"{count}x{width}x{kind}"
    text = (
        f"func.func @f(%t: tensor<{rows}x{width}x{kind}>, %i: tensor<{count}xi32>) -> tensor<{result}> {{\n"
        f" %r = graph.gather %t, %i {{axis = 0 : i64}}\n {ops}\n}}"
    )
    program = tilewright.compile(text, target="unified{memory.scratchpad.bytes=1KiB}", objective="traffic")
    table, _ = inputs_of(program, rows)
    index = np.array(data.draw(st.lists(st.integers(-rows, rows - 1), min_size=count, max_size=count)), np.int32)
    (found,) = program.run([table, index]).outputs.values()
    wide = table.astype(np.float64)[index]
    wanted = {"": wide, "exp": np.exp(wide), "sum": wide.sum(0)}[tail]
    assert np.allclose(found, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("wrong", [500, -501, 1 << 20])
def test_an_index_outside_is_an_error_with_its_place(wrong: int) -> None:
    program = tilewright.compile(BAG, target="unified")
    inputs = inputs_of(program, 500)
    inputs[1][7, 2] = wrong
    shown = wrong + 500 if wrong < 0 else wrong
    with pytest.raises(tilewright.SourceError, match=rf"<text>:2:.*index {shown}, element .*is none of the 500 rows"):
        program.run(inputs)


def test_removing_an_event_around_a_gather_is_a_race() -> None:
    program = tilewright.compile(BAG, target="davinci{memory.ub.bytes=8KiB}")
    check_order(program.module)
    (engine,) = {op.engine.data for op in gathers(program)}
    keys = [key for key in event_keys(program.module) if "vector" in key and engine in key]
    assert keys
    for key in keys:
        with pytest.raises(MachineError):
            check_order(without_event(program.module, key))


def test_dumps_go_on_from_every_level() -> None:
    program = tilewright.compile(BAG, target="davinci")
    for after in ("decompose", "fuse", "schedule", "tile", "bufferize", "plan", "emit"):
        again = tilewright.compile(program.ir(after=after))
        assert again.ir() == program.ir(), after


def test_a_small_table_or_a_machine_without_gather_compares() -> None:
    small = BAG.replace("500x64", "20x64")
    assert not gathers(tilewright.compile(small, target="unified", objective="traffic"))
    without = load_target("unified")
    moves = [move.model_copy(update={"gather": None}) for move in without.moves]
    plain = without.model_copy(update={"moves": tuple(moves)})
    assert not plain.gathers and load_target("unified").gathers


def test_bytes_of_rows_by_hand() -> None:
    target = load_target("davinci")
    move = target.move("gm", "ub")
    assert move is not None
    table = Layout.strided((100, 1, 20), (40, 2, 2), 2)
    rows = transfer_rows(target, move, table, Layout.row_major((8, 20), 2, 32), ((0, 7), (0, 20)))
    # 7 rows of 40 bytes, 64 on the bus each, and a row's cycles beyond those of its bytes.
    assert (rows.source_bytes, rows.bus_bytes, rows.rows) == (280, 448, 7)
    whole = transfer_rows(target, move, table, Layout.row_major((8, 20), 2, 32), ((0, 8), (0, 20)))
    assert whole.cycles(target) - rows.cycles(target) >= (move.gather or 0) > 0


LOAD = """tile.kernel @k(%0: tensor<9x8xf32>, %1: tensor<4xi32>) -> (%2: tensor<4x8xf32>) {{
  %3 = tile.load %1 {{map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>}} : !tile.tile<4xi32>
  %4 = tile.slice %3 {{map = affine_map<(d0, d1) -> (d0)>, valid = affine_map<() -> (4, 1)>}} : !tile.tile<4x1xi32>
  %5 = tile.load %0, {load}, valid = affine_map<() -> (4, 8)>}} : !tile.tile<4x8xf32>
  tile.store %5, %2 {{map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (4, 8)>}}
}}
func.func @f(%x: tensor<9x8xf32>, %i: tensor<4xi32>) -> tensor<4x8xf32> {{
  %y = tile.launch %x, %i {{callee = @k}} : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}}"""
GOOD = "%4 {gather = 0 : i64, map = affine_map<(d0, d1) -> (0, d1)>"


def test_a_kernel_by_hand() -> None:
    program = tilewright.compile(LOAD.format(load=GOOD), target="unified")
    table, index = np.arange(72, dtype=np.float32).reshape(9, 8), np.array([8, 0, 0, 3], np.int32)
    (found,) = program.run([table, index]).outputs.values()
    assert np.array_equal(found, table[index])


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ("%4 {gather = 2 : i64, map = affine_map<(d0, d1) -> (0, d1)>", "along dimension 2 of 2"),
        ("%4 {gather = 0 : i64, map = affine_map<(d0, d1) -> (d0, d1)>", "map is 0 in dimension 0"),
        ("%3 {gather = 0 : i64, map = affine_map<(d0, d1) -> (0, d1)>", "cannot broadcast"),
        ("%4 {map = affine_map<(d0, d1) -> (0, d1)>", "takes 1 tiles, got 2"),
        (GOOD + ", fill = 0.0 : f32", "neither 'inside' nor 'fill'"),
    ],
)
def test_loads_that_are_rejected(load: str, message: str) -> None:
    with pytest.raises(tilewright.SourceError, match=message):
        tilewright.load(LOAD.format(load=load))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hardware.view<500x1x1x64xf16", "hardware.view<500x2x1x64xf16", "have each extent between them"),
        ("gather, engine", "engine", "input views and one output|takes 1 input"),
    ],
)
def test_transfers_that_are_rejected(old: str, new: str, message: str) -> None:
    text = tilewright.compile(BAG, target="davinci").ir()
    if old not in text:
        pytest.skip("another schedule")
    with pytest.raises(tilewright.SourceError, match=message):
        tilewright.load(text.replace(old, new))


def test_take_is_strict() -> None:
    text = """func.func @f(%t: tensor<5x3xf32>, %i: tensor<2x{kind}>) -> tensor<2x3xf32> {{
  %r = graph.take %t, %i {{axis = 0 : i64}}
  func.return %r : tensor<2x3xf32>
}}"""
    with pytest.raises(tilewright.SourceError, match="takes i32 as indices, got i64"):
        tilewright.load(text.format(kind="i64"))
    program = tilewright.compile(text.format(kind="i32"), target="unified")
    table = np.ones((5, 3), np.float32)
    with pytest.raises(tilewright.SourceError, match="index -1, element"):
        program.run([table, np.array([0, -1], np.int32)])
    with pytest.raises(tilewright.SourceError, match="index -1 is none of the 5 rows"):
        program.reference([table, np.array([0, -1], np.int32)])
