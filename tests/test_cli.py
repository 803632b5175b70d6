"""The commands, as a user types them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cli_runner import tilewright
from example_programs import FOLDER
from tilewright.lowering.pipeline import PIPELINE

from tilewright.cli import cli

SMALL = """func.func @main(%x: tensor<8x16xf16>, %y: tensor<8x16xf16>) -> tensor<8x16xf16> {
  %s = graph.add %x, %y : tensor<8x16xf16>
  %o = graph.exp %s : tensor<8x16xf16>
  func.return %o : tensor<8x16xf16>
}
"""


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.mlir").write_text(SMALL)


def test_compile_prints_the_level_asked_for() -> None:
    for level, sign in (("graph", "graph.fused"), ("tile", "tile.kernel"), ("hardware", "hardware.program")):
        done = tilewright("compile", "small.mlir", "--to", level)
        assert done.code == 0 and sign in done.out and done.err == ""
    assert tilewright("compile", "small.mlir").out == done.out
    assert "graph.fused" not in tilewright("compile", "small.mlir", "-p", "canonicalize").out
    assert '"func.func"(' in tilewright("compile", "small.mlir", "--to", "graph", "--generic").out
    assert tilewright("compile", "small.mlir", "-o", "o.mlir").out == ""
    assert Path("o.mlir").read_text() == done.out
    assert tilewright("compile", "o.mlir").out == done.out
    assert tilewright("compile", "small.mlir", "-o", "-").out == done.out


def test_every_dumped_file_says_how_to_go_on() -> None:
    folder = "a dump"
    assert tilewright("compile", "small.mlir", "--dump-dir", folder, "--objective", "traffic").code == 0
    files = sorted(Path(folder).iterdir())
    assert [file.name[:3] for file in files] == [f"{n:02}-" for n in range(len(PIPELINE) + 1)]
    end = tilewright("compile", files[-1]).out
    for file in files:
        comment = file.read_text().splitlines()[0]
        assert comment.startswith("// tilewright ")
        program, *words = shlex.split(comment.removeprefix("// "))
        assert program == "tilewright"
        done = tilewright(*words)
        assert done.code == 0, done.err
        if words[0] == "compile":
            assert done.out == end, file
    assert words[0] == "run"


def test_run_reports_everything() -> None:
    done = tilewright("run", "small.mlir", "--random", "0")
    assert done.code == 0, done.err
    for part in ("8x16", "f16", "fused", "unfused", "compulsory", "cycles", "main_0", "resident", "1.000×"):
        assert part in done.out, done.out
    assert "\x1b" not in done.out


def test_run_as_json() -> None:
    done = tilewright("run", "small.mlir", "--random", "0", "--json", "-")
    figures = json.loads(done.out)
    assert figures["traffic"]["read_bytes"] == 512 and figures["compulsory_bytes"] == 768
    assert figures["outputs"][0]["name"] == "o" and figures["outputs"][0]["max_rel_err"] < 1e-3
    done = tilewright("run", "small.mlir", "--random", "0", "--json", "f.json")
    assert "fused" in done.out
    assert json.loads(Path("f.json").read_text()) == figures


def test_run_unfused() -> None:
    done = tilewright("run", "small.mlir", "--random", "0", "--unfused", "--json", "-")
    figures = json.loads(done.out)
    assert len(figures["kernels"]) == 2
    assert figures["traffic"]["read_bytes"] == figures["unfused"]["read_bytes"] == 768


@pytest.mark.parametrize("level", ["graph", "tile", "hardware"])
def test_inputs_outputs_and_expectations(level: str) -> None:
    x, y = np.linspace(-1, 1, 128, dtype=np.float16).reshape(8, 16), np.ones((8, 16), np.float16)
    np.save("x.npy", x)
    np.save("y.npy", y)
    args = ["run", "small.mlir", "--level", level, "--input", "x=x.npy", "--input", "y=y.npy"]
    assert tilewright(*args, "--save", "o=o.npy").code == 0
    np.testing.assert_allclose(np.load("o.npy"), np.exp(x + y), rtol=2e-3)
    done = tilewright(*args, "--expect", "o=o.npy", "--tolerance", "0")
    assert done.code == 0, done.err
    np.save("o.npy", np.load("o.npy") * np.float16(1.5))
    assert tilewright(*args, "--expect", "o=o.npy").code == 4
    assert tilewright(*args, "--expect", "o=o.npy", "--tolerance", "0.6").code == 0


def test_bf16_goes_through_files() -> None:
    Path("b.mlir").write_text(SMALL.replace("f16", "bf16"))
    x = np.ones((8, 16), ml_dtypes.bfloat16)
    np.save("x.npy", x)
    done = tilewright("run", "b.mlir", "--input", "x=x.npy", "--input", "y=x.npy", "--save", "o=o.npy")
    assert done.code == 0, done.err
    assert np.load("o.npy").view(ml_dtypes.bfloat16).astype(np.float32) == pytest.approx(np.exp(2), rel=1e-2)
    assert tilewright("run", "b.mlir", "--input", "x=o.npy", "--random", "0").code == 0


def test_dims_and_targets() -> None:
    file = FOLDER / "attention_any.mlir"
    done = tilewright("run", file, "--dim", "seq=24", "--random", "0", "--target", "unified{cores=1}", "--json", "-")
    figures = json.loads(done.out)
    assert figures["target"] == "unified{cores=1}" and figures["outputs"][0]["shape"] == [2, 24, 64]


def test_a_target_is_shown() -> None:
    shown = tilewright("targets", "davinci{memory.ub.bytes=64KiB}").out
    for part in ("64 KiB", "l0c -> ub", "fixpipe", "16x16x16", "256 bytes per cycle"):
        assert part in shown
    assert tilewright("targets", "davinchi").code == 1


def test_listings() -> None:
    targets = tilewright("targets").out
    assert "davinci" in targets and "unified" in targets and "l0a" in targets
    passes = tilewright("passes").out
    assert passes.index("canonicalize") < passes.index("bufferize") < passes.index("sync")
    assert "unfused=false" in passes


def test_help_and_version() -> None:
    assert "compile" in tilewright("--help").out
    for command in cli.commands:
        assert tilewright(command, "--help").code == 0
    assert "0.1.0" in tilewright("--version").out


def test_as_a_process() -> None:
    """The real executable: exit code, streams, no colours into a pipe, a reader that goes away early."""
    command = [sys.executable, "-m", "tilewright"]
    done = subprocess.run([*command, "compile", "none.mlir"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == "" and done.stderr == "error: no file 'none.mlir'\n"
    environment = {**os.environ, "NO_COLOR": "1", "FORCE_COLOR": "1"}
    done = subprocess.run([*command, "targets"], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0 and "\x1b[3" not in done.stdout
    pipe = subprocess.Popen([*command, "compile", "small.mlir"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert pipe.stdout is not None and pipe.stderr is not None
    pipe.stdout.close()
    assert b"Traceback" not in pipe.stderr.read()
    pipe.stderr.close()
    assert pipe.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("opt - <&-", 1, "error: the standard input is closed\n"),
        ("compile small.mlir --to graph >&-", 1, "cannot write the standard output: bad file descriptor\n"),
        ("passes >&-", 1, "cannot write the standard output: bad file descriptor\n"),
        ("compile small.mlir --to graph -o out.mlir >&-", 0, ""),
        ("compile small.mlir --to graph >/dev/full", 1, "cannot write the standard output: no space left on device\n"),
        ("run small.mlir --random 0", 0, ""),
    ],
)
def test_standard_streams_that_are_closed_full_or_of_few_letters(words: str, code: int, message: str) -> None:
    """A table has letters, × say, that an old encoding lacks."""
    line = f"exec {shlex.quote(sys.executable)} -m tilewright {words}"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code and done.stderr.endswith(message), done.stderr
    assert bool(message) == bool(done.stderr) and ("1.000?" in done.stdout) == words.startswith("run")
    assert not list(Path().glob("tilewright-crash*"))


def test_a_schedule_edited_by_hand_is_obeyed_or_rejected() -> None:
    assert tilewright("compile", "small.mlir", "--to", "schedule", "-o", "s.mlir").code == 0
    text = Path("s.mlir").read_text()
    assert 'tiles = array<i64: 8, 16>, order = ""' in text and 'hold = ["", ""]' in text
    edited = text.replace('tiles = array<i64: 8, 16>, order = ""', 'tiles = array<i64: 3, 16>, order = "a"')
    edited = edited.replace('hold = ["", ""]', 'hold = ["a", "a"]')
    Path("s.mlir").write_text(edited)
    figures = json.loads(tilewright("run", "s.mlir", "--random", "0", "--json", "-").out)
    assert figures["kernels"][0]["schedule"]["tiles"] == [3, 16]
    assert "hardware.for %a = 0 to 3" in tilewright("compile", "s.mlir").out
    for wrong, message in (
        ("array<i64: 9, 16>", "between 1 and its extent 8"),
        ("array<i64: 3>", "each of the 2 axes"),
    ):
        Path("s.mlir").write_text(edited.replace("tiles = array<i64: 3, 16>", f"tiles = {wrong}"))
        done = tilewright("compile", "s.mlir")
        assert done.code == 1 and message in done.err and "s.mlir:" in done.err, done.err
