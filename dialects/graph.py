"""The graph dialect: what to compute. Named ops a user writes, and the primitives they are decomposed into."""

from __future__ import annotations

from xdsl.ir import Dialect

from .graph_base import GraphOp
from .graph_elementwise import ELEMENTWISE, CastOp, ClipOp, ElementwiseOp, GeluOp, SiluOp, WhereOp
from .graph_fused import FusedOp, YieldOp
from .graph_primitives import ConstantOp, ContractOp, IotaOp, MapOp, ReduceOp, ViewOp, WeightOp, parse_spec
from .graph_types import DimsAttr, bind_dims, shape_of, static_shape, tensor_type

PRIMITIVES: tuple[type[GraphOp], ...] = (MapOp, ReduceOp, ContractOp, ViewOp, IotaOp, ConstantOp, WeightOp)
NAMED: tuple[type[GraphOp], ...] = (*ELEMENTWISE.values(), CastOp, WhereOp, ClipOp, GeluOp, SiluOp)

Graph = Dialect("graph", [*PRIMITIVES, *NAMED, FusedOp, YieldOp], [DimsAttr])

__all__ = [
    "ELEMENTWISE",
    "NAMED",
    "PRIMITIVES",
    "CastOp",
    "ClipOp",
    "ConstantOp",
    "ContractOp",
    "DimsAttr",
    "ElementwiseOp",
    "FusedOp",
    "GeluOp",
    "Graph",
    "GraphOp",
    "IotaOp",
    "MapOp",
    "ReduceOp",
    "SiluOp",
    "ViewOp",
    "WeightOp",
    "WhereOp",
    "YieldOp",
    "bind_dims",
    "parse_spec",
    "shape_of",
    "static_shape",
    "tensor_type",
]
