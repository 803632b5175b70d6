"""Python of the README and of docs/index.md runs, links lead somewhere, programs of the language page run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_runner import tilewright

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/index.md")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


@pytest.fixture(autouse=True)
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_the_page_runs(page: str) -> None:
    (code,) = blocks(page, "python")
    exec(compile(code, page, "exec"), {})


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES[1:]])
def test_links_and_named_files_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert ((ROOT / page).parent / target).exists(), target
    for name in re.findall(r"`((?:dialects|lowering|runtime|ir|tests|docs|benchmarks|examples)/[\w./]+)`", text):
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("number", range(len(blocks("docs/language.md", "mlir"))))
def test_the_programs_of_the_language_page_run(number: int, tmp_path: Path) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(blocks("docs/language.md", "mlir")[number])
    dims = ["--dim", "seq=50"] if "?" in program.read_text() else []
    done = tilewright("run", program, "--random", "0", "--target", "unified", *dims)
    assert done.code == 0, done.err
    assert "warning" not in done.err


def test_the_levels_of_the_language_page_are_what_is_printed(tmp_path: Path) -> None:
    """Each excerpt's lines, up to what they leave out, come in this order."""
    program = tmp_path / "program.mlir"
    program.write_text(blocks("docs/language.md", "mlir")[-1])
    excerpts = blocks("docs/language.md", "text")
    for level, excerpt in zip(("graph", "tile", "hardware"), excerpts[:3], strict=True):
        printed = tilewright("compile", program, "--to", level, "--target", "unified", "--objective", "traffic").out
        position = 0
        for part in (part.strip() for line in excerpt.splitlines() for part in line.split("…")):
            found = printed.find(part, position)
            assert found >= 0, f"{level}: {part}"
            position = found + len(part)
