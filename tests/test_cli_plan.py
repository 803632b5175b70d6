"""`tilewright plan`: tables in, offsets out, and what is no table."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from cli_runner import tilewright
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.lowering.plan_greedy import place_greedily
from tilewright.lowering.plan_interval import Interval

from tilewright.plan_csv import Problem, check_offsets, read_problem, solution

SMALL = "id,lower,upper,size\na,0,4,4\nb,2,6,4\nc,4,8,4\n"


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.csv").write_text(SMALL)


def test_a_plan() -> None:
    done = tilewright("plan", "small.csv", "--capacity", "8")
    assert done.code == 0 and "peak 8 bytes, at most 8 are alive at once" in done.err
    offsets = {row["id"]: int(row["offset"]) for row in csv.DictReader(io.StringIO(done.out))}
    assert offsets["b"] not in (offsets["a"], offsets["c"]) and set(offsets.values()) == {0, 4}
    assert tilewright("plan", "small.csv", "-o", "plan.csv").out == ""
    assert Path("plan.csv").read_text() == done.out


def test_fixed_offsets_stay() -> None:
    Path("fixed.csv").write_text("id,lower,upper,size,offset\na,0,4,4,6\nb,2,6,4,\nc,4,8,4, 0\n")
    done = tilewright("plan", "fixed.csv")
    assert done.code == 0 and done.out == "id,offset\na,6\nb,10\nc,0\n", done.err
    fixed = "id,lower,upper,size,offset\na,0,4,4,6\nb,2,6,4,\nc,3,8,4,9\n"
    Path("fixed.csv").write_text(fixed)
    done = tilewright("plan", "fixed.csv")
    assert done.code == 1 and "fixed.csv:4:1: error: 'c' is fixed on bytes that 'a', in line 2, has" in done.err


def test_the_search_goes_on_where_greedy_orders_stop() -> None:
    spans = "11 16 352, 6 12 288, 4 9 128, 3 9 320, 6 11 160, 7 11 352, 10 16 192, 1 4 320, 1 5 320, 10 13 128"
    spans += ", 3 4 160, 1 7 128"
    rows = [f"b{n}," + ",".join(span.split()) for n, span in enumerate(spans.split(","))]
    Path("hard.csv").write_text("id,lower,upper,size\n" + "\n".join(rows) + "\n")
    assert "peak 1248 bytes" in tilewright("plan", "hard.csv").err
    assert tilewright("plan", "hard.csv", "--capacity", "1248").code == 0
    done = tilewright("plan", "hard.csv", "--capacity", "1248", "--nodes", "0")
    assert done.code == 1 and "no plan was found that fits into 1248 bytes: peak 1312" in done.err


def test_what_does_not_fit() -> None:
    done = tilewright("plan", "small.csv", "--capacity", "7", "-o", "plan.csv")
    assert done.code == 1 and "no plan fits into 7 bytes: peak 8 bytes" in done.err and not Path("plan.csv").exists()
    assert tilewright("plan", "small.csv", "--capacity", "1KiB").code == 0
    assert tilewright("plan", "small.csv", "--capacity", "lots").code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "small.csv: error: the table is empty"),
        ("a,0,4,4\n", "small.csv:1:1: error: the columns are id, lower, upper, size"),
        (
            "id,lower,upper,size,alignment,offset\na,0,4,4,4,6\n",
            "small.csv:2:1: error: offset 6 is not a multiple of the alignment 4, from 0 up",
        ),
        ("id,lower,upper,size,offset\na,0,4,4,-4\n", "small.csv:2:1: error: offset -4 is not a multiple"),
        ("id,lower,upper,size,offset\na,0,4,4,x\n", "small.csv:2:1: error: offset is an integer, got 'x'"),
        (SMALL + "d,1,2\n", "small.csv:5:1: error: 4 columns are expected, got 3"),
        (SMALL + "d,2,2,4\n", "small.csv:5:1: error: lower 2 is not below upper 2"),
        (SMALL + "d,1,2,0\n", "small.csv:5:1: error: size and alignment are at least 1"),
        (SMALL + "d,1,2,4.5\n", "small.csv:5:1: error: size is an integer, got '4.5'"),
        (SMALL + "d,1,2," + "9" * 30 + "\n", "small.csv:5:1: error: size is an integer"),
        (SMALL + ",1,2,4\n", "small.csv:5:1: error: the id is empty\n,1,2,4\n^^^^^^"),
        (SMALL + '"d\nd",1,2,x\n', "small.csv:6:1: error: size is an integer, got 'x'"),
        (SMALL + "d" * 200_000 + ",1,2,4\n", "small.csv:5:1: error: this is no line of a table: field larger than"),
        (SMALL + "a,1,2,4\n", "small.csv:5:1: error: buffer 'a' is there twice, first in line 2"),
    ],
)
def test_bad_tables(text: str, message: str) -> None:
    Path("small.csv").write_text(text)
    done = tilewright("plan", "small.csv")
    assert done.code == 1 and done.out == "" and message in done.err, done.err


def test_lines_end_as_on_any_system() -> None:
    wanted = tilewright("plan", "small.csv").out
    for end in ("\r\n", "\r"):
        Path("other.csv").write_bytes(SMALL.replace("\n", end).encode())
        assert tilewright("plan", "other.csv").out == wanted
    assert tilewright("plan", "small.csv", "-o", "-").out == wanted and not Path("-").exists()


def test_every_bad_line_is_named() -> None:
    Path("small.csv").write_text(SMALL + "d,3,2,4\ne,1,2,x\n")
    assert tilewright("plan", "small.csv").err.count("error:") == 2


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    intervals: list[Interval] = []
    for _ in range(draw(st.integers(0, 12))):
        start = draw(st.integers(-3, 12))
        end = start + draw(st.integers(1, 8))
        align = draw(st.sampled_from([1, 1, 2, 3, 8]))
        intervals.append(Interval(start, end, draw(st.integers(1, 20)), align=align))
    return Problem(tuple(f"b{n}" for n in range(len(intervals))), tuple(intervals))


@given(problem=problems(), data=st.data())
@settings(max_examples=200, deadline=None)
def test_plans_are_right_and_wrong_ones_are_caught(problem: Problem, data: st.DataObject) -> None:
    found = place_greedily(problem.intervals)
    check_offsets(problem, found.offsets)
    header, *rows = solution(problem, found.offsets).splitlines()
    assert header == "id,offset" and len(rows) == len(problem.names)
    pairs = [
        (a, b)
        for a, one in enumerate(problem.intervals)
        for b, other in enumerate(problem.intervals)
        if a != b and one.start < other.end and other.start < one.end
    ]
    if pairs:  # move one buffer onto the last byte of another
        moved, other = data.draw(st.sampled_from(pairs))
        offsets = list(found.offsets)
        offsets[moved] = offsets[other] + problem.intervals[other].size - 1
        with pytest.raises(AssertionError):
            check_offsets(problem, offsets)


def test_a_table_is_read_as_it_was_written() -> None:
    text = "id,lower,upper,size,alignment\nx y,0,4,3,8\nz,-2,1,5,1\n"
    problem = read_problem(text, "t.csv")
    assert problem.names == ("x y", "z") and problem.intervals[0].align == 8 and problem.intervals[1].start == -2
