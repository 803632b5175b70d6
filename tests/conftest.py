"""Settings of all tests, and the examples, each compiled once for all tests that look at them."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

# Before NumPy is imported: one test process per core, not one times as many threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Searches are kept for one run, for all of its processes: no test reads what another run found, nor writes into the
# user's cache. The tests of the cache have a folder of their own.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["TILEWRIGHT_CACHE"] = tempfile.mkdtemp(prefix="tilewright-tests-")
    atexit.register(shutil.rmtree, os.environ["TILEWRIGHT_CACHE"], ignore_errors=True)

import pytest
from example_programs import EXAMPLES, Compiled
from hypothesis import settings

if TYPE_CHECKING:
    from _pytest.fixtures import SubRequest

# Continuous integration must not fail by luck; whoever hunts for failures takes the default profile.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the files of tests/golden anew instead of comparing"
    )


@pytest.fixture(scope="session", params=[pytest.param(example, id=str(example)) for example in EXAMPLES])
def compiled_example(request: SubRequest) -> Compiled:
    """Every example on the default target. All tests of one example run together, so that it is compiled once."""
    return Compiled(request.param)
