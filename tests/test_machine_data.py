"""What instructions do to bytes: results, traffic, poison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from machine_programs import (
    both,
    buffer_type,
    layout,
    lines,
    local,
    on_vector,
    parsed,
    product,
    program,
    row_pipeline,
    view,
)
from safetensors.numpy import save_file
from tilewright.runtime.machine import MachineOptions, MachineResult, analyze, run
from tilewright.runtime.machine.data import DataRun

Array = npt.NDArray[Any]
NUMPY = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i32": np.int32}


def execute(text: str, *inputs: Array) -> MachineResult:
    module = parsed(text)
    result = run(module, list(inputs))
    analysis = analyze(module)
    assert analysis.outputs == []
    assert (analysis.links, analysis.cycles, analysis.kernels) == (result.links, result.cycles, result.kernels)
    return result


def numbers(shape: Sequence[int], element: str = "f32") -> Array:
    values = np.random.default_rng(5).uniform(-3, 3, tuple(shape))
    return np.rint(values).astype(np.int8) if element == "i8" else values.astype(NUMPY[element])


def test_rows_through_three_engines() -> None:
    x = numbers((8, 64))
    result = execute(row_pipeline(), x)
    np.testing.assert_array_equal(result.outputs[0], np.exp(x))
    assert result.links == {"gm->ub": 2048, "ub->gm": 2048}
    (kernel,) = result.kernels
    assert (kernel.name, kernel.read_bytes, kernel.write_bytes, kernel.instructions) == ("k", 2048, 2048, 12)
    assert result.memory["ub"].peak_bytes == 2048 and result.memory["gm"].peak_bytes == 4096


@pytest.mark.parametrize("memory", ["gm", "ub"])
def test_nothing_is_allocated_after_the_start(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    execute_step = DataRun._execute

    def grow(self: DataRun, *args: Any) -> None:
        execute_step(self, *args)
        self.memories[memory].data = np.concatenate([self.memories[memory].data, np.zeros(1, np.uint8)])

    monkeypatch.setattr(DataRun, "_execute", grow)
    with pytest.raises(AssertionError, match="were allocated after the start"):
        run(parsed(row_pipeline()), [numbers((8, 64))], MachineOptions(batch=False))


def test_a_ragged_last_tile_moves_its_valid_rows() -> None:
    x = numbers((7, 64))
    result = execute(row_pipeline(valid="d0 * -2 + 7, 64", rows=7), x)
    np.testing.assert_array_equal(result.outputs[0], np.exp(x))
    assert result.links == {"gm->ub": 7 * 256, "ub->gm": 7 * 256}


def test_a_tile_without_valid_rows_moves_nothing() -> None:
    result = execute(row_pipeline(tiles=5, valid="d0 * -2 + 7, 64", rows=7), numbers((7, 64)))
    assert result.links == {"gm->ub": 7 * 256, "ub->gm": 7 * 256}


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "i8"])
def test_products_accumulate_in_the_result_type(element: str, steps: int) -> None:
    m, k, n = 32, 128, 48
    if element == "i8":  # blocks of 32 columns
        n = 64
    a, b = numbers((m, k), element), numbers((k, n), element)
    result = execute(product(m, k, n, steps, element), a, b)
    wide = np.int32 if element == "i8" else np.float32
    wanted = a.astype(wide) @ b.astype(wide)
    found = result.outputs[0]
    if element == "i8":
        np.testing.assert_array_equal(found, wanted)
    else:
        assert found.dtype == a.dtype
        np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=1e-2, atol=1e-2)
    width = a.dtype.itemsize
    assert result.links["gm->l1"] == (m * k + k * n) * width
    assert result.links["l0c->gm"] == m * n * found.dtype.itemsize


def test_one_rounding_per_instruction() -> None:
    """(1 + 2⁻¹¹) + 2⁻¹¹ in f16 stays 1: the first instruction rounds. One sum over all in f32 gives 1 + 2⁻¹⁰."""
    x = np.asarray([[1, 2.0**-11, 2.0**-11]], np.float16)
    total = 'hardware.reduce %a0, %b {monoid = "sum", axes = array<i64: 1>, engine = "vector", fresh}'
    together = execute(on_vector([((1, 3), "f16")], ((1, 1), "f16"), total), x)
    np.testing.assert_array_equal(together.outputs[0], np.float16(1 + 2.0**-10))
    kind = ((1, 16), "f16")
    adds = lines(
        'hardware.vector %a0, %a1, %b {fn = "add", engine = "vector", fresh}',
        'hardware.vector %b, %a1, %b {fn = "add", engine = "vector"}',
    )
    tiny = np.full((1, 16), 2.0**-11, np.float16)
    apart = execute(on_vector([kind, kind], kind, adds), np.ones((1, 16), np.float16), tiny)
    np.testing.assert_array_equal(apart.outputs[0], np.ones((1, 16), np.float16))


@pytest.mark.parametrize(
    ("instruction", "wanted"),
    [
        ('hardware.vector %a0, %a1, %b {fn = "mul", engine = "vector", fresh}', lambda x, r: x * r),
        ('hardware.vector %a1, %a0, %b {fn = "sub", engine = "vector", fresh}', lambda x, r: r - x),
        (
            'hardware.vector %a0, %b {fn = "max", immediates = [2.0 : f32, 0 : index], engine = "vector", fresh}',
            lambda x, r: np.maximum(2, x),
        ),
        ('hardware.fill %b {value = 3.0 : f32, engine = "vector", fresh}', lambda x, r: np.full_like(x, 3)),
        (
            'hardware.iota %b {map = affine_map<(d0, d1) -> (d0 * 10 + d1)>, engine = "vector", fresh}',
            lambda x, r: np.add.outer(np.arange(len(x)) * 10, np.arange(x.shape[1])).astype(np.float32),
        ),
    ],
)
def test_vector_instructions(instruction: str, wanted: Any) -> None:
    x, r = numbers((4, 24)), numbers((1, 24))
    if "#tile.operand" in instruction:
        instruction = instruction.replace("0 : index", "0 : index")
    result = execute(on_vector([((4, 24), "f32"), ((1, 24), "f32")], ((4, 24), "f32"), instruction), x, r)
    np.testing.assert_array_equal(result.outputs[0], wanted(x, r))


@pytest.mark.parametrize(("monoid", "wanted"), [("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod)])
@pytest.mark.parametrize(("axes", "shape"), [((1,), (4, 1)), ((0,), (1, 24)), ((0, 1), (1, 1))])
def test_reductions(monoid: str, wanted: Any, axes: tuple[int, ...], shape: tuple[int, int]) -> None:
    x = numbers((4, 24))
    written = ", ".join(map(str, axes))
    instruction = (
        f'hardware.reduce %a0, %b {{monoid = "{monoid}", axes = array<i64: {written}>, engine = "vector", fresh}}'
    )
    result = execute(on_vector([((4, 24), "f32")], (shape, "f32"), instruction), x)
    np.testing.assert_allclose(result.outputs[0], wanted(x, axis=axes, keepdims=True), rtol=1e-5, atol=1e-5)


def test_a_reduction_takes_the_valid_elements_only() -> None:
    """What lies beyond `valid` is poison and is not read."""
    x = numbers((4, 24))
    sums = 'hardware.reduce %a0, %b {monoid = "sum", axes = array<i64: 1>, engine = "vector", fresh}'
    result = execute(on_vector([((4, 24), "f32")], ((4, 1), "f32"), sums, valid="4, 10"), x)
    np.testing.assert_allclose(result.outputs[0], x[:, :10].sum(axis=1, keepdims=True), rtol=1e-5)


def test_active_regions_that_start_inside() -> None:
    """A border of zeros around what is loaded: the active region of the transfer starts at (1, 2)."""
    shape = (6, 16)
    region = {"start": "1, 2", "valid": "5, 14"}
    body = lines(
        local("p", 0, shape, "f32", "ub"),
        view("all", "p", shape, "f32", "ub"),
        view("t", "y0", shape, "f32", "gm"),
        # the source is addressed as the destination is: position (1, 2) of it is element (0, 0) of x0
        view("s", "x0", shape, "f32", "gm", layout([6, 48], [16, 4]), **region),
        view("a", "p", shape, "f32", "ub", **region),
        'hardware.fill %all {value = 0.0 : f32, engine = "mte2", fresh}',
        'hardware.dma %s, %a {engine = "mte2"}',
        both("mte2", "mte3"),
        'hardware.dma %all, %t {engine = "mte3"}',
    )
    x = numbers((6, 12))
    result = execute(program(body, [((6, 12), "f32")], [(shape, "f32")]), x)
    wanted = np.zeros(shape, np.float32)
    wanted[1:5, 2:14] = np.lib.stride_tricks.as_strided(x, (6, 14), (48, 4), writeable=False)[1:5, 2:14]
    np.testing.assert_array_equal(result.outputs[0], wanted)
    assert result.links["gm->ub"] == 4 * 64  # four runs of 48 bytes, in granules of 32


def test_on_chip_links_count_the_wider_side() -> None:
    result = execute(product(32, 64, 48), numbers((32, 64), "f16"), numbers((64, 48), "f16"))
    assert result.links["l1->l0a"] == 32 * 64 * 2
    assert result.links["l0c->gm"] == 32 * 48 * 2  # off chip: the bytes on the bus, not the f32 they come from


def constants_and_weights(key: str = "w") -> str:
    """y = c · w, both from the program itself."""
    shape = (2, 16)
    kind = buffer_type(shape, "f32", "gm")
    body = lines(
        *(local(name, at, shape, "f32", "ub") for name, at in (("p", 0), ("q", 128), ("r", 256))),
        *(view(f"{n}s", n, shape, "f32", "gm") for n in ("c", "w", "y")),
        *(view(f"{n}d", n, shape, "f32", "ub") for n in "pqr"),
        'hardware.dma %cs, %pd {engine = "mte2"}',
        'hardware.dma %ws, %qd {engine = "mte2"}',
        both("mte2", "vector"),
        'hardware.vector %pd, %qd, %rd {fn = "mul", engine = "vector"}',
        both("vector", "mte3"),
        'hardware.dma %rd, %ys {engine = "mte3"}',
    )
    return lines(
        'module attributes {tilewright.target = "davinci"} {',
        f"hardware.kernel @k(%c: {kind}, %w: {kind}, %y: {kind}) {{",
        body,
        "}",
        'hardware.program {sym_name = "main"} ({',
        '%c = hardware.buffer {offset = 0 : i64, role = "constant", value = dense<2.0> : tensor<2x16xf32>} : ' + kind,
        f'%w = hardware.buffer {{offset = 128 : i64, role = "weight", file = "w.safetensors", key = "{key}"}} : {kind}',
        '%y = hardware.buffer {offset = 256 : i64, role = "output", index = 0 : i64} : ' + kind,
        "hardware.launch %c, %w, %y {callee = @k}",
        "})",
        "}",
    )


def test_constants_and_weights(tmp_path: Path) -> None:
    w = numbers((2, 16))
    save_file({"w": w}, tmp_path / "w.safetensors")
    result = run(parsed(constants_and_weights()), [], MachineOptions(weights_dir=tmp_path))
    np.testing.assert_array_equal(result.outputs[0], w * 2)
    loaded = run(parsed(constants_and_weights()), [], loader=lambda file, key: w + 1)
    np.testing.assert_array_equal(loaded.outputs[0], (w + 1) * 2)


def test_launches_share_off_chip_bytes() -> None:
    """Two launches of one kernel through an intermediate; an alias is the same bytes in another shape."""
    text = row_pipeline(tiles=2)
    kind, flat = buffer_type((4, 64), "f32", "gm"), buffer_type((256,), "f32", "gm")
    text = text.replace(
        "hardware.launch %x0, %y0 {callee = @k}",
        lines(
            f'%t = hardware.buffer {{offset = 8192 : i64, role = "workspace"}} : {flat}',
            f"%u = hardware.alias %t : {kind}",
            "hardware.launch %x0, %u {callee = @k}",
            "hardware.launch %u, %y0 {callee = @k}",
        ),
    )
    x = numbers((4, 64))
    result = execute(text, x)
    np.testing.assert_array_equal(result.outputs[0], np.exp(np.exp(x)))
    assert [kernel.name for kernel in result.kernels] == ["k", "k"]
    assert result.cycles == 2 * result.kernels[0].cycles
    assert result.links == {"gm->ub": 2048, "ub->gm": 2048}
