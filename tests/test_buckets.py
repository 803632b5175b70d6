"""Programs for several sizes: padded runs are the runs of the true sizes, or padding is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runner import tilewright as shell
from onnx_models import write
from tilewright.runtime.reference import evaluate

import tilewright
from tilewright.buckets import Buckets
from tilewright.tolerance import relative_error

SEQ = '<["seq"]>'


def program(body: str, inputs: str = "%x: tensor<?x3xf32, #graph.dims{SEQ}>", results: str = "") -> str:
    """A function of `inputs` that returns %y; the result type is written by `results`."""
    text = f"func.func @main({inputs}) -> ({results}) {{\n{body}\n  func.return %y : {results}\n}}\n"
    return text.replace("{SEQ}", SEQ)


ROWS = "tensor<?x3xf32, #graph.dims{SEQ}>"
HARMLESS = {
    "elementwise": ("%y = graph.exp %x", ROWS),
    "softmax of rows": ("%y = graph.softmax %x {axis = 1 : i64}", ROWS),
    "softmax of columns": ("%y = graph.softmax %x {axis = 0 : i64}", ROWS),
    "sum": ("%y = graph.reduce_sum %x {axes = array<i64: 0>}", "tensor<3xf32>"),
    "mean": ("%y = graph.reduce_mean %x {axes = array<i64: 0>}", "tensor<3xf32>"),
    "greatest": ("%y = graph.reduce_max %x {axes = array<i64: 0, 1>}", "tensor<f32>"),
    "least": ("%y = graph.reduce_min %x {axes = array<i64: 0>}", "tensor<3xf32>"),
    "product": ("%y = graph.reduce_prod %x {axes = array<i64: 0>}", "tensor<3xf32>"),
    "place of the greatest": ("%y = graph.arg_max %x {axis = 0 : i64}", "tensor<1x3xi64>"),
    "gram matrix": (
        "%t = graph.transpose %x {permutation = array<i64: 1, 0>}\n%y = graph.matmul %t, %x",
        "tensor<3x3xf32>",
    ),
    "attention": (
        "%s = graph.matmul %x, %x {transpose_b}\n%p = graph.softmax %s {axis = -1 : i64}\n%y = graph.matmul %p, %x",
        ROWS,
    ),
    "running sum": ("%y = graph.cum_sum %x {axis = 0 : i64}", ROWS),
    "variance over rows": (
        "%m = graph.reduce_mean %x {axes = array<i64: 0>, keepdims}\n%c = graph.sub %x, %m\n%q = graph.square %c\n"
        "%y = graph.reduce_mean %q {axes = array<i64: 0>}",
        "tensor<3xf32>",
    ),
    "first row": ("%y = graph.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 1, 3>}", "tensor<1x3xf32>"),
}


def checked(text: str, size: int, bucket: int = 5) -> None:
    """Compares the padded program, in primitives, its padding NaN, with the program of the true size."""
    found = tilewright.compile(text, dims={"seq": [bucket]}, to="decompose")
    assert isinstance(found, Buckets)
    (one,) = found.buckets
    x = np.random.default_rng(size).standard_normal((size, 3)).astype(np.float32)
    run = found.run([x])
    garbage = [np.full([int(d) for d in spec.shape], np.nan, np.float32) for spec in one.program.inputs[:1]]
    garbage[0][:size] = x
    wild = one.program.run([*garbage, *run.run.inputs[1:]])
    wanted = evaluate(tilewright.load(text, {"seq": size}).op, [x], "native")
    for value, (name, padded), outcome in zip(wanted, run.outputs.items(), wild.outputs.values(), strict=True):
        assert padded.shape == value.shape, name
        assert relative_error(padded, value) < 1e-6
        assert relative_error(outcome[tuple(slice(size) for size in value.shape)], value) < 1e-6
    assert run.waste == pytest.approx(1 - size / bucket)


@pytest.mark.parametrize("size", [2, 4, 5])
@pytest.mark.parametrize("name", HARMLESS)
def test_padding_changes_nothing_whatever_it_holds(name: str, size: int) -> None:
    body, results = HARMLESS[name]
    checked(program(body, results=results), size)


REFUSED = {
    "last row": "i = Constant <value_ints: ints = [-1]> () y = Gather (x, i)",
    "rows behind rows": "y = Concat <axis = 0> (x, x)",
    "rows in reverse": (
        "a = Constant <value_ints: ints = [-1]> () b = Constant <value_ints: ints = [-99]> () "
        "c = Constant <value_ints: ints = [0]> () y = Slice (x, a, b, c, a)"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_padding_that_would_change_results_is_refused_at_the_op(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", "g (float[seq, 3] x) => (float[a, b] y) { " + REFUSED[name] + " }")
    with pytest.raises(tilewright.SourceError, match="padding 'seq' may change the results"):
        tilewright.compile(path, dims={"seq": [5]}, to="decompose")


def test_windows_over_padding_are_refused() -> None:
    """The padding of the true size is zeros, that of the bucket is what the program makes of zeros: exp 0 = 1."""
    text = program(
        "%e = graph.exp %x\n%p = graph.pad %e {low = array<i64: 1, 0>, high = array<i64: 1, 0>}\n"
        "%w = graph.window %p {axes = array<i64: 0>, sizes = array<i64: 3>}\n"
        "%y = graph.reduce_sum %w {axes = array<i64: 2>}",
        results=ROWS,
    )
    with pytest.raises(tilewright.SourceError, match=r"<text>:3:.*padding 'seq' may change") as caught:
        tilewright.compile(text, dims={"seq": [5]}, to="decompose")
    assert "graph.pad %e" in str(caught.value)


def test_two_dimensions_that_become_one_are_refused_where_both_are_padded(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.onnx",
        "g (float[batch, seq, 2] x) => (float[a, 2] y) "
        "{ s = Constant <value_ints: ints = [-1, 2]> () y = Reshape (x, s) }",
    )
    with pytest.raises(tilewright.SourceError, match="padding 'seq' may change the results"):
        tilewright.compile(path, dims={"batch": [3], "seq": [4]}, to="decompose")
    found = tilewright.compile(path, dims={"batch": [1, 3], "seq": 4}, to="decompose")
    assert isinstance(found, Buckets)
    x = np.arange(16, dtype=np.float32).reshape(2, 4, 2)
    assert np.array_equal(found.run([x]).outputs["y"], x.reshape(8, 2))


def table_model(path: Path) -> Path:
    """Rows of a table and a mask that both follow the number of words."""
    return write(
        path,
        """g (float[seq, 4] x) => (float[seq, 4] y) {
             shape = Shape (x)  zero = Constant <value_int: int = 0> ()  one = Constant <value_int: int = 1> ()
             n = Gather (shape, zero)  order = Range (zero, n, one)
             rows = Gather (table, order)  sum = Add (x, rows)
             product = MatMul (sum, w)  y = Relu (product)
           }""",
        table=np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32),
        w=np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32),
    )


def test_buckets_share_weights_and_take_each_size(tmp_path: Path) -> None:
    path = table_model(tmp_path / "m.onnx")
    found = tilewright.compile(path, dims={"seq": [3, 8]}, to="decompose")
    assert isinstance(found, Buckets)
    small, large = (bucket.program.source.weights for bucket in found.buckets)
    assert small.keys() == large.keys() and all(small[key] is large[key] for key in small)
    for size in (1, 3, 4, 8):
        x = np.random.default_rng(size).standard_normal((size, 4)).astype(np.float32)
        run = found.run([x])
        (wanted,) = evaluate((true := tilewright.load(path, {"seq": size})).op, [x], "native", true.weight_reader())
        assert run.bucket.sizes == {"seq": 3 if size <= 3 else 8}
        assert relative_error(run.outputs["y"], wanted) < 1e-6


def test_what_fits_no_bucket_is_said() -> None:
    text = (
        "func.func @main(%a: tensor<?xf32, #graph.dims{SEQ}>, %b: tensor<?xf32, #graph.dims{SEQ}>) -> "
        "(tensor<?xf32, #graph.dims{SEQ}>) {\n%y = graph.add %a, %b\nfunc.return %y : "
        "tensor<?xf32, #graph.dims{SEQ}>\n}\n"
    )
    found = tilewright.compile(text.replace("{SEQ}", SEQ), dims={"seq": [2, 4]}, to="decompose")
    assert isinstance(found, Buckets)
    given: list[tuple[Any, str]] = [
        ([np.zeros(5, np.float32)] * 2, "dimension 'seq' is 5; its buckets are 2, 4"),
        ([np.zeros(3, np.float32), np.zeros(4, np.float32)], "'seq' is 3 in input 'a' and 4 in 'b'"),
        ([np.zeros((3, 1), np.float32)] * 2, "'a' has 2 dimensions"),
        ([np.zeros(3, np.float64)] * 2, "float64"),
        ({"a": np.zeros(3, np.float32)}, "'b' is missing"),
        ([np.zeros(3, np.float32)], "takes 2 inputs, got 1"),
    ]
    for inputs, message in given:
        with pytest.raises(tilewright.SourceError, match=message):
            found.run(inputs)
    for sizes, message in (([0, 4], "at least 1"), ([], "at least 1")):
        with pytest.raises(tilewright.SourceError, match=message):
            tilewright.compile(text.replace("{SEQ}", SEQ), dims={"seq": sizes})
    with pytest.raises(tilewright.SourceError, match="sec"):
        tilewright.compile(text.replace("{SEQ}", SEQ), dims={"seq": 4, "sec": [4]})


def test_the_shell_takes_several_sizes(tmp_path: Path) -> None:
    text = program("%y = graph.exp %x", results=ROWS)
    (tmp_path / "m.mlir").write_text(text)
    x = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "wanted.npy", np.exp(x))
    options = ("--dim", "seq=2,4", "--input", f"x={tmp_path / 'x.npy'}")
    saved = ("--expect", f"y={tmp_path / 'wanted.npy'}", "--save", f"y={tmp_path / 'y.npy'}")
    done = shell("run", tmp_path / "m.mlir", *options, *saved)
    assert done.code == 0, done.err
    assert "seq=3 in the bucket seq=4: 25.0% padding" in done.out and "for 2 buckets" in done.out
    assert np.allclose(np.load(tmp_path / "y.npy"), np.exp(x))
    assert shell("run", tmp_path / "m.mlir", *options, "--json", "-").out.count('"waste": 0.25') == 1
    for command in (
        ("compile", tmp_path / "m.mlir", *options[:2]),
        ("run", tmp_path / "m.mlir", *options, "--random", 0),
    ):
        done = shell(*map(str, command))
        assert done.code != 0 and "several sizes" in done.err


def test_the_machine_runs_the_bucket() -> None:
    body, results = HARMLESS["attention"]
    text = program(body, results=results)
    found = tilewright.compile(text, dims={"seq": [4]})
    assert isinstance(found, Buckets)
    x = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    run = found.run({"x": x})
    (wanted,) = evaluate(tilewright.load(text, {"seq": 3}).op, [x], "f64")
    assert relative_error(run.outputs["y"], wanted) < 1e-6
    assert run.errors()["y"] < 1e-6
    assert run.run.cycles > 0
    assert len(run.run.kernels) == 1, "masks are part of the kernel"
    report = json.loads(json.dumps(run.report()))
    assert report["bucket"] == {"sizes": {"seq": 3}, "padded": {"seq": 4}, "waste": 0.25}
    assert report["outputs"][0]["shape"] == [3, 3]
