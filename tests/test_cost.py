"""Cycle and traffic rules against figures worked out by hand, and arrays against single counts."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilewright.dialects import cost
from tilewright.dialects.errors import UserError
from tilewright.dialects.layout import Layout
from tilewright.dialects.target import load_target

DAVINCI = load_target("davinci")
UNIFIED = load_target("unified")
COUNTS = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=8)


@pytest.mark.parametrize(
    "run, runs, granule, bus", [(40, 3, 32, 192), (64, 3, 32, 192), (1, 5, 32, 160), (7, 5, 1, 35)]
)
def test_granules_round_each_run_by_length(run, runs, granule, bus):
    assert cost.granule_bytes(run, runs, granule) == bus


def test_bus_bytes_of_a_layout():
    tile = Layout.strided((16, 20), (8192, 2), 2)
    assert cost.bus_bytes(tile.valid_runs(), 32) == 16 * 64


@pytest.mark.parametrize(
    "m, k, n, lhs, cycles",
    [
        (16, 16, 16, "f16", 1),
        (17, 16, 16, "bf16", 2),
        (256, 64, 256, "f16", 16 * 4 * 16),
        (16, 32, 16, "i8", 1),
        (16, 33, 16, "ui8", 2),
        (64, 64, 64, "f32", 4 * 64),  # a quarter of the rate of f16
        (1, 1, 1, "f32", 2),
    ],
)
def test_matmul(m, k, n, lhs, cycles):
    for target in (DAVINCI, UNIFIED):
        assert cost.matmul_cycles(target, m, k, n, lhs) == cycles


def test_matmul_types():
    assert cost.matmul_cycles(DAVINCI, 16, 32, 16, "ui8", "i8") == 1
    with pytest.raises(UserError, match="does not multiply f16 by f32"):
        cost.matmul_cycles(DAVINCI, 16, 16, 16, "f16", "f32")
    with pytest.raises(UserError, match="does not multiply i64"):
        cost.matmul_cycles(DAVINCI, 16, 16, 16, "i64")


def test_matmul_startup_and_rate_come_from_the_target():
    target = load_target("davinci{engine.matrix.startup=5 engine.matrix.types.f16.rate=2}")
    assert cost.matmul_cycles(target, 64, 64, 64, "f16") == 5 + 32


def test_vector():
    assert cost.vector_cycles(DAVINCI, "add", 64, 4) == 6 + 1
    assert cost.vector_cycles(DAVINCI, "exp", 65, 4) == 12 + 2
    assert cost.vector_cycles(DAVINCI, "max", 128, 2) == 6 + 1
    assert cost.vector_cycles(DAVINCI, "fill", 128, 4) == 6 + 2
    assert cost.vector_cycles(DAVINCI, "add", 32, 8, "i64") == 6 + 4
    with pytest.raises(UserError, match="f64"):
        cost.vector_cycles(DAVINCI, "add", 32, 8, "f64")
    with pytest.raises(UserError, match="no scalar operator 'ad'"):
        cost.vector_cycles(DAVINCI, "ad", 32, 4)


def test_composite_operators_take_all_their_passes():
    from tilewright.dialects.scalar import TABLE

    assert TABLE["tanh"].passes > 1
    assert cost.vector_cycles(DAVINCI, "tanh", 128, 4) == TABLE["tanh"].passes * (12 + 2)


def test_row_reductions():
    assert cost.reduce_cycles(DAVINCI, "sum", 64, 4) == 20 + 6
    assert cost.reduce_cycles(DAVINCI, "max", 64 * 8, 4) == 9 + 48
    assert cost.reduce_cycles(DAVINCI, "sum", 64 * 8, 4, across_lanes=False) == 6 + 8
    assert cost.reduce_cycles(DAVINCI, "max", 64 * 8, 4, across_lanes=False) == 6 + 8
    with pytest.raises(UserError, match="no monoid"):
        cost.reduce_cycles(DAVINCI, "mean", 64, 4)


def test_dma_rates():
    load = DAVINCI.move("gm", "l1")
    assert cost.dma_cycles(DAVINCI, load, 1000, 1000) == 10  # the port of 100
    assert cost.dma_cycles(DAVINCI, load, 1000, 1000, 1280) == 13  # granules on the bus
    assert cost.dma_cycles(DAVINCI, load, 1000, 1000, cores=32) == ceil(1000 / 31)  # the pool
    on_chip = DAVINCI.move("l1", "l0a")
    assert cost.dma_cycles(DAVINCI, on_chip, 1000, 1025) == 5
    store = DAVINCI.move("l0c", "gm")
    assert cost.dma_cycles(DAVINCI, store, 4096, 2048) == 32  # f32 → f16: the wider side at 128 beats the port's 21
    assert cost.dma_cycles(DAVINCI, store, 4096, 4096) == 41  # f32 → f32: the port
    assert cost.dma_cycles(UNIFIED, UNIFIED.move("gm", "scratchpad"), 512, 1024) == 2


def test_pool_shared_by_a_number_that_does_not_divide_it():
    assert cost.port_rate(DAVINCI, 30) * 30 == 992
    load = DAVINCI.move("gm", "ub")
    assert cost.dma_cycles(DAVINCI, load, 992, 992, cores=30) == 30


def test_latency():
    assert cost.dma_latency(DAVINCI, DAVINCI.move("gm", "l1")) == 1400
    assert cost.dma_latency(DAVINCI, DAVINCI.move("ub", "gm")) == 300
    assert cost.dma_latency(DAVINCI, DAVINCI.move("l1", "l0a")) == 0
    assert cost.dma_latency(UNIFIED, UNIFIED.move("gm", "scratchpad")) == 0


def test_fill_by_vector_engine_or_padding_dma():
    assert cost.fill_cycles(DAVINCI, "vector", "ub", 128, 4) == 6 + 2
    assert cost.fill_cycles(DAVINCI, "mte1", "l0a", 256, 2) == 2
    with pytest.raises(UserError, match="cannot fill memory 'l0a'"):
        cost.fill_cycles(DAVINCI, "vector", "l0a", 256, 2)
    with pytest.raises(UserError, match="cannot fill"):
        cost.fill_cycles(DAVINCI, "fixpipe", "gm", 256, 2)


@given(COUNTS)
def test_arrays_equal_single_counts(counts):
    array = np.array(counts, np.int64)
    load = DAVINCI.move("gm", "l1")
    for function in (
        lambda n: cost.dma_cycles(DAVINCI, load, n, n * 2, n + 31, cores=7),
        lambda n: cost.vector_cycles(DAVINCI, "exp", n, 4),
        lambda n: cost.reduce_cycles(DAVINCI, "sum", n, 4, "i64"),
        lambda n: cost.granule_bytes(n, n % 5, 32),
        lambda n: cost.matmul_cycles(DAVINCI, n % 1000, n % 77, n % 31, "f32"),
    ):
        single = [function(count) for count in counts]
        assert all(type(value) is int for value in single)
        assert list(function(array)) == single


@given(st.integers(0, 1 << 50), st.integers(1, 10**4))
def test_rates_are_the_decimals_written(count, tenths):
    assert cost.ceil_div(count, tenths / 10) == -(-count * 10 // tenths)
