"""Ctrl-C: exit code 130 and not a word, from the first import on."""

from __future__ import annotations

import subprocess
import sys

import pytest

# A finder that is asked for every module: Ctrl-C arrives while one of them is being looked for.
PRESSED = """
import sys

class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Pressed())
sys.argv = ["tilewright", *{arguments!r}]
"""
ENTRIES = {
    "script": "from tilewright.entry import main\nmain()\n",
    "module": "import runpy\nrunpy.run_module('tilewright', run_name='__main__', alter_sys=True)\n",
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("module", ["tilewright.cli", "numpy", "tilewright.lowering.plan"])
def test_while_modules_are_imported(module: str, entry: str) -> None:
    """`lowering.plan` is not imported before a pipeline asks for it."""
    code = PRESSED.format(module=module, arguments=["passes"]) + ENTRIES[entry]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")


def test_the_installed_command_starts_there() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="tilewright")
    assert script.value == "tilewright.entry:main"
