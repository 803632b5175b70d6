"""A fixed sample of ONNX's backend node tests, on the machine or (more) at the graph level; a benchmark runs all."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("onnx_backend", ROOT / "benchmarks" / "onnx_backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["onnx_backend"] = module
    spec.loader.exec_module(module)
    return module


backend = _load()

ON_THE_MACHINE = (
    "test_averagepool_2d_pads", "test_basic_conv_with_padding", "test_batchnorm_example", "test_clip_example",
    "test_convtranspose_1d", "test_gather_1", "test_gelu_default_1", "test_gemm_all_attributes",

    "test_layer_normalization_3d_axis1_epsilon", "test_maxpool_2d_same_upper", "test_reduce_l2_keep_dims_random",
    "test_scatter_elements_with_axis", "test_softmax_axis_1", "test_top_k", "test_where_example",
)  # fmt: skip
AT_THE_GRAPH_LEVEL = re.compile(
    r"test_(argmax_.*random|attention_4d_(gqa|causal|softcap)|cumsum_\w+|dequantizelinear(_axis)?|depthtospace\w*|edge_pad|"
    r"gather_elements_\d|gathernd_\w+|globalaveragepool|gru_defaults|gridsample|if|instancenorm_\w+|lstm_defaults|"
    r"maxpool_with_argmax\w+|nllloss_NCd1|onehot_\w+|pow|quantizelinear|reflect_pad|resize_\w+_(cubic|linear|nearest)|"
    r"rms_normalization_2d_axis0|scan9_sum|scatternd_\w+|slice_neg\w*|split_variable_parts_1d_opset18|tile|trilu_\w+)"
)
NOT_IMPORTED = (
    "test_gridsample",
    "test_nonmaxsuppression_two_classes",
    "test_sequence_insert_at_back",
    "test_strnormalizer",
)


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    return {case.name: case for case in backend.cases()}


def test_the_sample_passes_on_the_machine(cases: dict[str, Any]) -> None:
    outcomes = [backend.run_case(cases[name], "hardware") for name in ON_THE_MACHINE]
    assert [o for o in outcomes if o.status != "pass"] == []


def test_a_larger_sample_passes_at_the_graph_level(cases: dict[str, Any]) -> None:
    chosen = [case for name, case in cases.items() if AT_THE_GRAPH_LEVEL.fullmatch(name)]
    outcomes = [backend.run_case(case, "graph") for case in chosen]
    assert Counter(o.status for o in outcomes if not o.name.startswith(NOT_IMPORTED)) == {"pass": len(chosen) - 1}
    assert len(chosen) > 60


def test_what_is_not_supported_says_so(cases: dict[str, Any]) -> None:
    chosen = [case for name, case in cases.items() if name.startswith(NOT_IMPORTED)]
    outcomes = [backend.run_case(case, "graph") for case in chosen]
    assert {o.status for o in outcomes} == {"unsupported"} and all("support" in o.message for o in outcomes), outcomes


def test_outputs_are_compared_by_type_shape_and_value() -> None:
    right = np.array([1.0, np.nan], np.float32)
    backend.compare("y", right, right, 1e-3, 1e-7)
    for wrong in (right.astype(np.float64), right[:1], right + 0.01, np.zeros(2, np.float32)):
        with pytest.raises(backend.Mismatch):
            backend.compare("y", wrong, right, 1e-3, 1e-7)


def test_the_table_counts_what_happened() -> None:
    outcome = backend.Outcome
    page = backend.table(
        [
            outcome("a", "Add", "pass"),
            outcome("b", "Add", "fail", "x"),
            outcome("c", "Mul", "unsupported", "y", ("s",)),
        ],
        4,
    )
    assert "3 of 4 cases were run: **1 pass**, 1 unsupported" in page and "| Add | 1 | 0 | 1 | x (1) |" in page
