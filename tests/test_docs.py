"""The pages of the documentation: what they show works, what they quote exists, what is generated is complete."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest
from cli_runner import tilewright
from tilewright.dialects.graph import Graph
from tilewright.dialects.hardware import Hardware
from tilewright.dialects.tile import Tile
from tilewright.lowering.pipeline import PASSES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = runpy.run_path(str(DOCS / "generate.py"))["PAGES"]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL)


@pytest.fixture
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("beside_the_examples")
def test_the_page_of_tuning() -> None:
    lines = [line for block in blocks("tuning.md", "sh") for line in block.splitlines()]
    assert len(lines) >= 5
    for line in lines:
        done = tilewright(*shlex.split(line)[1:])
        assert done.code == 0, (line, done.err)
    for code in blocks("tuning.md", "python"):
        exec(compile(code, "tuning.md", "exec"), {})


@pytest.mark.usefixtures("beside_the_examples")
def test_the_python_page(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("NOTSET", "tilewright"):  # the page asks for more; afterwards it is as before
        names: dict[str, object] = {}
        for code in blocks("python.md", "python"):
            exec(compile(code, "python.md", "exec"), names)
    assert any(message.startswith("fuse: ") for message in caplog.messages)
    assert "unknown operation 'graph.nothing'" in capsys.readouterr().out


def test_messages_of_the_troubleshooting_page_exist() -> None:
    """Each quoted message is in the code, or is what the code puts together (a word of the target between)."""
    folders = ("ir", "dialects", "lowering", "runtime", "tilewright")
    code = "\n".join(file.read_text() for folder in folders for file in (ROOT / folder).rglob("*.py"))
    rows = re.findall(r"^\| `([^`]+)`", (DOCS / "troubleshooting.md").read_text(), flags=re.MULTILINE)
    assert len(rows) > 10
    for message in rows:
        assert message in code, message


def test_generated_pages_have_every_operation_and_every_pass() -> None:
    operations, passes = GENERATED["operations.md"](), GENERATED["passes.md"]()
    for dialect in (Graph, Tile, Hardware):
        for op in dialect.operations:
            assert operations.count(f"| `{op.name}` |") == 1, op.name
    assert re.findall(r"^## (\w+)$", passes, flags=re.MULTILINE) == list(PASSES)
    for row in operations.splitlines():
        assert not row.startswith("| `") or row.split("|")[-2].strip(), f"no docstring: {row}"


def test_every_page_is_in_the_navigation_and_every_link_leads_somewhere() -> None:
    pages = {file.name for file in DOCS.glob("*.md")} | GENERATED.keys()
    listed = set(re.findall(r"\b([\w-]+\.md)\b", (ROOT / "mkdocs.yml").read_text()))
    assert listed == pages
    for file in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([\w/.-]+\.md)\b", file.read_text()):
            assert target in pages or (DOCS / target).exists(), (file.name, target)


def same_but_for_gaps(found: str, shown: str) -> bool:
    """Whether the lines of an output are those shown; `…` stands for any number of lines."""
    parts = [[]] if not shown else [part.splitlines() for part in re.split(r"^\s*…\n", shown, flags=re.MULTILINE)]
    lines, position = [line.rstrip() for line in found.rstrip().splitlines()], 0
    for number, part in enumerate(parts):
        starts = [position] if number == 0 else range(position, len(lines) + 1)
        if number and number == len(parts) - 1 and part:
            starts = [len(lines) - len(part)]
        position = next((start + len(part) for start in starts if lines[start : start + len(part)] == part), -1)
        if position < 0:
            return False
    return position == len(lines) or not parts[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("beside_the_examples")
def test_the_story_of_custom_operators() -> None:
    """Its files are written, its commands run one after another, and each output is what the page shows."""
    done = None
    compared = 0
    text = (DOCS / "custom.md").read_text()
    for language, block in re.findall(r"```(\w+)\n(.*?)```", text, flags=re.DOTALL):
        if language == "mlir":
            head, _, body = block.partition("\n")
            Path(head.removeprefix("// ")).write_text(body)
        elif language == "sh":
            for line in block.splitlines():
                command, _, comment = line.partition("  # exits with ")
                if command.startswith("sed "):
                    subprocess.run(command, shell=True, check=True)
                    continue
                done = tilewright(*shlex.split(command)[1:])
                assert done.code == int(comment or 0), (line, done.err)
        else:
            assert done is not None
            assert same_but_for_gaps(done.out + done.err, block), done.out + done.err
            compared += 1
    assert compared == 8
