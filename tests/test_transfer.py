"""Traffic of single transfers."""

from __future__ import annotations

import pytest
from tilewright.dialects.errors import UserError
from tilewright.dialects.layout import Layout
from tilewright.dialects.target import load_target
from tilewright.dialects.transfer import transfer

DAVINCI = load_target("davinci")
UNIFIED = load_target("unified")


def window(rows, columns, width=2, row_bytes=8192):
    return Layout.strided((rows, columns), (row_bytes, width), width)


def test_converting_moves_count_the_runs_off_chip():
    # Every row is one run of 128 bytes although the fractal side takes it in pieces of 32.
    found = transfer(DAVINCI, DAVINCI.move("gm", "l1"), window(64, 64), Layout.fractal((64, 64), 2, 16, 32))
    assert (found.source_bytes, found.bus_bytes, found.link_bytes) == (8192, 8192, 8192)
    assert found.cycles(DAVINCI) == 82


def test_copying_moves_count_the_runs_of_both_sides():
    move = DAVINCI.move("gm", "ub")
    dense = Layout.row_major((64, 20), 2)
    assert transfer(DAVINCI, move, dense, dense).bus_bytes == 64 * 40
    # Rows padded on chip cut the dense rows: 40 bytes each, two granules.
    padded = transfer(DAVINCI, move, dense, Layout.row_major((64, 20), 2, 32))
    assert (padded.bus_bytes, padded.dims) == (64 * 64, 2)
    assert padded.cycles(DAVINCI) == 41


def test_a_move_that_only_transposes_is_free_too():
    target = load_target("davinci{move.gm.ub.transpose=true}")
    dense = Layout.row_major((8, 16), 2)
    turned = Layout.strided((8, 16), (2, 16), 2)
    assert transfer(target, target.move("gm", "ub"), dense, turned).bus_bytes == 256
    assert transfer(DAVINCI, DAVINCI.move("gm", "ub"), dense, turned).bus_bytes == 8 * 16 * 32


def test_casts_load_the_port_with_the_narrow_side():
    found = transfer(UNIFIED, UNIFIED.move("scratchpad", "gm"), Layout.row_major((8, 8), 4), window(8, 8))
    assert (found.source_bytes, found.destination_bytes, found.bus_bytes) == (256, 128, 128)


def test_on_chip_links_count_the_wider_side():
    fractal = Layout.fractal((16, 16), 4, 16, 32)
    found = transfer(DAVINCI, DAVINCI.move("l0c", "ub"), fractal, Layout.row_major((16, 16), 2))
    assert (found.bus_bytes, found.link_bytes) == (0, 1024)


def test_ragged_edges():
    found = transfer(UNIFIED, UNIFIED.move("gm", "scratchpad"), window(16, 16), Layout.row_major((16, 16), 2), (5, 3))
    assert (found.source_bytes, found.bus_bytes) == (30, 30)
    empty = transfer(UNIFIED, UNIFIED.move("gm", "scratchpad"), window(16, 16), Layout.row_major((16, 16), 2), (0, 3))
    assert (empty.link_bytes, empty.cycles(UNIFIED)) == (0, 0)
    with pytest.raises(UserError, match="exceed"):
        transfer(UNIFIED, UNIFIED.move("gm", "scratchpad"), window(16, 16), Layout.row_major((8, 8), 2))
