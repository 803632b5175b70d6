"""The graph dialect: what to compute. Named ops a user writes, and the primitives they are decomposed into."""

from __future__ import annotations

from xdsl.ir import Dialect

from .graph_base import GraphOp
from .graph_elementwise import ELEMENTWISE, CastOp, ClipOp, ElementwiseOp, GeluOp, SiluOp, WhereOp
from .graph_fused import FusedOp, YieldOp
from .graph_index import ArgMaxOp, ArgMinOp, CumProdOp, CumSumOp, GatherElementsOp, GatherOp, ScatterElementsOp
from .graph_linear import ConvOp, MatmulOp
from .graph_norm import (
    LayerNormOp,
    LogSoftmaxOp,
    ReduceMaxOp,
    ReduceMeanOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceSumOp,
    RmsNormOp,
    SoftmaxOp,
)
from .graph_primitives import ConstantOp, ContractOp, IotaOp, MapOp, ReduceOp, TakeOp, ViewOp, WeightOp, parse_spec
from .graph_shape import ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from .graph_types import DimsAttr, bind_dims, shape_of, static_shape, tensor_type
from .graph_window import WindowOp

PRIMITIVES: tuple[type[GraphOp], ...] = (
    MapOp,
    ReduceOp,
    ContractOp,
    ViewOp,
    TakeOp,
    IotaOp,
    ConstantOp,
    WeightOp,
)
NAMED: tuple[type[GraphOp], ...] = (
    *ELEMENTWISE.values(),
    CastOp,
    WhereOp,
    ClipOp,
    GeluOp,
    SiluOp,
    MatmulOp,
    ConvOp,
    SoftmaxOp,
    LogSoftmaxOp,
    LayerNormOp,
    RmsNormOp,
    ReduceSumOp,
    ReduceMaxOp,
    ReduceMinOp,
    ReduceProdOp,
    ReduceMeanOp,
    TransposeOp,
    ReshapeOp,
    ExpandOp,
    SliceOp,
    ConcatOp,
    PadOp,
    WindowOp,
    GatherOp,
    GatherElementsOp,
    ScatterElementsOp,
    ArgMaxOp,
    ArgMinOp,
    CumSumOp,
    CumProdOp,
)

Graph = Dialect("graph", [*PRIMITIVES, *NAMED, FusedOp, YieldOp], [DimsAttr])

__all__ = [
    "ELEMENTWISE",
    "NAMED",
    "PRIMITIVES",
    "ArgMaxOp",
    "ArgMinOp",
    "CastOp",
    "ClipOp",
    "ConcatOp",
    "ConstantOp",
    "ContractOp",
    "ConvOp",
    "CumProdOp",
    "CumSumOp",
    "DimsAttr",
    "ElementwiseOp",
    "ExpandOp",
    "FusedOp",
    "GatherElementsOp",
    "GatherOp",
    "GeluOp",
    "Graph",
    "GraphOp",
    "IotaOp",
    "LayerNormOp",
    "LogSoftmaxOp",
    "MapOp",
    "MatmulOp",
    "PadOp",
    "ReduceMaxOp",
    "ReduceMeanOp",
    "ReduceMinOp",
    "ReduceOp",
    "ReduceProdOp",
    "ReduceSumOp",
    "ReshapeOp",
    "RmsNormOp",
    "ScatterElementsOp",
    "SiluOp",
    "SliceOp",
    "SoftmaxOp",
    "TransposeOp",
    "ViewOp",
    "WeightOp",
    "WhereOp",
    "WindowOp",
    "YieldOp",
    "bind_dims",
    "parse_spec",
    "shape_of",
    "static_shape",
    "tensor_type",
]
