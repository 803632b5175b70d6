"""Mistakes in target files and specifications: where they are reported, and in what words."""

from __future__ import annotations

import re

import pytest
from tilewright.dialects.target import TargetError, load_target

BASE = 'base = "unified"\n'


@pytest.fixture
def mistake(tmp_path):
    """Loads a text as a target file; returns the error, with the folder cut from its text."""

    def load(text):
        file = tmp_path / "m.toml"
        file.write_text(text)
        with pytest.raises(TargetError) as caught:
            load_target(str(file))
        error = caught.value
        assert error.file in (str(file), None)
        error.text = str(error).replace(f"{tmp_path}/", "")
        return error

    return load


# One row per rule: what follows `base = "unified"`, line and column of the first problem, part of its message.
ROWS = [
    ("cors = 2", 2, 1, "unknown key 'cors'; did you mean 'cores'?"),
    ("[memory.scratchpad]\nbites = 1", 3, 1, "unknown key 'bites'; did you mean 'bytes'?"),
    ("[memory.scratchpad]\n  bytes = '64kB'", 3, 3, 'expected a size such as 65536, "64KiB" or "1MiB", found "64kB"'),
    ("[memory.scratchpad]\nbytes = true", 3, 1, "expected an integer, found true"),
    ("[memory.scratchpad]\nbytes = 0", 3, 1, "expected greater than or equal to 1, found 0"),
    ("[memory.scratchpad]\nbytes = 100", 3, 1, "align 32 does not divide the 100 bytes"),
    ("[memory.scratchpad]\nscope = 'cor'", 3, 1, "expected 'core' or 'chip', found \"cor\"; did you mean 'core'?"),
    ("[memory.scratchpad]\ncore_rate = 5", 3, 1, "core_rate belongs to the off-chip memory"),
    ("[memory.scratchpad]\ngranule = 32", 3, 1, "granule is 1"),
    ("[memory.scratchpad]\nlayout = 'fractal'", 3, 1, "a fractal layout needs fractal_rows"),
    ("[memory.scratchpad]\noffchip = true", 3, 1, "exactly one memory must be off chip"),
    ("[memory.gm]\nscope = 'core'", 3, 1, "an off-chip memory has scope 'chip'"),
    ("[memory.gm]\ncore_rate = -1", 3, 1, "expected greater than or equal to 0.000001, found -1"),
    ("[memory.gm]\ncore_rate = inf", 3, 1, "expected a finite number"),
    ("[memory.new]\nbytes = 64", 2, 2, "missing key 'align' in [memory.new]"),
    ("[memory.new]\nbytes = 64\nalign = 32", 2, 2, "nothing moves data from gm into memory 'new'"),
    ("cores = 64", 2, 1, "64 cores, but max_cores is 32"),
    ("event_slots = 0", 2, 1, "expected greater than or equal to 1, found 0"),
    ("[engine.dma]\nkind = 'dam'", 3, 1, "kind: expected dma, matrix or vector, found 'dam'; did you mean 'dma'?"),
    ("[engine.dma]", 2, 2, "missing key 'kind' in [engine.dma]"),
    ("[engine.matrix]\nlhs = 'scratchpat'", 3, 1, "no memory 'scratchpat'; did you mean 'scratchpad'?"),
    ("[engine.vector]\nmemories = ['gmm']", 3, 1, "no memory 'gmm'; did you mean 'gm'?"),
    ("[engine.vector.startup]\nexpp = 3", 3, 1, "unknown key 'expp'; did you mean 'exp'?"),
    ("[engine.vector]\nstartup = {add = 1, mull = 2}", 3, 21, "unknown key 'mull'; did you mean 'mul'?"),
    ("[engine.matrix.types.f17]\nresult = 'f32'\nblock = [1, 1, 1]\nrate = 1", 2, 2,
     "unknown key 'f17'; did you mean 'f16'?"),
    ("[engine.matrix.types.f16]\nresult = 'f33'", 3, 1, "found \"f33\"; did you mean 'f32'?"),
    ("[engine.matrix.types.f16]\nblock = [16, 16]", 3, 1, "too few elements, number 3 is missing"),
    ("[engine.matrix.types.f16]\nblock = [16, 16, 1, 1]", 3, 1,
     "block: expected at most 3 items, found [16, 16, 1, 1]"),
    ("[engine.matrix.types.f16]\nmax_shape = [16, 8, 64]", 3, 1,
     "max_shape [16, 8, 64] is less than a block of [16, 16, 16]"),
    ("[engine.vector]\nmemories = []", 3, 1, "memories: expected at least 1 item, found []"),
    ("[[move]]\nfrom = 'gm'\nto = 'scratchpad'\nengine = 'laod'", 5, 1, "no engine 'laod'; did you mean 'load'?"),
    ("[[move]]\nfrom = 'gm'\nto = 'scratchpad'\nengine = 'vector'", 5, 1, "is of kind vector, not dma"),
    ("[[move]]\nfrom = 'gm'\nto = 'scratchpat'\nengine = 'load'", 4, 1, "no memory 'scratchpat'"),
    ("[[move]]\nfrom = 'gm'\nto = 'scratchpad'\nbias = 'l1'", 5, 1, "no memory 'l1'"),
    ("[[move]]\nfrom = 'gm'\nto = 'gm'\nengine = 'load'", 4, 1, "a move from gm to itself"),
    ("[[move]]\nfrom = 'gm'\nto = 'scratchpad'\ntranspos = true", 5, 1, "did you mean 'transpose'?"),
    ("[[move]]\nfrom = 'gm'\nto = 'scratchpad'\nactivation = ['rellu']", 5, 1,
     "no scalar operator 'rellu'; did you mean 'relu'?"),
    ("[[move]]\nto = 'scratchpad'", 2, 3, "missing key 'from' in a [[move]]"),
    ("[[move]]\nfrom = 'gm'\nto = 'x'\n[[move]]\nfrom = 'gm'\nto = 'x'", 7, 1, "the move from gm to x is given twice"),
    ("[[move]]\nfrom = 'gm'\nto = 'x'\nremove = true", 5, 1, "nothing to remove"),
    ("[[move]]\nfrom = 'scratchpad'\nto = 'gm'\nremove = true", 2, 3, "from memory 'scratchpad' back"),
    ("[move]\nx = 1", 2, 2, "moves are written as [[move]] tables"),
    ("cores = [", 2, None, "not valid TOML"),
    ("cores 5", 2, 7, "not valid TOML: Expected '=' after a key"),
]  # fmt: skip


@pytest.mark.parametrize("text, line, column, message", ROWS, ids=[row[0].replace("\n", "|") for row in ROWS])
def test_one_mistake(mistake, text, line, column, message):
    error = mistake(BASE + text + "\n")
    assert message in error.text
    assert error.line == line
    assert error.location.line.data == line
    if column is not None:
        assert error.column == column


def test_several_mistakes_at_once(mistake):
    error = mistake(BASE + "cors = 2\nclock_hz = 'fast'\n[memory.gm]\nalign = 0\n")
    assert [place.line for _, place in error.problems] == sorted(place.line for _, place in error.problems)
    assert len(error.problems) == 3 and len(error.notes) == 2
    assert re.findall(r"m\.toml:(\d+):1: error: ", error.text) == ["2", "3", "5"]


def test_mistake_in_the_base_is_reported_in_the_base(tmp_path):
    (tmp_path / "low.toml").write_text('base = "unified"\n\ncors = 1\n')
    (tmp_path / "top.toml").write_text('base = "low.toml"\ncores = 1\n')
    with pytest.raises(TargetError) as caught:
        load_target(str(tmp_path / "top.toml"))
    assert caught.value.file == str(tmp_path / "low.toml") and caught.value.line == 3


def test_unknown_base(mistake):
    error = mistake('cores = 1\nbase = "davincy"\n')
    assert (error.line, error.column) == (2, 1)
    assert "unknown target 'davincy'; did you mean 'davinci'?" in error.text
    assert "base is the name" in mistake("base = 3\n").text


def test_bases_in_a_circle(tmp_path):
    (tmp_path / "a.toml").write_text('base = "b.toml"\n')
    (tmp_path / "b.toml").write_text('base = "a.toml"\n')
    with pytest.raises(TargetError, match="based on each other") as caught:
        load_target(str(tmp_path / "a.toml"))
    assert str(caught.value).count("→") == 2  # once round


def test_empty_file_lists_what_is_missing(mistake):
    text = mistake("").text
    assert all(f"missing key '{key}' in the target" in text for key in ("clock_hz", "memory", "engine", "move"))


@pytest.mark.parametrize(
    "spec, message",
    [
        ("davincy", r"unknown target 'davincy'; did you mean 'davinci'\? \(known targets: .*davinci.*unified\)"),
        ("", "unknown target ''"),
        ("nowhere/x.toml", "cannot read target file 'nowhere/x.toml': No such file"),
        ("unified{memory.scratchpat.bytes=1}", "nothing named 'scratchpat' in memory; did you mean 'scratchpad'?"),
        ("unified{cors=1}", "<target>:1:9: error: unknown key 'cors'; did you mean 'cores'?"),
        ("unified{clock_hz=100000000000000000000000000}", "clock_hz: expected less than or equal to 1000000000000000"),
        ("unified{memory.gm.bytes=1000000000000000000000TiB}", "bytes: expected less than or equal to"),
        ("unified{launch_cycles=10000000000000}", "launch_cycles: expected less than or equal to"),
        ("unified{cores=}", "expected key=value, found 'cores='"),
        ("unified{cores}", "expected key=value, found 'cores'"),
        ("unified{cores=1", "expected overrides in braces"),
        ("unified{cores=two}", 'cores: expected an integer, found "two"'),
        ("unified{memory=3}", r"memory is a table; override its keys \(gm, scratchpad\)"),
        ("unified{cores=1 cores.x=1}", "nothing named 'cores' in the target"),
        ("unified{move.gm.scratchpad=3}", "move.gm.scratchpad is a table"),
        ("{", "not JSON"),
        ("[1]", "unknown target"),
        ("{}", "missing key 'name'"),
        ('{"move": 3}', "moves are written"),
    ],
)
def test_specifications(spec, message):
    with pytest.raises(TargetError) as caught:
        load_target(spec)
    assert re.search(message.replace("?", r"\?") if "\\" not in message else message, str(caught.value))


@pytest.mark.parametrize("spec, file", [("davincy", None), ("unified{cors=1}", "<target>")])
def test_attributes_of_the_error(spec, file):
    with pytest.raises(TargetError) as caught:
        load_target(spec)
    assert caught.value.file == file and (caught.value.location is None) == (file is None)
