"""The cache of searches: it changes how long a compilation takes, and nothing else."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from cli_runner import tilewright as command
from pydantic import TypeAdapter
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import load_target
from tilewright.lowering import cache, costs, schedule
from tilewright.lowering.cache import Store, digest, remembered
from tilewright.lowering.costs import Costs
from tilewright.lowering.schedule import SchedulePass

import tilewright

PROGRAM = """func.func @main(%x: tensor<40x24xf16>, %w: tensor<24x32xf16>) -> tensor<40x32xf16> {
  %p = graph.matmul %x, %w
  %y = graph.softmax %p
  func.return %y
}
"""
TEXT: TypeAdapter[str] = TypeAdapter(str)
QUICK = "canonicalize,decompose,fuse{effort=8},split{effort=8},schedule{effort=8 measured=1},tile,place,bufferize,plan"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def no_search(*_: object) -> object:
    raise AssertionError("searched for what is in the cache")


def must_not_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "search", no_search)
    monkeypatch.setattr(schedule, "Trials", no_search)


def entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("target", "objective"), [("davinci{cores=2}", "time"), ("unified{memory.scratchpad.bytes=16KiB}", "traffic")]
)
def test_schedules_are_those_of_a_search(
    folder: Path, target: str, objective: tilewright.api.Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tilewright.compile(PROGRAM, target, QUICK, objective, cache=False)
    assert not folder.exists()
    first = tilewright.compile(PROGRAM, target, QUICK, objective)
    assert entries(folder)
    must_not_search(monkeypatch)
    again = tilewright.compile(PROGRAM, target, QUICK, objective)
    for one in (first, again):
        assert [one.ir(after=step) for step in one.passes] == [plain.ir(after=step) for step in plain.passes]


def test_why_there_is_no_kernel_is_known_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> str:
        with pytest.raises(tilewright.SourceError) as error:
            tilewright.compile(PROGRAM, "gemmini", QUICK)
        return str(error.value)

    first = said()
    must_not_search(monkeypatch)
    assert said() == first


def questions() -> dict[str, tuple[object, ...]]:
    """A question, and what it becomes when one thing is another."""
    davinci, usual = load_target("davinci"), SchedulePass()
    plain = Costs(davinci, "time", 400)
    found = {
        "plain": usual.question("group", plain),
        "group": usual.question("other", plain),
        "target": usual.question("group", Costs(load_target("davinci{memory.gm.read_latency=1401}"), "time", 400)),
        "objective": usual.question("group", Costs(davinci, "traffic", 400)),
        "search effort": usual.question("group", Costs(davinci, "time", 401)),
        "skew of the search": usual.question("group", Costs(davinci, "time", 400, skew=False)),
    }
    for field in fields(SchedulePass):
        value = getattr(usual, field.name)
        changed = replace(usual, **{field.name: not value if isinstance(value, bool) else value + 1})
        found[f"option {field.name}"] = changed.question("group", plain)
    return found


def test_everything_that_matters_varies_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {name: digest("schedule", question) for name, question in questions().items()}
    assert len(set(keys.values())) == len(keys) >= 6 + 5
    assert digest("estimate", questions()["plain"]) not in keys.values()
    monkeypatch.setattr(cache, "compiler", lambda: "another")
    assert digest("schedule", questions()["plain"]) not in keys.values()
    plain = Costs(load_target("davinci"), "time", 400)
    assert plain.question("group", 1) != plain.question("group", 6)


def test_the_compiler_is_known_by_its_sources(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text("1")
    (tmp_path / "b.txt").write_text("2")
    assert dict(cache._sources("part", tmp_path)) == {"part/deep/a.py": b"1"}  # pyright: ignore[reportPrivateUsage]
    names = [
        name
        for part in ("dialects", "lowering", "runtime")
        for name in os.listdir(Path(cache.__file__).parents[1] / part)
    ]
    assert {"cost.py", "search.py", "machine"} <= set(names)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-3],
    "cut in the digest": lambda data: data[:20],
    "a changed number": lambda data: data.replace(b"4", b"5"),
    "not text": lambda data: b"\xff\xfe" + data,
    "another type": lambda data: _sealed(b'{"tiles": "none"}'),
    "no JSON": lambda data: _sealed(b"tiles"),
}


def _sealed(content: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_none(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    wanted = Schedule("ab", (64, 48), (16, 48), "a", "resident", hold=("a",), slots=(2,))
    adapter = TypeAdapter(Schedule)
    remembered("schedule", ["x"], adapter, lambda: wanted)
    (entry,) = entries(folder)
    assert remembered("schedule", ["x"], adapter, lambda: pytest.fail("it is there")) == wanted
    entry.write_bytes(damage(entry.read_bytes()))
    assert remembered("schedule", ["x"], adapter, lambda: wanted) == wanted  # found anew, and repaired
    assert remembered("schedule", ["x"], adapter, lambda: pytest.fail("it is there")) == wanted


def test_what_fails_is_not_kept(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        remembered("schedule", ["x"], TEXT, lambda: str(1 // 0))
    assert not entries(folder)


def test_a_folder_that_cannot_be_used_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv(cache.VARIABLE, str(place))
        assert remembered("schedule", ["x"], TEXT, lambda: "found") == "found"


def test_the_least_recently_used_go(tmp_path: Path) -> None:
    store = Store(tmp_path, limit=1000)
    store.write("another", b"x" * 900)  # in a folder of its own
    for number in range(8):
        store.write(f"key{number}", b"x" * 50)  # 115 bytes each, with the digest
        os.utime(store.path(f"key{number}"), (number, number))
    assert store.read("key0") is not None  # used just now
    store.write("key8", b"x" * 50)
    assert [path.stem for path in entries(tmp_path)] == ["another", *(f"key{number}" for number in (0, 4, 5, 6, 7, 8))]


WRITER = """
import sys
from pathlib import Path
from tilewright.lowering.cache import Store

store, seed = Store(Path(sys.argv[1]), limit=1500), int(sys.argv[2])
for number in range(200):
    key = f"key{number * seed % 7}"
    content = store.read(key)
    assert content is None or len(set(content)) == 1, "part of an entry"
    store.write(key, bytes([65 + number % 26]) * (200 + 40 * seed))
"""


def test_processes_that_write_at_once_see_whole_entries(tmp_path: Path) -> None:
    """Each reads and replaces the same entries, in a folder small enough that they are removed all the time."""
    commands = [[sys.executable, "-c", WRITER, str(tmp_path), str(seed)] for seed in (3, 5)]
    writers = [subprocess.Popen(line, stderr=subprocess.PIPE, text=True) for line in commands]
    assert [(writer.communicate()[1], writer.returncode) for writer in writers] == [("", 0), ("", 0)]
    assert {path.suffix for path in entries(tmp_path)} == {".json"}


def test_the_command_line_uses_and_leaves_it(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program.mlir"
    program.write_text(PROGRAM)
    assert command("compile", program, "--pipeline", QUICK, "--no-cache", "-o", tmp_path / "a.mlir").code == 0
    assert not folder.exists()
    cold = command("compile", program, "--pipeline", QUICK, "-v", "-o", tmp_path / "b.mlir")
    assert "searched for: 1, known from the cache: 0" in cold.err
    must_not_search(monkeypatch)
    warm = command("compile", program, "--pipeline", QUICK, "-v", "-o", tmp_path / "c.mlir")
    assert "searched for: 0, known from the cache: 1" in warm.err
    assert len({(tmp_path / f"{name}.mlir").read_text() for name in "abc"}) == 1
    monkeypatch.setenv(cache.VARIABLE, "off")
    assert command("compile", program, "--pipeline", QUICK, "-o", tmp_path / "d.mlir").code == 3  # it searches


def test_hits_and_damage_are_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "tilewright.lowering.cache"):
        for _ in range(2):
            remembered("schedule", ["x"], TEXT, lambda: "found")
        entries(folder)[0].write_text(json.dumps("found"))
        remembered("schedule", ["x"], TEXT, lambda: "found")
    said = [record.getMessage().split(" (")[0] for record in caplog.records]
    assert said[:2] == ["schedule: not in the cache", "schedule: found in the cache"]
    assert "is damaged" in said[2] and len(said) == 4
