"""ONNX models as programs: shapes, names, weights, functions, control flow; and everything that can be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.reference
import pytest
from cli_runner import tilewright as command
from onnx import TensorProto, helper, numpy_helper
from onnx_models import write
from tilewright.frontend.importer import OnnxError, hint
from tilewright.frontend.operators import OPERATORS
from tilewright.runtime.reference import evaluate

import tilewright

ROOT = Path(__file__).parent.parent
RNG = np.random.default_rng(0)
ATTENTION = """g (float[batch, seq, 8] x) => (float[batch, seq, 8] y) {
    sizes = Shape(x)
    zero = Constant<value = int64 {0}>()
    first = Gather(sizes, zero)
    axis = Constant<value = int64[1] {0}>()
    batch = Unsqueeze(first, axis)
    rest = Constant<value = int64[3] {-1, 2, 4}>()
    shape = Concat<axis = 0>(batch, rest)
    projected = MatMul(x, w)
    heads = Reshape(projected, shape)
    q = Transpose<perm = [0, 2, 1, 3]>(heads)
    k = Transpose<perm = [0, 2, 3, 1]>(heads)
    scores = MatMul(q, k)
    p = Softmax<axis = -1>(scores)
    o = MatMul(p, q)
    back = Transpose<perm = [0, 2, 1, 3]>(o)
    y = Reshape(back, sizes)
}"""


def weight(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def outputs(path: Path, inputs: dict[str, np.ndarray], **options: dict[str, object]) -> dict[str, np.ndarray]:
    """The results of a model at the graph level: what it means, without a machine."""
    program = tilewright.compile(tilewright.load(path, **options), to="canonicalize")  # pyright: ignore
    return dict(program.run(inputs, level="graph").outputs)


def messages(error: tilewright.SourceError) -> str:
    return str(error)


# --- what becomes of a model ------------------------------------------------------------------------------------------


def test_shape_arithmetic_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", ATTENTION, w=weight(8, 8))
    module = tilewright.load(path, dims={"batch": 2, "seq": 5})
    names = [op.name for op in module.op.walk()]
    assert not [n for n in names if "gather" in n or "concat" in n]
    assert names.count("graph.constant") == 1  # w
    assert names.count("graph.matmul") == 3


def test_a_model_runs_on_the_machine_as_onnx_says(tmp_path: Path) -> None:
    from onnx.reference import ReferenceEvaluator

    path = write(tmp_path / "m.onnx", ATTENTION, w=weight(8, 8))
    x = weight(2, 5, 8)
    run = tilewright.compile(tilewright.load(path, dims={"batch": 2, "seq": 5}), "davinci").run({"x": x})
    (wanted,) = ReferenceEvaluator(str(path)).run(None, {"x": x})
    np.testing.assert_allclose(run.outputs["y"], wanted, rtol=1e-4, atol=1e-6)


def test_names_of_inputs_and_outputs_are_the_models_at_every_level(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.onnx",
        "g (float[4] input_1, float[4] input_2) => (float[4] out_7) { out_7 = Sub(input_1, input_2) }",
    )
    program = tilewright.compile(path)
    for level in ("graph", "tile", "hardware"):
        dump = tilewright.load(program.ir(level))
        assert [s.name for s in dump.inputs] == ["input_1", "input_2"]
        assert [s.name for s in dump.outputs] == ["out_7"]
    run = program.run({"input_2": np.ones(4, np.float32), "input_1": np.zeros(4, np.float32)})
    assert run.outputs["out_7"].tolist() == [-1, -1, -1, -1]


def test_names_that_are_no_names_of_the_text() -> None:
    assert [hint(n) for n in ("a/b:0", "7", "x.1", "", "é", "conv_1_2")] == ["b", "v7", "x.1", "v", "_", "conv"]


def test_nodes_are_locations(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", "g (float[4] x) => (float[4] y) { [loud] y = Exp(x) }")
    done = command("import", path, "-o", tmp_path / "m.mlir", "--locations")
    assert done.code == 0, done.err
    text = (tmp_path / "m.mlir").read_text()
    assert 'loc("loud"' in text or 'loc("y"' in text
    assert tilewright.load(tmp_path / "m.mlir").ir() == tilewright.load(path).ir()


def test_dimensions_without_a_name_are_called_by_their_place(tmp_path: Path) -> None:
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, "?"])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 4])
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"])], "g", [info], [out])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    with pytest.raises(tilewright.SourceError, match=r"'x\.0' of input 'x', 'x\.1' of input 'x' have no size"):
        tilewright.load(tmp_path / "m.onnx")
    assert tilewright.load(tmp_path / "m.onnx", dims={"x.0": 3, "x.1": 4}).inputs[0].shape == (3, 4)


def test_weights_stay_as_they_are_stored(tmp_path: Path) -> None:
    text = """g (float[2, 96] x) => (float[2, 80] y) {
        w = DequantizeLinear(q, s)
        y = MatMul(x, w)
    }"""
    q = RNG.integers(-128, 128, (96, 80)).astype(np.int8)
    path = write(tmp_path / "m.onnx", text, q=q, s=np.float32(0.02))
    module = tilewright.load(path)
    assert {array.dtype for array in module.weights.values()} == {np.dtype(np.int8)}
    x = weight(2, 96)
    run = tilewright.compile(module).run({"x": x})
    np.testing.assert_allclose(run.outputs["y"], x @ (q * np.float32(0.02)), rtol=1e-4, atol=1e-4)


def test_weights_go_beside_what_is_written(tmp_path: Path) -> None:
    arrays = {"w": weight(16, 8), "h": weight(8, 8).astype(np.float16), "i": np.arange(72).reshape(8, 9)}
    text = """g (float[2, 16] x) => (float[2, 8] y, float16[8, 8] a, int64[8, 9] b, float[2, 8] c) {
        y = MatMul(x, w)  c = Exp(y)  a = Neg(h)  b = Neg(i)
    }"""
    path = write(tmp_path / "m.onnx", text, **arrays)
    (tmp_path / "out").mkdir()
    for words in (["import", path, "-o", tmp_path / "out" / "p.mlir"],
                  ["compile", path, "-o", tmp_path / "out" / "q.mlir"]):  # fmt: skip
        done = command(*words)
        assert done.code == 0, done.err
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == [
        "p.mlir",
        "p.safetensors",
        "q.mlir",
        "q.safetensors",
    ]
    x = weight(2, 16)
    found = [tilewright.compile(tmp_path / "out" / name).run({"x": x}).outputs for name in ("p.mlir", "q.mlir")]
    for run in found:
        np.testing.assert_allclose(run["y"], x @ arrays["w"], rtol=1e-4, atol=1e-5)
        assert np.array_equal(run["a"], -arrays["h"]) and np.array_equal(run["b"], -arrays["i"])
    assert "not in the text" in command("compile", path).err


def test_inputs_are_fixed_to_constants(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", "g (float[2, 6] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }")
    with pytest.raises(OnnxError, match="must be known when the program is compiled") as caught:
        tilewright.load(path)
    assert caught.value.constants == ("s",) and "--constant s=" in messages(caught.value)
    module = tilewright.load(path, constants={"s": np.array([3, 4])})
    assert [s.name for s in module.inputs] == ["x"] and module.outputs[0].shape == (3, 4)
    np.save(tmp_path / "s.npy", np.array([-1, 3]))
    done = command("run", path, "--constant", f"s={tmp_path / 's.npy'}", "--random", "0")
    assert done.code == 0 and "4x3" in done.out


def test_branches_and_loops_are_followed_at_import(tmp_path: Path) -> None:
    text = """g (float[3] x, bool c) => (float[3] y) {
        y = If (c) <then_branch = t () => (float[3] a) { a = Neg(x) },
                    else_branch = e () => (float[3] b) { b = Exp(x) }>
    }"""
    path = write(tmp_path / "m.onnx", text)
    x = weight(3)
    assert np.array_equal(outputs(path, {"x": x}, constants={"c": np.array(True)})["y"], -x)
    assert np.array_equal(outputs(path, {"x": x}, constants={"c": np.array(False)})["y"], np.exp(x))
    with pytest.raises(OnnxError, match="the condition"):
        tilewright.load(path)
    text = """g (float[3] x) => (float[3] y, float[n, 3] all) {
        m = Constant<value = int64 {4}>()
        t = Constant<value = bool {1}>()
        y, all = Loop (m, t, x) <body = b (int64 i, bool c, float[3] s) => (bool c2, float[3] s2, float[3] s3) {
            c2 = Identity(c)  s2 = Add(s, s)  s3 = Identity(s2)
        }>
    }"""
    found = outputs(write(tmp_path / "l.onnx", text), {"x": x})
    assert np.array_equal(found["y"], 16 * x)
    assert np.array_equal(found["all"], np.stack([2 * x, 4 * x, 8 * x, 16 * x]))


def test_functions_of_the_model_and_of_onnx_become_their_bodies(tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 20, "mine" : 1]>
        g (float[5] x) => (float[5] y, float[5] z) { y = mine.twice(x)  z = mine.twice(y) }
        <domain: "mine", opset_import: ["" : 20]> twice (a) => (b) { b = Add(a, a) }""")
    onnx.save(model, tmp_path / "m.onnx")
    x = weight(5)
    found = outputs(tmp_path / "m.onnx", {"x": x})
    assert np.array_equal(found["y"], 2 * x) and np.array_equal(found["z"], 4 * x)
    text = "g (float[1, 2, 3, 4] q, float[1, 2, 5, 4] k) => (float[1, 2, 3, 4] y) { y = Attention(q, k, k) }"
    q, k = weight(1, 2, 3, 4), weight(1, 2, 5, 4)
    assert "Attention" not in OPERATORS  # it stands for what ONNX defines by other operators
    found = outputs(write(tmp_path / "a.onnx", text, opset=23), {"q": q, "k": k})
    scores = np.exp(q @ k.swapaxes(-1, -2) / 2)
    np.testing.assert_allclose(found["y"], scores / scores.sum(-1, keepdims=True) @ k, rtol=1e-5)


def test_opsets_say_what_attributes_mean(tmp_path: Path) -> None:
    """Softmax was over all dimensions from the axis on before opset 13; Squeeze, Clip and Slice had attributes."""
    text = "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax<axis = 1>(x) }"
    x = weight(2, 3, 4)
    old, new = (outputs(write(tmp_path / f"{v}.onnx", text, opset=v), {"x": x})["y"] for v in (12, 13))
    np.testing.assert_allclose(old.sum((1, 2)), np.ones(2), rtol=1e-5)
    np.testing.assert_allclose(new.sum(1), np.ones((2, 4)), rtol=1e-5)
    text = """g (float[1, 3, 4] x) => (float[2, 4] y) {
        a = Squeeze<axes = [0]>(x)
        b = Clip<min = -0.5, max = 0.5>(a)
        y = Slice<starts = [1], ends = [9], axes = [0]>(b)
    }"""
    x = weight(1, 3, 4)
    found = outputs(write(tmp_path / "7.onnx", text, opset=9), {"x": x})["y"]
    np.testing.assert_allclose(found, np.clip(x[0, 1:], -0.5, 0.5))


def test_external_data(tmp_path: Path) -> None:
    w = weight(32, 8)
    path = write(tmp_path / "m.onnx", "g (float[2, 32] x) => (float[2, 8] y) { y = MatMul(x, w) }", w=w)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    x = weight(2, 32)
    np.testing.assert_allclose(outputs(path, {"x": x})["y"], x @ w, rtol=1e-5, atol=1e-5)
    (tmp_path / "w.bin").unlink()
    done = command("run", path, "--random", "0")
    assert done.code == 1 and "external data cannot be read" in done.err and "Traceback" not in done.err


# --- what is wrong with one -------------------------------------------------------------------------------------------


def test_every_node_that_cannot_be_imported_is_listed(tmp_path: Path) -> None:
    text = """g (float[2, 3] x, int64[1] k) => (float[a] z, float[b, c] v, float[2, 3] u) {
        n = NonZero(x)
        z = Cast<to = 1>(n)
        v, i = TopK(x, k)
        r = RandomNormalLike(x)
        u = Add(x, r)
    }"""
    path = write(tmp_path / "m.onnx", text)
    done = command("import", path, "-o", tmp_path / "m.mlir")
    assert done.code == 1 and not (tmp_path / "m.mlir").exists()
    lines = [line for line in done.err.splitlines() if "error:" in line]
    assert [word in line for word, line in zip(("NonZero", "TopK", "RandomNormalLike"), lines, strict=True)] == [
        True
    ] * 3
    assert done.err.count("help:") == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no graph"),
        (b"hello, world", "cannot be decoded"),
        (b"\x08\x07", "has no graph"),
        (b"\xff" * 64, "cannot be decoded"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "m.onnx").write_bytes(content)
    done = command("run", tmp_path / "m.onnx", "--random", "0")
    assert done.code == 1 and message in done.err and len(done.err.splitlines()) == 1


def test_cut_and_altered_models_give_one_message(tmp_path: Path) -> None:
    """Whatever a byte is changed to: a program, or a message; never an internal error."""
    whole = write(tmp_path / "m.onnx", ATTENTION, w=weight(8, 8)).read_bytes()
    path = tmp_path / "broken.onnx"
    for place in range(3, len(whole) - 300, 41):
        for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 0x15]) + whole[place + 1 :]):
            path.write_bytes(content)
            try:
                tilewright.load(path, dims={"batch": 1, "seq": 2})
            except tilewright.SourceError as error:
                assert error.diagnostics


def test_models_that_break_the_rules(tmp_path: Path) -> None:
    def error(text: str, opset: int = 20, **options: dict[str, object]) -> str:
        with pytest.raises(tilewright.SourceError) as caught:
            tilewright.load(write(tmp_path / "m.onnx", text, opset), **options)  # pyright: ignore
        return messages(caught.value)

    one = "g (float[n, 4] x) => (float[n, 4] y) { y = Exp(x) }"
    assert "'n' of input 'x' has no size" in error(one) and "--dim n=1" in error(one)
    assert "did you mean 'batch'?" in error(one.replace("n,", "batch,"), dims={"bach": 2})
    assert "has no dimension 'm'" in error(one, dims={"n": 1, "m": 2})
    assert "must be at least 1" in error(one, dims={"n": 0})
    assert "its opset is 3; supported are 7 to" in error(one, 3)
    assert "not a valid ONNX model" in error("g (float[4] x) => (float[4] y) { y = Exp(z) }")
    assert "element type UINT16" in error("g (uint16[4] x) => (uint16[4] y) { y = Add(x, x) }")
    assert "has no input 'b'" in error(one, constants={"b": np.zeros(1)}, dims={"n": 1})
    mismatch = "g (float[4] x, float[3] z) => (float[4] y) { y = Add(x, z) }"
    assert "do not broadcast" in error(mismatch) and "(Add)" in error(mismatch)


UNFIT = {
    "pads for fewer dimensions": "g (float[2, 3] x) => (float[a, b] y) { p = Constant<value = int64[2] {1, 1}>()"
    " y = Pad(x, p) }",
    "pads for more dimensions": "g (float[3] x) => (float[a] y) { p = Constant<value = int64[4] {1, 1, 0, 0}>()"
    " y = Pad(x, p) }",
    "scales for fewer dimensions": "g (float[1, 1, 3, 3] x) => (float[a, b, c, d] y) {"
    " s = Constant<value = float[2] {2.0, 2.0}>() y = Resize(x, , s) }",
    "a sequence without a batch": "g (float[4, 5] x) => (float[a, b, c, d] y) { y = RNN<hidden_size = 3>(x, w, r) }",
    "an equation for other ranks": 'g (float[2, 3, 4] x) => (float[a, b] y) { y = Einsum<equation = "ij->ji">(x) }',
    "the diagonal of a vector": "g (float[4] x) => (float[a, b] y) { y = EyeLike(x) }",
    "a negative size": "g (float[2] x) => (float[a] y) { n = Constant<value = int64[1] {-2}>()"
    " e = ConstantOfShape(n) y = Add(x, e) }",
}


@pytest.mark.parametrize("name", UNFIT)
def test_nodes_whose_operands_do_not_fit_are_named(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", UNFIT[name], w=weight(1, 3, 5), r=weight(1, 3, 3))
    done = command("import", path, "-o", tmp_path / "m.mlir")
    assert done.code == 1 and "m.onnx: error: node '" in done.err and done.err.count("error:") == 1, done.err
    assert not (tmp_path / "m.mlir").exists()


def test_a_long_range_is_not_computed_at_import(tmp_path: Path) -> None:
    text = """g (float[4] x) => (float[a] y) {
        zero = Constant<value = float {0.0}>()
        end = Constant<value = float {100000000000.0}>()
        one = Constant<value = float {1.0}>()
        r = Range(zero, end, one)
        y = Add(x, r)
    }"""
    done = command("import", write(tmp_path / "m.onnx", text), "-o", tmp_path / "m.mlir")
    assert done.code == 1 and "too long to be a constant" in done.err


def test_an_empty_input_of_an_unknown_type_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", "g (float[0] x, float[4] z) => (float[4] y) { y = Exp(z) }")
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.elem_type = 99
    path.write_bytes(model.SerializeToString())
    done = command("import", path, "-o", tmp_path / "m.mlir")
    assert done.code == 1 and "error:" in done.err and "internal" not in done.err


def test_what_the_compiler_refuses_names_the_node(tmp_path: Path) -> None:
    path = write(tmp_path / "m.onnx", "g (double[4] x) => (double[4] y) { y = Exp(x) }")
    with pytest.raises(tilewright.SourceError, match="f64") as caught:
        tilewright.compile(path, "davinci")
    assert "(at 'y')" in messages(caught.value)


def test_the_page_lists_every_operator() -> None:
    """After adding one, write the list anew: the sorted names, each in backticks."""
    page = (ROOT / "docs" / "onnx.md").read_text().split("## Operators")[1]
    listed = [name.strip() for name in page.split("operations:")[1].split("`") if name.strip(", \n")]
    assert listed == sorted(OPERATORS)


def test_initializers_that_are_inputs_too_are_constants(tmp_path: Path) -> None:
    """Before version 4 of the format every initializer had to be listed as an input."""
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in ("x", "w", "y")]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:2], info[2:],
        [numpy_helper.from_array(np.ones(4, np.float32), "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=3)
    onnx.save(model, tmp_path / "m.onnx")
    assert [s.name for s in tilewright.load(tmp_path / "m.onnx").inputs] == ["x"]


def test_a_saved_program_has_the_weights_of_its_model(tmp_path: Path) -> None:
    w = weight(16, 9)
    path = write(tmp_path / "m.onnx", "g (float[2, 16] x) => (float[2, 9] y) { y = MatMul(x, w) }", w=w)
    tilewright.save(tilewright.compile(path), tmp_path / "p.tilewright")
    x = weight(2, 16)
    run = tilewright.load_program(tmp_path / "p.tilewright").run({"x": x})
    np.testing.assert_allclose(run.outputs["y"], x @ w, rtol=1e-4, atol=1e-5)


def test_every_command_takes_the_model_and_the_constants_it_needs(tmp_path: Path) -> None:
    """All but `opt`, which says what makes IR of it. Rows of a profile are called after the nodes."""
    text = "g (float[2, 6] x, int64[2] shape) => (float[a, b] y) { [fold] r = Reshape(x, shape) [curve] y = Exp(r) }"
    path, shape = write(tmp_path / "m.onnx", text), tmp_path / "shape.npy"
    np.save(shape, np.array([3, 4]))
    given = ("--constant", f"shape={shape}", "--target", "unified")
    for name in ("analyze", "report", "validate", "plan", "diff", "compile"):
        assert "--constant shape=" in command(name, path).err
        done = command(name, path, *given)
        assert done.code == 0, done.err
        assert name != "analyze" or "curve" in done.out
    done = command("opt", path)
    assert done.code == 1 and f"tilewright import {path} -o" in done.err


def quantised_table(path: Path) -> Path:
    """A lookup in a table of i8 rows, each with a scale of its own, and zero points."""
    rng = np.random.default_rng(0)
    return write(
        path,
        """g (int64[n] i) => (float[n, 4] y) {
             wide = Cast <to = 1> (table)  moved = Sub (wide, zero)  rows = Mul (moved, scale)  y = Gather (rows, i)
           }""",
        table=rng.integers(-128, 128, (70, 4)).astype(np.int8),
        zero=rng.integers(-9, 9, 4).astype(np.float32),
        scale=rng.uniform(0.1, 1, (70, 1)).astype(np.float32),
    )


def test_lookups_come_before_what_is_computed_from_a_stored_table(tmp_path: Path) -> None:
    path = quantised_table(tmp_path / "m.onnx")
    module = tilewright.load(path, {"n": 5})
    tables = [op for op in module.op.walk() if op.name == "graph.gather"]
    assert sorted(str(op.operands[0].type) for op in tables) == ["tensor<70x1xf32>", "tensor<70x4xi8>"]
    assert all("finite" in op.properties for op in tables)
    indices = np.array([3, 69, 0, -1, -70])
    (wanted,) = onnx.reference.ReferenceEvaluator(onnx.load(path)).run(None, {"i": indices})
    run = tilewright.compile(module, "davinci").run([indices])
    assert np.allclose(run.outputs["y"], wanted, rtol=1e-6)
    everything = tilewright.load(path, {"n": 70})  # as many lookups as rows: nothing is won
    assert [str(op.operands[0].type) for op in everything.op.walk() if op.name == "graph.gather"] == [
        "tensor<70x4xf32>"
    ]


def test_tables_with_infinities_are_not_multiplied(tmp_path: Path) -> None:
    table = np.ones((70, 2), np.float32)
    table[3, 1] = np.inf
    path = write(tmp_path / "m.onnx", "g (int64[n] i) => (float[n, 2] y) { y = Gather (table, i) }", table=table)
    module = tilewright.load(path, {"n": 2})
    (lookup,) = (op for op in module.op.walk() if op.name == "graph.gather")
    assert "finite" not in lookup.properties
    (found,) = evaluate(module.op, [np.array([3, 4])], "native", module.weight_reader())
    assert np.array_equal(found, table[[3, 4]])


@pytest.mark.parametrize("index", [range(0, 40, 2), [5] * 20, [*range(9), *range(30, 9, -1)]])
def test_known_indices_in_few_runs_are_slices(index: Sequence[int], tmp_path: Path) -> None:
    known = np.array(index, np.int64)
    for name, node, given in (
        ("gather", "y = Gather (x, k)", known),
        ("nd", "y = GatherND (x, k)", np.stack([known, known % 3], 1)),
    ):
        shape = "[n, 3]" if name == "gather" else "[n]"
        path = write(tmp_path / f"{name}.onnx", f"g (float[40, 3] x) => (float{shape} y) {{ {node} }}", k=given)
        module = tilewright.load(path)
        assert name == "nd" or not [op for op in module.op.walk() if op.name == "graph.gather"]
        x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
        (wanted,) = onnx.reference.ReferenceEvaluator(onnx.load(path)).run(None, {"x": x})
        (found,) = evaluate(module.op, [x], "native", module.weight_reader())
        assert np.array_equal(found, wanted)
