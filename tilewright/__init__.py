"""tilewright: tensor programs as text, down to fused, tiled, statically planned accelerator kernels, and executed.

import tilewright
program = tilewright.compile("examples/attention.mlir", target="davinci")
print(program.ir("tile"))
run = program.run(seed=0)
print(run.outputs["o"], run.traffic.read_bytes, run.cycles)
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "BucketRun",
    "Buckets",
    "CheckError",
    "Module",
    "Point",
    "Program",
    "Report",
    "Run",
    "SourceError",
    "Target",
    "TensorSpec",
    "UserError",
    "Validation",
    "Variation",
    "__version__",
    "candidates",
    "compile",
    "diff",
    "list_targets",
    "load",
    "load_program",
    "load_target",
    "picture",
    "report",
    "save",
    "sweep",
    "validate",
    "with_schedules",
]

if TYPE_CHECKING:
    from tilewright.dialects.errors import UserError
    from tilewright.dialects.target import Target, list_targets, load_target
    from tilewright.ir.diagnostics import SourceError

    from .api import compile
    from .buckets import BucketRun, Buckets
    from .errors import CheckError
    from .module import Module, TensorSpec, load
    from .pictures.all import picture
    from .program import Program
    from .ranking import candidates, with_schedules
    from .reporting.report import Report, diff, report
    from .result import Run
    from .saved import load_program, save
    from .sweeping import Point, Variation, sweep
    from .validation import Validation, validate

# What happens is told to loggers below "tilewright"; who wants to hear it adds a handler.
logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOMES = {
    "BucketRun": "buckets",
    "Buckets": "buckets",
    "CheckError": "errors",
    "Module": "module",
    "Point": "sweeping",
    "Program": "program",
    "Report": "reporting.report",
    "Run": "result",
    "SourceError": "ir.diagnostics",
    "Target": "dialects.target",
    "TensorSpec": "module",
    "UserError": "dialects.errors",
    "Validation": "validation",
    "Variation": "sweeping",
    "candidates": "ranking",
    "compile": "api",
    "diff": "reporting.report",
    "list_targets": "dialects.target",
    "load": "module",
    "load_program": "saved",
    "load_target": "dialects.target",
    "picture": "pictures.all",
    "report": "reporting.report",
    "save": "saved",
    "sweep": "sweeping",
    "validate": "validation",
    "with_schedules": "ranking",
}


def __getattr__(name: str) -> object:
    """Public names are imported when first used: `import tilewright.dialects` must not load the whole compiler."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tilewright' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
