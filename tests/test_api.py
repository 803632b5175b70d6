"""The Python interface."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tilewright.frontend.importer import OnnxError
from tilewright.lowering.canonicalize import CanonicalizePass
from tilewright.lowering.decompose import DecomposePass

import tilewright
from tilewright.errors import plain_error

TEXT = """
func.func @main(%x: tensor<24x40xf16>, %w: tensor<40x16xf16>) -> (tensor<24x16xf16>, tensor<24x1xf16>) {
  %p = graph.matmul %x, %w
  %y = graph.softmax %p {axis = -1 : i64}
  %m = graph.reduce_max %p {axes = array<i64: 1>, keepdims}
  func.return %y, %m : tensor<24x16xf16>, tensor<24x1xf16>
}
"""


@pytest.fixture(scope="module")
def program() -> tilewright.Program:
    return tilewright.compile(TEXT)


def test_names_are_those_of_the_text(program: tilewright.Program) -> None:
    assert [spec.name for spec in program.inputs] == ["x", "w"]
    assert [str(spec) for spec in program.outputs] == ["y: 24x16xf16", "m: 24x1xf16"]
    assert "x: 24x40xf16" in repr(program) and "davinci" in repr(program)
    assert repr(tilewright.load(TEXT)).startswith("<tilewright.Module <text>: (x: 24x40xf16")


def test_names_that_the_text_does_not_give() -> None:
    module = tilewright.load(
        "func.func @main(%0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
        "  func.return %0, %0 : tensor<4xf32>, tensor<4xf32>\n}\n"
    )
    assert [spec.name for spec in module.inputs] == ["arg0"]
    assert [spec.name for spec in module.outputs] == ["out0", "out1"]


def test_every_level_can_be_looked_at(program: tilewright.Program) -> None:
    assert "graph.fused" in program.ir("graph") and "schedule" in program.ir("graph")
    assert "tile.kernel" in program.ir("tile") and "hardware." not in program.ir("tile")
    assert "hardware.program" in program.ir("hardware") == program.ir()
    assert "graph.softmax" in program.ir(after="input") and "graph.softmax" not in program.ir(after="decompose")
    assert '"graph.fused"(' in program.ir("graph", generic=True)
    with pytest.raises(tilewright.SourceError, match="no pass 'fused' ran"):
        program.ir(after="fused")
    with pytest.raises(tilewright.SourceError, match="unknown level"):
        program.ir("hw")


def test_the_loaded_module_is_not_changed() -> None:
    module = tilewright.load(TEXT)
    before = module.ir()
    tilewright.compile(module)
    assert module.ir() == before


def test_pipelines_as_text_and_as_objects() -> None:
    named = tilewright.compile(TEXT, pipeline="canonicalize,decompose")
    made = tilewright.compile(TEXT, pipeline=[CanonicalizePass(), DecomposePass()])
    assert named.passes == ("canonicalize", "decompose") and named.ir() == made.ir()
    assert named.level == "graph"
    with pytest.raises(tilewright.SourceError, match="not compiled down to the hardware level"):
        named.analyze()
    assert tilewright.compile(TEXT, to="fuse").passes[-1] == "fuse"


def test_a_pipeline_with_a_pass_of_another_package_has_levels() -> None:
    program = tilewright.compile(TEXT, target="unified", pipeline="canonicalize,cse,decompose")
    assert program.ir("graph") == program.ir()
    with pytest.raises(tilewright.SourceError, match="was not compiled down to the tile level"):
        program.ir("tile")


def test_run_by_name_by_order_and_random(program: tilewright.Program) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(np.float16) for s in ((24, 40), (40, 16)))
    run = program.run({"w": w, "x": x})
    assert list(run.outputs) == ["y", "m"]
    scores = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(run.outputs["m"], scores.max(axis=1, keepdims=True), rtol=2e-3)
    exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(run.outputs["y"], exponents / exponents.sum(axis=1, keepdims=True), atol=5e-3)
    again = program.run([x, w])
    for name in run.outputs:
        np.testing.assert_array_equal(run.outputs[name], again.outputs[name])
    assert program.run(seed=1).outputs["y"].tobytes() == program.run(seed=1).outputs["y"].tobytes()
    assert program.run({"x": x}, seed=1).inputs[0] is not None


def test_wrong_inputs_say_what_is_wrong(program: tilewright.Program) -> None:
    x = np.zeros((24, 40), np.float16)
    for inputs, message in (
        (None, "no values for input x"),
        ([x], "takes 2 inputs"),
        ({"y": x}, "no input 'y'"),
        ({"x": x, "w": x}, "'w' has shape"),
        ({"x": x.astype(np.float64), "w": x}, "float64"),
    ):
        with pytest.raises(tilewright.SourceError, match=message):
            program.run(inputs)


def test_figures(program: tilewright.Program) -> None:
    run = program.run(seed=0)
    assert run.traffic.read_bytes >= 2 * (24 * 40 + 40 * 16) and run.traffic.write_bytes >= 2 * (24 * 16 + 24)
    assert run.traffic.total_bytes == run.traffic.read_bytes + run.traffic.write_bytes
    assert program.compulsory == (2 * (24 * 40 + 40 * 16), 2 * (24 * 16 + 24))
    assert sum(kernel.read_bytes for kernel in run.kernels) == run.traffic.read_bytes
    analysis = program.analyze()
    assert (analysis.links, analysis.cycles) == (run.traffic.links, run.cycles)
    assert program.unfused is not None
    assert program.unfused.read_bytes + program.unfused.write_bytes > run.traffic.total_bytes
    assert str(run.cycles) in repr(run)


def test_report_has_the_promised_keys_and_is_json(program: tilewright.Program) -> None:
    report = json.loads(json.dumps(program.run(seed=0).report()))
    keys = "target outputs traffic unfused compulsory_bytes workspace_bytes cycles time_us engines kernels memory"
    assert set(report) >= set(keys.split())
    assert set(report["outputs"][0]) == {"name", "shape", "dtype", "max_rel_err"}
    assert set(report["traffic"]) == {"read_bytes", "write_bytes", "links"}
    assert set(report["unfused"]) == {"read_bytes", "write_bytes", "cycles"}
    assert set(report["kernels"][0]) >= {"name", "strategy", "schedule", "read_bytes", "write_bytes", "cycles"}
    assert set(report["memory"]) == set(tilewright.load_target("davinci").memories)
    for figures in report["memory"].values():
        assert set(figures) == {"peak_bytes", "capacity_bytes", "lower_bound_bytes"}
        assert figures["lower_bound_bytes"] <= figures["peak_bytes"] <= figures["capacity_bytes"]
    for figures in report["engines"].values():
        assert set(figures) == {"busy_cycles", "utilization"} and 0 <= figures["utilization"] <= 1
    assert report["time_us"] == pytest.approx(report["cycles"] / 1.65e9 * 1e6)


def test_runs_at_other_levels_have_no_traffic(program: tilewright.Program) -> None:
    for level in ("graph", "tile"):
        run = program.run(seed=0, level=level)
        assert max(run.errors().values()) < 1e-2
        with pytest.raises(tilewright.SourceError, match="run at the hardware level"):
            _ = run.traffic
        assert "traffic" not in run.report()


def test_a_dump_goes_on_where_it_stopped(program: tilewright.Program) -> None:
    for level in ("graph", "tile", "hardware"):
        again = tilewright.compile(program.ir(level))
        assert again.ir() == program.ir()
        run = again.run(seed=5)
        for name, array in program.run(seed=5).outputs.items():
            np.testing.assert_array_equal(run.outputs[name], array)
    assert again.target == program.target and again.compulsory is None and again.unfused is None
    assert list(run.errors().values()) == [None, None]


def test_objective_and_target_are_recorded() -> None:
    program = tilewright.compile(TEXT, target="unified{memory.scratchpad.bytes=64KiB}", objective="traffic")
    assert tilewright.compile(program.ir(after="fuse")).ir() == program.ir()
    assert program.target.memories["scratchpad"].bytes == 65536
    with pytest.raises(tilewright.SourceError, match="objective"):
        tilewright.compile(TEXT, objective="speed")  # type: ignore


def test_dims() -> None:
    text = 'func.func @f(%x: tensor<?x8xf32, #graph.dims<["n"]>>) -> tensor<?x8xf32, #graph.dims<["n"]>> {\n'
    text += '  %y = graph.exp %x\n  func.return %y : tensor<?x8xf32, #graph.dims<["n"]>>\n}\n'
    assert tilewright.load(text).inputs[0].shape == ("n", 8)
    with pytest.raises(tilewright.SourceError, match="--dim n="):
        tilewright.compile(text)
    assert tilewright.compile(text, dims={"n": 3}).run(seed=0).outputs["y"].shape == (3, 8)
    with pytest.raises(tilewright.SourceError, match="load"):
        tilewright.compile(tilewright.load(text), dims={"n": 3})


def test_compulsory_bytes_count_what_is_needed() -> None:
    """A slice needs part of its input, a shared input counts once, an unused one not at all."""
    program = tilewright.compile(
        "func.func @main(%x: tensor<10x8xf16>, %y: tensor<4x8xf16>, %z: tensor<9xf16>) -> tensor<4x8xf16> {\n"
        "  %a = graph.slice %x {starts = array<i64: 2, 0>, sizes = array<i64: 4, 8>}\n"
        "  %b = graph.add %a, %y\n  %c = graph.mul %b, %y\n"
        "  func.return %c : tensor<4x8xf16>\n}\n",
        to="graph",
    )
    assert program.compulsory == (2 * 4 * 8 * 2, 4 * 8 * 2)


def test_weights_beside_the_text(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    weights = np.arange(32, dtype=np.float16).reshape(4, 8)
    save_file({"w": weights}, tmp_path / "w.safetensors")
    (tmp_path / "p.mlir").write_text(
        "func.func @main(%x: tensor<4x8xf16>) -> tensor<4x8xf16> {\n"
        '  %w = graph.weight {file = "w.safetensors", key = "w"} : tensor<4x8xf16>\n'
        "  %y = graph.add %x, %w\n  func.return %y : tensor<4x8xf16>\n}\n"
    )
    program = tilewright.compile(tmp_path / "p.mlir")
    x = np.ones((4, 8), np.float16)
    for level in ("graph", "tile", "hardware"):
        np.testing.assert_array_equal(program.run([x], level=level).outputs["y"], x + weights)
    assert program.compulsory == (2 * 64, 64)
    (tmp_path / "w.safetensors").write_bytes(b"broken")
    with pytest.raises(tilewright.SourceError, match="not a safetensors file"):
        program.run([x])
    (tmp_path / "w.safetensors").unlink()
    with pytest.raises(tilewright.SourceError, match="cannot read the weights"):
        program.run([x])


def test_bf16_arrays() -> None:
    program = tilewright.compile(TEXT.replace("f16", "bf16"))
    x = np.ones((24, 40), ml_dtypes.bfloat16)
    w = np.ones((40, 16), ml_dtypes.bfloat16)
    run = program.run([x, w])
    assert run.outputs["m"].dtype == ml_dtypes.bfloat16 and float(run.outputs["m"][0, 0]) == 40
    raw = program.run([x.view("V2"), w.view("V2")])
    assert raw.outputs["m"].tobytes() == run.outputs["m"].tobytes()


def test_validate_blames_the_pass_that_broke_it() -> None:
    from dataclasses import dataclass
    from typing import Any

    from tilewright.dialects.graph_primitives import MapOp
    from xdsl.passes import ModulePass

    @dataclass(frozen=True)
    class Sabotage(ModulePass):
        name = "sabotage"

        def apply(self, ctx: Any, op: Any) -> None:
            for inner in op.walk():
                if isinstance(inner, MapOp) and inner.fn.data == "exp":
                    inner.properties["fn"] = type(inner.fn)("tanh")

    good = tilewright.validate(TEXT)
    assert good and good.blame is None and "blame: none" in str(good)
    assert {step.level for step in good.steps} == {"graph", "tile", "hardware"}
    bad = tilewright.validate(TEXT, pipeline=[CanonicalizePass(), DecomposePass(), Sabotage(), CanonicalizePass()])
    assert not bad and bad.blame == "sabotage"
    with pytest.raises(tilewright.SourceError, match="below the graph level"):
        tilewright.validate(tilewright.compile(TEXT).ir("tile"))


def test_a_program_can_be_used_from_several_threads(program: tilewright.Program) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda seed: program.run(seed=seed), [0, 1, 0, 1]))
    for a, b in ((0, 2), (1, 3)):
        for name in runs[a].outputs:
            np.testing.assert_array_equal(runs[a].outputs[name], runs[b].outputs[name])


def test_public_names() -> None:
    for name in tilewright.__all__:
        assert getattr(tilewright, name) is not None
    assert set(tilewright.__all__) <= set(dir(tilewright))
    with pytest.raises(AttributeError):
        _ = tilewright.nothing  # type: ignore


def test_a_view_of_the_first_elements_is_not_a_reshape() -> None:
    """Its index map is that of a reshape of two elements; aliased to the operand's three, it could not be read."""
    text = (
        "func.func @main(%x: tensor<3xf16>) -> tensor<1x2xf16> {\n  %y = graph.exp %x\n"
        "  %v = graph.view %y {maps = [affine_map<(d0, d1) -> (d0 * 2 + d1)>]} : tensor<1x2xf16>\n"
        "  func.return %v : tensor<1x2xf16>\n}\n"
    )
    run = tilewright.compile(text).run([np.array([0, 1, 2], np.float16)])
    np.testing.assert_allclose(run.outputs["v"], np.exp([[0, 1]]), rtol=2e-3)


def test_errors_come_back_from_other_processes_whole() -> None:
    with pytest.raises(tilewright.SourceError) as caught:
        tilewright.load("func.func @f() {\n  %x = graph.nothing\n  return\n}\n")
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value)
    assert again.diagnostics == caught.value.diagnostics and str(again) == str(caught.value)


def test_the_constants_an_import_needs_come_back_too() -> None:
    error = OnnxError(plain_error("no").diagnostics, ["sizes"])
    again = pickle.loads(pickle.dumps(error))
    assert again.constants == ("sizes",) and again.diagnostics == error.diagnostics


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda text: tilewright.load(None), "a program is a path or a text, got None"),
        (lambda text: tilewright.load(text, dims=[5]), "'dims' gives a size to each name"),
        (lambda text: tilewright.save(tilewright.compile(text), 5), "a file is named by a path, got 5"),
        (lambda text: tilewright.load_program(5), "a file is named by a path, got 5"),
        (lambda text: tilewright.validate(text, tolerance=-1), "a tolerance is a number and not negative, got -1"),
        (lambda text: tilewright.validate(text, tolerance=float("nan")), "got nan"),
    ],
)
def test_arguments_of_another_kind_are_named(call: Callable[[str], object], message: str) -> None:
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %y = graph.exp %x\n  func.return %y\n}"
    with pytest.raises(tilewright.SourceError) as caught:
        call(text)
    assert message in str(caught.value)
