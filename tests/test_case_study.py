"""The case study: every command of the page runs, prints what the page says, and draws the pictures that it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cli_runner import tilewright

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "attention.md").read_text()
BLOCK = re.compile(r"```(sh|text|mlir)\n(.*?)```", flags=re.DOTALL)


def check_excerpt(shown: str, printed: str) -> None:
    """The lines of an excerpt come in this order, next to one another where no … stands between them."""
    lines, position, gap = [line.rstrip() for line in printed.splitlines()], 0, True
    lines = [line for line in lines if line]
    for line in (line.rstrip() for line in shown.splitlines() if line.strip()):
        if line == "…":
            gap = True
            continue
        assert line in lines[position:], line
        found = lines.index(line, position)
        assert gap or found == position, f"something stands before: {line}"
        position, gap = found + 1, False


@pytest.mark.slow
def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change of the search, paste the new output; copy the new pictures to docs/pictures."""
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"`(\w+\.mlir)`:\s", PAGE)
    texts = [text for kind, text in BLOCK.findall(PAGE) if kind == "mlir"]
    for name, text in zip(programs, texts, strict=True):
        Path(name).write_text(text)
    printed, commands = "", 0
    for kind, text in BLOCK.findall(PAGE):
        if kind == "sh":
            printed = ""
            for line in text.splitlines():
                done = tilewright(*shlex.split(line)[1:])
                assert done.code == 0, (line, done.err)
                printed, commands = printed + done.out, commands + 1
        elif kind == "text":
            check_excerpt(text, printed)
    assert commands > 10
    shown = re.findall(r"\]\(pictures/(\w+\.svg)\)", PAGE)
    assert len(shown) == 3
    for name in shown:
        assert (DOCS / "pictures" / name).read_text() == Path(name).read_text(), name


def test_excerpts_are_checked() -> None:
    printed = "a  \n\nb\nc\nd\n"
    check_excerpt("a\nb\n…\nd", printed)
    for wrong in ("a\nc", "b\n…\na", "e"):
        with pytest.raises(AssertionError):
            check_excerpt(wrong, printed)
