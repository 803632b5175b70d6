"""Decompositions of matrix products and convolutions into one contraction each."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ..dialects.dtypes import accumulator_type
from ..dialects.graph_base import GraphOp
from ..dialects.graph_linear import window_of
from ..dialects.graph_types import get_flag, static_shape
from ..dialects.index_map import IndexMap
from .decompose_emit import Emitter
from .decompose_views import padded, reshaped, without_dims

_BATCH = "abcdefghij" + "opqrstuvwxyz"


def matmul(emit: Emitter, op: GraphOp) -> SSAValue:
    """[b, m, k] × [k, n] → contract "amk,kn->amn": one letter per batch dimension, those that broadcast left out."""
    out_batch = emit.result_shape[: len(emit.result_shape) - sum(len(static_shape(a.type)) > 1 for a in op.args)]
    letters: list[str] = []
    values: list[SSAValue] = []
    for value, flag, core in zip(op.args, ("transpose_a", "transpose_b"), ("mk", "kn"), strict=True):
        shape = static_shape(value.type)
        batch = shape[:-2]
        first = len(out_batch) - len(batch)
        broadcast = [d for d, size in enumerate(batch) if size != out_batch[first + d]]
        kept = "".join(_BATCH[first + d] for d in range(len(batch)) if d not in broadcast)
        core = core if len(shape) > 1 else "k"
        letters.append(kept + (core[::-1] if get_flag(op.properties, flag, op.what()) else core))
        values.append(without_dims(emit, value, broadcast))
    rows_and_columns = "".join(c for c in "mn" if c in letters[0] + letters[1])
    spec = f"{letters[0]},{letters[1]}->{_BATCH[: len(out_batch)]}{rows_and_columns}"
    return emit.contract(spec, values[0], values[1], emit.result_element)


def conv(emit: Emitter, op: GraphOp) -> SSAValue:
    """A padded view of x, a window view of that, a contraction over channels and taps, and the bias.

        x [N, C, H, W] → padded [N, C, H', W'] → windows [N, G, C/G, OH, OW, R, S]
        w [O, C/G, R, S] → [G, O/G, C/G, R, S]
        contract "ngchwrs,gocrs->ngohw" → [N, O, OH, OW] → + bias [O, 1, 1]

    The group letter is absent where there is one group.
    """
    x, w = op.args[0], op.args[1]
    window = window_of(op.properties)
    top, left, bottom, right = window.pads
    if any(window.pads):
        x = padded(emit, x, (0, 0, top, left), (0, 0, bottom, right), 0)
    samples, outputs, height, width = emit.result_shape
    _, inner, taps_h, taps_w = static_shape(w.type)
    groups = [window.groups] if window.groups > 1 else []
    shape = [samples, *groups, inner, height, width, taps_h, taps_w]
    g, c = (1, 2) if groups else (-1, 1)
    channel = [(inner, g), (1, c)] if groups else [(1, c)]
    rows = [(window.strides[0], c + 1), (window.dilations[0], c + 3)]
    columns = [(window.strides[1], c + 2), (window.dilations[1], c + 4)]
    map_ = IndexMap.linear(shape, [[(1, 0)], channel, rows, columns], [0, 0, 0, 0])
    windows = emit.view([x], [map_.to_affine()], shape)
    last = len(op.args) == 2
    to = emit.result_element if last else accumulator_type(w.type)
    if groups:
        w = reshaped(emit, w, [window.groups, outputs // window.groups, inner, taps_h, taps_w])
        product = emit.contract("ngchwrs,gocrs->ngohw", windows, w, to)
        product = reshaped(emit, product, emit.result_shape)
    else:
        product = emit.contract("nchwrs,ocrs->nohw", windows, w, to)
    if last:
        return product
    return emit.map("add", product, reshaped(emit, op.args[2], [outputs, 1, 1]), to=emit.result_element)
