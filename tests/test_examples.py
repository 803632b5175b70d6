"""Every example, in every element type, on both targets, at every level (semantics 3 to 5)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from example_programs import ELEMENT_TYPES, EXAMPLES, FOLDER, TARGETS, Example
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import MachineOptions

import tilewright
from tilewright import Program
from tilewright.arrays import gather_inputs
from tilewright.kernels import kernel_errors
from tilewright.tolerance import default_tolerance, relative_error

# The quick part is one element type on the default target.
CASES = [
    pytest.param(example, element, target, id=f"{example}-{element}-{target}", marks=marks)
    for example in EXAMPLES
    for element in ELEMENT_TYPES
    for target in TARGETS
    for marks in [() if (element, target) == ("f16", "davinci") else pytest.mark.slow]
]
QUICK = [pytest.param(example, id=str(example)) for example in EXAMPLES]


@lru_cache(maxsize=2)
def compiled(example: Example, element: str, target: str) -> Program:
    return tilewright.compile(example.load(element), target)


def test_every_file_is_an_example() -> None:
    assert {path.name for path in FOLDER.glob("*.mlir")} == {example.file for example in EXAMPLES}


@pytest.mark.parametrize(("example", "element", "target"), CASES)
def test_all_levels_agree_and_traffic_is_as_predicted(example: Example, element: str, target: str) -> None:
    program = compiled(example, element, target)
    tolerance = default_tolerance(program.source.op)
    runs = {level: program.run(seed=1, level=level) for level in ("graph", "tile", "hardware")}  # type: ignore
    reference = program.reference(runs["graph"].inputs)
    assert reference is not None
    for level, run in runs.items():
        for (name, found), wanted in zip(run.outputs.items(), reference, strict=True):
            assert found.dtype == program.outputs[0].element.numpy
            assert relative_error(found, wanted) <= tolerance, (level, name)

    run = runs["hardware"]
    assert predict(program.module) == run.traffic.links  # I6: from the instructions, without executing them
    analysis = program.analyze()
    assert (analysis.links, analysis.cycles) == (run.traffic.links, run.cycles)
    program.check_order()
    compulsory = program.compulsory
    assert compulsory is not None
    assert run.traffic.read_bytes >= compulsory[0] and run.traffic.write_bytes >= compulsory[1]


@pytest.mark.parametrize("example", QUICK)
def test_results_do_not_depend_on_the_interleaving(example: Example) -> None:
    """I7: bit-identical with transfers early or late and engines in random order."""
    program = compiled(example, "f16", "davinci")
    wanted = program.run(seed=2, check=False)
    for options in (
        MachineOptions(interleaving="eager"),
        MachineOptions(interleaving="late"),
        MachineOptions(interleaving="random", seed=3),
    ):
        found = program.run(seed=2, check=options)
        for name, array in wanted.outputs.items():
            np.testing.assert_array_equal(found.outputs[name], array)
        assert found.traffic == wanted.traffic


@pytest.mark.parametrize("example", QUICK)
def test_every_dump_continues_to_the_same_end(example: Example) -> None:
    """I1: text read back is the same program, and the rest of the pipeline makes the same of it."""
    program = compiled(example, "f16", "davinci")
    for position, snapshot in enumerate(program.snapshots):
        for generic in (False, True):
            text = program.ir(after=snapshot.name, generic=generic)
            again = tilewright.load(text)
            assert again.ir(generic) == text
        if snapshot.name in ("canonicalize", "decompose", "fuse"):
            continue  # what follows is the search, which takes most of the time; one start before it is enough
        continued = tilewright.compile(again, pipeline=",".join(program.passes[position:]))
        assert continued.ir() == program.ir(), snapshot.name


# The tile evaluator takes seconds per step on the largest; the smaller lengths cover it.
@pytest.mark.parametrize("example", [pytest.param(e, id=str(e)) for e in EXAMPLES if e.file != "attention.mlir"])
def test_validation_blames_nothing(example: Example) -> None:
    validation = tilewright.validate(compiled(example, "f16", "davinci"))
    assert validation, str(validation)
    assert [step.name for step in validation.steps] == ["input", *validation.program.passes]
    inputs = gather_inputs(validation.program.source, None, 0)
    kernels = kernel_errors(validation.program, inputs)
    assert kernels and not any(kernels), kernels
