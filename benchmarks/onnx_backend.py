"""ONNX's own backend node tests, through import, compiler and machine; and the table of how they went.

    python benchmarks/onnx_backend.py --write docs/onnx_coverage.md

A case passes if every output has the expected type and shape and lies within the case's own tolerances. It is
unsupported if one clear message says why; anything else (wrong numbers, an exception, out of time) is a fail.
Inputs whose values a program must know when it is compiled (shapes, axes, sizes) are fixed to the case's values.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import onnx

import tilewright
from tilewright.errors import CheckError

TARGET = "davinci"
ROUNDINGS = 4
UNITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Largest relative error of one rounding."""

BATCH = 25
"""Cases that one worker process takes."""

MOST_RETRIES = 4
"""Fixing one input may show that another has to be fixed."""


class Outcome(NamedTuple):
    """How one case went. `fixed` are inputs that were made constants."""

    name: str
    operator: str
    status: Literal["pass", "unsupported", "fail"]
    message: str = ""
    fixed: tuple[str, ...] = ()


class Mismatch(Exception):
    """An output that is not what the case expects."""


def cases() -> list[Any]:
    """All node tests that the installed onnx has, by name."""
    from onnx.backend.test.loader import load_node_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(load_node_model_tests(), key=lambda case: case.name)


def operator_of(case: Any) -> str:
    """The operator a case is about: the one of its only node, else the one its name begins with."""
    ops = {node.op_type for node in case.model.graph.node}
    if len(ops) == 1:
        return ops.pop()
    words = case.name.removeprefix("test_").replace("_", "")
    known = sorted({s.name for s in onnx.defs.get_all_schemas()}, key=len, reverse=True)
    return next((n for n in known if words.startswith(n.lower())), sorted(ops)[0] if ops else "none")


def run_case(case: Any, level: str) -> Outcome:
    """One case, whatever happens in it."""
    operator = operator_of(case)
    fixed: tuple[str, ...] = ()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(case.model, path)
            for inputs, outputs in case.data_sets:
                fixed = check(path, case, level, inputs, outputs)
        return Outcome(case.name, operator, "pass", "", fixed)
    except Mismatch as error:
        return Outcome(case.name, operator, "fail", str(error), fixed)
    except CheckError as error:
        return Outcome(case.name, operator, "fail", f"machine check: {error.diagnostics[0].message}", fixed)
    except tilewright.SourceError as error:
        first = error.diagnostics[0]
        text = f"{first.message}" + (f" ({first.suggestion})" if first.suggestion else "")
        return Outcome(case.name, operator, "unsupported", text.replace(folder, ""), fixed)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return Outcome(case.name, operator, "fail", f"{type(error).__name__}: {error}"[:300], fixed)


def check(path: Path, case: Any, level: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> tuple[str, ...]:
    """Runs the model on one set of data. Raises Mismatch; returns the inputs that were fixed."""
    names = [i.name for i in case.model.graph.input]
    given = dict(zip(names, inputs, strict=False))
    module, fixed = load(path, given)
    program = tilewright.compile(module, TARGET, to="canonicalize" if level == "graph" else None)
    run = program.run({spec.name: as_array(given[spec.name], spec.name) for spec in program.inputs}, level=level)
    for info, wanted in zip(case.model.graph.output, outputs, strict=True):
        compare(info.name, run.outputs[info.name], as_array(wanted, info.name), case.rtol, case.atol)
    return fixed


def load(path: Path, given: Mapping[str, Any]) -> tuple[tilewright.Module, tuple[str, ...]]:
    """The imported model; inputs that must be constants are fixed to their values."""
    constants: dict[str, np.ndarray] = {}
    for _ in range(MOST_RETRIES):
        try:
            return tilewright.load(path, constants=constants), tuple(constants)
        except tilewright.SourceError as error:
            needed = set(getattr(error, "constants", ())) - set(constants)
            if not needed:
                raise
            constants |= {name: as_array(given[name], name) for name in needed}
    return tilewright.load(path, constants=constants), tuple(constants)


def as_array(value: Any, name: str) -> np.ndarray:
    """An input or output of a case as an array."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if not isinstance(value, np.ndarray | np.generic):
        raise Mismatch(f"'{name}' of the case is no tensor but a {type(value).__name__}")
    return np.asarray(value)


def compare(name: str, found: np.ndarray, wanted: np.ndarray, rtol: float, atol: float) -> None:
    """Raises Mismatch unless type, shape and values agree: within the tolerances of the case, or ROUNDINGS of the type.

    Expected values are rounded after every step to f16 or bf16; here sums and softmaxes are rounded once, at the end.
    """
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        raise Mismatch(
            f"output '{name}' is {found.dtype}{list(found.shape)}, wanted {wanted.dtype}{list(wanted.shape)}"
        )
    a, b = (x.astype(np.float64) if x.dtype.kind not in "iub" else x for x in (found, wanted))
    rtol = max(rtol, ROUNDINGS * UNITS.get(found.dtype.name, 0.0))
    if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
        raise Mismatch(f"output '{name}' differs by up to {np.nanmax(difference):.3g}")


def run_all(selected: Sequence[Any], jobs: int, seconds: int, level: str) -> Iterator[Outcome]:
    """The outcomes as they come. Workers are forked, so that they see the cases; one that takes too long is killed."""
    context = multiprocessing.get_context("fork")
    waiting = list(range(len(selected)))[::-1]
    running: dict[Connection, tuple[BaseProcess, int, float]] = {}

    def start() -> None:
        """A worker for the next cases."""
        batch = [waiting.pop() for _ in range(min(BATCH, len(waiting)))]
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=([selected[i] for i in batch], level, theirs))
        process.start()
        theirs.close()
        running[mine] = process, batch[0], time.monotonic()
        batches[mine] = batch

    batches: dict[Connection, list[int]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            start()
        for pipe in wait(list(running), timeout=1.0):
            assert isinstance(pipe, Connection)
            process, _, _ = running[pipe]
            try:
                yield pipe.recv()
                batches[pipe].pop(0)
                running[pipe] = process, 0, time.monotonic()
            except EOFError:
                process.join()
                del running[pipe]
                yield from _left(selected, batches.pop(pipe), waiting, f"the process died ({process.exitcode})")
        for pipe, (process, _, began) in list(running.items()):
            if time.monotonic() - began > seconds:
                process.kill()
                process.join()
                del running[pipe]
                yield from _left(selected, batches.pop(pipe), waiting, f"out of time ({seconds} s)")


def _left(selected: Sequence[Any], batch: list[int], waiting: list[int], why: str) -> Iterator[Outcome]:
    """The case a worker ended in fails; those behind it wait again."""
    if batch:
        case = selected[batch[0]]
        waiting.extend(batch[:0:-1])
        yield Outcome(case.name, operator_of(case), "fail", why)


def _work(batch: Sequence[Any], level: str, pipe: Connection) -> None:
    warnings.simplefilter("ignore")
    for case in batch:
        pipe.send(run_case(case, level))
    pipe.close()


def table(outcomes: Sequence[Outcome], known: int) -> str:
    """The page: figures, a line for each operator, and why cases are unsupported."""
    total = Counter(o.status for o in outcomes)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: dict[str, list[str]] = defaultdict(list)
    for o in outcomes:
        rows[o.operator][o.status] += 1
        if o.status != "pass":
            reasons[o.operator].append(reason(o.message))
    fixed = sum(bool(o.fixed) for o in outcomes)
    lines = [
        "# ONNX backend tests",
        "",
        "Written by `python benchmarks/onnx_backend.py --write docs/onnx_coverage.md`: onnx "
        f"{onnx.__version__}, its node tests, through import, compiler and machine on `{TARGET}`.",
        "",
        f"{len(outcomes)} of {known} cases were run: **{total['pass']} pass**, {total['unsupported']} unsupported "
        f"with a message, {total['fail']} fail. In {fixed} cases inputs that give shapes, axes or sizes were fixed to "
        "their values.",
        "",
        "| operator | pass | unsupported | fail | why not |",
        "|---|--:|--:|--:|---|",
    ]
    for operator in sorted(rows):
        row = rows[operator]
        why = "; ".join(f"{text} ({n})" for text, n in Counter(reasons[operator]).most_common(3))
        lines.append(f"| {operator} | {row['pass']} | {row['unsupported']} | {row['fail']} | {why} |")
    return "\n".join(lines) + "\n"


def reason(message: str) -> str:
    """A message without what differs from case to case."""
    text = re.sub(
        r"^node '[^']*' \(\w[\w.]*\): ", "", message.split(" (")[0] if message.startswith("input") else message
    )
    text = re.sub(r"\s*\((?:supported are|pip|its value).*\)$", "", text)
    text = re.sub(r"'[^']*'", "…", re.sub(r"\[[^\]]*\]", "[…]", text))
    return text[:110].replace("|", "\\|")


def merged(path: Path, outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes, and those of other cases that a file has from earlier runs."""
    earlier = json.loads(path.read_text()) if path.exists() else []
    new = {o.name for o in outcomes}
    return [*outcomes, *(Outcome(**{**o, "fixed": tuple(o["fixed"])}) for o in earlier if o["name"] not in new)]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name matches this pattern")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=int, default=60, help="seconds for one case")
    parser.add_argument(
        "--level", choices=["graph", "hardware"], default="hardware", help="graph: without the compiler"
    )
    parser.add_argument("--json", type=Path, help="every outcome; those of other cases stay")
    parser.add_argument("--write", type=Path, help="write the page with the table")
    options = parser.parse_args()
    known = cases()
    selected = [case for case in known if re.search(options.only, case.name)]
    outcomes: list[Outcome] = []
    for outcome in run_all(selected, options.jobs, options.limit, options.level):
        outcomes.append(outcome)
        if outcome.status == "fail":
            print(f"FAIL {outcome.name}: {outcome.message}", flush=True)
    if options.json:
        outcomes = merged(options.json, outcomes)
    outcomes.sort()
    if options.json:
        options.json.write_text(json.dumps([o._asdict() for o in outcomes], indent=1))
    if options.write:
        options.write.write_text(table(outcomes, len(known)))
    print(dict(Counter(o.status for o in outcomes)))


if __name__ == "__main__":
    main()
