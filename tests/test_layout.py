"""Layouts against brute-force enumeration of byte addresses."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.dialects.errors import UserError
from tilewright.dialects.layout import Layout, LayoutAttr, memory_layout, pair_descriptor_dims, pair_runs
from tilewright.dialects.target import load_target
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Dialect
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException


def region(valid):
    return list(product(*(range(extent) for extent in valid)))


def byte_runs(layout, valid):
    """Maximal intervals of the set of bytes covered, as {length: count}."""
    covered = sorted({layout.address(i) + b for i in region(valid) for b in range(layout.element_bytes)})
    lengths: Counter[int] = Counter()
    start = None
    for here, after in zip(covered, [*covered[1:], None], strict=False):
        start = here if start is None else start
        if after != here + 1:
            lengths[here + 1 - start] += 1
            start = None
    return dict(lengths)


def shared_runs(source, destination, valid):
    """Elements in source order, cut wherever one side does not continue, as {elements: count}."""
    pairs = sorted((source.address(i), destination.address(i)) for i in region(valid))
    lengths: Counter[int] = Counter()
    length = 0
    for n, (a, b) in enumerate(pairs):
        length += 1
        if pairs[n + 1 : n + 2] != [(a + source.element_bytes, b + destination.element_bytes)]:
            lengths[length] += 1
            length = 0
    return dict(lengths)


def as_dict(runs):
    return {length: count for count, length in runs}


@st.composite
def dense_layouts(draw):
    """Atoms in any order of dimensions, with gaps between some: nested, nothing overlaps."""
    rank = draw(st.integers(1, 3))
    digits = [(d, draw(st.integers(1, 4))) for d in range(rank) for _ in range(draw(st.integers(1, 2)))]
    width = draw(st.sampled_from([1, 2, 4]))
    stride, dims = width, [[] for _ in range(rank)]
    for d, extent in draw(st.permutations(digits)):
        dims[d].insert(draw(st.integers(0, len(dims[d]))), (extent, stride))
        stride = stride * extent + draw(st.sampled_from([0, 0, 0, 3]))
    layout = Layout(tuple(map(tuple, dims)), width)
    return layout, tuple(draw(st.integers(0, extent)) for extent in layout.shape)


@st.composite
def fractal_pairs(draw):
    shape = tuple(draw(st.integers(1, 9)) for _ in range(draw(st.integers(2, 3))))
    width, other = draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 2]))
    fractal = Layout.fractal(shape, other, draw(st.integers(1, 4)), other * draw(st.sampled_from([2, 4])),
                             draw(st.sampled_from(["row", "column"])))  # fmt: skip
    sides = [Layout.row_major(shape, width, draw(st.sampled_from([1, 8]))), fractal]
    return *draw(st.permutations(sides)), tuple(draw(st.integers(0, extent)) for extent in shape)


@given(dense_layouts())
@settings(max_examples=400, deadline=None)
def test_valid_runs_are_the_byte_intervals(case):
    layout, valid = case
    assert as_dict(layout.valid_runs(valid)) == byte_runs(layout, valid)


@given(fractal_pairs())
@settings(max_examples=400, deadline=None)
def test_runs_of_fractal_pairs(case):
    source, destination, valid = case
    assert as_dict(source.valid_runs(valid)) == byte_runs(source, valid)
    assert as_dict(destination.valid_runs(valid)) == byte_runs(destination, valid)
    assert as_dict(pair_runs(source, destination, valid)) == shared_runs(source, destination, valid)


@st.composite
def dense_pairs(draw):
    """Any nested layout against blocks of the same shape, dimensions in any order; blocks need not nest."""
    source, valid = draw(dense_layouts())
    width = draw(st.sampled_from([1, 2]))
    stride, dims = width, [()] * len(valid)
    for d in draw(st.permutations(range(len(valid)))):
        inner = draw(st.integers(1, source.shape[d]))
        outer = -(-source.shape[d] // inner)
        dims[d] = ((outer, stride * inner), (inner, stride))
        stride *= outer * inner
    return source, Layout(tuple(dims), width), valid


@given(dense_pairs())
@settings(max_examples=400, deadline=None)
def test_runs_of_any_pair(case):
    source, destination, valid = case
    assert as_dict(pair_runs(source, destination, valid)) == shared_runs(source, destination, valid)


@given(dense_layouts())
@settings(max_examples=200, deadline=None)
def test_addresses_and_footprint(case):
    layout, valid = case
    table = layout.addresses(valid)
    assert table.shape == valid
    assert [int(a) for a in table.ravel()] == [layout.address(i) for i in region(valid)]
    assert layout.size_bytes == max(layout.address(i) for i in region(layout.shape)) + layout.element_bytes


@given(dense_layouts(), st.data())
@settings(max_examples=300, deadline=None)
def test_subview_addresses(case, data):
    layout, _ = case
    offsets = [data.draw(st.integers(0, extent - 1)) for extent in layout.shape]
    sizes = [data.draw(st.integers(1, extent - o)) for extent, o in zip(layout.shape, offsets, strict=True)]
    try:
        part, start = layout.subview(offsets, sizes)
    except UserError as error:
        assert "begins inside a block" in error.message
        return
    assert all(inner >= size for inner, size in zip(part.shape, sizes, strict=True))
    for index in region(sizes):
        whole = [i + o for i, o in zip(index, offsets, strict=True)]
        assert part.address(index) + start == layout.address(whole)


def test_subview_of_one_atom_per_dimension_never_refuses():
    layout = Layout.row_major((6, 10), 2)
    part, start = layout.subview((1, 3), (4, 5))
    assert (part, start) == (Layout.strided((4, 5), (20, 2), 2), 26)


def test_row_major_pads_rows_only_from_rank_two():
    assert Layout.row_major((3, 5), 4, 32).dims == (((3, 32),), ((5, 4),))
    assert Layout.row_major((2, 3, 5), 4, 32).dims == (((2, 96),), ((3, 32),), ((5, 4),))
    assert Layout.row_major((5,), 4, 32).size_bytes == 20
    assert Layout.row_major((), 4).size_bytes == 4


def test_fractal_orders():
    column = Layout.fractal((64, 64), 2, 16, 32)
    assert column.dims == (((4, 512), (16, 32)), ((4, 2048), (16, 2)))
    row = Layout.fractal((64, 64), 2, 16, 32, "row")
    assert row.dims == (((4, 2048), (16, 32)), ((4, 512), (16, 2)))
    assert Layout.fractal((2, 17, 20), 2, 16, 32).shape == (2, 32, 32)
    assert Layout.fractal((7,), 2, 16, 32) == Layout.row_major((7,), 2)


def test_partly_covered_blocks_give_two_lengths():
    # 17 rows × 20 columns of f16: the first block column is one piece, in the second each row ends early.
    layout = Layout.fractal((17, 20), 2, 16, 32)
    assert layout.valid_runs((17, 20)) == ((1, 17 * 32), (17, 8))


def test_runs_of_large_regions_need_no_enumeration():
    layout = Layout.row_major((1 << 20, 1 << 20), 2)
    assert layout.valid_runs() == ((1, 1 << 41),)
    assert layout.valid_runs((1000, (1 << 20) - 1)) == ((1000, ((1 << 20) - 1) * 2),)
    tile = Layout.strided((1 << 10, 1 << 10), (1 << 21, 2), 2)
    assert pair_runs(tile, Layout.fractal((1 << 10, 1 << 10), 2, 16, 32)) == ((1 << 16, 16),)


def test_bytes_read_again_count_again():
    row_to_all = Layout.strided((5, 8), (0, 2), 2)
    assert row_to_all.valid_runs() == ((5, 16),)
    windows = Layout.strided((6, 3), (2, 2), 2)
    assert prod(windows.valid_runs()[0]) == 6 * 3 * 2


def test_transposed_pairs_share_single_elements():
    shape = (4, 6)
    transposed = Layout.strided(shape, (2, 8), 2)
    assert pair_runs(Layout.row_major(shape, 2), transposed) == ((24, 1),)
    assert transposed.valid_runs() == ((1, 48),)


def test_descriptor_dimensions():
    assert Layout.row_major((4, 8, 16), 2).descriptor_dims() == 1
    assert Layout.strided((4, 16), (100, 2), 2).descriptor_dims() == 2
    assert Layout.row_major((4, 8, 16), 2).descriptor_dims((4, 8, 15)) == 2
    assert Layout.row_major((4, 8, 16), 2).descriptor_dims((4, 7, 15)) == 3
    tile = Layout.row_major((64, 64), 2)
    assert pair_descriptor_dims(tile, Layout.fractal((64, 64), 2, 16, 32)) == 3
    assert pair_descriptor_dims(tile, tile) == 1


def test_valid_beyond_the_layout_is_rejected():
    with pytest.raises(UserError, match="exceed"):
        Layout.row_major((4, 4), 2).valid_runs((5, 4))
    with pytest.raises(UserError, match="outside"):
        Layout.row_major((4, 4), 2).subview((2, 0), (3, 1))


def test_memory_layout_follows_the_memory():
    target = load_target("davinci")
    assert memory_layout(target.memories["l1"], (64, 64), 2) == Layout.fractal((64, 64), 2, 16, 32, "column")
    assert memory_layout(target.memories["ub"], (4, 5), 4, 32) == Layout.row_major((4, 5), 4, 32)


def parse(text):
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Dialect("tile", [], [LayoutAttr]))
    return Parser(context, text).parse_attribute()


@pytest.mark.parametrize("text", ["#tile.layout<[4, 512, 16, 32], [64, 2]>", "#tile.layout<>", "#tile.layout<[]>"])
def test_attribute_round_trip(text):
    assert str(parse(text)) == text


@given(dense_layouts())
def test_attribute_holds_the_layout(case):
    layout, _ = case
    attribute = LayoutAttr.from_layout(layout)
    assert parse(str(attribute)) == attribute
    assert attribute.layout(layout.element_bytes) == layout


@pytest.mark.parametrize("numbers", [[4], [0, 2], [4, -2]])
def test_attribute_rejects(numbers):
    with pytest.raises(VerifyException, match="dimension 0"):
        LayoutAttr([numbers])
    with pytest.raises((ParseError, VerifyException)):
        parse(f"#tile.layout<{numbers}>")
