"""What is installed is what the folders hold."""

from __future__ import annotations

import tomllib
from importlib.metadata import version
from pathlib import Path

import tilewright

ROOT = Path(__file__).parent.parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_version_is_said_once_everywhere() -> None:
    assert tilewright.__version__ == CONFIG["project"]["version"] == version("tilewright")
    assert f"## {tilewright.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_folder_with_code_is_a_package() -> None:
    """A new folder that nobody lists would be missing from the wheel, and only there."""
    mapping = CONFIG["tool"]["setuptools"]["package-dir"]
    assert sorted(mapping) == sorted(CONFIG["tool"]["setuptools"]["packages"])
    tops = ("ir", "dialects", "lowering", "runtime", "frontend", "tilewright")
    folders = {file.parent.relative_to(ROOT).as_posix() for top in tops for file in (ROOT / top).rglob("*.py")}
    assert folders == set(mapping.values())
    for name, folder in mapping.items():
        path = folder.removeprefix("tilewright").strip("/").replace("/", ".")
        assert name == f"tilewright.{path}".rstrip(".")


def test_data_files_are_declared() -> None:
    """Every file that is not Python lies in a package whose package-data takes it."""
    mapping = {folder: name for name, folder in CONFIG["tool"]["setuptools"]["package-dir"].items()}
    patterns = CONFIG["tool"]["setuptools"]["package-data"]
    for folder, name in mapping.items():
        for file in (ROOT / folder).iterdir():
            if file.is_file() and file.suffix not in (".py", ".pyc"):
                assert any(file.match(pattern) for pattern in patterns.get(name, [])), file


def test_type_checkers_see_the_mapping() -> None:
    links = ROOT / ".types" / "tilewright"
    for folder in ("ir", "dialects", "lowering", "runtime", "frontend"):
        assert (links / folder).is_symlink() and (links / folder).resolve() == ROOT / folder
    assert (links / "__init__.py").resolve() == ROOT / "tilewright" / "__init__.py"
