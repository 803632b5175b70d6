"""The tile dialect: kernels as loops over tiles held on chip.

Every compute op exists in two forms. In *value form* tiles are SSA values (`!tile.tile`) and the op has one
result. In *buffer form* (after `bufferize`) operands are `!tile.buffer`s, the destination is the last operand,
the op carries the unit attribute `into` and has no result. `args` is the one operand list of each op, in the
order its docstring gives; loop counters are `index` values.

Index maps are affine maps over (counters…, tile positions…). `valid` maps go from the counters to the number of
valid elements per dimension and are clamped to [0, extent].
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .layout import LayoutAttr
from .tile_base import TileOp, element_of, shape_of
from .tile_compute import ContractOp, EmptyOp, FillOp, IotaOp, MapOp, ReduceOp
from .tile_moves import InsertOp, LoadOp, MoveOp, SliceOp, StoreOp
from .tile_structure import AliasOp, AllocOp, Bound, ForOp, KernelOp, LaunchOp, YieldOp
from .tile_types import BufferType, TileType

__all__ = [
    "AliasOp",
    "AllocOp",
    "Bound",
    "BufferType",
    "ContractOp",
    "EmptyOp",
    "FillOp",
    "ForOp",
    "InsertOp",
    "IotaOp",
    "KernelOp",
    "LaunchOp",
    "LoadOp",
    "MapOp",
    "MoveOp",
    "ReduceOp",
    "SliceOp",
    "StoreOp",
    "Tile",
    "TileOp",
    "TileType",
    "YieldOp",
    "element_of",
    "shape_of",
]

Tile = Dialect(
    "tile",
    [
        LoadOp,
        StoreOp,
        MapOp,
        ReduceOp,
        ContractOp,
        FillOp,
        EmptyOp,
        IotaOp,
        SliceOp,
        InsertOp,
        MoveOp,
        AllocOp,
        AliasOp,
        YieldOp,
        ForOp,
        KernelOp,
        LaunchOp,
    ],
    [TileType, BufferType, LayoutAttr],
)
