"""Libraries of custom operators: used, compared with their logic, refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_runner import tilewright as shell
from example_programs import FOLDER, TARGETS
from operator_library import LIBRARY, SPELLED, program
from tilewright.ir.source import print_module

import tilewright
from tilewright import CheckError, SourceError
from tilewright.tolerance import default_tolerance

OPERATORS = FOLDER / "operators"
GATES = """func.func @gates(%x: tensor<32x40xEL>, %u: tensor<32x40xEL>, %z: tensor<6x30xEL>)
    -> (tensor<32x40xEL>, tensor<6x30xEL>) {
  %s = graph.sigmoid %x
  %a = graph.mul %s, %x
  %b = graph.mul %u, %a
  %t = graph.sigmoid %z
  %c = graph.mul %z, %t
  %d = graph.mul %z, %c
  return %b, %d : tensor<32x40xEL>, tensor<6x30xEL>
}
"""
ATTENTION = """func.func @heads(%q: tensor<2x32x32xEL>, %k: tensor<2x64x32xEL>, %v: tensor<2x64x32xEL>)
    -> tensor<2x32x32xEL> {
  %c = graph.constant dense<0.0625> : tensor<f32>
  %s = graph.matmul %q, %k {transpose_b} : tensor<2x32x64xf32>
  %r = graph.mul %c, %s
  %h = graph.tanh %r
  %d = graph.constant dense<16.0> : tensor<f32>
  %t = graph.mul %h, %d
  %m = graph.reduce_max %t {axes = [2], keepdims}
  %l = graph.sub %t, %m
  %e = graph.exp %l
  %n = graph.reduce_sum %e {axes = [2], keepdims}
  %p = graph.div %e, %n
  %w = graph.cast %p : tensor<2x32x64xEL>
  %o = graph.matmul %w, %v
  return %o : tensor<2x32x32xEL>
}
"""


def kernels(found: tilewright.Program) -> list[str]:
    return [kernel.name for kernel in found.run(seed=0).kernels]


# --- the examples ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "element", "all_of_it"),
    [("davinci", "f16", False), ("unified", "bf16", False),
     *(pytest.param(t, e, True, marks=pytest.mark.slow) for t in TARGETS for e in ("f16", "bf16"))],
)  # fmt: skip
def test_the_example_libraries_do_what_the_program_says(target: str, element: str, all_of_it: bool) -> None:
    """Within rounding of float64, as without the library."""
    rows = "wide" if target == "unified" else "narrow"
    for text, file, names in (
        (GATES, "gate.mlir", [f"{rows}_m32_n40_{element}", f"narrow_m6_n30_{element}"]),
        (ATTENTION, "capped_attention.mlir", [f"capped_rows_b2_m32_{element}"]),
    ):
        source = tilewright.load(text.replace("EL", element))
        found = tilewright.compile(source, target, use=[OPERATORS / file])
        assert not found.warnings
        assert kernels(found) == names
        by_hand = found.run(seed=1)
        runs = [by_hand, tilewright.compile(source, target).run(seed=1)] if all_of_it else [by_hand]
        wanted = found.reference(by_hand.inputs)
        assert wanted is not None
        limit = default_tolerance(source.op)
        for name, exact in zip(by_hand.outputs, wanted, strict=True):
            for one in [run.outputs[name] for run in runs]:
                assert np.max(np.abs(one.astype(np.float64) - exact)) <= limit * np.max(np.abs(exact))
        assert not all_of_it or tilewright.validate(found)


def test_both_libraries_at_once_and_one_that_is_not_needed() -> None:
    source = tilewright.load(GATES.replace("EL", "f16"))
    found = tilewright.compile(source, "unified", use=[OPERATORS / "capped_attention.mlir", OPERATORS / "gate.mlir"])
    assert kernels(found) == ["wide_m32_n40_f16", "narrow_m6_n30_f16"]
    (warning,) = found.warnings
    assert "@capped_attention occurs nowhere: no values of the program have its types" in warning.message
    assert warning.severity == "warning" and warning.file.endswith("capped_attention.mlir") and warning.source


def test_dumps_go_on_and_programs_are_saved(tmp_path: Path) -> None:
    found = tilewright.compile(program(SPELLED), "unified", use=[LIBRARY])
    end = found.ir()
    for snapshot in [
        found.snapshot(after=name) for name in ("input", "decompose", "match", "schedule", "plan", "sync")
    ]:
        text = print_module(snapshot.module)
        again = tilewright.load(text)
        assert again.ir() == text
        assert tilewright.compile(again).ir() == end, snapshot.name
    tilewright.save(found, tmp_path / "p.tilewright")
    assert tilewright.load_program(tmp_path / "p.tilewright").ir() == end


@pytest.mark.slow
def test_unfused_figures_are_those_of_the_program_without_the_library() -> None:
    found = tilewright.compile(program(SPELLED), "unified", use=[LIBRARY])
    plain = tilewright.compile(program(SPELLED), "unified")
    assert found.unfused == plain.unfused is not None


# --- calls by name --------------------------------------------------------------------------------------------------

CALLS = {
    "declared nowhere": "",
    "declared": "func.func private @weighted(tensor<12x16xf32>, tensor<8x16xf32>, tensor<12x8xf32>)\n"
    "    -> tensor<12x1xf32>\n",
}
CALL = "  %y = call %x, %v, %u {callee = @weighted} : tensor<12x1xf32>\n"


@pytest.mark.parametrize("case", CALLS)
def test_a_program_may_call_an_operator_that_only_the_library_has(case: str) -> None:
    text = CALLS[case] + program(CALL)
    found = tilewright.compile(text, "unified", use=[LIBRARY])
    assert kernels(found) == ["rows_m12"]
    assert tilewright.validate(found)
    with pytest.raises(SourceError, match=r"no function @weighted|@weighted has no body"):
        tilewright.compile(text, "unified")


def test_a_call_of_other_types_is_rejected() -> None:
    with pytest.raises(SourceError, match="@weighted cannot be called here: argument 1 is tensor<12x8xf32>, it has"):
        tilewright.compile(program(CALL.replace("%v,", "%u,")), "unified", use=[LIBRARY])


def test_generic_functions_of_a_program_need_no_library() -> None:
    text = LIBRARY + program(CALL)
    assert kernels(tilewright.compile(text, "unified")) == ["rows_m12"]


def test_names_that_the_program_has_too() -> None:
    """The program's own stay what they are; those of the library get a number."""
    own = program(SPELLED + "  %g = call %y {callee = @weighted} : tensor<12x1xf32>\n", "%g") + (
        "func.func private @weighted(%a: tensor<12x1xf32>) -> tensor<12x1xf32>\n"
        "    attributes {tilewright.kernels = [@rows]} {\n"
        "  %b = graph.add %a, %a\n  return %b : tensor<12x1xf32>\n}\n"
        "tile.kernel @rows(%0: tensor<12x1xf32>) -> (%1: tensor<12x1xf32>) {\n"
        "  %2 = tile.load %0 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (12, 1)>}"
        " : !tile.tile<12x1xf32>\n"
        '  %3 = tile.map %2, %2 {fn = "add"} : !tile.tile<12x1xf32>\n'
        "  tile.store %3, %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (12, 1)>}\n}\n"
    )
    found = tilewright.compile(own, "unified", use=[LIBRARY, LIBRARY])
    assert kernels(found) == ["rows_1_m12", "rows"]
    assert tilewright.validate(found)
    (warning,) = found.warnings  # the second library of the same: nothing is left for it
    assert "@weighted_2 occurs nowhere" in warning.message


# --- kernels that do not fit ----------------------------------------------------------------------------------------

UNFIT = {
    "target": ('tilewright.targets = ["davinci", "other"]', "it is for target davinci, other, not unified"),
    "multiple": (
        "tilewright.shapes = affine_set<()[s0] : (s0 mod 8 == 0)>",
        "it needs (m mod 8) == 0 == 0; here m = 12",
    ),
    "range": ("tilewright.shapes = affine_set<()[s0] : (s0 - 64 >= 0)>", "here m = 12"),
    "several": ("tilewright.shapes = affine_set<()[s0] : (s0 - 4 >= 0, s0 mod 5 == 2, 11 - s0 >= 0)>", "here m = 12"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_a_kernel_that_does_not_fit_says_why_and_one_is_derived(case: str) -> None:
    attribute, reason = UNFIT[case]
    library = LIBRARY.replace('["m"]>>) {\n  %4', f'["m"]>>) attributes {{{attribute}}} {{\n  %4')
    assert library != LIBRARY
    for text in (program(SPELLED), program(CALL)):
        found = tilewright.compile(text, "unified", use=[library])
        assert not any("rows" in name for name in kernels(found))
        (warning,) = found.warnings
        assert "no kernel of @weighted" in warning.message and "is derived" in warning.message and warning.line > 0
        (note,) = warning.notes
        assert note.message.startswith("@rows: ") and reason.split("; ")[-1] in note.message
        assert tilewright.validate(found)


def test_the_first_kernel_that_fits_is_taken() -> None:
    library = LIBRARY.replace("[@rows]", "[@never, @rows, @later]")
    head = LIBRARY[LIBRARY.index("tile.kernel") : LIBRARY.index("func.func")]
    never = head.replace("@rows(", "@never(").replace(
        '["m"]>>) {\n  %4', '["m"]>>) attributes {tilewright.shapes = affine_set<()[s0] : (s0 - 13 >= 0)>} {\n  %4'
    )
    library += never + head.replace("@rows(", "@later(")
    assert kernels(tilewright.compile(program(SPELLED), "unified", use=[library])) == ["rows_m12"]
    longer = program(SPELLED).replace("12x", "16x")
    assert kernels(tilewright.compile(longer, "unified", use=[library])) == ["never_m16"]


def test_types_that_an_operator_does_not_have() -> None:
    library = OPERATORS / "gate.mlir"
    found = tilewright.compile(GATES.replace("EL", "f32"), "unified", use=[library])
    (warning,) = found.warnings
    assert "no values of the program have its types" in warning.message


# --- libraries that are wrong ---------------------------------------------------------------------------------------

WRONG = {
    "syntax": ("graph.exp %d", "graph.exp %d %e", "expected"),
    "an unknown operation": ("graph.exp", "graph.expp", "did you mean 'graph.exp'?"),
    "no operator": ("func.func private", "func.func", "there is no operator in '<text>'"),
    "an unknown kernel": ("[@rows]", "[@row]", "there is no kernel @row; did you mean '@rows'?"),
    "calls itself": ("%e = graph.exp %d",
                     '%e = call %a, %w, %b {callee = @weighted} : tensor<?x1xf32, #graph.dims<["m"]>>',
                     "@weighted calls itself"),
    "a weight": ("graph.constant dense<1.0>", 'graph.weight {file = "w.safetensors", key = "w"}',
                 "has no stored weights"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_libraries(case: str, tmp_path: Path) -> None:
    old, new, message = WRONG[case]
    assert old in LIBRARY
    file, text = tmp_path / "lib.mlir", tmp_path / "p.mlir"
    file.write_text(LIBRARY.replace(old, new, 1))
    text.write_text(program(SPELLED))
    done = shell("compile", text, "--target", "unified", "--use", file, "-o", tmp_path / "out.mlir")
    assert done.code == 1 and message.replace("<text>", str(file)) in done.err, done.err
    assert case == "no operator" or f"{file}:" in done.err
    assert not (tmp_path / "out.mlir").exists()


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("tilewright.shapes = 3", "is a set over the 1 symbolic dimensions of the kernel"),
        ("tilewright.shapes = affine_set<(d0) : (d0 >= 0)>", "is a set over the 1 symbolic dimensions"),
        ("tilewright.shapes = affine_set<()[s0, s1] : (s1 >= 0)>", "is a set over the 1 symbolic dimensions"),
        ("tilewright.targets = [3]", "is a list of target names"),
        ("tilewright.elements = [i32]", "is a list of float types"),
        ("tilewright.elements = 3", "is a list of float types"),
    ],
)
def test_constraints_of_no_sense(attribute: str, message: str) -> None:
    library = LIBRARY.replace('["m"]>>) {\n  %4', f'["m"]>>) attributes {{{attribute}}} {{\n  %4')
    with pytest.raises(SourceError, match=message) as caught:
        tilewright.compile(program(SPELLED), "unified", use=[library])
    assert caught.value.diagnostics[0].line > 0


def test_operators_that_call_each_other() -> None:
    library = LIBRARY.replace("  %e = graph.exp %d\n", "").replace("graph.mul %e, %b", "graph.mul %f, %b").replace(
        "  %p = graph.mul", '  %f = call %d {callee = @grow} : tensor<?x8xf32, #graph.dims<["m"]>>\n  %p = graph.mul'
    ) + (
        'func.func private @grow(%z: tensor<?x?xf32, #graph.dims<["q", "r"]>>)'
        ' -> tensor<?x?xf32, #graph.dims<["q", "r"]>> {\n'
        '  %e = graph.exp %z\n  return %e : tensor<?x?xf32, #graph.dims<["q", "r"]>>\n}\n'
    )
    found = tilewright.compile(program(SPELLED), "unified", use=[library])
    assert kernels(found) == ["rows_m12"]
    (warning,) = found.warnings
    assert "@grow has no kernels" in warning.message


def test_a_program_below_the_graph_level_has_nothing_to_be_found() -> None:
    for level in ("graph", "tile", "hardware"):
        dump = tilewright.compile(program(SPELLED), "unified", to=level).ir()
        with pytest.raises(SourceError, match="libraries of operators are for programs at the graph level"):
            tilewright.compile(dump, use=[LIBRARY])


def test_a_pipeline_without_match_says_so() -> None:
    with pytest.raises(SourceError, match="@weighted is still to be looked for: run match before fuse"):
        tilewright.compile(program(SPELLED), "unified", "canonicalize,decompose,fuse", use=[LIBRARY])


# --- kernels that are wrong -----------------------------------------------------------------------------------------


def test_a_wrong_kernel_is_refused_and_blamed(tmp_path: Path) -> None:
    file, text = tmp_path / "lib.mlir", tmp_path / "p.mlir"
    file.write_text(LIBRARY.replace("1.0 : f32]", "1.5 : f32]"))
    text.write_text(program(SPELLED))
    with pytest.raises(CheckError, match=r"kernel @rows_m12 is .* from its logic"):
        tilewright.compile(text, "unified", use=[file])
    assert kernels(tilewright.compile(text, "unified", use=[file], check=False)) == ["rows_m12"]
    words = (text, "--target", "unified", "--use", file)
    for command in (("compile", *words, "-o", tmp_path / "o.mlir"), ("run", *words, "--random", "0")):
        done = shell(*command)
        assert done.code == 4, command
        assert f"{file}:2:1: error: kernel @rows_m12" in done.err and f"{text}:4:8: note: used here" in done.err, (
            done.err
        )
    assert not (tmp_path / "o.mlir").exists()
    done = shell("validate", *words)
    assert done.code == 4 and "pass 'tile' is to blame" in done.err
    assert shell("compile", *words, "--reference", "main_0", "-o", tmp_path / "o.mlir").code == 0


def test_a_kernel_that_leaves_something_out_is_refused() -> None:
    library = LIBRARY.replace(
        "valid = affine_map<(d0)[s0] -> (s0 - d0 * 4, 8)>", "valid = affine_map<(d0)[s0] -> (s0 - d0 * 4, 7)>"
    )
    with pytest.raises(CheckError, match="from its logic"):
        tilewright.compile(program(SPELLED), "unified", use=[library])
    nothing = LIBRARY.replace("(s0 ceildiv 4)>()", "(s0 * 0)>()")
    with pytest.raises(CheckError, match="nothing was written there") as caught:
        tilewright.compile(program(SPELLED), "unified", use=[nothing])
    (found,) = caught.value.diagnostics
    assert found.line > 0 and found.notes[-1].message == "in kernel @rows_m12"


# --- commands -------------------------------------------------------------------------------------------------------


def test_every_command_that_compiles_takes_libraries() -> None:
    for command in ("compile", "run", "analyze", "report", "validate", "diff", "plan"):
        assert "--use" in shell(command, "--help").out, command


@pytest.mark.slow
def test_commands_with_libraries(tmp_path: Path) -> None:
    file, text = tmp_path / "lib.mlir", tmp_path / "p.mlir"
    file.write_text(LIBRARY)
    text.write_text(program(SPELLED))
    words = (text, "--target", "unified", "--use", file)
    for command in (("run", *words, "--random", "0"), ("plan", *words), ("report", *words, "--section", "fusion"),
                    ("validate", *words)):  # fmt: skip
        done = shell(*command)
        assert done.code == 0 and not done.err, (command, done.err)
        assert "rows_m12" in done.out, command
    done = shell("diff", text, "--target", "unified", "--use-b", file)
    assert done.code == 0 and "rows_m12" in done.out, done.err
    done = shell("report", *words, "--section", "fusion", "--json", "-")
    (row,) = json.loads(done.out)["fusion"]
    assert (row["kernel"], row["by_hand"]) == ("main_0", "rows_m12")
    assert row["refusals"] == []
    assert row["does"] == ["matmul", "2 mul", "sub", "exp", "reduce_sum"]
    assert shell("compile", text, "--use", tmp_path / "none.mlir").code == 1


def test_warnings_are_diagnostics(tmp_path: Path) -> None:
    file, text = tmp_path / "lib.mlir", tmp_path / "p.mlir"
    file.write_text(LIBRARY)
    text.write_text(program(SPELLED.replace("dense<0.5>", "dense<0.75>")))
    done = shell("run", text, "--target", "unified", "--use", file, "--random", "0", "--diagnostics=json")
    assert done.code == 0
    (found,) = [json.loads(line) for line in done.err.splitlines()]
    assert found["severity"] == "warning" and found["file"] == str(file)
    assert found["message"] == "@weighted occurs nowhere: at best 7 of its 8 operations agree"
    here, there = found["notes"]
    assert here["message"].startswith("here is the constant 0.75") and (here["file"], here["line"]) == (str(text), 2)
    assert there["file"] == str(file) and "dense<0.5>" in there["source"]


# --- references -----------------------------------------------------------------------------------------------------


def test_a_kernel_by_hand_is_swapped_for_its_logic() -> None:
    wrong = LIBRARY.replace("1.0 : f32]", "1.5 : f32]")
    found = tilewright.compile(program(SPELLED), "unified", use=[wrong], reference=["main_0"])
    assert "reference" in found.passes and not any("rows" in kernel for kernel in kernels(found))
    assert len(kernels(found)) == 6  # one for each operation
    assert tilewright.validate(found)


@pytest.mark.slow
def test_a_derived_kernel_is_swapped_for_its_logic() -> None:
    plain = tilewright.compile(program(SPELLED), "unified")
    swapped = tilewright.compile(program(SPELLED), "unified", reference=["main_0"])
    assert len(kernels(plain)) == 1 and len(kernels(swapped)) == 6
    assert tilewright.validate(swapped)
    dump = tilewright.compile(program(SPELLED), "unified", to="schedule").ir()
    assert len(kernels(tilewright.compile(dump, reference=["all"]))) == 6


def test_mistakes_of_references(tmp_path: Path) -> None:
    text = tmp_path / "p.mlir"
    text.write_text(program(SPELLED))
    done = shell("compile", text, "--target", "unified", "--reference", "main_7")
    assert done.code == 1 and "no kernel 'main_7'" in done.err and "did you mean 'main_0'?" in done.err
    done = shell("compile", text, "--target", "unified", "--reference", "main_0", "--to", "fuse")
    assert done.code == 1 and "which is not in the pipeline" in done.err
