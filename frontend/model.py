"""Reading an ONNX file: checked, dimensions bound, inputs fixed, functions inlined."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.inliner
from onnx import GraphProto, ModelProto, NodeProto, TensorShapeProto, ValueInfoProto, numpy_helper

from ..dialects.dtypes import by_name
from ..ir.diagnostics import Diagnostic, SourceError, did_you_mean
from .errors import Unsupported
from .values import Array, element_of_onnx

NEWEST_OPSET = onnx.defs.onnx_opset_version()
OLDEST_OPSET = 7
"""Before it, elementwise operators broadcast by an attribute."""

# Unknown operators are reported with the other nodes that cannot be imported; shapes of outputs are computed.
_TOLERATED = ("No Op registered", "No opset import", "Field 'shape' of 'type' is required")


@dataclass(frozen=True)
class Input:
    """One input that stays: its name, shape and element type name."""

    name: str
    shape: tuple[int, ...]
    kind: str


def domain_of(node: NodeProto) -> str:
    """The domain of a node; the empty string for ONNX's own operators."""
    return "" if node.domain == "ai.onnx" else node.domain


def key_of(node: NodeProto) -> str:
    """What tables call an operator: `Add`, `com.microsoft.FusedMatMul`."""
    domain = domain_of(node)
    return f"{domain}.{node.op_type}" if domain else node.op_type


class Model:
    """A model file, and everything that can be wrong with it as one clear message."""

    def __init__(self, path: Path, proto: ModelProto) -> None:
        self.path = path
        self.proto = proto

    def error(self, message: str, suggestion: str = "") -> SourceError:
        """A message about the file."""
        return SourceError([Diagnostic("error", message, str(self.path), suggestion=suggestion)])

    @staticmethod
    def read(path: Path) -> Model:
        """The model of a file, with its external data. Raises SourceError if there is none or it is broken."""
        if not path.exists() or path.is_dir():
            what = "is a directory, not a file" if path.is_dir() else "does not exist"
            near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() and not path.exists() else []
            raise SourceError([Diagnostic("error", f"'{path}' {what}", suggestion=did_you_mean(path.name, near))])
        model = Model(path, ModelProto())
        try:
            model.proto = onnx.load(str(path), load_external_data=False)  # pyright: ignore[reportUnknownMemberType]
        except OSError as error:
            raise model.error(f"cannot be read: {error.strerror or error}") from None
        except Exception:  # protobuf's decoder has several exceptions, none of them with a message worth showing
            raise model.error("is not an ONNX model: it cannot be decoded") from None
        if not model.proto.HasField("graph") or not model.proto.opset_import:
            raise model.error("is not an ONNX model: it has no graph, or says no opset")
        try:
            onnx.load_external_data_for_model(model.proto, str(path.parent))
        except Exception as error:
            reason = " ".join(str(error).split())
            raise model.error(f"its external data cannot be read: {reason}") from None
        return model

    @property
    def opsets(self) -> dict[str, int]:
        """Domain → version."""
        return {("" if o.domain == "ai.onnx" else o.domain): o.version for o in self.proto.opset_import}

    def check(self) -> None:
        """Raises SourceError for a model that breaks ONNX's own rules or is too old or too new."""
        version = self.opsets.get("", NEWEST_OPSET)
        if not OLDEST_OPSET <= version <= NEWEST_OPSET:
            way = "onnx.version_converter.convert_version brings it to another opset"
            raise self.error(f"its opset is {version}; supported are {OLDEST_OPSET} to {NEWEST_OPSET}", way)
        if not all(isinstance(text, str) for text in _texts(self.proto.graph)):
            raise self.error("is not a valid ONNX model: it has names that are not text")
        try:
            onnx.checker.check_model(self.proto)  # pyright: ignore[reportUnknownMemberType]
        except onnx.checker.ValidationError as error:
            if not any(known in str(error) for known in _TOLERATED):
                reason = " ".join(str(error).split("==> Context:")[0].split())
                raise self.error(f"is not a valid ONNX model: {reason}") from None
        except ValueError:
            pass  # larger than one protobuf message may be: the checker cannot take it, the importer can

    def inline(self) -> None:
        """Replaces calls of the model's own functions by their bodies."""
        if self.proto.functions:
            try:
                self.proto = onnx.inliner.inline_local_functions(self.proto)
            except Exception as error:
                reason = " ".join(str(error).split())
                raise self.error(f"its functions cannot be inlined: {reason}") from None

    def bind(self, dims: Mapping[str, int], constants: Mapping[str, Array]) -> list[Input]:
        """Gives every dimension of an input a number and turns inputs that are fixed into initializers.

        Returns what stays an input; one without elements is a constant. Raises SourceError for dimensions without a
        size, for names that the model does not have, and for inputs that are no tensors.
        """
        graph = self.proto.graph
        stored = {t.name for t in graph.initializer}
        infos = [info for info in graph.input if info.name not in stored]
        for name in constants:
            if name not in {info.name for info in infos}:
                raise self.error(f"the model has no input '{name}'", did_you_mean(name, [i.name for i in infos]))
        for name, array in constants.items():
            info = next(i for i in infos if i.name == name)
            graph.initializer.append(numpy_helper.from_array(self._fitting(info, array), name))
        left = [info for info in infos if info.name not in constants]
        known = {name for info in infos for name in _dim_names(info)}
        free: dict[str, str] = {}
        bound = [self._shape(info, dims, free) for info in left]
        for name, size in dims.items():
            if name not in known:
                has = f"its dimensions are {', '.join(sorted(known))}" if known else "all its sizes are fixed"
                raise self.error(f"the model has no dimension '{name}'", did_you_mean(name, known) or has)
            if size < 1:
                raise self.error(f"dimension '{name}' must be at least 1, got {size}")
        if free:
            which = ", ".join(f"'{d}' of input '{i}'" for d, i in free.items())
            flags = " ".join(f"--dim {d}=1" for d in free)
            sizes = ", ".join(f'"{d}": 1' for d in free)
            raise self.error(
                f"dimension{'s' * (len(free) > 1)} {which} {'have' if len(free) > 1 else 'has'} no size",
                f"give sizes, as in {flags} or dims={{{sizes}}}",
            )
        inputs: list[Input] = []
        for info, shape in zip(left, bound, strict=True):
            if math.prod(shape) == 0:  # there is only one such tensor
                kind = by_name(self._input(info, shape).kind)
                empty = np.zeros(shape, kind.numpy)
                graph.initializer.append(numpy_helper.from_array(empty, info.name))
            else:
                inputs.append(self._input(info, shape))
        return inputs

    def _fitting(self, info: ValueInfoProto, array: Array) -> Array:
        kind = info.type.tensor_type.elem_type
        try:
            wanted = onnx.helper.tensor_dtype_to_np_dtype(kind)
        except Exception:
            return array
        same_kind = np.can_cast(array.dtype, wanted, "same_kind") or array.dtype.kind == wanted.kind
        if not same_kind:
            raise self.error(f"input '{info.name}' has elements of {wanted}, the given constant of {array.dtype}")
        return array.astype(wanted)

    def _shape(self, info: ValueInfoProto, dims: Mapping[str, int], free: dict[str, str]) -> tuple[int, ...]:
        if info.type.WhichOneof("value") != "tensor_type":
            raise self.error(f"input '{info.name}' is a {info.type.WhichOneof('value')}: only tensors are supported")
        tensor = info.type.tensor_type
        if not tensor.HasField("shape"):
            raise self.error(
                f"input '{info.name}' has no shape: not even its rank is known", "export the model with input shapes"
            )
        shape: list[int] = []
        for name, dim in zip(_dim_names(info, all_=True), tensor.shape.dim, strict=True):
            size = dims.get(name) if name else dim.dim_value
            if size is None:
                free.setdefault(name, info.name)
                size = 1
            dim.dim_value = size
            shape.append(size)
        return tuple(shape)

    def _input(self, info: ValueInfoProto, shape: tuple[int, ...]) -> Input:
        try:
            kind = element_of_onnx(info.type.tensor_type.elem_type).name
        except Unsupported as error:
            raise self.error(f"input '{info.name}': {error.reason}", error.way_out) from None
        return Input(info.name, shape, kind)


def _texts(graph: GraphProto) -> Iterator[object]:
    """Every name in a graph. The decoder leaves bytes where they are not UTF-8."""
    for info in (*graph.input, *graph.output, *graph.initializer):
        yield info.name
    for node in graph.node:
        yield from (node.op_type, node.domain, node.name, *node.input, *node.output)
        for attribute in node.attribute:
            yield attribute.name
            yield from _texts(attribute.g)


def _dim_names(info: ValueInfoProto, all_: bool = False) -> list[str]:
    """The names of the dimensions without a number; with `all_`, empty strings for those that have one.

    A dimension that has no name either is called by its input and position: `x.0`.
    """
    if info.type.WhichOneof("value") != "tensor_type":
        return []
    names: list[str] = []
    for axis, dim in enumerate(info.type.tensor_type.shape.dim):
        fixed = dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0
        name = "" if fixed else _dim_param(dim) or f"{info.name}.{axis}"
        if name or all_:
            names.append(name)
    return names


def _dim_param(dim: TensorShapeProto.Dimension) -> str:
    """The name of a dimension; some exporters write `?` for one that has none, whatever its size."""
    name = dim.dim_param if dim.WhichOneof("value") == "dim_param" else ""
    return name if any(c.isalpha() for c in name) else ""
