"""MLIR itself accepts what we print: `iree-opt`, of the extra `mlir`, reads the generic form and says the same back."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from example_programs import FOLDER, Compiled
from tilewright.ir.source import parse_module, print_module
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, DictionaryAttr, ModuleOp, i64
from xdsl.ir import Attribute

import tilewright

IREE_OPT = shutil.which("iree-opt", path=str(Path(sys.executable).parent)) or shutil.which("iree-opt")
pytestmark = pytest.mark.skipif(IREE_OPT is None, reason="iree-opt is not installed: pip install -e '.[mlir]'")
SEPARATOR = "// -----\n"


def through_mlir(texts: list[str]) -> list[str]:
    """What MLIR reads in each text, printed by it in the generic form."""
    assert IREE_OPT is not None
    command = [IREE_OPT, "--allow-unregistered-dialect", "--split-input-file", "--mlir-print-op-generic", "-"]
    done = subprocess.run(command, input=SEPARATOR.join(texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(SEPARATOR)


def check(found: list[ModuleOp]) -> None:
    """MLIR accepts the generic form of modules, and what it makes of them is the same to us."""
    texts = through_mlir([print_module(module, generic=True) for module in found])
    for module, text in zip(found, texts, strict=True):
        assert sampled(module).is_structurally_equivalent(sampled(parse_module(text))), text


def sampled(module: ModuleOp) -> ModuleOp:
    """The module with every affine map replaced by what it says at some points: MLIR writes maps more simply."""
    module = module.clone()
    for op in module.walk():
        for attributes in (op.attributes, op.properties):
            attributes.update({name: _sampled(value) for name, value in attributes.items()})
    return module


def _sampled(attribute: Attribute) -> Attribute:
    match attribute:
        case AffineMapAttr():
            dims = attribute.data.num_dims
            points = [[(37 * point + 11 * dim) % 101 for dim in range(dims)] for point in range(5)]
            return DenseArrayBase.from_list(i64, [dims, *(n for at in points for n in attribute.data.eval(at, []))])
        case ArrayAttr():
            return ArrayAttr([_sampled(member) for member in attribute])
        case DictionaryAttr():
            return DictionaryAttr({name: _sampled(member) for name, member in attribute.data.items()})
        case _:
            return attribute


def test_every_dump_of_every_example(compiled_example: Compiled) -> None:
    check([snapshot.module for snapshot in compiled_example.program.snapshots])


def test_the_structures() -> None:
    """With names for sizes, where a text says no number; then with numbers, as primitives."""
    found: list[ModuleOp] = []
    for file in sorted((FOLDER / "structures").glob("*.mlir")):
        text = file.read_text()
        names = {name for names in re.findall(r"#graph\.dims<\[(.*?)\]>", text) for name in re.findall(r"\w+", names)}
        if "graph.conv" not in text:  # it needs numbers
            found.append(tilewright.load(file).op)
        sized = tilewright.load(file, dict.fromkeys(names, 64))
        found.append(tilewright.compile(sized, pipeline="canonicalize,decompose").module)
    check(found)


def test_other_values_of_a_map_are_noticed() -> None:
    said = (
        "(d0, d1) -> ((d0 * 16) mod 2, d1)",
        "(d0, d1) -> (0, d1)",
        "(d0, d1) -> (0, d0)",
        "(d0) -> (0)",
        "() -> (0)",
    )
    texts = [f"module attributes {{t.maps = [affine_map<{map_}>]}} {{\n}}\n" for map_ in said]
    first, *others = (sampled(parse_module(text)) for text in texts)
    assert [first.is_structurally_equivalent(other) for other in others] == [True, False, False, False]


def test_what_is_no_mlir_is_rejected() -> None:
    with pytest.raises(AssertionError, match="error:"):
        through_mlir(['"test.op"(%0) : () -> ()\n'])
