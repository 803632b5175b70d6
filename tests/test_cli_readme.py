"""What the README and docs/index.md show is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cli_runner import tilewright

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/index.md")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """The `tilewright` commands of a page's shell blocks, comments and installation left out."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    found = [line.split("&&")[-1].strip().removeprefix(".venv/bin/") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in found if line.startswith("tilewright ")]


@pytest.fixture(autouse=True)
def beside_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


def test_the_excerpt_is_what_the_first_command_prints() -> None:
    """After a change of the search, paste the new output into the README."""
    done = tilewright(*commands("README.md")[0])
    assert done.code == 0, done.err
    wanted, found = (
        [line.rstrip() for line in text.strip().splitlines()] for text in (blocks("README.md", "text")[0], done.out)
    )
    assert found == wanted


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_command_works(page: str) -> None:
    for words in commands(page):
        done = tilewright(*words)
        assert done.code == 0, (words, done.err)


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
