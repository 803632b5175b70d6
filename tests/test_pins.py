"""Pinned tiles: where they are brought, that results stay the same bits, and that their bytes are those predicted."""

from __future__ import annotations

import numpy as np
import pytest
from online_cases import OneKernel, structure
from random_programs import inputs_of
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import load_target
from tilewright.lowering.estimate import estimate
from tilewright.lowering.facts import Facts
from tilewright.lowering.measure import LOWERING, alone
from tilewright.lowering.nest import Nest
from tilewright.lowering.nest_build import place_nest
from tilewright.runtime.machine import run
from xdsl.context import Context

PRODUCT = """
func.func @main(%x: tensor<40x72xf16>, %w: tensor<72x80xf16>, %b: tensor<80xf16>) -> tensor<40x80xf16> {
  %p = graph.matmul %x, %w
  %q = graph.add %p, %b
  return %q : tensor<40x80xf16>
}
"""
ATTENTION = """
func.func @main(%q: tensor<2x40x16xf16>, %k: tensor<2x72x16xf16>, %v: tensor<2x72x16xf16>) -> tensor<2x40x16xf16> {
  %s = graph.matmul %q, %k {transpose_b}
  %p = graph.softmax %s {axis = -1 : i64}
  %o = graph.matmul %p, %v
  return %o : tensor<2x40x16xf16>
}
"""


def product_schedule(**changes: object) -> Schedule:
    """Axes a (rows), b (columns), c (summed); loads x, w, b."""
    made = Schedule("abc", (40, 80, 72), (16, 16, 32), "abc", "online", hold=("ac", "bc", "b"), slots=(2, 2, 1))
    return made.with_(**changes)


def attention_schedule(**changes: object) -> Schedule:
    """Axes a (heads), b (queries), c (width of the values), d (keys), e (width of the keys); loads q, k, v."""
    made = Schedule("abcde", (2, 40, 16, 72, 16), (1, 16, 16, 16, 16), "abd", "online",
                    hold=("ab", "ad", "ad"), slots=(1, 2, 2))  # fmt: skip
    return made.with_(**changes)


CASES = [
    (PRODUCT, product_schedule(pins=(0, 2, 0))),
    (PRODUCT, product_schedule(pins=(2, 0, 0))),
    (PRODUCT, product_schedule(pins=(1, 1, 0))),
    (PRODUCT, product_schedule(pins=(0, 4, 4))),
    (PRODUCT, product_schedule(pins=(0, 3, 0), hold=("a", "b", "b"))),
    (PRODUCT, product_schedule(pins=(1, 0, 0), order="bac")),
    (PRODUCT, product_schedule(pins=(0, 1, 0), order="bac")),
    (ATTENTION, attention_schedule(pins=(0, 2, 0))),
    (ATTENTION, attention_schedule(pins=(0, 1, 3))),
    (ATTENTION, attention_schedule(pins=(0, 0, 4), row_steps=1)),
]


def bytes_and_results(text: str, schedule: Schedule, target: str) -> tuple[int, int, np.ndarray]:
    """Predicted and executed off-chip bytes, and the result on the machine."""
    fused = OneKernel.of(text).fused
    chosen = load_target(target)
    nest = place_nest(OneKernel.of(text).group(), schedule)
    predicted = estimate(nest, Facts(nest.group, chosen)).bytes
    module = alone(fused, schedule, chosen)
    arrays = inputs_of(module, 1)
    for step in LOWERING:
        step.apply(Context(), module)
    result = run(module, arrays)
    moved = sum(kernel.read_bytes + kernel.write_bytes for kernel in result.kernels)
    return predicted, moved, result.outputs[0]


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        (PRODUCT, product_schedule(pins=(0, 2, 0), cores=(1, 3, 1))),
        (PRODUCT, product_schedule(pins=(0, 3, 0), hold=("a", "b", "b"), cores=(2, 1, 1))),
        (ATTENTION, attention_schedule(pins=(0, 2, 0), cores=(1, 3, 1, 1, 1))),
    ],
)
def test_every_core_pins_for_itself(text: str, schedule: Schedule) -> None:
    """A loop that is split for pinned tiles and divided among cores: bytes as predicted, results as of one core."""
    predicted, executed, result = bytes_and_results(text, schedule, "unified{cores=4}")
    assert predicted == executed
    _, _, alone_result = bytes_and_results(text, schedule.with_(cores=()), "unified{cores=4}")
    np.testing.assert_array_equal(result, alone_result)


@pytest.mark.parametrize("target", ["davinci", "unified", "unified{memory.gm.granule=64}"])
@pytest.mark.parametrize(("text", "schedule"), CASES, ids=range(len(CASES)))
def test_the_same_bits_and_the_bytes_predicted(text: str, schedule: Schedule, target: str) -> None:
    predicted, moved, found = bytes_and_results(text, schedule, target)
    _, plain, wanted = bytes_and_results(text, schedule.with_(pins=(), row_steps=2), target)
    np.testing.assert_array_equal(found, wanted)
    assert predicted == moved < plain


def nest_of(schedule: Schedule, text: str = PRODUCT) -> Nest:
    return place_nest(OneKernel.of(text).group(), schedule)


def test_traffic_is_what_the_definition_says() -> None:
    """tiles × (p + (T − p)·reloads): w has 5 tiles of 72 × 16, 3 rows of tiles read each, 2 are pinned."""
    target = load_target("unified")
    found = estimate(nest := nest_of(product_schedule(pins=(0, 2, 0))), Facts(nest.group, target))
    x, w, b, y = 40 * 72 * 5, 72 * 16 * (2 + (5 - 2) * 3), 80 * 3, 40 * 80
    assert found.bytes == 2 * (x + w + b + y)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pins": (0, 5, 0)}, "pins 5 tiles of load 1, fewer than its 5 along 'b' can be"),
        ({"pins": (0, 1)}, "'pins' has a number of tiles, at least 0, for each of 3 loads"),
        ({"pins": (0, -1, 0)}, "'pins' has a number of tiles, at least 0, for each of 3 loads"),
        ({"pins": (1, 0, 0), "hold": ("a", "bc", "b")}, "pins tiles of load 0, which no outer loop repeats"),
        ({"row_steps": 3}, "'row_steps' is 1 or 2, got 3"),
    ],
)
def test_pins_that_cannot_be_are_rejected(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        nest_of(product_schedule(**changes))


def test_loops_that_masks_cut_are_not_split() -> None:
    kernel = structure("attention_causal")
    made = kernel.schedule("online", 8, 8)
    pinned = 0
    for load in range(len(made.hold)):
        try:
            place_nest(kernel.group(), made.with_(pins=tuple(int(n == load) for n in range(len(made.hold)))))
        except UserError as error:
            pinned += "masks leave out tiles" in error.message
    assert pinned, made


def test_windows_are_not_pinned() -> None:
    text = """
func.func @main(%x: tensor<1x4x12x12xf16>, %w: tensor<32x4x3x3xf16>) -> tensor<1x32x12x12xf16> {
  %y = graph.conv %x, %w {pads = [1, 1, 1, 1]}
  return %y : tensor<1x32x12x12xf16>
}"""
    group = OneKernel.of(text).group()
    names = "".join(group.names.values())
    assert names == "abcdef"  # taps, channels, rows and columns of the result, channels summed over
    made = Schedule(names, tuple(a.extent for a in group.axes), (1, 1, 16, 4, 12, 4), "cdab", "online",
                    hold=("d", "c"), slots=(1, 1))  # fmt: skip
    with pytest.raises(UserError, match="which no outer loop repeats"):
        place_nest(group, made.with_(pins=(1, 0)))
    assert place_nest(group, made.with_(order="dcab", pins=(0, 1))).pins


def test_a_kernel_with_pins_is_text() -> None:
    made = product_schedule(pins=(0, 2, 0), row_steps=1)
    assert Schedule.from_attr(made.to_attr()) == made
    module = alone(OneKernel.of(PRODUCT).fused, made, load_target("unified"))
    assert any(isinstance(op, FusedOp) and "pins = array<i64: 0, 2, 0>" in str(op.schedule) for op in module.walk())
