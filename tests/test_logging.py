"""What is logged: nothing unless asked, then passes, decisions and files, from the library and the shell."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_runner import tilewright as command
from tilewright.lowering.pipeline import PIPELINE

import tilewright

TEXT = """func.func @main(%x: tensor<8x16xf16>, %w: tensor<16x8xf16>) -> tensor<8x8xf16> {
  %p = graph.matmul %x, %w
  %y = graph.exp %p
  func.return %y : tensor<8x8xf16>
}
"""


@pytest.fixture(autouse=True)
def searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not another test has searched for the same."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", "off")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "p.mlir").write_text(TEXT)
    return tmp_path / "p.mlir"


def test_every_pass_says_how_long_it_took(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tilewright"):
        tilewright.compile(TEXT, "unified").run(seed=0)
    said = [(record.name, record.getMessage()) for record in caplog.records]
    last = {}
    for name, message in said:
        if found := re.fullmatch(r"(\w+): \d+\.\d{3} s, \d+ operations", message):
            assert name == "tilewright.lowering.pipeline"
            last[found[1]] = message
    assert tuple(last) == PIPELINE
    assert ("tilewright.lowering.fuse", "@main: operations: 3, groups: 1") in said
    assert any(name == "tilewright.lowering.schedule" and message.startswith("%y: ") for name, message in said)
    assert any(message.startswith("ran at the hardware level: ") for _, message in said)


def test_debug_has_the_decisions(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "tilewright"):
        program = tilewright.compile(TEXT, "unified")
    said = [record.getMessage() for record in caplog.records]
    assert any(message.startswith("one group: %p, %y: ") for message in said)
    assert "a group that was searched before" in said
    assert f"{program.analyze().cycles} cycles" in " ".join(said)
    assert any(message.startswith("@main_0 in scratchpad: ") for message in said)


def test_files_that_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "mine.toml").write_text('base = "unified"\nname = "mine"\n')
    with caplog.at_level(logging.INFO, "tilewright"):
        tilewright.load_target(str(tmp_path / "mine.toml"))
    assert "read the target 'mine'" in caplog.messages


def test_the_library_shows_nothing_by_itself() -> None:
    """Not even its warnings, which Python shows where a logger has no handler at all."""
    code = "import logging, tilewright; logging.getLogger('tilewright.lowering').warning('said')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


@pytest.mark.parametrize(
    ("options", "pass_times", "decisions"),
    [((), False, False), (("-v",), True, False), (("-vv",), True, True), (("--log-level", "debug"), True, True)],
)
def test_the_shell(options: tuple[str, ...], pass_times: bool, decisions: bool, program: Path) -> None:
    done = command("compile", program, "--target", "unified", "--to", "fuse", *options)
    assert done.code == 0 and done.out.startswith("module")
    assert ("tilewright.lowering.pipeline: fuse: " in done.err) == pass_times
    assert ("tilewright.lowering.costs: searched a group: " in done.err) == decisions
    logger = logging.getLogger("tilewright")
    assert logger.level == logging.NOTSET and [type(h) for h in logger.handlers] == [logging.NullHandler]


def test_as_json(program: Path) -> None:
    done = command("opt", program, "-p", "canonicalize,decompose", "-v", "--diagnostics=json")
    said = [json.loads(line) for line in done.err.splitlines()]
    assert [(one["severity"], one["logger"]) for one in said] == [("info", "tilewright.lowering.pipeline")] * 2
    assert said[1]["message"].startswith("decompose: ") and said[1]["file"] is None


def test_a_wrong_level() -> None:
    done = command("targets", "--log-level", "loud")
    assert done.code == 2 and "'loud'" in done.err
