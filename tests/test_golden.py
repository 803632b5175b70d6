"""What becomes of every example, for readers of a change: dumps of three levels and the figures of each kernel.

The files of golden/ are not the specification; other tests say what is right. They show what a change does: after it,
`pytest tests/test_golden.py --update-golden` and look at the difference. Left out is what is long: layouts, maps
of the hardware level, and its views, which stand where they are used.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest
from example_programs import EXAMPLES, Compiled

from tilewright import Program

FOLDER = Path(__file__).parent / "golden"
UPDATE = "pytest tests/test_golden.py --update-golden"
SHOWN = 60
"""Lines of a difference that a failure prints."""

VIEW = re.compile(r' *(%\w+) = hardware\.view .*?: !hardware\.view<([^,]*), "(\w+)">\n')


def golden(program: Program) -> str:
    """The page of one example: figures, then what each level says, the long parts left out."""
    machine = program.analyze()
    lines = [f"{program.target.name}: {machine.cycles} cycles"]
    lines += [f"  {k.name}: {k.cycles} cycles, {k.read_bytes} + {k.write_bytes} bytes" for k in machine.kernels]
    figures = "".join(f"// {line}\n" for line in lines)
    levels = {"schedule": program.ir("graph"), "plan": program.ir("tile"), "sync": program.ir("hardware")}
    return figures + "".join(f"\n// after {last}\n{elided(text)}" for last, text in levels.items())


def elided(text: str) -> str:
    """A dump without layouts and without what an earlier level has said."""
    text = re.sub(r"(?<=\d) : i64(?=[,}\]])", "", text)
    text = re.sub(r", #tile\.layout<[^>]*>", "", text)
    if "tile.kernel" in text or "hardware.kernel" in text:
        text = re.sub(r"\bschedule = \{[^}]*\}, ", "", text)
    views: dict[str, str] = {}

    def inline(line: str) -> str:
        made = VIEW.fullmatch(line)
        if made:
            views[made[1]] = f"{made[3]}<{made[2]}>"
            return ""
        return re.sub(r"%\w+", lambda name: views.get(name[0], name[0]), line)

    return "".join(inline(line) for line in text.splitlines(keepends=True))


def test_dumps(compiled_example: Compiled, request: pytest.FixtureRequest) -> None:
    path = FOLDER / f"{compiled_example.example}.txt"
    found = golden(compiled_example.program)
    if request.config.getoption("--update-golden"):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(found)
        return
    wanted = path.read_text() if path.exists() else ""
    if found != wanted:
        pytest.fail(difference(wanted, found, path.name), pytrace=False)


def difference(wanted: str, found: str, name: str) -> str:
    """The lines that differ, the command that accepts them, and how many lines are not shown."""
    lines = list(
        difflib.unified_diff(wanted.splitlines(), found.splitlines(), f"golden/{name}", "what is made now", lineterm="")
    )
    left = len(lines) - SHOWN
    more = [f"… and {left} more lines"] if left > 0 else []
    return "\n".join([*lines[:SHOWN], *more, f"If this is what the change is meant to do: {UPDATE}"])


def test_every_file_is_of_an_example(request: pytest.FixtureRequest) -> None:
    known = {f"{example}.txt" for example in EXAMPLES}
    for path in FOLDER.iterdir():
        if path.name not in known and request.config.getoption("--update-golden"):
            path.unlink()
    assert {path.name for path in FOLDER.iterdir()} <= known


def test_a_failure_shows_the_difference_and_how_to_accept_it() -> None:
    before = "".join(f"line {n}\n" for n in range(200))
    shown = difference(before, before.replace("line 7\n", "line seven\n"), "x.txt")
    assert "-line 7\n+line seven\n" in shown and UPDATE in shown and "more lines" not in shown
    assert "… and 143 more lines" in difference(before, "", "x.txt")


def test_what_is_left_out() -> None:
    text = (
        'hardware.kernel @k() attributes {schedule = {order = "a", slots = array<i64: 2>}, m = {ub = [4 : i64]}} {\n'
        '  %4 = hardware.view %0, %a {offset = affine_map<(d0) -> (d0)>} : !hardware.view<8x4xf16, "gm">\n'
        '  hardware.dma %4, %1 {engine = "mte2", count = 2 : i64}\n'
    )
    assert elided(text) == (
        "hardware.kernel @k() attributes {m = {ub = [4]}} {\n"
        '  hardware.dma gm<8x4xf16>, %1 {engine = "mte2", count = 2}\n'
    )
