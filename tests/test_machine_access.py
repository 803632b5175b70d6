"""From regions of layouts to bytes, against the addresses of single elements."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.dialects.layout import Layout
from tilewright.runtime.machine.access import Region, access, byte_runs, runs_meet

WIDTH = 2


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Up to three dimensions of up to three atoms, nested in a random order with gaps: no two elements overlap."""
    atoms: list[list[int]] = [
        draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)) for _ in range(draw(st.integers(1, 3)))
    ]
    places = [(d, a) for d, extents in enumerate(atoms) for a in range(len(extents))]
    stride = WIDTH
    strides: dict[tuple[int, int], int] = {}
    for d, a in draw(st.permutations(places)):
        strides[d, a] = stride
        stride = stride * atoms[d][a] + draw(st.sampled_from([0, 0, WIDTH]))
    dims = tuple(tuple((n, strides[d, a]) for a, n in enumerate(extents)) for d, extents in enumerate(atoms))
    return Layout(dims, WIDTH)


@st.composite
def regions(draw: st.DrawFn) -> tuple[Layout, Region]:
    layout = draw(layouts())
    region: list[tuple[int, int]] = []
    for extent in layout.shape:
        low = draw(st.integers(0, extent - 1))
        region.append((low, draw(st.integers(low + 1, extent))))
    return layout, tuple(region)


def addresses(layout: Layout, region: Region) -> np.ndarray:
    return layout.addresses(tuple(high for _, high in region))[tuple(slice(*bounds) for bounds in region)]


@given(regions(), st.integers(0, 9))
@settings(max_examples=150, deadline=None)
def test_reads_and_writes(case: tuple[Layout, Region], base: int) -> None:
    layout, region = case
    base *= WIDTH
    wanted = addresses(layout, region)
    part = access(layout, region)
    assert (part.low, part.high) == (wanted.min(), wanted.max() + WIDTH)
    memory = np.zeros(base + layout.size_bytes + 64, np.uint8)
    elements = memory.view(np.uint16)
    elements[:] = np.arange(elements.size)
    read = part.read(memory, base, np.dtype(np.uint16))
    np.testing.assert_array_equal(read, elements[(base + wanted) // WIDTH])

    before = elements.copy()
    part.write(memory, base, np.dtype(np.uint16), np.full(wanted.shape, 60000, np.uint16))
    before[(base + wanted) // WIDTH] = 60000
    np.testing.assert_array_equal(elements, before)


@given(regions())
@settings(max_examples=150, deadline=None)
def test_bytes_of_a_region(case: tuple[Layout, Region]) -> None:
    layout, region = case
    wanted = np.zeros(layout.size_bytes, np.uint8)
    for address in addresses(layout, region).ravel():
        wanted[address : address + WIDTH] = 1
    starts, ends = byte_runs(layout, region)
    found = np.zeros_like(wanted)
    for start, end in zip(starts, ends, strict=True):
        found[start:end] += 1
    np.testing.assert_array_equal(found, wanted)
    covered = access(layout, region).bytes(found, 0)
    if covered is not None:
        assert covered.all() and covered.size == wanted.sum()


@given(regions(), regions(), st.integers(-40, 40))
@settings(max_examples=200, deadline=None)
def test_whether_regions_meet(left: tuple[Layout, Region], right: tuple[Layout, Region], shift: int) -> None:
    mine = {a + b for a in addresses(*left).ravel() for b in range(WIDTH)}
    theirs = {a + b + shift for a in addresses(*right).ravel() for b in range(WIDTH)}
    found = runs_meet(byte_runs(*left), byte_runs(*right), shift)
    common = mine & theirs
    assert (found is not None) == bool(common)
    if found is not None:
        low, high = found
        assert low < high and set(range(low, high)) <= common
