"""Every example, in every element type, on both targets, at every level (semantics 3 to 5)."""

from __future__ import annotations

import numpy as np
import pytest
from example_programs import ELEMENT_TYPES, EXAMPLES, FOLDER, TARGETS, Compiled, Example
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import MachineOptions

import tilewright
from tilewright import Program
from tilewright.arrays import gather_inputs
from tilewright.kernels import kernel_errors
from tilewright.tolerance import default_tolerance, relative_error

OTHERS = [
    pytest.param(example, element, target, id=f"{example}-{element}-{target}")
    for example in EXAMPLES
    for element in ELEMENT_TYPES
    for target in TARGETS
    if Compiled(example) != Compiled(example, element, target)
]


def test_every_file_is_an_example() -> None:
    assert {path.name for path in FOLDER.glob("*.mlir")} == {example.file for example in EXAMPLES}


@pytest.mark.slow
@pytest.mark.parametrize(("example", "element", "target"), OTHERS)
def test_other_types_and_targets(example: Example, element: str, target: str) -> None:
    check_levels_and_traffic(Compiled(example, element, target).program)


def test_all_levels_agree_and_traffic_is_as_predicted(compiled_example: Compiled) -> None:
    check_levels_and_traffic(compiled_example.program)


def check_levels_and_traffic(program: Program) -> None:
    """The levels give the same results, within the tolerance of float64's; predictions are what is counted."""
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


def test_results_do_not_depend_on_the_interleaving(compiled_example: Compiled) -> None:
    """I7: bit-identical with transfers early or late and engines in random order."""
    program = compiled_example.program
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


def test_every_dump_continues_to_the_same_end(compiled_example: Compiled) -> None:
    """I1: text read back is the same program, and the rest of the pipeline makes the same of it."""
    program = compiled_example.program
    for position, snapshot in enumerate(program.snapshots):
        for generic in (False, True):
            text = program.ir(after=snapshot.name, generic=generic)
            again = tilewright.load(text)
            assert again.ir(generic) == text
        if snapshot.name in ("canonicalize", "decompose", "fuse"):
            continue  # what follows is the search, which takes most of the time; one start before it is enough
        continued = tilewright.compile(again, pipeline=",".join(program.passes[position:]))
        assert continued.ir() == program.ir(), snapshot.name


def test_validation_blames_nothing(compiled_example: Compiled) -> None:
    if compiled_example.example.file == "attention.mlir":
        pytest.skip("the tile evaluator takes seconds per step; the smaller lengths cover it")
    program = compiled_example.program
    validation = tilewright.validate(program)
    assert validation, str(validation)
    assert [step.name for step in validation.steps] == ["input", *program.passes]
    inputs = gather_inputs(program.source, None, 0)
    kernels = kernel_errors(program, inputs)
    assert kernels and not any(kernels), kernels
