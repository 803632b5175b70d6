"""The tool chain notices what is wrong with a program: a sample of benchmarks/mutants.py."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from mutant_programs import PROGRAMS
from mutants import judge, mutants

import tilewright
from tilewright.arrays import gather_inputs

ALWAYS = ("drop a signal", "drop a wait", "drop an event", "one credit more", "shorten a dma")
"""Edits that no program can survive."""


@pytest.mark.parametrize("name", ["attention", "layer norm", "product with epilogue"])
def test_every_mutant_that_can_change_a_result_is_reported(name: str) -> None:
    target, text = PROGRAMS[name]
    program = tilewright.compile(tilewright.load(text), target)
    inputs = list(gather_inputs(program.source, None, 0))
    chosen = random.Random(1).sample(list(mutants(program.module)), 16)
    verdicts = Counter[str]()
    for mutant in chosen:
        verdict = judge(mutant, program.module, inputs, seeds=1)
        verdicts[verdict.by] += 1
        assert verdict.by != "missed", f"{mutant.kind}, {mutant.what}: {verdict.message}"
        assert verdict.by == "checks" or mutant.kind not in ALWAYS, f"{mutant.kind}, {mutant.what}: {verdict.by}"
    assert verdicts["checks"] > 8
