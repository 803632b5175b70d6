"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Continuous integration must not fail by luck; whoever hunts for failures takes the default profile.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
