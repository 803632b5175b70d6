"""Broken input is told from whole, and said so: no traceback, no hang, no memory blown up.

`TILEWRIGHT_FUZZ=100 pytest tests/test_fuzz.py` tries a hundred times as much, other input each time. What it finds
becomes a test of its own, named after what broke.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path
from random import Random

import fuzz
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tilewright

TIMES = int(os.environ.get("TILEWRIGHT_FUZZ", "1"))
SECONDS = 20.0
"""For one attempt; all take less than one of an idle computer's."""
SPACE = 4 << 30
"""Bytes that this process may take beyond what it has: what asks for more must be said no to before."""

RANDOM = st.randoms(use_true_random=False)
PROFILE = settings(
    max_examples=30 * TIMES,
    deadline=None,
    derandomize=TIMES == 1,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In an empty folder, with a bound on memory where the system tells how much is taken."""
    monkeypatch.chdir(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    taken = Path("/proc/self/statm")
    if taken.exists():
        pages = int(taken.read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + SPACE, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.mark.parametrize("kind", fuzz.ATTEMPTS)
@PROFILE
@given(random=RANDOM)
def test_a_command_says_what_is_wrong(kind: str, random: Random) -> None:
    done = fuzz.run(fuzz.ATTEMPTS[kind](random), Path(), SECONDS)
    assert done.code in (0, 1, 2, 4)
    assert "Traceback" not in done.err and "internal error" not in done.err
    assert done.code == 0 or "rror" in done.err, "it failed without a word"


@PROFILE
@given(random=RANDOM)
def test_a_saved_program_is_read_or_rejected(random: Random) -> None:
    path = Path("s")
    path.write_bytes(fuzz.saved_program(random))
    try:
        with fuzz.time_limit(SECONDS):
            tilewright.load_program(path).run(seed=0)
    except (tilewright.SourceError, tilewright.CheckError) as error:
        assert error.diagnostics


@pytest.mark.parametrize("kind", fuzz.WHOLE)
def test_what_is_not_changed_is_accepted(kind: str) -> None:
    """Otherwise all changes would be rejected for the same reason."""
    done = fuzz.run(fuzz.WHOLE[kind], Path(), SECONDS)
    assert done.code == 0, done.err


def test_some_of_what_is_changed_is_still_accepted() -> None:
    """Changes reach what lies behind the parser: half of the texts, or so, must not fail there."""
    random = Random(0)
    done = [fuzz.run(fuzz.lowered_text(random), Path(), SECONDS) for _ in range(40)]
    assert sum(one.code != 1 for one in done) >= 4
    assert len({line for one in done for line in one.err.splitlines() if "error: " in line}) >= 10


def test_hangs_and_internal_errors_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> None:
        raise ZeroDivisionError

    def endless(*args: object, **options: object) -> None:
        while True:
            pass

    for does, found in ((broken, ZeroDivisionError), (endless, fuzz.Hang)):
        monkeypatch.setattr("tilewright.cli_compile.compile", does)
        with pytest.raises(found):
            fuzz.run(fuzz.Attempt(("compile", "p.mlir"), {"p.mlir": fuzz.SMALL.encode()}), Path(), 2.0)
