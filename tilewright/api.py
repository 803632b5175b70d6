"""`compile` and `validate`: the pipeline as one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilewright.dialects.errors import UserError
from tilewright.dialects.target import TARGET_ATTRIBUTE, Target, set_target
from tilewright.dialects.target_use import verify_target_use
from tilewright.lowering.cache import switched_off
from tilewright.lowering.decompose import DecomposePass
from tilewright.lowering.fuse import FusePass
from tilewright.lowering.handwritten import check_kernels
from tilewright.lowering.link import instantiate_calls
from tilewright.lowering.options import set_objective
from tilewright.lowering.pipeline import LEVELS, parse_pipeline, remaining, run_pipeline, until
from tilewright.lowering.pipeline_text import PIPELINE_TEXT
from tilewright.lowering.reference import ReferencePass
from tilewright.lowering.schedule import SchedulePass

from .arrays import check_bound
from .buckets import Buckets, compile_buckets
from .errors import diagnosed, plain_error
from .kernels import check_by_hand
from .library import Library, add_libraries, read_library, with_texts
from .module import Module, load
from .program import Program, Snapshot, level_of

DEFAULT_TARGET = "davinci"
Objective = Literal["time", "traffic"]
Watcher = Callable[[Snapshot], None]


@overload
def compile(
    source: Module | str | Path,
    target: str | Target | None = None,
    pipeline: str | Sequence[ModulePass] | None = None,
    objective: Objective | None = None,
    unfused: bool = False,
    simplest: bool = False,
    dims: Mapping[str, int] | None = None,
    to: str | None = None,
    use: Sequence[Library | str | Path] = (),
    reference: Sequence[str] = (),
    check: bool = True,
    cache: bool = True,
    watch: Callable[[Sequence[ModulePass]], Watcher] | None = None,
) -> Program: ...


@overload
def compile(
    source: str | Path,
    target: str | Target | None = None,
    pipeline: str | Sequence[ModulePass] | None = None,
    objective: Objective | None = None,
    unfused: bool = False,
    simplest: bool = False,
    *,
    dims: Mapping[str, int | Sequence[int]],
    to: str | None = None,
    use: Sequence[Library | str | Path] = (),
    reference: Sequence[str] = (),
    check: bool = True,
    cache: bool = True,
    watch: Callable[[Sequence[ModulePass]], Watcher] | None = None,
) -> Program | Buckets: ...


def compile(
    source: Module | str | Path,
    target: str | Target | None = None,
    pipeline: str | Sequence[ModulePass] | None = None,
    objective: Objective | None = None,
    unfused: bool = False,
    simplest: bool = False,
    dims: Mapping[str, int | Sequence[int]] | None = None,
    to: str | None = None,
    use: Sequence[Library | str | Path] = (),
    reference: Sequence[str] = (),
    check: bool = True,
    cache: bool = True,
    watch: Callable[[Sequence[ModulePass]], Watcher] | None = None,
) -> Program | Buckets:
    """Takes a program through a pipeline.

    source     what `load` gave, or a path or text for it; a program at any level goes on from there
    target     a name, a path to a target file, either with overrides, or a Target; default: the one recorded in the
               program (a dump), else davinci
    pipeline   passes as text (`"canonicalize,decompose"`) or objects; default: all that the program still needs
    objective  what schedules minimise; default: the one recorded in the program, else "time"
    unfused    one kernel per named op, as a framework would run it
    simplest   schedules with the fewest buffers and loops: a first version to go on from by hand
    dims       sizes of symbolic dimensions, when `source` is a path or text; several of one (`{"seq": [128, 512]}`)
               give `Buckets`: a program for each, inputs padded up to the next one
    to         the level, or the pass, after which to stop
    use        libraries of custom operators, or paths or texts of them: what an operator computes is found in the
               program and done by its kernel. `Program.warnings` says which are not used, and why
    reference  kernels (`"mlp_0"`, or `"all"`) to swap for their logic, one kernel for each operation of it
    check      whether every kernel by hand of a program with libraries is run against its logic, on random values
    cache      whether what earlier searches found is used, and what this one finds is kept; results do not depend on it
    watch      called with the passes; what it returns is called with the program before the first pass and after each

    The module that `source` holds is not changed. Raises SourceError for anything the program, the target, a library
    or a schedule does not allow, CheckError for a kernel of a library that does not compute its logic.
    """
    if isinstance(source, Module):
        if dims:
            raise plain_error("'dims' are bound when a program is loaded: load(path, dims=…)")
        module = source
    else:
        several = {name: size for name, size in (dims or {}).items() if not isinstance(size, int)}
        one = {name: size for name, size in (dims or {}).items() if isinstance(size, int)}
        if several:
            if watch is not None:
                raise plain_error("one program at a time can be watched: give one size for each dimension")
            rest = partial(
                compile, target=target, pipeline=pipeline, objective=objective, unfused=unfused, simplest=simplest,
                to=to, use=use, reference=reference, check=check, cache=cache,
            )  # fmt: skip
            return compile_buckets(lambda sizes: load(source, {**one, **sizes}), several, rest)
        module = load(source, one)
    if objective not in (None, "time", "traffic"):
        raise plain_error(f"the objective is 'time' or 'traffic', got '{objective}'")
    given = [use] if isinstance(use, str | Path | Library) else use
    libraries = [one if isinstance(one, Library) else read_library(one) for one in given]
    reference = [reference] if isinstance(reference, str) else reference
    module = replace(module, source=with_texts(module.source, libraries))
    texts = {**module.texts, PIPELINE_TEXT: pipeline} if isinstance(pipeline, str) else module.texts
    with diagnosed(texts), switched_off(not cache):
        op = prepared(module, target, objective, libraries)
        passes = _passes(op, pipeline, unfused, to, reference)
        if simplest:
            passes = _with_option(passes, SchedulePass, "simplest")
        module = replace(module, op=op.clone())
        snapshots = [Snapshot("input", module.op)]
        tell = watch(passes) if watch is not None else _nothing
        tell(snapshots[0])

        def after(step: ModulePass, op: ModuleOp) -> None:
            snapshots.append(Snapshot(step.name, op.clone()))
            tell(snapshots[-1])

        run_pipeline(op, passes, after=after)
    twin = partial(compile, module, unfused=True, cache=cache) if "fuse" in remaining(module.op) else None
    program = Program(module, tuple(snapshots), twin, unfused)
    if libraries and check:
        check_by_hand(program)
    return program


def prepared(
    module: Module, target: str | Target | None, objective: Objective | None, libraries: Sequence[Library] = ()
) -> ModuleOp:
    """A copy of the module that carries its target and objective, and the operators of libraries.

    Raises UserError for a dimension without a size, and for kernels that their operators cannot have.
    """
    op = module.op.clone()
    if target is not None and not isinstance(target, str | Target):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise plain_error(f"a target is a name, a path or a Target, got {type(target).__name__}")
    if libraries:
        add_libraries(op, libraries)
    if target is not None or TARGET_ATTRIBUTE not in op.attributes:
        set_target(op, DEFAULT_TARGET if target is None else target)
    if objective is not None:
        set_objective(op, objective)
    check_bound(module.inputs)
    check_kernels(op)
    instantiate_calls(op)
    verify_target_use(op)
    return op


def _nothing(snapshot: Snapshot) -> None:
    pass


def _passes(
    module: ModuleOp,
    pipeline: str | Sequence[ModulePass] | None,
    unfused: bool,
    to: str | None,
    reference: Sequence[str],
) -> list[ModulePass]:
    if pipeline is None:
        passes = parse_pipeline(",".join(remaining(module)))
    else:
        passes = parse_pipeline(pipeline) if isinstance(pipeline, str) else list(pipeline)
    if to is not None:
        left = bool(passes)
        passes = until(passes, to)
        if pipeline is None and left and not passes and (to not in LEVELS or level_of(module) != to):
            raise UserError(f"the program is past '{to}' already: what is left begins with '{remaining(module)[0]}'")
    if unfused:
        passes = _with_option(passes, FusePass, "unfused")
        passes = [replace(step, kernels=False) if isinstance(step, DecomposePass) else step for step in passes]
    if reference:
        place = next((n for n, step in enumerate(passes) if isinstance(step, SchedulePass)), None)
        if place is None:
            raise UserError("'reference' swaps groups before the schedule pass, which is not in the pipeline")
        passes.insert(place, ReferencePass(tuple(reference)))
    return passes


def _with_option(passes: Sequence[ModulePass], cls: type[FusePass | SchedulePass], option: str) -> list[ModulePass]:
    """The passes, those of a class with an option set. Raises UserError if there is none of the class."""
    if not any(isinstance(step, cls) for step in passes):
        raise UserError(f"'{option}' is an option of the {cls.name} pass, which is not in the pipeline")
    return [replace(step, **{option: True}) if isinstance(step, cls) else step for step in passes]
