"""Dependencies point down only: tilewright → lowering → runtime → dialects → xdsl; ir → dialects; frontend → ir."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAY_USE = {
    "dialects": {"dialects"},
    "ir": {"ir", "dialects"},
    "lowering": {"lowering", "runtime", "dialects"},
    "runtime": {"runtime", "dialects"},
    "frontend": {"frontend", "ir", "dialects"},
    "tilewright": {"tilewright", "ir", "dialects", "lowering", "runtime", "frontend"},
}


def imported_modules(file: Path) -> Iterator[tuple[str, int]]:
    """Absolute names of the modules a file imports, with lines; what is imported inside functions as well."""
    home = ("tilewright", *file.relative_to(ROOT).with_suffix("").parts)
    if home[1] == "tilewright":
        home = home[1:]
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = home[: len(home) - node.level] if node.level else ()
            module = ".".join((*base, *((node.module,) if node.module else ())))
            # `from .. import tile` may import a module; `from ..x import f` at worst names one too many.
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)


def folder_of(module: str) -> str | None:
    """The folder that a module of this package lies in; None for other packages."""
    parts = module.split(".")
    if parts[0] != "tilewright":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in MAY_USE else "tilewright"


@pytest.mark.parametrize("folder", MAY_USE)
def test_dependencies_point_down(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = [
        f"{file.relative_to(ROOT)}:{line} imports {module}"
        for file in files
        for module, line in imported_modules(file)
        if (used := folder_of(module)) is not None and used not in MAY_USE[folder]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", MAY_USE)
def test_only_declared_packages_are_imported(folder: str) -> None:
    import sys
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {"lowering": ("fast",), "frontend": ("onnx",), "tilewright": ("png", "plots")}
    optional = [entry for extra in extras.get(folder, ()) for entry in project["optional-dependencies"][extra]]
    declared = project["dependencies"] + optional
    names = {entry.split(">")[0].split("=")[0].strip() for entry in declared}
    for file in sorted((ROOT / folder).rglob("*.py")):
        for module, line in imported_modules(file):
            top = module.split(".")[0]
            assert top in names or top == "tilewright" or top in sys.stdlib_module_names, f"{file}:{line}: {top}"


def test_core_does_not_load_numpy_for_a_name() -> None:
    """`import tilewright` stays cheap: the compiler is loaded when something of it is used."""
    import subprocess
    import sys

    code = "import sys, tilewright; print('numpy' in sys.modules, 'xdsl' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout.split() == ["False", "False"]
