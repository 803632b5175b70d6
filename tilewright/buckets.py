"""Programs for several sizes: one statically planned program per bucket, inputs padded up to the next one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_functions import entry_function
from tilewright.dialects.graph_primitives import ConstantOp, WeightOp
from tilewright.dialects.graph_types import static_shape
from tilewright.ir.diagnostics import SourceError
from tilewright.lowering.plan_names import WORKSPACE
from tilewright.runtime.machine import MachineOptions
from tilewright.runtime.reference import evaluate
from tilewright.runtime.report import Json

from .array_like import as_array
from .arrays import Array, check_array
from .errors import diagnosed, plain_error
from .masking import Masked, masked
from .module import Module, TensorSpec
from .padding import Findings, Mask, Primitives, compare, extents
from .program import Program
from .result import Run, finite
from .tolerance import relative_error

Sizes: TypeAlias = dict[str, int]
Loader: TypeAlias = Callable[[Sizes], Module]


@dataclass(frozen=True)
class Bucket:
    """One program for all sizes up to `sizes`."""

    sizes: Mapping[str, int]
    program: Program
    primitives: Primitives = field(repr=False)
    masks: Mapping[Mask, str] = field(repr=False)
    extra: Masked | None = field(repr=False)

    @property
    def workspace(self) -> int:
        """Bytes of the off-chip arena of intermediates."""
        function = entry_function(self.program.snapshot(after="plan").module)
        attribute = function.attributes.get(WORKSPACE)
        return int(attribute.value.data) if attribute is not None else 0  # pyright: ignore

    def check(self, small: Primitives, sizes: Mapping[str, int]) -> None:
        """Raises UserError unless this program, its inputs padded, is known to compute what the small one does."""
        found = compare(self.primitives, small, named(sizes))
        known = Findings(frozenset(self.masks), frozenset(self.extra.constants) if self.extra else frozenset())
        if not (found.masks <= known.masks and found.constants <= known.constants):
            raise UserError(f"padding {named(sizes)} needs masks that padding by one does not need")
        _check_extents(self.primitives, small, self.masks, self.sizes, sizes)


@dataclass(frozen=True)
class BucketRun:
    """One execution: outputs in their true sizes, the bucket, the whole run of the padded program."""

    outputs: Mapping[str, Array] = field(repr=False)
    sizes: Mapping[str, int]
    bucket: Bucket
    run: Run = field(repr=False)
    true: Primitives = field(repr=False)
    inputs: tuple[Array, ...] = field(repr=False)

    @property
    def waste(self) -> float:
        """The share of the padded sizes that is padding: 100 words in a bucket of 128 waste 0.22."""
        true, padded = (math.prod(sizes[name] for name in self.sizes) for sizes in (self.sizes, self.bucket.sizes))
        return 1 - true / padded

    def errors(self) -> dict[str, float]:
        """Each output's max|x − ref| / max|ref| against the program of the true sizes in float64."""
        exact = evaluate(self.true.module, self.inputs, "f64", self.true.read)
        return {n: relative_error(x, r) for (n, x), r in zip(self.outputs.items(), exact, strict=True)}

    def report(self) -> dict[str, Json]:
        """As `Run.report`, outputs in their true sizes; "bucket": the sizes, those of the bucket, and the waste."""
        figures, errors = self.run.report(), self.errors()
        kinds = {spec.name: spec.element.name for spec in self.run.program.outputs}
        figures["outputs"] = [
            {"name": name, "shape": list(array.shape), "dtype": kinds[name], "max_rel_err": finite(errors[name])}
            for name, array in self.outputs.items()
        ]
        figures["bucket"] = {"sizes": dict(self.sizes), "padded": dict(self.bucket.sizes), "waste": self.waste}
        return figures


@dataclass(frozen=True)
class Buckets:
    """Programs for several sizes. Made by `tilewright.compile` with several sizes for a dimension."""

    buckets: tuple[Bucket, ...]
    limits: Mapping[str, tuple[int, ...]]
    """Dimension → sizes of its buckets, rising."""
    inputs: tuple[TensorSpec, ...]
    loader: Loader = field(repr=False)
    proved: dict[tuple[tuple[str, int], ...], Primitives] = field(
        default_factory=dict[tuple[tuple[str, int], ...], Primitives], repr=False
    )
    """Sizes → the program of exactly these, for those whose padding was shown to be harmless."""

    @property
    def workspace(self) -> int:
        """Bytes of the one off-chip arena that serves every bucket: of the largest need, as one runs at a time."""
        return max(bucket.workspace for bucket in self.buckets)

    def bucket(self, sizes: Mapping[str, int]) -> Bucket:
        """The smallest bucket that takes these sizes. Raises SourceError outside of all of them."""
        wanted: Sizes = {}
        for name, size in sizes.items():
            fitting = [limit for limit in self.limits[name] if size <= limit]
            if not fitting or size < 1:
                known = ", ".join(map(str, self.limits[name]))
                raise plain_error(
                    f"dimension '{name}' is {size}; its buckets are {known}",
                    f'compile one more size, as in dims={{"{name}": [{known}, {size}]}}' if size > 0 else "",
                )
            wanted[name] = fitting[0]
        return next(b for b in self.buckets if all(b.sizes[name] == size for name, size in wanted.items()))

    def sizes_of(self, given: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]) -> Sizes:
        """The sizes that arrays have along the dimensions with buckets. Raises SourceError where they disagree."""
        sizes: dict[str, tuple[int, str]] = {}
        for spec, value in self._matched(given):
            array = as_array(value, f"input '{spec.name}'")
            if array.ndim != len(spec.shape):
                raise plain_error(
                    f"input '{spec.name}' has {array.ndim} dimensions, the program's has {len(spec.shape)}"
                )
            for dim, size in zip(spec.shape, array.shape, strict=True):
                if isinstance(dim, str):
                    before, other = sizes.setdefault(dim, (size, spec.name))
                    if before != size:
                        raise plain_error(
                            f"dimension '{dim}' is {before} in input '{other}' and {size} in '{spec.name}'"
                        )
        return {name: sizes[name][0] if name in sizes else self.limits[name][0] for name in self.limits}

    def _matched(
        self, given: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike]
    ) -> list[tuple[TensorSpec, npt.ArrayLike]]:
        names = [spec.name for spec in self.inputs]
        if not isinstance(given, Mapping):
            if len(given) != len(names):
                raise plain_error(f"the program takes {len(names)} inputs, got {len(given)}")
            given = dict(zip(names, given, strict=True))
        if set(given) != set(names):
            wrong = sorted(set(given) ^ set(names))
            raise plain_error(f"the inputs are {', '.join(map(str, self.inputs))}; '{wrong[0]}' is missing or not one")
        return [(spec, given[spec.name]) for spec in self.inputs]

    def run(
        self,
        inputs: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike],
        check: bool | MachineOptions = True,
    ) -> BucketRun:
        """Executes the smallest bucket that the inputs fit in and returns results in the inputs' sizes.

        The first run of each size reads the program at that size and checks, op by op, that padding is harmless.
        Raises SourceError for inputs that fit no bucket, and, at the op, where padding could change a result.
        """
        sizes = self.sizes_of(inputs)
        bucket = self.bucket(sizes)
        small = self._proved(bucket, sizes)
        module = bucket.program.source
        true = entry_function(small.module).body.block.args
        specs = [replace(spec, shape=static_shape(arg.type)) for spec, arg in zip(self.inputs, true, strict=True)]
        arrays = [
            check_array(value, spec, "input") for spec, (_, value) in zip(specs, self._matched(inputs), strict=True)
        ]
        given = tuple(arrays)
        if bucket.extra is not None:
            arrays += [np.asarray(sizes[name], np.int32) for name in bucket.extra.sizes]
            ops = small.ops
            stored = [op for place in bucket.extra.constants if isinstance(op := ops[place], ConstantOp | WeightOp)]
            arrays += [small.stored(op) for op in stored]
        padded = [_padded(array, spec) for array, spec in zip(arrays, module.inputs, strict=True)]
        run = bucket.program.run(padded, check=check)
        returned = small.ops[-1].operands
        outputs = {
            name: array[tuple(slice(size) for size in static_shape(value.type))].copy()
            for (name, array), value in zip(run.outputs.items(), returned, strict=True)
        }
        return BucketRun(outputs, sizes, bucket, run, small, given)

    def _proved(self, bucket: Bucket, sizes: Sizes) -> Primitives:
        """The program of exactly these sizes, shown to agree with that of the bucket."""
        key = tuple(sorted(sizes.items()))
        if key not in self.proved:
            module = _witness(self.loader, sizes)
            with diagnosed(module.texts):
                small = Primitives.of(module.op, module.weight_reader())
                bucket.check(small, sizes)
            self.proved[key] = small
        return self.proved[key]

    def __repr__(self) -> str:
        buckets = "; ".join(named(bucket.sizes) for bucket in self.buckets)
        return f"<tilewright.Buckets ({', '.join(map(str, self.inputs))}): {buckets}>"


def named(sizes: Mapping[str, int]) -> str:
    """`seq=128, batch=1`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def compile_buckets(
    loader: Loader, limits: Mapping[str, Sequence[int]], compiled: Callable[[Module], Program]
) -> Buckets:
    """One program for each combination of sizes.

    loader    reads the program at given sizes
    limits    dimension → sizes of its buckets
    compiled  takes a program through the pipeline

    Raises SourceError, at the op, where padding cannot be shown to be harmless.
    """
    rising: dict[str, tuple[int, ...]] = {}
    for name, sizes in limits.items():
        rising[name] = tuple(sorted(set(sizes)))
        if not rising[name] or rising[name][0] < 1:
            raise plain_error(f"dimension '{name}' needs sizes of at least 1, got {list(sizes)}")
    buckets: list[Bucket] = []
    shared: dict[tuple[str, str], Array] = {}
    inputs: tuple[TensorSpec, ...] = ()
    for combination in itertools.product(*rising.values()):
        sizes = dict(zip(rising, combination, strict=True))
        module = _sharing(loader(sizes), shared)
        bucket, inputs = _bucket(loader, module, sizes, compiled)
        buckets.append(bucket)
    return Buckets(tuple(buckets), rising, inputs, loader)


def _sharing(module: Module, shared: dict[tuple[str, str], Array]) -> Module:
    """The module with weights that an earlier one has as well in place of its own copies."""
    weights: dict[tuple[str, str], Array] = {}
    for key, array in module.weights.items():
        known = shared.setdefault(key, array)
        same = known.dtype == array.dtype and known.shape == array.shape and known.tobytes() == array.tobytes()
        weights[key] = known if same else array
    return replace(module, weights=weights)


def _witness(loader: Loader, sizes: Sizes) -> Module:
    try:
        return loader(sizes)
    except SourceError as error:
        first = error.diagnostics[0]
        message = f"a bucket cannot stand in for {named(sizes)}, as there is no such program: {first.message}"
        raise SourceError([replace(first, message=message), *error.diagnostics[1:]]) from None


def _bucket(
    loader: Loader, module: Module, sizes: Sizes, compiled: Callable[[Module], Program]
) -> tuple[Bucket, tuple[TensorSpec, ...]]:
    """The program for one combination of sizes; and its inputs, each dimension that varies by its name."""
    with diagnosed(module.texts):
        large = Primitives.of(module.op, module.weight_reader())
        shapes = [list(spec.shape) for spec in module.inputs]
        masks: dict[Mask, str] = {}
        constants: set[int] = set()
        for name, size in sizes.items():
            less = {**sizes, name: size - 1}
            if size == 1:
                continue
            other = _witness(loader, less)
            small = Primitives.of(other.op, other.weight_reader())
            found = compare(large, small, f"'{name}'")
            _check_extents(large, small, dict.fromkeys(found.masks, name), sizes, less)
            masks.update(dict.fromkeys(found.masks, name))
            constants |= found.constants
            for shape, spec, wanted in zip(shapes, other.inputs, module.inputs, strict=True):
                for d, (one, two) in enumerate(zip(spec.shape, wanted.shape, strict=True)):
                    if one != two:
                        shape[d] = name
    specs = tuple(replace(spec, shape=tuple(shape)) for spec, shape in zip(module.inputs, shapes, strict=True))
    extra = None
    if masks or constants:
        names = [spec.name for spec in module.inputs]
        extra = masked(large.module, masks, sorted(constants), names)
        module = replace(module, op=extra.module)
    return Bucket(sizes, compiled(module), large, masks, extra), specs


def _check_extents(
    large: Primitives, small: Primitives, masks: Mapping[Mask, str], sizes: Mapping[str, int], less: Mapping[str, int]
) -> None:
    """Raises UserError unless what is masked by the size of a dimension is that dimension itself."""
    wide, narrow = extents(large, masks), extents(small, masks)
    for mask, name in masks.items():
        if (wide[mask], narrow[mask]) != (sizes[name], less[name]):
            place = large.ops[mask.op].location
            message = (
                f"padding '{name}' may change the results: {wide[mask]} elements are reduced where it is {sizes[name]}"
            )
            raise UserError(message, place)


def _padded(array: Array, spec: TensorSpec) -> Array:
    """The array with zeros behind it, up to the shape of the program's input."""
    padded = np.zeros([int(size) for size in spec.shape], array.dtype)
    padded[tuple(slice(size) for size in array.shape)] = array
    return padded
