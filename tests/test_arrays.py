"""Arrays of other packages as inputs, results for other packages, and what is no array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright

TEXT = """func.func @main(%x: tensor<4x8xf16>, %n: tensor<8xi32>) -> (tensor<4x8xf16>, tensor<8xi32>) {
  %y = graph.add %x, %x
  %m = graph.add %n, %n
  func.return %y, %m : tensor<4x8xf16>, tensor<8xi32>
}
"""
X = np.arange(32, dtype=np.float16).reshape(4, 8)
N = np.arange(8, dtype=np.int32)


class ByArray:
    """An array that NumPy is given a copy of, as by torch, pandas, JAX."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values.astype(dtype or self.values.dtype)


class ByDlpack:
    """An array that shares its memory, and nothing else."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


class Elsewhere(ByDlpack):
    """On a device that NumPy cannot read."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("the array is on a GPU\nand stays there")


@pytest.fixture(scope="module")
def program() -> tilewright.Program:
    return tilewright.compile(TEXT, "unified", to="graph")


def run(program: tilewright.Program, inputs: Any) -> dict[str, np.ndarray]:
    return dict(program.run(inputs, level="graph").outputs)


@pytest.mark.parametrize("kind", [ByArray, ByDlpack, np.asarray])
def test_arrays_of_any_package(kind: Any, program: tilewright.Program) -> None:
    for inputs in ([kind(X), kind(N)], {"x": kind(X), "n": kind(N)}):
        found = run(program, inputs)
        np.testing.assert_array_equal(found["y"], X + X)
        np.testing.assert_array_equal(found["m"], N + N)
    with pytest.raises(tilewright.SourceError, match="elements of 'float32', the program has f16"):
        run(program, [kind(X.astype(np.float32)), kind(N)])


def test_arrays_of_torch(program: tilewright.Program) -> None:
    torch = pytest.importorskip("torch")
    found = run(program, [torch.from_numpy(X.copy()), torch.from_numpy(N.copy())])
    np.testing.assert_array_equal(found["y"], X + X)
    assert torch.equal(torch.from_dlpack(found["m"]), torch.from_numpy(N + N))


def test_results_go_to_other_packages() -> None:
    """Of every level, without a copy."""
    program = tilewright.compile(TEXT, "unified")
    for level in ("graph", "tile", "hardware"):
        for array in program.run([X, N], level=level).outputs.values():
            shared = np.from_dlpack(ByDlpack(array))
            assert np.shares_memory(shared, array) and shared.dtype == array.dtype


def test_bf16_of_other_packages() -> None:
    program = tilewright.compile(TEXT.replace("f16", "bf16"), "unified", to="graph")
    values = X.astype(ml_dtypes.bfloat16)
    assert run(program, [ByArray(values), N])["y"].dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (Elsewhere(X), "input 'x' cannot be read as an array: the array is on a GPU$"),
        ([[1.0, 2.0], [3.0]], "input 'x' cannot be read as an array"),
        ("text", "input 'x' has elements of '<U4', which are no numbers"),
        (None, "input 'x' has elements of 'object', which are no numbers"),
        ([[1e6] * 8] * 4, "input 'x' has 1000000.0, which is no f16"),
        ([[1j] * 8] * 4, "which are no numbers"),
    ],
)
def test_what_is_no_array(x: object, message: str, program: tilewright.Program) -> None:
    with pytest.raises(tilewright.SourceError, match=message):
        run(program, {"x": x, "n": N})


@pytest.mark.parametrize("n", [[0.5] * 8, [1 << 40] * 8, [float("nan")] * 8])
def test_numbers_that_would_become_others(n: list[float], program: tilewright.Program) -> None:
    with pytest.raises(tilewright.SourceError, match=r"input 'n' has .*, which is no i32"):
        run(program, [X, n])


def test_lists_convert(program: tilewright.Program) -> None:
    found = run(program, [X.astype(float).tolist(), [float(n) for n in N]])
    np.testing.assert_array_equal(found["y"], X + X)
    infinite = [[float("inf")] * 8] * 4
    assert np.isinf(run(program, [infinite, N.tolist()])["y"]).all()


@pytest.mark.parametrize("inputs", [X, ByArray(X), ByDlpack(X), 7, iter([X, N])])
def test_one_array_is_no_list_of_inputs(inputs: object, program: tilewright.Program) -> None:
    with pytest.raises(tilewright.SourceError, match="inputs are a list of arrays, or arrays by name"):
        run(program, inputs)


def test_constants_of_a_model(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])], "g",
        [value("x", kinds.FLOAT, [4, 6]), value("shape", kinds.INT64, [2])], [value("y", kinds.FLOAT, None)],
    )  # fmt: skip
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    module = tilewright.load(tmp_path / "m.onnx", constants={"shape": ByDlpack(np.array([3, 8]))})
    assert str(module.outputs[0]) == "y: 3x8xf32"
    with pytest.raises(tilewright.SourceError, match="constant 'shape' cannot be read as an array"):
        tilewright.load(tmp_path / "m.onnx", constants={"shape": [[1, 2], [3]]})
