"""`tilewright run`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import click

from tilewright.ir.diagnostics import Diagnostic, SourceError
from tilewright.runtime.report import Json

from .api import Objective, compile
from .arrays import Array, expected_array, gather_inputs, npy_bytes, read_npy
from .buckets import BucketRun, Buckets, compile_buckets, named
from .cli_analyze import show_profile
from .cli_diagnostics import show_diagnostics, show_warnings
from .cli_import import read_program
from .cli_options import IntRange, Session, constants_option, parse_files, program_options, tolerance_option, use_option
from .cli_output import check_files, emit, json_option, trace_option
from .errors import CheckError, plain_error
from .files import write_atomically
from .kernels import run_with_reference
from .module import TensorSpec
from .profiling import Profile, trace
from .program import Level, Program, level_of
from .render import console, show_run
from .reporting.fusion import fused_groups
from .result import Run
from .tolerance import ROUNDINGS, UNITS, output_tolerances, relative_error


@click.command("run", short_help="Compile a program, execute it, and report results, traffic and cycles.")
@program_options
@constants_option
@use_option
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE", callback=parse_files, help="An input as .npy.")
@click.option("--random", "seed", type=IntRange(min=0), metavar="SEED", help="Random values for other inputs.")
@click.option(
    "--expect", "expected", multiple=True, metavar="NAME=FILE", callback=parse_files, help="What an output should be."
)
@tolerance_option
@click.option("--save", multiple=True, metavar="NAME=FILE", callback=parse_files, help="Write an output as .npy.")
@click.option(
    "--level",
    type=click.Choice(["graph", "tile", "hardware"]),
    default="hardware",
    show_default=True,
    help="Execute the program as it is at this level.",
)
@json_option
@click.option(
    "--reference",
    "swapped",
    multiple=True,
    metavar="KERNEL|all",
    help="Compute this kernel by its logic, the others on the machine one by one (results only).",
)
@click.option("--unfused", is_flag=True, help="One kernel per named operation.")
@click.option("--profile", "profiled", is_flag=True, help="Say where the time goes too, as `tilewright analyze` does.")
@trace_option
@click.pass_obj
def run_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int | tuple[int, ...]],
    constants: dict[str, Path],
    objective: Objective | None,
    libraries: tuple[Path, ...],
    inputs: dict[str, Path],
    seed: int | None,
    expected: dict[str, Path],
    tolerance: float | None,
    save: dict[str, Path],
    level: Level,
    json_path: Path | None,
    swapped: tuple[str, ...],
    unfused: bool,
    profiled: bool,
    trace_path: Path | None,
) -> None:
    """Compiles the program in FILE, executes it and reports results, traffic, cycles and kernels.

    Several sizes of a dimension, as in --dim seq=128,512, make a program each; inputs are padded up to the next one.
    """
    if trace_path is not None and level != "hardware":
        raise click.BadParameter("only the hardware level has a timeline", param_hint="--trace")
    if profiled and (level != "hardware" or swapped):
        raise click.BadParameter("only a run at the hardware level has a profile", param_hint="--profile")
    check_files(*save.values(), json_path, trace_path)
    arrays = {name: read_npy(path) for name, path in inputs.items()}
    one = {name: size for name, size in dims.items() if isinstance(size, int)}
    several = {name: sizes for name, sizes in dims.items() if not isinstance(sizes, int)}
    if several:
        if level != "hardware" or seed is not None or swapped or profiled or trace_path is not None:
            raise plain_error(
                "with several sizes of a dimension the program runs at the hardware level, on given inputs, without "
                "--random, --reference, --profile and --trace",
                "one size for each dimension allows them",
            )
        buckets = compile_buckets(
            lambda sizes: read_program(file, {**one, **sizes}, constants),
            several,
            partial(compile, target=target, objective=objective, unfused=unfused, use=libraries),
        )
        found = buckets.run(arrays)
        shapes = zip(found.run.program.outputs, found.outputs.values(), strict=True)
        specs = {spec.name: replace(spec, shape=array.shape) for spec, array in shapes}
        _check_names((*expected, *save), specs)
        wanted = {name: expected_array(read_npy(path), specs[name]) for name, path in expected.items()}
        figures = found.report()
        limits = _tolerances(found.run.program, tolerance)
        emit(figures, json_path, partial(_show_buckets, buckets, found, figures, unfused))
        _finish(session, found.outputs, figures, limits, wanted, expected, save)
        return
    module = read_program(file, one, constants)
    program = compile(
        module, target, objective=objective, unfused=unfused, to=level, use=libraries, watch=session.watch
    )
    show_warnings(program, session)
    specs = {spec.name: spec for spec in program.outputs}
    _check_names((*expected, *save), specs)
    wanted = {name: expected_array(read_npy(path), specs[name]) for name, path in expected.items()}
    if not specs:
        raise plain_error(f"the program in '{file}' returns nothing")
    if program.level != level:
        raise plain_error(f"'{file}' is at the {program.level} level and cannot be run at the {level} level")
    run = _swapped(program, arrays, seed, swapped) if swapped else program.run(arrays, seed)
    figures = run.report()
    limits = _tolerances(program, tolerance)
    profile = Profile.of(program) if profiled else None
    if profile is not None:
        figures["profile"] = profile.json()
    emit(figures, json_path, partial(_show, run, figures, unfused, profile))
    if trace_path is not None:
        write_atomically(trace_path, json.dumps(trace(program)))
    _finish(session, run.outputs, figures, limits, wanted, expected, save)


def _finish(
    session: Session,
    outputs: Mapping[str, Array],
    figures: Mapping[str, Json],
    limits: Mapping[str, float],
    wanted: Mapping[str, object],
    expected: Mapping[str, Path],
    save: Mapping[str, Path],
) -> None:
    """Writes outputs and compares them."""
    for name, path in save.items():
        write_atomically(path, npy_bytes(outputs[name]))
    _warn(session, cast("list[dict[str, object]]", figures["outputs"]), limits)
    if wanted:
        _compare(outputs, wanted, limits, expected)


def _show_buckets(buckets: Buckets, found: BucketRun, figures: dict[str, Json], unfused: bool) -> None:
    show_run(found.run, figures, unfused)
    console().print(
        f"\n{named(found.sizes)} in the bucket {named(found.bucket.sizes)}: {found.waste:.1%} padding; one arena of "
        f"{buckets.workspace} bytes for {len(buckets.buckets)} buckets"
    )


def _show(run: Run, figures: dict[str, Json], unfused: bool, profile: Profile | None) -> None:
    show_run(run, figures, unfused)
    if profile is not None:
        console().print()
        show_profile(profile)


def _swapped(program: Program, given: Mapping[str, Array], seed: int | None, names: Sequence[str]) -> Run:
    """A run that has results only."""
    arrays = gather_inputs(program.source, given, seed)
    kernels = list(fused_groups(program)) if "all" in names else names
    outputs = run_with_reference(program, arrays, kernels)
    named = {spec.name: value for spec, value in zip(program.outputs, outputs, strict=True)}
    return Run(program, "graph", tuple(arrays), named, None)


def _check_names(names: Iterable[str], specs: Mapping[str, TensorSpec]) -> None:
    for name in names:
        if name not in specs:
            close = difflib.get_close_matches(name, specs, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"outputs are {', '.join(map(str, specs.values()))}"
            raise plain_error(f"the program has no output '{name}'; {hint}")


def _tolerances(program: Program, given: float | None) -> dict[str, float]:
    """Per output, what was given or what follows from the program; below the graph level, from its element type."""
    names = [spec.name for spec in program.outputs]
    if given is not None:
        return dict.fromkeys(names, given)
    if level_of(program.source.op) != "graph":
        return {spec.name: ROUNDINGS * UNITS.get(spec.element.name, 0.0) for spec in program.outputs}
    return dict(zip(names, output_tolerances(program.source.op), strict=True))


def _warn(session: Session, outputs: Sequence[Mapping[str, object]], limits: Mapping[str, float]) -> None:
    """Says which outputs are further from float64 than rounding explains: overflow, cancellation, or a wrong pass."""
    for output in outputs:
        name, error = cast(str, output["name"]), cast("float | None", output["max_rel_err"])
        if error is not None and not error <= limits[name]:
            message = f"output '{name}' is {error:.2e} from float64; rounding explains {limits[name]:.1e}"
            hint = "either the data overflow or cancel, or a pass is wrong: `tilewright validate` tells which"
            show_diagnostics([Diagnostic("warning", message, suggestion=hint)], session)


def _compare(
    outputs: Mapping[str, Array], wanted: Mapping[str, object], limits: Mapping[str, float], files: Mapping[str, Path]
) -> None:
    """Raises CheckError with every output that is further from what was expected than the tolerance."""
    wrong: list[Diagnostic] = []
    for name, array in wanted.items():
        limit = limits[name]
        error = relative_error(outputs[name], array)  # pyright: ignore[reportArgumentType]
        if not error <= limit:
            message = f"output '{name}' differs from '{files[name]}': max error {error:.2e}, tolerance {limit:.2e}"
            wrong.append(Diagnostic("error", message))
    if wrong:
        failure: SourceError = CheckError(wrong)
        raise failure
