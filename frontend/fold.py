"""Nodes whose operands are all known: computed at import by ONNX's own reference evaluator.

This is how shape arithmetic (Shape, Gather, Concat, … on sizes) goes away. Large constants are weights: computing with
them is left to the program, which keeps them as they are stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from onnx import NodeProto, TensorProto, helper

from .errors import Unsupported
from .values import Array, Value

FOLD_LIMIT = 1 << 16
"""Most elements, operands together, of a node that is computed at import."""

RESULT_LIMIT = 1 << 24
"""Most elements of what is computed at import: a short operand may ask for any number (Range, ConstantOfShape)."""

SMALL_BYTES = 1 << 10
"""A result of at most so many bytes may be larger than what it was computed from."""

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}
)


def is_small(operands: Sequence[Value | None]) -> bool:
    """Whether all operands are constants of few elements."""
    arrays = [v.array for v in operands if v is not None]
    return sum(FOLD_LIMIT + 1 if a is None else int(a.size) for a in arrays) <= FOLD_LIMIT


def is_worth_it(operands: Sequence[Value | None], results: Sequence[Array | None]) -> bool:
    """Whether storing the results takes no more than storing the operands: a quantized weight stays quantized."""
    stored = sum(v.array.nbytes for v in operands if v is not None and v.array is not None)
    made = sum(a.nbytes for a in results if a is not None)
    return made <= max(stored, SMALL_BYTES) or all(a is None or a.dtype.kind in "iub" for a in results)


def fold(proto: NodeProto, operands: Sequence[Value | None], opsets: dict[str, int]) -> list[Array | None]:
    """The results of a node on constants. Raises Unsupported where the reference evaluator has no answer."""
    from onnx.reference import ReferenceEvaluator

    given = {name: v.array for name, v in zip(proto.input, operands, strict=False) if v is not None and name}
    untyped = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in given]
    wanted = [name for name in proto.output if name]
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in wanted]
    graph = helper.make_graph([proto], "node", untyped, outputs)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports))
            found = cast("list[Any]", evaluator.run(wanted, given))  # pyright: ignore[reportUnknownMemberType]
    except Exception as error:  # whatever the evaluator raises for attributes and operands that do not fit
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise Unsupported(f"it cannot be computed from its constants: {reason}") from None
    if not all(isinstance(value, np.ndarray | np.generic) for value in found):
        raise Unsupported("it gives sequences or optional values", "only tensors are supported")
    results = dict(zip(wanted, (np.asarray(value) for value in found), strict=True))
    return [results.get(name) for name in proto.output]
