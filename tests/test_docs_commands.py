"""Every command of the pages is run, in order; every output that they show is what its command prints.

A block of `sh` is a list of commands. A block of `text` right behind one shows what its last command prints, first on
the standard output, then on the standard error stream; `…` stands for what is left out, times for any times. A program
whose first line is a comment with its name (`// gate.mlir`) is there under that name. After a change of outputs,
`pytest tests/test_docs_commands.py --update-golden` writes the blocks without `…` anew.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_runner import Done, tilewright

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/start.md", "docs/index.md", "docs/language.md", "docs/onnx.md", "docs/targets.md")
ELSEWHERE = {
    "docs/attention.md": "test_case_study.py",
    "docs/custom.md": "test_docs.py",
    "docs/tuning.md": "test_docs.py",
}
"""Pages whose commands build on one another in ways of their own → the file that runs them."""
RUN_ELSEWHERE = ("README.md", "docs/index.md")
"""Their Python runs in the quick part of the tests."""
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", flags=re.DOTALL | re.MULTILINE)
TIME = re.compile(r"\b\d+\.\d{3}(?= s\b)")


@dataclass
class Block:
    """A fenced block: its language, its text, where that begins, and whether it stands right behind the one before."""

    language: str
    text: str
    start: int
    follows: bool


def blocks(page: str) -> Iterator[Block]:
    end = -1
    for found in BLOCK.finditer(page):
        yield Block(found[1], found[2], found.start(2), page[end : found.start()].strip() == "" and end >= 0)
        end = found.end()


def commands(block: Block) -> list[list[str]]:
    """The `tilewright` commands of a shell block, comments and installation left out."""
    lines = (line.split("&&")[-1].strip().removeprefix(".venv/bin/") for line in block.text.splitlines())
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("tilewright ")]


def printed(done: Done) -> str:
    """What a terminal shows of a command, without blanks at line ends."""
    return "".join(f"{line.rstrip()}\n" for line in (done.out + done.err).strip().splitlines())


def shows(wanted: str, found: str) -> bool:
    """Whether an output is what a page shows of it."""
    parts = [re.escape(TIME.sub("0.000", part.strip())) for part in wanted.split("…")]
    return re.fullmatch(".*".join(parts), TIME.sub("0.000", found.strip()), flags=re.DOTALL) is not None


def prepare(folder: Path) -> None:
    """What the pages speak of beside their own programs."""
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "buffers.csv").write_text("id,lower,upper,size\na,0,4,4\nb,2,6,4\nc,4,8,4\n")
    onnx = pytest.importorskip("onnx")
    helper, kinds = onnx.helper, onnx.TensorProto
    value, node = helper.make_tensor_value_info, helper.make_node
    small = helper.make_graph(
        [node("MatMul", ["x", "w"], ["p"]), node("Relu", ["p"], ["y"])],
        "model",
        [value("x", kinds.FLOAT, ["batch", "seq"]), value("w", kinds.FLOAT, ["seq", 16])],
        [value("y", kinds.FLOAT, None)],
    )
    broken = helper.make_graph(
        [
            node("Reshape", ["x", "sizes"], ["r"], name="shape"),
            node("NonMaxSuppression", ["r", "scores"], ["y"], name="boxes"),
        ],
        "detector",
        [value("x", kinds.FLOAT, [1, 8, 4]), value("sizes", kinds.INT64, [3]), value("scores", kinds.FLOAT, [1, 1, 8])],
        [value("y", kinds.INT64, None)],
    )
    for name, graph in (("model", small), ("detector", broken)):
        opset = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(graph, opset_imports=opset), folder / f"{name}.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    updated, moved = text, 0
    last: Done | None = None
    for block in blocks(text):
        if block.language == "mlir" and (name := re.match(r"// (\w+\.mlir)\b", block.text)):
            Path(name[1]).write_text(block.text)
        if block.language == "toml" and (name := re.match(r"# (\w+\.toml)\b", block.text)):
            Path(name[1]).write_text(block.text)
        if block.language == "text" and block.follows and last is not None:
            found = printed(last)
            if request.config.getoption("--update-golden") and "…" not in block.text:
                at = block.start + moved
                updated = updated[:at] + found + updated[at + len(block.text) :]
                moved += len(found) - len(block.text)
            else:
                assert shows(block.text, found), f"{page} shows\n{block.text}\nand this is printed\n{found}"
        if block.language == "python" and page not in RUN_ELSEWHERE:
            exec(compile(block.text, page, "exec"), {})
        last = None
        if block.language == "sh":
            expected = 1 if "does not work" in block.text else 0
            for words in commands(block):
                last = tilewright(*words)
                assert last.code == expected, (words, last.err)
    if updated != text:
        (ROOT / page).write_text(updated)


def test_every_page_with_commands_is_tried() -> None:
    pages = [file.relative_to(ROOT).as_posix() for file in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))]
    with_commands = [page for page in pages if any(map(commands, blocks((ROOT / page).read_text())))]
    assert set(with_commands) <= {*PAGES, *ELSEWHERE}
    for page, file in ELSEWHERE.items():
        assert page.removeprefix("docs/") in (ROOT / "tests" / file).read_text()


def test_what_differs_is_noticed() -> None:
    output = "a 1\nb: 0.123 s, 7 operations\nc\n"
    assert shows(output, output) and shows("a 1\n…\nc\n", output) and shows("…b: 0.456 s, 7…", output)
    assert not shows("a 1\nc\n", output) and not shows("a 2\n…", output) and not shows("…0.456 s, 8…", output)
