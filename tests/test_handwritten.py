"""Hand-written kernels: operators that name them, kernels extracted to go on from, kernels swapped for their logic."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli_runner import tilewright as shell
from example_programs import FOLDER
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import Schedule
from tilewright.ir.source import print_module

import tilewright
from tilewright import SourceError

# y = 2x + 1, by hand in two tiles of rows; then exp of it, derived.
_MAP = "map = affine_map<(d0, d1, d2) -> (d0 * 4 + d1, d2)>, valid = affine_map<(d0) -> (4, 16)>"
KERNEL = f"""tile.kernel @by_hand(%0: tensor<8x16xf32>) -> (%1: tensor<8x16xf32>)
    attributes {{tilewright.targets = ["unified"]}} {{
  tile.for %a = 0 to 2 {{axis = "a", kind = "grid"}} {{
    %2 = tile.load %0, %a {{{_MAP}}} : !tile.tile<4x16xf32>
    %3 = tile.map %2, %2 {{fn = "add"}} : !tile.tile<4x16xf32>
    %4 = tile.map %3 {{fn = "add", immediates = [0 : index, 1.0 : f32]}} : !tile.tile<4x16xf32>
    tile.store %4, %1, %a {{{_MAP}}}
    tile.yield
  }}
}}
"""
OPERATOR = """func.func private @scaled(%x: tensor<8x16xf32>) -> tensor<8x16xf32>
    attributes {tilewright.kernels = [@by_hand]} {
  %c = graph.constant dense<1.0> : tensor<f32>
  %d = graph.add %x, %x
  %y = graph.add %d, %c
  return %y : tensor<8x16xf32>
}
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = call %x {callee = @scaled} : tensor<8x16xf32>
  %z = graph.exp %y
  return %z : tensor<8x16xf32>
}
"""
PROGRAM = KERNEL + OPERATOR
X = np.linspace(-2, 1, 128, dtype=np.float32).reshape(8, 16)


def kernels(program: tilewright.Program) -> list[str]:
    return [kernel.name for kernel in program.run([X]).kernels]


def test_an_operator_runs_by_its_kernel() -> None:
    program = tilewright.compile(PROGRAM, "unified")
    assert kernels(program) == ["by_hand", "main_1"]
    for level in ("graph", "tile", "hardware"):
        found = program.run([X], level=level).outputs["z"]  # pyright: ignore[reportArgumentType]
        np.testing.assert_allclose(found, np.exp(2 * X.astype(np.float64) + 1), rtol=1e-5)
    assert tilewright.validate(program, inputs=[X])
    assert program.unfused is not None and program.unfused.cycles > 0


def test_the_kernel_itself_is_what_runs() -> None:
    """Not its reference: a kernel that computes something else gives something else, and validation blames `tile`."""
    program = tilewright.compile(PROGRAM.replace("index, 1.0", "index, 3.0"), "unified")
    np.testing.assert_allclose(program.run([X]).outputs["z"], np.exp(2.0 * X + 3), rtol=1e-5)
    validation = tilewright.validate(program, inputs=[X])
    assert not validation and validation.blame == "tile"


def test_where_no_kernel_fits_one_is_derived() -> None:
    for text, target in (
        (PROGRAM, "davinci"),
        (PROGRAM.replace('["unified"]', '["davinci", "other"]'), "unified"),
        (PROGRAM.replace("[@by_hand]", "[]"), "unified"),
    ):
        program = tilewright.compile(text, target)
        assert kernels(program) == ["main_0"]
        np.testing.assert_allclose(program.run([X]).outputs["z"], np.exp(2.0 * X + 1), rtol=1e-5)
    anywhere = PROGRAM.replace('    attributes {tilewright.targets = ["unified"]}', "")
    assert kernels(tilewright.compile(anywhere, "davinci")) == ["by_hand", "main_1"]


def test_dumps_go_on() -> None:
    program = tilewright.compile(PROGRAM, "unified")
    end = program.ir()
    for snapshot in program.snapshots:
        again = tilewright.compile(print_module(snapshot.module))
        assert again.ir() == end, snapshot.name


BAD = {
    "an unknown kernel": ("[@by_hand]", "[@by_hanb]", "there is no kernel @by_hanb; did you mean '@by_hand'?"),
    "not a list": ("[@by_hand]", "@by_hand", "is a list of kernels"),
    "not a name": ("[@by_hand]", '["by_hand"]', "expected the name of a kernel"),
    "other types": (
        "@scaled(%x: tensor<8x16xf32>)",
        "@scaled(%x: tensor<8x16xf32>, %u: tensor<f32>)",
        "kernel @by_hand takes and gives",
    ),
    "targets": ('["unified"]', "[3]", "is a list of target names"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit_is_rejected(case: str) -> None:
    old, new, message = BAD[case]
    text = PROGRAM.replace(old, new)
    if "%u" in new:
        text = text.replace("call %x {", "call %x, %c {").replace(
            "  %y = call", "  %c = graph.constant dense<1.0> : tensor<f32>\n  %y = call"
        )
    with pytest.raises(SourceError, match=message.replace("?", r"\?")) as caught:
        tilewright.compile(text, "unified")
    assert caught.value.diagnostics[0].line > 0


# --- extraction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gated_unit", "conv_bias_relu", "softmax_rows"])
def test_an_extracted_kernel_is_a_program_that_computes_its_logic(name: str, tmp_path: Path) -> None:
    file = tmp_path / "k.mlir"
    words = ("compile", FOLDER / f"{name}.mlir", "--target", "unified", "--schedule", "simplest")
    done = shell(*words, "--extract", f"{name}_0", "-o", file)
    assert done.code == 0, done.err
    program = tilewright.compile(file)
    validation = tilewright.validate(program)
    assert validation, str(validation)
    assert f"main_0 (@{name}_0)" in shell("validate", file).out
    assert [kernel.name for kernel in program.run(seed=0).kernels] == [f"{name}_0"]
    whole = tilewright.compile(FOLDER / f"{name}.mlir", "unified", simplest=True)
    inputs = whole.run(seed=1).inputs
    by_name = dict(zip([spec.name for spec in whole.inputs], inputs, strict=True))
    for one, two in zip(
        program.run({spec.name: by_name[spec.name] for spec in program.inputs}).outputs.values(),
        whole.run(inputs).outputs.values(),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)


def test_simplest_has_one_copy_of_each_buffer() -> None:
    program = tilewright.compile(FOLDER / "softmax_rows.mlir", "davinci", simplest=True, to="schedule")
    (fused,) = [op for op in program.module.walk() if isinstance(op, FusedOp)]
    assert fused.schedule is not None
    schedule = Schedule.from_attr(fused.schedule)
    assert set(schedule.slots) == {1} and schedule.move_slots == schedule.store_slots == 1


def test_mistakes_of_extraction(tmp_path: Path) -> None:
    file = tmp_path / "p.mlir"
    file.write_text(PROGRAM)
    done = shell("compile", file, "--target", "unified", "--extract", "main_2")
    assert done.code == 1 and "no derived kernel 'main_2'; did you mean 'main_" in done.err
    done = shell("compile", file, "--target", "unified", "--extract", "main_0")
    assert done.code == 1 and "'main_0' is written by hand already" in done.err
    assert shell("compile", file, "--extract", "main_0", "--to", "graph").code == 2
    done = shell("compile", file, "--schedule", "simplest", "-p", "canonicalize")
    assert done.code == 1 and "'simplest' is an option of the schedule pass" in done.err


# --- references -----------------------------------------------------------------------------------------------------


def test_a_kernel_is_swapped_for_its_logic(tmp_path: Path) -> None:
    """A wrong kernel gives wrong results, unless it is swapped; swapping another one does not help."""
    file, wanted = tmp_path / "p.mlir", tmp_path / "z.npy"
    file.write_text(PROGRAM.replace("index, 1.0", "index, 3.0"))
    np.save(tmp_path / "x.npy", X)
    np.save(wanted, np.exp(2.0 * X + 1))
    words = ("run", file, "--target", "unified", "--input", f"x={tmp_path / 'x.npy'}", "--expect", f"z={wanted}")
    assert shell(*words).code == 4
    assert shell(*words, "--reference", "main_1").code == 4
    assert shell(*words, "--reference", "main_0").code == 0
    assert shell(*words, "--reference", "all").code == 0
    done = shell(*words, "--reference", "main_7")
    assert done.code == 1 and "no kernel 'main_7'" in done.err
