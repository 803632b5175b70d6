"""Every named op on shapes of 1, primes and ragged sizes: (op, operand types, result type or None, attributes)."""

from __future__ import annotations

from tilewright.dialects.graph import ELEMENTWISE
from tilewright.dialects.scalar import TABLE

Case = tuple[str, list[str], str | None, dict[str, object]]

_DOMAIN_TYPE = {"float": "f32", "int": "i32", "number": "f32", "any": "f32", "bool": "i1"}


def _elementwise() -> list[Case]:
    cases: list[Case] = []
    for name in ELEMENTWISE:
        row = TABLE[name]
        shapes = ["5x3", "3", "5x1"][: row.arity]
        types = [f"{s}x{_DOMAIN_TYPE[d]}" for s, d in zip(shapes, row.operands, strict=True)]
        if name != "leaky_relu":
            cases.append((name, types, None, {}))
        if row.operands[0] == "number":
            cases.append((name, [t.replace("f32", "i8") for t in types], None, {}))
    return cases


CASES: list[Case] = [
    *_elementwise(),
    ("cast", ["7x2xf32"], "7x2xf16", {}),
    ("cast", ["7x2xf32"], "7x2xi8", {}),
    ("cast", ["7x2xf16"], "7x2xf16", {}),
    ("cast", ["7xi32"], "7xf32", {}),
    ("where", ["3x1xi1", "3x5xf16", "5xf16"], None, {}),
    ("clip", ["3x5xf16"], None, {"low": -0.5, "high": 1.0}),
    ("clip", ["3x5xf16"], None, {"high": 0.25}),
    ("clip", ["3x5xi8"], None, {"low": -3, "high": 4}),
    ("gelu", ["3x7xf16"], None, {}),
    ("gelu", ["3x7xf32"], None, {"approximate": "tanh"}),
    ("silu", ["3x7xbf16"], None, {}),
    ("matmul", ["5x3xf16", "3x7xf16"], None, {}),
    ("matmul", ["5x3xf16", "3x7xf16"], "5x7xf32", {}),
    ("matmul", ["3x5xf32", "7x3xf32"], None, {"transpose_a": True, "transpose_b": True}),
    ("matmul", ["2x1x5x3xf32", "11x3x7xf32"], None, {}),
    ("matmul", ["1x5x3xf32", "1x3x1xf32"], None, {}),
    ("matmul", ["2x4x5x3xf32", "4x7x3xf32"], None, {"transpose_b": True}),
    ("matmul", ["3xf32", "3x7xf32"], None, {}),
    ("matmul", ["2x5x3xf32", "3xf32"], None, {}),
    ("matmul", ["3xf32", "3xf32"], None, {}),
    ("matmul", ["3xf32", "2x3x5xf32"], None, {}),
    ("matmul", ["5x3xi8", "3x7xi8"], None, {}),
    ("conv", ["2x3x7x9xf32", "5x3x3x2xf32"], None, {"pads": [1, 0, 2, 1], "strides": [2, 1]}),
    ("conv", ["1x4x7x9xf16", "6x2x3x3xf16", "6xf16"], None, {"groups": 2, "pads": [1, 1, 1, 1]}),
    ("conv", ["1x4x8x5xf16", "4x1x3x1xf16"], None, {"groups": 4, "dilations": [2, 3]}),
    ("conv", ["2x3x5x5xi8", "4x3x1x1xi8", "4xi32"], None, {}),
    ("conv", ["1x1x1x1xf32", "1x1x1x1xf32"], None, {}),
    ("softmax", ["3x7xf16"], None, {}),
    ("softmax", ["3x7x2xf32"], None, {"axis": 1, "masked_rows": "zero"}),
    ("softmax", ["1x1xf32"], None, {"axis": -2}),
    ("log_softmax", ["3x7xf32"], None, {"axis": 0}),
    ("layer_norm", ["3x5x7xf16"], None, {}),
    ("layer_norm", ["3x5x7xf16", "7xf32"], None, {"epsilon": 0.01}),
    ("layer_norm", ["3x5x7xf16", "5x7xf16", "7xf16"], None, {"axis": 1}),
    ("rms_norm", ["3x5x7xf16"], None, {}),
    ("rms_norm", ["3x5x7xf32", "7xf32"], None, {"axis": -1, "epsilon": 1e-6}),
    ("reduce_sum", ["3x5x7xf16"], None, {"axes": [0, -1]}),
    ("reduce_sum", ["3x5xi8"], "3x1xi32", {"axes": [1], "keepdims": True}),
    ("reduce_sum", ["3x5xf32"], None, {}),
    ("reduce_max", ["3x5x7xf32"], None, {"axes": [1], "keepdims": True}),
    ("reduce_min", ["3x5x7xi32"], None, {"axes": [2]}),
    ("reduce_prod", ["3x5xf32"], None, {"axes": [1]}),
    ("reduce_mean", ["3x5x7xf16"], None, {"axes": [1]}),
    ("transpose", ["3x5x7xf16"], None, {"permutation": [2, 0, 1]}),
    ("transpose", ["3x5xi1"], None, {}),
    ("reshape", ["6x4xf16"], "3x8xf16", {}),
    ("reshape", ["6x4xf32"], "8x3xf32", {}),
    ("reshape", ["1x1xf32"], "f32", {}),
    ("expand", ["5x1xf32"], "3x5x7xf32", {}),
    ("slice", ["9x7xf32"], None, {"starts": [1, 6], "sizes": [3, 4], "steps": [3, -2]}),
    ("slice", ["9x7xf32"], None, {"starts": [1, 0], "limits": [8, 7], "steps": [3, 1]}),
    ("concat", ["3x2xf16", "3x1xf16", "3x4xf16"], None, {"axis": -1}),
    ("pad", ["3x5xf32"], None, {"low": [1, 0], "high": [0, 2], "value": -1.5}),
    ("pad", ["3x5xi8"], None, {"low": [0, 0], "high": [0, 0]}),
    (
        "window",
        ["2x7x9xf32"],
        None,
        {"axes": [1, 2], "sizes": [3, 2], "strides": [2, 1], "low": [1, 0], "high": [0, 1]},
    ),
    ("window", ["11x2xi8"], None, {"axes": [0], "sizes": [3], "dilations": [2], "high": [1], "value": -3}),
    ("gather", ["5x7x3xf16", "2x3xi64"], None, {"axis": 1}),
    ("gather", ["7xi32", "i32"], None, {}),
    ("gather", ["7x3xi1", "4xi8"], None, {}),
    ("gather", ["7x3xf32", "4xi64"], None, {"finite": True}),
    ("gather_elements", ["5x7xf32", "5x3xi64"], None, {"axis": 1}),
    ("gather_elements", ["5x7xf16", "4x6xi32"], None, {"axis": 0}),
    ("scatter_elements", ["5x7xf32", "3x6xi64", "3x6xf32"], None, {"axis": 0}),
    ("scatter_elements", ["5x7xi32", "5x4xi64", "5x4xi32"], None, {"axis": 1, "reduction": "add"}),
    ("scatter_elements", ["5x7xf32", "2x7xi32", "2x7xf32"], None, {"reduction": "max"}),
    ("scatter_elements", ["5x3xi1", "2x3xi32", "2x3xi1"], None, {}),
    ("arg_max", ["5x7xf32"], None, {}),
    ("arg_max", ["5x7xi8"], "1x7xi32", {"axis": 0, "last": True}),
    ("arg_min", ["5x7x2xf16"], None, {"axis": 1, "last": True}),
    ("cum_sum", ["5x7xf32"], None, {"axis": 0}),
    ("cum_sum", ["5x7xi32"], None, {"exclusive": True, "reverse": True}),
    ("cum_prod", ["5x7xf32"], None, {"exclusive": True}),
]


def case_id(case: Case) -> str:
    name, types, _, values = case
    return "-".join([name, *types, *values])
