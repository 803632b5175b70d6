"""Settings of all tests."""

from __future__ import annotations

import os

# Before NumPy is imported: one test process per core, not one times as many threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import settings

# Continuous integration must not fail by luck; whoever hunts for failures takes the default profile.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
