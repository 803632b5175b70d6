"""Bad input of every kind: one clear message, the right exit code, no traceback, nothing half-written."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from cli_runner import Done, tilewright

SMALL = """func.func @main(%x: tensor<8x16xf16>, %y: tensor<8x16xf16>) -> tensor<8x16xf16> {
  %s = graph.add %x, %y : tensor<8x16xf16>
  %o = graph.exp %s : tensor<8x16xf16>
  func.return %o : tensor<8x16xf16>
}
"""


def check(done: Done, code: int, *parts: str) -> None:
    """The exit code, a message with these parts, and no more than a message."""
    assert done.code == code, done.err
    assert "Traceback" not in done.err and "internal error" not in done.err, done.err
    for part in parts:
        assert part in done.err, done.err
    if code == 1:
        assert done.out == ""
        assert done.err.count("error:") == 1, done.err


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.mlir").write_text(SMALL)
    return tmp_path


TEXTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "syntax": (
        SMALL.replace("= graph.exp %s :", "= graph.exp %s %s :"),
        ("bad.mlir:3:21: error:", "  %o = graph.exp %s %s : tensor", "\n                    ^^"),
    ),
    "unknown op": (
        SMALL.replace("graph.exp", "graph.expp"),
        ("bad.mlir:3:8: error:", "expp'", "did you mean 'graph."),
    ),
    "undefined value": (SMALL.replace("exp %s", "exp %t"), ("bad.mlir:3:18: error:", "%t")),
    "shape mismatch": (
        SMALL.replace("%y: tensor<8x16xf16>", "%y: tensor<8x15xf16>"),
        ("bad.mlir:2:8: error:", "[8, 16]", "[8, 15]"),
    ),
    "written result shape": (
        SMALL.replace("add %x, %y : tensor<8x16xf16>", "add %x, %y : tensor<8x17xf16>"),
        ("bad.mlir:2:", "8x16", "8x17"),
    ),
    "wrong dtype": (
        SMALL.replace("graph.exp %s : tensor<8x16xf16>", "graph.exp %s : tensor<8x16xi32>"),
        ("bad.mlir:3:", "f16", "i32"),
    ),
    "unknown dtype": (SMALL.replace("f16", "f17"), ("bad.mlir:1:", "f17")),
    "misspelt attribute": (
        SMALL.replace("exp %s", "softmax %s {axs = 1}"),
        ("bad.mlir:3:26: error: 'graph.softmax' has no attribute 'axs'", "did you mean 'axis'?"),
    ),
    "attribute of another kind": (
        SMALL.replace("exp %s", "reduce_max %s {axes = 1, keepdims}"),
        ("bad.mlir:3:29: error: 'axes' is a list of integers, as in axes = [0, 1]; got 1",),
    ),
    "flag with a value": (
        SMALL.replace("exp %s", "reduce_max %s {keepdims = true}"),
        ("bad.mlir:3:29: error: 'keepdims' is just its name, as in {keepdims}",),
    ),
    "huge extent": (
        SMALL.replace("8x16", "99999999999999999999x16"),
        ("bad.mlir:1:28: error: this number is too large",),
    ),
    "huge shape": (SMALL.replace("8x16", "1000000x10000000"), ("bad.mlir:1:", "at most 2^40 elements")),
    "high rank": (SMALL.replace("8x16", "1x" * 30 + "16"), ("bad.mlir:1:", "at most 24 dimensions")),
    "number beyond its type": (
        SMALL.replace("add %x, %y", "constant dense<1.0e30>"),
        ("bad.mlir:2:23: error: a number here does not fit its type",),
    ),
    "integer beyond its type": (
        SMALL.replace("%s = graph.add %x, %y : tensor<8x16xf16>", "%c = graph.constant dense<300> : tensor<4xi8>"),
        ("bad.mlir:2:29: error: 300 does not fit i8",),
    ),
    "division by zero": (
        SMALL.replace("add %x, %y", "view %x {maps = [affine_map<(d0, d1) -> (d0 mod 0, d1)>]}"),
        ("bad.mlir:2:", "division by zero"),
    ),
    "aliases that explode": (
        "#a0 = [1, 2]\n" + "".join(f"#a{n + 1} = [#a{n}, #a{n}]\n" for n in range(40)) + SMALL,
        ("bad.mlir:17:1: error: alias '#a16' stands for more than",),
    ),
    "two functions of one name": (
        SMALL + SMALL,
        ("bad.mlir:6:1: error: '@main' is defined twice", "bad.mlir:1:1: note:"),
    ),
    "no body": (
        "func.func @main(tensor<8xf16>) -> tensor<8xf16>\n",
        ("bad.mlir:1:1: error: @main has no body",),
    ),
    "empty": ("", ()),
    "no function": ("module {\n}\n", ("public function",)),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("command", [("compile",), ("run", "--random", "0")], ids=["compile", "run"])
def test_texts(case: str, command: tuple[str, ...]) -> None:
    text, parts = TEXTS[case]
    Path("bad.mlir").write_text(text)
    done = tilewright(*command, "bad.mlir")
    assert done.code == 1 and done.out == "" and "error:" in done.err, done
    assert "Traceback" not in done.err and "internal error" not in done.err
    for part in parts:
        assert part in done.err, done.err


def test_unbound_dimension_says_how_to_bind_it() -> None:
    Path("dyn.mlir").write_text(
        'func.func @main(%x: tensor<?x8xf16, #graph.dims<["seq"]>>) -> tensor<?x8xf16, #graph.dims<["seq"]>> {\n'
        '  %y = graph.exp %x\n  func.return %y : tensor<?x8xf16, #graph.dims<["seq"]>>\n}\n'
    )
    check(tilewright("compile", "dyn.mlir"), 1, "'seq'", "--dim seq=")
    check(tilewright("compile", "dyn.mlir", "--dim", "sec=4"), 1, "'sec'", "did you mean 'seq'?")
    check(tilewright("compile", "dyn.mlir", "--dim", "seq=0"), 1, "at least 1")
    check(tilewright("compile", "dyn.mlir", "--dim", "seq=many"), 2, "NAME=SIZE")
    assert tilewright("compile", "dyn.mlir", "--dim", "seq=4", "--to", "graph").code == 0


def test_all_unbound_dimensions_are_named() -> None:
    Path("dyn.mlir").write_text(
        'func.func @main(%x: tensor<?x?xf16, #graph.dims<["m", "n"]>>) -> tensor<?x?xf16, #graph.dims<["m", "n"]>> {\n'
        '  %y = graph.exp %x\n  return %y : tensor<?x?xf16, #graph.dims<["m", "n"]>>\n}\n'
    )
    check(tilewright("compile", "dyn.mlir"), 1, "'m' of 'x', 'n' of 'x'", "--dim m=512 --dim n=512")
    check(tilewright("compile", "dyn.mlir", "--dim", "m=3", "--dim", "m=4"), 2, "'m' is given twice")
    check(tilewright("compile", "dyn.mlir", "--dim", f"m={10**30}"), 2, "too large")
    check(tilewright("compile", "dyn.mlir", "--dim", f"m={2**21}", "--dim", f"n={2**21}"), 1, "at most 2^40 elements")


def test_missing_file_suggests_a_near_one() -> None:
    check(tilewright("compile", "smal.mlir"), 1, "no file 'smal.mlir'", "did you mean 'small.mlir'?")


def test_devices_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.ir.source.LARGEST_FILE", 1 << 16)
    check(tilewright("compile", "/dev/zero"), 1, "'/dev/zero' is larger than")
    check(tilewright("compile", "small.mlir", "--target", "/dev/zero"), 1, "larger than")


def test_directory() -> None:
    Path("folder").mkdir()
    check(tilewright("compile", "folder"), 1, "directory")


def test_binary_file() -> None:
    Path("bin.mlir").write_bytes(bytes(range(256)) * 40)
    check(tilewright("compile", "bin.mlir"), 1, "bin.mlir", "not a text file")
    Path("latin.mlir").write_bytes(SMALL.replace("main", "m\xe4in").encode("latin-1"))
    check(tilewright("compile", "latin.mlir"), 1, "latin.mlir:1:", "UTF-8")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bytes", "words", "one line", "braces", "string"])
def test_50_megabytes_of_garbage_end_soon(kind: str) -> None:
    size = 50_000_000
    rng = random.Random(0)
    unit = {
        "bytes": rng.randbytes(100_000),
        "words": b"func.func @main tensor<8x16xf16> = graph.exp %x \n" * 100,
        "one line": b"x" * 100_000,
        "braces": b"{" * 100_000,
        "string": b'"' + b"a" * 99_999,
    }[kind]
    Path("huge.mlir").write_bytes((unit * (size // len(unit) + 1))[:size])
    done = tilewright("compile", "huge.mlir")
    check(done, 1, "huge.mlir")
    assert len(done.err) < 5000


@pytest.mark.parametrize("depth", [300, 20_000])
def test_deep_nesting(depth: int) -> None:
    opening = '"graph.fused"() ({\n' * depth
    Path("deep.mlir").write_text("func.func @main() {\n" + opening + "}) : () -> ()\n" * depth + "func.return\n}\n")
    done = tilewright("compile", "deep.mlir")
    assert done.code == 1 and "error:" in done.err and "internal" not in done.err, done.err[:500]
    Path("attr.mlir").write_text(SMALL.replace("add %x, %y", f"add %x, %y {{a = {'[' * depth}{']' * depth}}}"))
    done = tilewright("compile", "attr.mlir", "--to", "graph")
    assert "Traceback" not in done.err and "internal" not in done.err, done.err[:500]


class TestInputs:
    def save(self, name: str, array: np.ndarray) -> str:
        np.save(name, array)
        return name

    def test_missing(self) -> None:
        check(tilewright("run", "small.mlir"), 1, "input x: 8x16xf16")

    def test_wrong_name(self) -> None:
        self.save("a.npy", np.zeros((8, 16), np.float16))
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "xx=a.npy"), 1, "'xx'", "did you mean 'x'?")

    def test_wrong_shape(self) -> None:
        self.save("a.npy", np.zeros((8, 15), np.float16))
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "x=a.npy"), 1, "[8, 15]", "[8, 16]")

    def test_wrong_dtype(self) -> None:
        self.save("a.npy", np.zeros((8, 16), np.float32))
        done = tilewright("run", "small.mlir", "--random", "0", "--input", "x=a.npy")
        check(done, 1, "float32", "f16", "x.astype('float16')")

    def test_not_an_array(self) -> None:
        Path("a.npy").write_text("not an array")
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "x=a.npy"), 1, "a.npy", "not a .npy file")
        np.save("b.npy", np.array([{}], dtype=object), allow_pickle=True)
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "x=b.npy"), 1, "b.npy", "not a .npy file")
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "x=none.npy"), 1, "no file 'none.npy'")
        np.savez("c.npz", np.zeros(3))
        Path("c.npz").rename("c.npy")
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "x=c.npy"), 1, "archive of arrays")
        Path("d.npy").write_bytes(b"PK\x03\x04 broken archive")
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "x=d.npy"), 1, "d.npy", "not a .npy file")
        Path("e.npy").write_bytes(b"\x93NUMPY\x01\x00\x16\x00{'descr': ('<f2', (((  \n")
        check(tilewright("run", "small.mlir", "--random", "0", "--input", "x=e.npy"), 1, "e.npy", "not a .npy file")

    def test_usage(self) -> None:
        check(tilewright("run", "small.mlir", "--input", "x"), 2, "NAME=FILE")
        check(tilewright("run", "small.mlir", "--random", "one"), 2, "one")
        check(tilewright("run"), 2, "FILE")
        check(tilewright("walk"), 2, "walk")

    def test_expectation_that_fails_is_exit_4(self) -> None:
        self.save("y.npy", np.zeros((8, 16), np.float16))
        done = tilewright("run", "small.mlir", "--random", "0", "--expect", "o=y.npy")
        check(done, 4, "'o' differs from 'y.npy'", "tolerance")
        check(tilewright("run", "small.mlir", "--random", "0", "--expect", "p=y.npy"), 1, "no output 'p'")


def test_a_reference_of_another_precision_is_compared_with() -> None:
    assert tilewright("run", "small.mlir", "--random", "0", "--save", "o=o.npy").code == 0
    np.save("o64.npy", np.load("o.npy").astype(np.float64))
    assert tilewright("run", "small.mlir", "--random", "0", "--expect", "o=o64.npy").code == 0
    np.save("o64.npy", np.load("o.npy").astype(np.float64) * 1.02)
    check(tilewright("run", "small.mlir", "--random", "0", "--expect", "o=o64.npy"), 4, "'o' differs")
    np.save("o64.npy", np.zeros((8, 15)))
    check(tilewright("run", "small.mlir", "--random", "0", "--expect", "o=o64.npy"), 1, "[8, 15]")


def test_results_that_rounding_does_not_explain_are_pointed_out() -> None:
    assert "warning" not in tilewright("run", "small.mlir", "--random", "0").err
    np.save("x.npy", np.full((8, 16), 11, np.float16))  # exp overflows f16, not float64
    done = tilewright("run", "small.mlir", "--input", "x=x.npy", "--random", "0", "--json", "-")
    assert done.code == 0 and "warning: output 'o' is" in done.err
    import json

    error = json.loads(done.out, parse_constant=lambda name: pytest.fail(name))["outputs"][0]["max_rel_err"]
    assert error > 1e300


def test_a_dump_for_another_target() -> None:
    for level in ("tile", "hardware"):
        assert tilewright("compile", "small.mlir", "--to", level, "-o", "dump.mlir").code == 0
        done = tilewright("run", "dump.mlir", "--target", "unified", "--random", "0")
        check(done, 1, "dump.mlir:", "target 'unified' has no memory 'ub'", "lowered for another target")


def test_a_recorded_target_that_is_unknown() -> None:
    Path("m.mlir").write_text('module attributes {tilewright.target = "relu"} {\n' + SMALL + "}\n")
    check(tilewright("compile", "m.mlir"), 1, "m.mlir:1:1:", "unknown target 'relu'")


def test_stops_that_are_passed_already() -> None:
    assert tilewright("compile", "small.mlir", "--to", "tile", "-o", "tile.mlir").code == 0
    check(tilewright("compile", "tile.mlir", "--to", "graph"), 1, "past 'graph'")
    check(tilewright("compile", "small.mlir", "-p", "schedule"), 1, "small.mlir:2:", "in no group: run fuse first")


def test_tensor_that_cannot_fit() -> None:
    Path("big.mlir").write_text(SMALL.replace("8x16", "1000000x1000000"))
    done = tilewright("run", "big.mlir", "--random", "0")
    check(done, 1, "fit")


def test_tile_that_cannot_fit() -> None:
    done = tilewright("compile", "small.mlir", "--target", "unified{memory.scratchpad.bytes=32}")
    check(done, 1, "small.mlir:2:", "fit")


def test_unknown_target() -> None:
    check(tilewright("compile", "small.mlir", "--target", "davinchi"), 1, "davinchi", "davinci")
    check(tilewright("compile", "small.mlir", "--target", "none.toml"), 1, "none.toml")
    Path("mine.toml").write_text('base = "davinci"\n')
    check(tilewright("compile", "small.mlir", "--target", "mine"), 1, "did you mean the file mine.toml?")
    check(tilewright("compile", "small.mlir", "--target", "davinci{memory.l9.bytes=5}"), 1, "l9")


def test_unknown_pass() -> None:
    done = tilewright("compile", "small.mlir", "-p", "canonicalize,decompos")
    check(done, 1, "'decompos'", "did you mean 'decompose'?")
    check(tilewright("compile", "small.mlir", "-p", "fuse{unfusd=true}"), 1, "fuse", "unfusd")
    check(tilewright("compile", "small.mlir", "-p", "fuse{unfused=maybe}"), 1, "fuse", "maybe")
    check(tilewright("compile", "small.mlir", "-p", "fuse{unfused=true"), 1, "fuse")
    check(tilewright("compile", "small.mlir", "-p", "canonicalize,,fuse"), 1, "pass name is missing")
    check(tilewright("compile", "small.mlir", "--to", "hardwear"), 1, "hardwear", "did you mean 'hardware'?")
    check(tilewright("compile", "small.mlir", "-p", "tile"), 1, "small.mlir:2:")


def test_broken_target_file() -> None:
    Path("t.toml").write_text('base = "davinci"\n[memory.ub]\nbytes = "many"\n')
    check(tilewright("compile", "small.mlir", "--target", "t.toml"), 1, "t.toml:3:", 'bytes = "many"')
    Path("t.toml").write_text('base = "davinci"\n[memory.ub\n')
    check(tilewright("compile", "small.mlir", "--target", "t.toml"), 1, "t.toml:2:")


def test_unwritable_output(in_empty_folder: Path) -> None:
    Path("folder").mkdir()
    Path("file").write_text("kept")
    before = sorted(in_empty_folder.rglob("*"))
    for path in ("nowhere/o.mlir", "folder", "file/o.mlir"):
        check(tilewright("compile", "small.mlir", "-o", path), 1, f"cannot write '{path}'")
        check(tilewright("run", "small.mlir", "--random", "0", "--json", path), 1, f"cannot write '{path}'")
        check(tilewright("run", "small.mlir", "--random", "0", "--save", f"o={path}"), 1, f"cannot write '{path}'")
    check(tilewright("compile", "small.mlir", "--dump-dir", "file"), 1, "cannot write 'file'")
    assert sorted(in_empty_folder.rglob("*")) == before
    assert Path("file").read_text() == "kept"


def test_a_failed_compilation_leaves_the_old_output() -> None:
    Path("o.mlir").write_text("kept")
    target = "unified{memory.scratchpad.bytes=32}"
    check(tilewright("compile", "small.mlir", "--target", target, "-o", "o.mlir"), 1)
    assert Path("o.mlir").read_text() == "kept"


def test_stale_offset_in_an_edited_dump() -> None:
    assert tilewright("compile", "small.mlir", "--to", "plan", "-o", "plan.mlir").code == 0
    text = Path("plan.mlir").read_text()
    # The sum is moved onto the first input, which is still alive when it is written.
    import re

    offsets = sorted({int(n) for n in re.findall(r"tile\.alloc \{offset = (\d+)", text)})
    assert len(offsets) > 1
    Path("plan.mlir").write_text(text.replace(f"offset = {offsets[-1]} ", "offset = 0 "))
    done = tilewright("compile", "plan.mlir")
    check(done, 1, "plan.mlir:", "stale offset")
    assert tilewright("compile", "plan.mlir", "-p", "plan,emit,sync").code == 0


def test_a_hand_edit_that_makes_a_race_is_exit_4() -> None:
    assert tilewright("compile", "small.mlir", "-o", "hw.mlir").code == 0
    text = Path("hw.mlir").read_text()
    lines = [line for line in text.splitlines() if "hardware.signal" not in line and "hardware.wait" not in line]
    Path("hw.mlir").write_text("\n".join(lines))
    done = tilewright("run", "hw.mlir", "--random", "0")
    assert done.code in (0, 4), done.err  # `sync` puts the events back: nothing is missing
    assert done.code == 0
    kept = [line for line in text.splitlines() if 'to = "vector"' not in line]
    Path("hw.mlir").write_text("\n".join(kept))
    check(tilewright("run", "hw.mlir", "--random", "0"), 4, "race")


def test_nan_and_infinities_pass_through() -> None:
    x = np.zeros((8, 16), np.float16)
    x[0, :4] = [np.nan, np.inf, -np.inf, 1]
    np.save("x.npy", x)
    np.save("y.npy", np.zeros((8, 16), np.float16))
    np.save("want.npy", np.exp(x.astype(np.float64)).astype(np.float16))
    args = ("--input", "x=x.npy", "--input", "y=y.npy", "--expect", "o=want.npy", "--save", "o=o.npy")
    done = tilewright("run", "small.mlir", *args)
    assert done.code == 0, done.err
    found = np.load("o.npy")
    assert np.isnan(found[0, 0]) and found[0, 1] == np.inf and found[0, 2] == 0


def test_internal_error_leaves_a_reproducer(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.lowering.tile import TilePass

    def broken(self: TilePass, ctx: object, op: object) -> None:
        raise KeyError("something unforeseen")

    with monkeypatch.context() as patch:
        patch.setattr(TilePass, "apply", broken)
        # The schedule pass tries its candidates on the real passes, so it must be past.
        done = tilewright("compile", "small.mlir", "-p", "canonicalize,decompose,fuse,tile")
    assert done.code == 3
    assert done.err.count("error:") == 2 and "Traceback" not in done.err, done.err  # "error: internal error: …"
    (path,) = Path().glob("tilewright-crash-*.mlir")
    assert path.name in done.err
    text = path.read_text()
    assert f"tilewright compile {path.name} -p tile" in text and "something unforeseen" in text
    again = tilewright("compile", path, "-p", "schedule,tile")
    assert again.code == 0, again.err


def test_a_machine_that_lacks_a_type_says_so() -> None:
    Path("f64.mlir").write_text(SMALL.replace("f16", "f64"))
    for target in ("davinci", "unified"):
        check(tilewright("compile", "f64.mlir", "--target", target), 1, "f64.mlir:2:", "does not compute in f64")


def test_a_program_without_results() -> None:
    Path("none.mlir").write_text("func.func @main(%x: tensor<4xf32>) {\n  func.return\n}\n")
    check(tilewright("run", "none.mlir", "--random", "0"), 1, "returns nothing")


def test_inputs_beyond_this_computers_memory() -> None:
    Path("big.mlir").write_text(SMALL.replace("8x16", "100000x100000"))
    check(tilewright("run", "big.mlir", "--random", "0"), 1, "memory")


def test_options_of_schedule_below_one() -> None:
    done = tilewright("compile", "small.mlir", "-p", "decompose,fuse,schedule{tries=0}")
    check(done, 1, "the options of schedule are at least 1")


def test_hand_edited_numbers_of_a_plan() -> None:
    import re

    assert tilewright("compile", "small.mlir", "--to", "plan", "--target", "unified", "-o", "plan.mlir").code == 0
    text = Path("plan.mlir").read_text()
    Path("bad.mlir").write_text(text.replace("tilewright.outputs = 1 : i64", "tilewright.outputs = 9 : i64"))
    check(tilewright("compile", "bad.mlir"), 1, "bad.mlir:", "tilewright.outputs of @main is not a number up to 3")
    alloc = re.search(r"tile\.alloc .*#tile\.layout<.*\[16, (\d+)\]>>", text)
    assert alloc is not None
    line = alloc.group()
    Path("bad.mlir").write_text(text.replace(line, line.replace(f"[16, {alloc[1]}]>>", "[16, 0]>>")))
    check(tilewright("compile", "bad.mlir"), 1, "bad.mlir:", "puts two elements on the same bytes")
    loop = (
        "  tile.kernel @extra() -> () {\n    tile.for %i = 99999999999999999999 to 2 {\n      tile.yield\n    }\n  }\n"
    )
    Path("bad.mlir").write_text(text.replace("  func.func", loop + "  func.func", 1))
    check(tilewright("compile", "bad.mlir"), 1, "bad.mlir:", "this number is too large")


@pytest.mark.parametrize("level", ["plan", "emit"])
def test_a_launch_of_what_is_no_kernel(level: str) -> None:
    """Found by test_fuzz: planning looked it up."""
    assert tilewright("compile", "small.mlir", "--to", level, "--target", "unified", "-o", "k.mlir").code == 0
    text = Path("k.mlir").read_text()
    Path("bad.mlir").write_text(text.replace("callee = @main_0", "callee = @main"))
    check(tilewright("compile", "bad.mlir"), 1, "there is no kernel @main; did you mean '@main_0'?")


BROKEN_RECORDS = {
    r"(launch %\w+), %\w+": (r"\1", "kernel @main_0 takes 3 operands, 'tile.launch' has 2"),
    r"(launch )(%\w+)": (r"\1\2, \2", "kernel @main_0 takes 3 operands, 'tile.launch' has 4"),
    r"tilewright\.arguments = [^>]*>": ("tilewright.arguments = array<i64: 5>", "for each of 3 arguments, got 1"),
    r"tilewright\.workspace = \d+": ('tilewright.workspace = "x"', "'tilewright.workspace' is a number of bytes"),
    r"tilewright\.memory = \{[^}]*\}": ("tilewright.memory = {gm = 3}", "'tilewright.memory' is two numbers of bytes"),
}


@pytest.mark.parametrize("pattern", BROKEN_RECORDS)
def test_records_of_passes_that_are_edited(pattern: str) -> None:
    """Found by test_fuzz: later passes and reports took them for what they are called."""
    import re

    assert tilewright("compile", "small.mlir", "--to", "plan", "--target", "unified", "-o", "plan.mlir").code == 0
    text, (edited, message) = Path("plan.mlir").read_text(), BROKEN_RECORDS[pattern]
    Path("bad.mlir").write_text(re.sub(pattern, edited, text.replace(" : i64, tilewright", ", tilewright")))
    for command in (("run", "bad.mlir", "--random", "0"), ("report", "bad.mlir"), ("compile", "bad.mlir")):
        done = tilewright(*command)
        assert done.code == 1 and message in done.err and "internal" not in done.err, done.err


@pytest.mark.parametrize(
    "schedule", ["{}", "{axes = 3}", '{axes = "a", order = "b", tiles = array<i64: 1>, extents = array<i64: 1>}']
)
def test_a_schedule_of_any_content_below_the_graph_level(schedule: str) -> None:
    import re

    assert tilewright("compile", "small.mlir", "--target", "unified", "-o", "k.mlir").code == 0
    text = re.sub(r"schedule = \{[^}]*\}", f"schedule = {schedule}", Path("k.mlir").read_text())
    Path("k.mlir").write_text(text)
    for command in (("run", "k.mlir", "--random", "0"), ("report", "k.mlir"), ("analyze", "k.mlir")):
        assert tilewright(*command).code == 0


def test_a_number_that_is_none_says_what_is_expected() -> None:
    check(tilewright("run", "small.mlir", "--random", "abc"), 2, "'--random': 'abc' is not a valid integer.")
    check(tilewright("run", "small.mlir", "--random", "-1"), 2, "-1 is not in the range x>=0")
    check(tilewright("run", "small.mlir", "--tolerance", "much"), 2, "'--tolerance': 'much' is not a valid number.")
