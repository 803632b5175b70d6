"""The pipeline: which passes there are, in which order, and how a module goes through them.

To add a pass: its file in this folder, one row of `_CLASSES` (and a place in `PIPELINE` if it always runs), one test.
"""

from __future__ import annotations

import difflib
import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ..dialects.errors import UserError
from ..dialects.graph_functions import has_graph_work
from ..dialects.graph_fused import FusedOp
from ..dialects.hardware import ProgramOp, SignalOp, WaitOp
from ..dialects.operators import KERNEL
from ..dialects.registry import make_context
from ..dialects.tile import AllocOp, KernelOp
from ..dialects.tile_types import TileType
from ..dialects.verify import verify_module
from .pipeline_text import PipelineReader
from .plugins import universe

_log = logging.getLogger(__name__)

_CLASSES: dict[str, str] = {
    "canonicalize": "CanonicalizePass",
    "decompose": "DecomposePass",
    "match": "MatchPass",
    "fuse": "FusePass",
    "split": "SplitPass",
    "reference": "ReferencePass",
    "schedule": "SchedulePass",
    "tile": "TilePass",
    "place": "PlacePass",
    "bufferize": "BufferizePass",
    "stages": "StagesPass",
    "plan": "PlanPass",
    "emit": "EmitPass",
    "cores": "CoresPass",
    "skew": "SkewPass",
    "sync": "SyncPass",
}
"""Pass name (and module of this package) → class. A module is imported when its pass is first asked for."""

PIPELINE: tuple[str, ...] = tuple(name for name in _CLASSES if name != "reference")
"""The passes of a whole compilation, in order."""

LEVELS: dict[str, str] = {"graph": "schedule", "tile": "plan", "hardware": "sync"}
"""Level → the last pass whose result is still on that level."""

Observer = Callable[[ModulePass, ModuleOp], None]


class _Passes(Mapping[str, type[ModulePass]]):
    def __getitem__(self, name: str) -> type[ModulePass]:
        class_name = _CLASSES[name]
        found: object = getattr(import_module(f".{name}", __package__), class_name)
        assert isinstance(found, type) and issubclass(found, ModulePass)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


PASSES: Mapping[str, type[ModulePass]] = _Passes()
"""Pass name → class, for every pass there is."""


def parse_pipeline(text: str) -> list[ModulePass]:
    """The passes that a text such as `canonicalize,fuse{unfused=true effort=40},schedule` names.

    Options are separated by spaces. Passes of other installed packages can be named too (see `plugins`). Raises
    UserError, located in the text, for syntax errors, unknown passes and unknown or unfit options.
    """
    return PipelineReader(PASSES, lambda: universe().all_passes).read(text)


def remaining(module: ModuleOp) -> tuple[str, ...]:
    """The passes of `PIPELINE` that a module still has to go through, by what is in it.

    A pass that has nothing left to do may be among them; a hand-written program may start at any level.
    """
    ops = list(module.walk())
    if any(isinstance(op, ProgramOp) for op in ops):
        synced = any(isinstance(op, SignalOp | WaitOp) for op in ops)
        return () if synced else _from("cores")
    if any(isinstance(op, KernelOp) for op in ops) and not has_graph_work(module):
        allocs = [op for op in ops if isinstance(op, AllocOp)]
        if allocs:
            return _from("emit" if all(op.offset is not None for op in allocs) else "stages")
        return _from("bufferize" if _placed(ops) else "place")
    derived = any(isinstance(op, FusedOp) and KERNEL not in op.attributes for op in ops)
    return _from("split" if derived else "canonicalize")


def _from(name: str) -> tuple[str, ...]:
    return PIPELINE[PIPELINE.index(name) :]


def _placed(ops: Sequence[Operation]) -> bool:
    """Whether every tile has a memory."""
    types = [value.type for op in ops for value in op.results]
    return all(type_.memory.data for type_ in types if isinstance(type_, TileType))


def until(passes: Sequence[ModulePass], level: str) -> list[ModulePass]:
    """The passes up to the last one of a level, or up to the pass of that name. Raises UserError for other names."""
    last = LEVELS.get(level, level)
    if last not in PIPELINE:
        known = (*LEVELS, *PIPELINE)
        close = difflib.get_close_matches(level, known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(LEVELS)}"
        raise UserError(f"unknown level '{level}'; {hint}")
    end = PIPELINE.index(last)
    return [p for p in passes if p.name not in PIPELINE or PIPELINE.index(p.name) <= end]


@contextmanager
def logged(step: ModulePass, module: ModuleOp) -> Generator[None]:
    """Says how long a pass takes, in seconds, and how many operations it leaves."""
    start = time.perf_counter()
    yield
    if _log.isEnabledFor(logging.INFO):
        count = sum(1 for _ in module.walk())
        _log.info("%s: %.3f s, %d operations", step, time.perf_counter() - start, count)


def run_pipeline(
    module: ModuleOp,
    passes: Sequence[ModulePass],
    context: Context | None = None,
    after: Observer | None = None,
    before: Observer | None = None,
) -> None:
    """Runs passes on a module in place and verifies it after each.

    `before` and `after` are called around every pass with it and the module. Raises UserError for what the program,
    the target or a schedule does not allow.
    """
    context = context or make_context()
    for step in passes:
        if before is not None:
            before(step, module)
        with logged(step, module):
            step.apply(context, module)
            verify_module(module)
        if after is not None:
            after(step, module)
