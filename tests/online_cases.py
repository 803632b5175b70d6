"""One kernel of a whole program, under a schedule that a test chooses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import set_target
from tilewright.dialects.verify import verify_module
from tilewright.ir.source import load_module
from tilewright.lowering.canonicalize import CanonicalizePass
from tilewright.lowering.costs import group_block
from tilewright.lowering.decompose import DecomposePass
from tilewright.lowering.fuse_prepare import is_outside, prepare
from tilewright.lowering.group import Group
from tilewright.lowering.group_build import read_group
from tilewright.lowering.nest import default_hold
from tilewright.lowering.online import Derived, derive
from tilewright.lowering.tile import TilePass
from tilewright.runtime.reference import evaluate
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Region

STRUCTURES = Path(__file__).parent.parent / "examples" / "structures"
SIZES = {"heads": 2, "seq": 24, "keys": 40, "rows": 12, "cols": 40, "wide": 24, "batch": 2, "groups": 3, "pos": 30,
         "size": 8, "samples": 50}  # fmt: skip
Arrays = list[npt.NDArray[np.generic]]


@dataclass
class OneKernel:
    """A program whose ops are all in one group."""

    module: ModuleOp

    @staticmethod
    def of(text: str) -> OneKernel:
        sizes = {name: size for name, size in SIZES.items() if f'"{name}"' in text}
        module, _ = load_module(text, sizes)
        for step in (CanonicalizePass(), DecomposePass(), CanonicalizePass()):
            step.apply(Context(), module)
        function = next(op for op in module.ops if isinstance(op, FuncOp))
        prepare(function, views=True)
        block = function.body.block
        last = block.last_op
        assert last is not None
        ops = [op for op in block.ops if op is not last and not is_outside(op)]
        inputs = [*block.args, *(op.results[0] for op in block.ops if is_outside(op) and op.results)]
        results = list(last.operands)
        fused = FusedOp(inputs, [value.type for value in results], Region(group_block(ops, inputs, results)))
        block.insert_op_before(fused, last)
        for position, value in enumerate(fused.res):
            last.operands[position] = value
        for op in reversed(ops):
            op.detach()
            op.erase(safe_erase=False)
        set_target(module, "unified")
        verify_module(module)
        return OneKernel(module)

    @property
    def fused(self) -> FusedOp:
        return next(op for op in self.module.walk() if isinstance(op, FusedOp))

    def group(self) -> Group:
        return read_group(self.fused.body.block)

    def derived(self) -> Derived:
        group = self.group()
        return derive(group, stream(group))

    def schedule(self, strategy: str, step: int, rows: int) -> Schedule:
        """Tiles of `step` along stream axes, of `rows` along the axes that no reduction sums over."""
        group = self.group()
        names = group.names
        walked = stream(group)
        tiles = {
            a: min(step if a in walked else a.extent if a in group.reduced else rows, a.extent) for a in group.axes
        }
        tiles = {a: 1 if a in group.taps else tile for a, tile in tiles.items()}
        looped = [a for a in group.axes if tiles[a] < a.extent]
        order = sorted(looped, key=lambda axis: axis in group.reduced)
        hold = ["".join(names[a] for a in group.axes if a in default_hold(load, looped)) for load in group.loads]
        return Schedule(
            axes="".join(names.values()),
            extents=tuple(a.extent for a in group.axes),
            tiles=tuple(tiles[a] for a in group.axes),
            order="".join(names[a] for a in order),
            strategy=strategy,
            hold=tuple(hold),
            slots=(1,) * len(hold),
        )

    def kernel(self, schedule: Schedule) -> ModuleOp:
        """The program with its kernel at the tile level."""
        self.fused.schedule = schedule.to_attr()
        lowered = self.module.clone()
        TilePass().apply(Context(), lowered)
        verify_module(lowered)
        return lowered

    def run(self, schedule: Schedule, inputs: Arrays) -> Arrays:
        return evaluate_tile(self.kernel(schedule), inputs)

    def reference(self, inputs: Arrays) -> Arrays:
        return evaluate(self.module, inputs)


def stream(group: Group) -> frozenset:
    """Axes that reductions sum over, but for those that only one product of inputs sums over (its private k)."""
    private = [
        node.reduced for node in group.nodes if node.kind == "contract" and all(s.kind == "load" for s in node.inputs)
    ]
    shared = [node.reduced for node in group.reductions if node.reduced not in private] or private
    return frozenset(axis for axes in shared for axis in axes) - group.taps


def error(found: npt.NDArray[np.generic], wanted: npt.NDArray[np.generic], least: float = 1e-30) -> float:
    """max|found − wanted| / max(|wanted|, least), where both are numbers in the same places."""
    assert (np.isfinite(found) == np.isfinite(wanted)).all()
    finite = np.isfinite(wanted)
    if not finite.any():
        return 0.0
    gap = np.abs(found[finite].astype(np.float64) - wanted[finite])
    return float(gap.max() / max(np.abs(wanted[finite]).max(), least))


def structure_names() -> list[str]:
    return sorted(path.stem for path in STRUCTURES.glob("*.mlir"))


def structure(name: str, element: str | None = None) -> OneKernel:
    text = (STRUCTURES / f"{name}.mlir").read_text()
    if element is not None:
        text = re.sub(r"(?<=[x<])f16\b", element, text).replace("0xFC00", "0xFF800000")
    return OneKernel.of(text)
