"""`tilewright validate`: errors after every pass, the pass to blame, and a small program that shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_runner import tilewright as cli
from tilewright.dialects.graph_primitives import MapOp
from tilewright.lowering.canonicalize import CanonicalizePass
from tilewright.lowering.decompose import DecomposePass
from xdsl.passes import ModulePass

import tilewright
from tilewright.arrays import gather_inputs
from tilewright.kernels import kernel_errors
from tilewright.module import Module
from tilewright.reduction import Reduction
from tilewright.tolerance import errors
from tilewright.validation import reduced

TEXT = """// Two results; only the exponential on the way to the second is broken below.
func.func @main(%x: tensor<24x40xf16>, %w: tensor<40x16xf16>) -> (tensor<24x16xf16>, tensor<24x16xf16>) {
  %m = graph.matmul %x, %w
  %a = graph.tanh %m
  %b = graph.relu %a
  %c = graph.exp %b
  %d = graph.mul %c, %m
  func.return %a, %d : tensor<24x16xf16>, tensor<24x16xf16>
}
"""
FILE = Path("program.mlir")


@dataclass(frozen=True)
class Sabotage(ModulePass):
    """Exponentials become squares."""

    name = "sabotage"

    def apply(self, ctx: Any, op: Any) -> None:
        for inner in op.walk():
            if isinstance(inner, MapOp) and inner.fn.data == "exp":
                inner.properties["fn"] = type(inner.fn)("square")


BROKEN = [CanonicalizePass(), DecomposePass(), Sabotage(), CanonicalizePass()]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FILE.write_text(TEXT)


def test_the_pass_to_blame_and_a_program_that_shows_it() -> None:
    validation = tilewright.validate(TEXT, pipeline=BROKEN)
    assert validation.blame == "sabotage"
    assert validation.failure is not None and "output 'd' of the program after 'sabotage'" in validation.failure
    bad = next(step for step in validation.steps if step.name == "sabotage")
    first, second = bad.outputs or ()
    assert not first and second and second.absolute > second.relative * 0.01 > 0

    def again(module: Module) -> tilewright.Program:
        return tilewright.compile(module, pipeline=BROKEN)

    small = reduced(validation, 0, None, again)
    assert small is not None
    names = [op.name for op in small.walk() if op.name.startswith("graph.")]
    assert names == ["graph.exp"]
    found = again(Module(small, validation.program.source.source))
    assert [spec.shape for spec in found.inputs] == [(1, 1)]
    assert tilewright.validate(found).blame == "sabotage"


def test_a_failure_that_random_inputs_do_not_show() -> None:
    validation = tilewright.validate(TEXT, pipeline=BROKEN)
    assert reduced(validation, 0, None, tilewright.compile) is None


def test_reduction_asks_so_many_times_and_keeps_what_fails() -> None:
    module, asked = tilewright.load(TEXT).op, [0]

    def fails(candidate: Any) -> bool:
        asked[0] += 1
        return any(op.name == "graph.relu" for op in candidate.walk())

    small = Reduction(module.clone(), fails, tries=6).run()
    assert asked[0] <= 6 and any(op.name == "graph.relu" for op in small.walk())
    smallest = Reduction(module.clone(), fails).run()
    assert [op.name for op in smallest.walk() if op.name.startswith("graph.")] == ["graph.relu"]


def test_the_command(tmp_path: Path) -> None:
    done = cli("validate", "program.mlir", "--json", "figures.json")
    assert done.code == 0, done.err
    figures = json.loads(Path("figures.json").read_text())
    assert figures["blame"] is None and figures["passes"][0]["name"] == "input"
    assert {row["level"] for row in figures["passes"]} == {"graph", "tile", "hardware"}
    assert [output["name"] for output in figures["passes"][-1]["outputs"]] == ["a", "d"]
    assert figures["kernels"] and all(row["relative"] <= row["tolerance"] for row in figures["kernels"])
    assert all(row["name"] in done.out for row in [*figures["passes"], *figures["kernels"]])


def test_the_command_blames_and_reduces() -> None:
    done = cli("validate", "program.mlir", "--tolerance", "1e-6", "--reduce", "small.mlir")
    assert done.code == 4 and "output 'a' of the program itself is" in done.err
    assert "'small.mlir' still fails" in done.err
    _, command, *_ = Path("small.mlir").read_text().splitlines()
    again = cli(*command.removeprefix("// tilewright ").split())
    assert again.code == 4 and "of the program itself is" in again.err
    assert len(tilewright.load("small.mlir").inputs) <= 2
    plain = cli("validate", "program.mlir", "--tolerance", "1e-6")
    assert plain.code == 4 and "--reduce small.mlir writes" in plain.err


def test_inputs_of_the_command() -> None:
    np.save("x.npy", np.full((24, 40), 100, np.float16))
    done = cli("validate", "program.mlir", "--input", "x=x.npy", "--seed", "3")
    assert done.code in (0, 4)
    wrong = cli("validate", "program.mlir", "--input", "z=x.npy")
    assert wrong.code == 1 and "the program has no input 'z'" in wrong.err
    assert cli("validate", "program.mlir", "--reduce", "nowhere/small.mlir").code == 1
    Path("low.mlir").write_text(tilewright.compile(TEXT).ir("hardware"))
    low = cli("validate", "low.mlir")
    assert low.code == 1 and "no reference" in low.err


def test_kernels_run_against_their_logic() -> None:
    program = tilewright.compile(TEXT, unfused=True)
    arrays = gather_inputs(program.source, None, 0)
    found = kernel_errors(program, arrays)
    assert len(found) > 1 and not any(found)
    assert len({kernel.name for kernel in found}) == len(found)
    assert any(kernel_errors(program, arrays, tolerance=0.0))


def test_errors_of_arrays() -> None:
    ref = np.array([1.0, -4.0, np.inf])
    assert errors(np.array([1.5, -4.0, np.inf]), ref) == (0.5, 0.125)
    assert errors(np.array([1.0, -4.0, np.nan]), ref) == (np.inf, np.inf)
    assert errors(np.zeros(2), np.zeros(2)) == (0.0, 0.0)
