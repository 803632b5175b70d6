"""Predicted traffic equals what the machine counts, and takes no time for long loops (semantics 5.4, I6)."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine_programs import dense, fractal, lines, local, loop, parsed, program, view
from tile_kernels import RAGGED_MAP, load, matmul
from tilewright.dialects.errors import UserError
from tilewright.lowering.pipeline import parse_pipeline, run_pipeline
from tilewright.lowering.traffic import predict, predict_kernels
from tilewright.runtime.machine import analyze
from xdsl.dialects.builtin import ModuleOp


def hardware_of(text: str, target: str = "davinci") -> ModuleOp:
    module = load(text, target)
    run_pipeline(module, parse_pipeline("place,bufferize,plan,emit,sync"))
    return module


def copies(trips: int, tile: int, extent: int, columns: int, granule: int = 32) -> str:
    """Rows in tiles of `tile`, cut at `extent`, columns of 40 f16 in tiles of 16: gm → ub."""
    shape = (tile, 16)
    rows = f"#tile.layout<[{tile}, {80}], [16, 2]>"
    body = lines(
        view("a", "x0", shape, "f16", "gm", rows, f"d0 * {80 * tile} + d1 * 32", ("i", "j")),
        view("b", "t", shape, "f16", "ub", None, "0", ("i", "j"), f"{extent} - d0 * {tile}, {columns} - d1 * 16"),
        'hardware.dma %a, %b {engine = "mte2"}',
    )
    nest = loop("i", trips, loop("j", 3, body))
    target = f"davinci{{memory.gm.granule={granule}}}"
    return program(lines(local("t", 0, shape, "f16", "ub"), nest), [((trips * tile, 40), "f16")], [], target)


@pytest.mark.parametrize("target", ["davinci", "ascend910b", "unified"])
@pytest.mark.parametrize("text", [RAGGED_MAP, matmul(50, 70, 40, (16, 32, 16))])
def test_kernels_by_hand(text: str, target: str) -> None:
    module = hardware_of(text, target)
    assert predict(module) == analyze(module).links


@given(
    trips=st.integers(1, 9),
    tile=st.sampled_from([1, 4, 16]),
    missing=st.integers(0, 20),
    columns=st.integers(1, 48),
    granule=st.sampled_from([1, 32, 64]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_ragged_copies(trips: int, tile: int, missing: int, columns: int, granule: int) -> None:
    module = parsed(copies(trips, tile, max(1, trips * tile - missing), columns, granule))
    assert predict(module) == analyze(module).links


def test_a_ragged_copy_by_hand() -> None:
    # 10 rows of 20 valid columns in tiles of 4 × 16: rows 4, 4, 2; runs of 32 and of 8 → 32 bytes; the third tile of
    # columns is empty.
    assert predict(parsed(copies(3, 4, 10, 20))) == {"gm->ub": 10 * 32 + 10 * 32}


def test_long_loops_take_no_time() -> None:
    start = time.perf_counter()
    links = predict(parsed(copies(100_000, 16, 1_599_990, 40)))
    assert links == {"gm->ub": 1_599_990 * (32 + 32 + 32)}
    assert time.perf_counter() - start < 1


def test_loops_of_varying_length() -> None:
    body = lines(
        view("a", "x0", (8,), "f32", "gm", None, "d0 * 32", ("j",)),
        view("b", "t", (8,), "f32", "ub"),
        'hardware.dma %a, %b {engine = "mte2"}',
    )
    inner = f"hardware.for %j = 0 to affine_map<(d0) -> (d0 + 1)>(%i) {{\n{body}\n}}"
    module = parsed(program(lines(local("t", 0, (8,), "f32", "ub"), loop("i", 5, inner)), [((40,), "f32")], []))
    assert predict(module) == analyze(module).links == {"gm->ub": 15 * 32}


@pytest.mark.parametrize("start", [0, 3, 8, 16, 20])
def test_regions_that_begin_inside_blocks(start: int) -> None:
    shape, blocks = (32, 32), fractal((32, 32), "f16")
    body = lines(
        view("a", "x0", shape, "f16", "gm", dense(shape, "f16")),
        view("b", "t", shape, "f16", "l1", blocks, start=f"{start}, {start}"),
        'hardware.dma %a, %b {engine = "mte2"}',
        view("c", "t", shape, "f16", "l1", blocks, start=f"{start}, 0"),
        view("d", "u", shape, "f16", "l0a", blocks),
        'hardware.dma %c, %d {engine = "mte1"}',
    )
    locals_ = lines(
        local("t", 0, shape, "f16", "l1", blocks),
        local("u", 0, shape, "f16", "l0a", blocks),
    )
    module = parsed(program(lines(locals_, body), [(shape, "f16")], []))
    assert predict(module) == analyze(module).links


def test_each_launch_counts() -> None:
    module = hardware_of(RAGGED_MAP)
    once = predict(module)
    text = str(module)
    launch = next(line for line in text.splitlines() if "hardware.launch" in line)
    twice = load_generic(text.replace(launch, launch + "\n" + launch))
    assert [name for name, _ in predict_kernels(twice)] == ["k", "k"]
    assert predict(twice) == {link: 2 * number for link, number in once.items()} == analyze(twice).links


def load_generic(text: str) -> ModuleOp:
    return parsed(text)


def test_a_missing_move_is_named() -> None:
    body = lines(
        view("a", "t", (8,), "f32", "ub"),
        view("b", "u", (8,), "f32", "l0a"),
        'hardware.dma %a, %b {engine = "mte1"}',
    )
    locals_ = lines(local("t", 0, (8,), "f32", "ub"), local("u", 0, (8,), "f32", "l0a"))
    with pytest.raises(UserError, match="no move from 'ub' to 'l0a'"):
        predict(parsed(program(lines(locals_, body), [], [])))
