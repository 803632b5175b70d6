"""How diagnostics are written: a screen of them, JSON, colours."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from cli_runner import tilewright

from tilewright.cli import invoke

MANY = "func.func @main() {\n" + "".join(f"  %{n} = graph.nothing{n}\n" for n in range(40)) + "  return\n}\n"


@pytest.fixture(autouse=True)
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LINES", raising=False)
    Path("many.mlir").write_text(MANY)


@pytest.mark.parametrize("lines", [3, 12, 40, 1000])
def test_at_most_one_screen(lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", str(lines))
    done = tilewright("compile", "many.mlir")
    shown = done.err.count("error:")
    assert 1 <= shown <= 40 and (done.err.count("\n") < lines or shown == 1)
    assert (f"… and {40 - shown} more errors; --all-errors shows all" in done.err) == (shown < 40)
    assert (shown == 40) == (lines == 1000)


def test_all_errors() -> None:
    done = tilewright("compile", "many.mlir", "--all-errors")
    assert done.code == 1 and done.err.count("error:") == 40 and "more error" not in done.err


def test_json() -> None:
    done = tilewright("compile", "many.mlir", "--diagnostics=json")
    found = [json.loads(line) for line in done.err.splitlines()]
    assert done.code == 1 and len(found) == 40
    assert [one["line"] for one in found] == list(range(2, 42))
    first = found[0]
    assert first["severity"] == "error" and first["file"] == "many.mlir" and first["column"] == 8
    source = first["source"]
    assert source[first["column"] - 1 :][: first["length"]] == "graph.nothing0" and "graph.nothing0" in first["message"]


def test_json_of_notes_of_what_has_no_place_and_of_wrong_use() -> None:
    Path("twice.mlir").write_text("func.func @f() {\n  return\n}\nfunc.func @f() {\n  return\n}\n")
    (error,) = map(json.loads, tilewright("compile", "twice.mlir", "--diagnostics", "json").err.splitlines())
    assert error["line"] == 4 and [(n["severity"], n["line"]) for n in error["notes"]] == [("note", 1)]
    (error,) = map(json.loads, tilewright("compile", "none.mlir", "--diagnostics=json").err.splitlines())
    assert (error["line"], error["file"], error["length"]) == (None, None, None)
    done = tilewright("compile", "--diagnostics=json", "many.mlir", "--dim", "nonsense")
    (error,) = map(json.loads, done.err.splitlines())
    assert done.code == 2 and "NAME=SIZE" in error["message"]
    assert tilewright("targets", "davincy", "--diagnostics=json").err.startswith("{")


@pytest.mark.parametrize(
    "args",
    [
        ("compile", "many.mlir", "--diagnostics=json", "--tagret", "unified"),
        ("compile", "--tagret", "unified", "many.mlir", "--diagnostics", "json"),
        ("compil", "--diagnostics=json"),
        ("compile", "--diagnostics=json"),
        ("run", "many.mlir", "--diagnostics=json", "--tolerance", "nan"),
    ],
)
def test_json_of_command_lines_that_cannot_be_read(args: tuple[str, ...]) -> None:
    """What is wrong may stand before the option that says how to say it."""
    done = tilewright(*args)
    (error,) = map(json.loads, done.err.splitlines())
    assert done.code == 2 and error["severity"] == "error"


def test_verifiers_report_all_they_find() -> None:
    """Of a text that is well-formed: several operations of another dialect whose verifiers complain."""
    Path("bad.mlir").write_text(
        "func.func @f(%a: i32) -> i32 {\n"
        '  %b = "func.call"(%a) <{callee = @f}> : (i32) -> i32\n'
        '  "func.return"() : () -> ()\n}\n'
        'func.func @g(%a: i32) -> i32 {\n  "func.return"() : () -> ()\n}\n'
    )
    found = [json.loads(line) for line in tilewright("opt", "bad.mlir", "--diagnostics=json").err.splitlines()]
    assert [one["line"] for one in found] == [3, 6]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("terminal", "no_color", "coloured"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_colours_only_on_a_terminal(
    terminal: bool, no_color: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", no_color) if no_color else monkeypatch.delenv("NO_COLOR", raising=False)
    stream = _Terminal() if terminal else io.StringIO()
    with redirect_stderr(stream):
        assert invoke(["compile", "many.mlir"]) == 1
    assert ("31m" in stream.getvalue()) == coloured  # red
