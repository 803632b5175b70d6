"""Input and expected output of every pass: the files under filecheck/, each run as its RUN line says."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest
from cli_runner import tilewright
from filecheck.error import CheckError
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from tilewright.lowering.pipeline import PASSES

FOLDER = Path(__file__).parent / "filecheck"
FILES = sorted(FOLDER.glob("*.mlir"))


def check(output: str, expected: str) -> bool:
    """Whether an output has the lines that the CHECK comments of a text ask for."""
    options = Options(match_filename="expected", check_prefixes=["CHECK"])
    parser = Parser(options, io.StringIO(expected), *pattern_for_opts(options))
    return Matcher(options, FInput("output", output), parser).run() == 0


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_file(file: Path) -> None:
    text = file.read_text()
    (run,) = [line.partition("RUN:")[2] for line in text.splitlines() if "RUN:" in line]
    command, _, matcher = run.partition("|")
    assert matcher.split() == ["filecheck", "%s"]
    _, *words = shlex.split(command.replace("%s", str(file)))
    done = tilewright(*words)
    assert done.code == 0, done.err
    assert check(done.out, text)


def test_every_pass_has_a_file_with_what_it_does_and_what_it_rejects() -> None:
    assert {file.stem for file in FILES} == set(PASSES)
    for file in FILES:
        text = file.read_text()
        assert f" -p {file.stem} " in text and "CHECK:" in text
        # canonicalize and split take every module; the others have something to say no to.
        assert ("expected-error" in text) == (file.stem not in ("canonicalize", "split")), file


def test_a_missing_line_is_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        found = check("func.func @f\n", "// CHECK: func.func @g\n")
    except CheckError:
        found = False
    assert not found
