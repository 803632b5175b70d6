"""How far the schedules that are taken are from the best one found: simulated cycles (or bytes) of both, in one run.

    python benchmarks/schedules.py [--objective traffic] [--more 40] [FILE…]

For every group of the examples: the search's first choice, what the `schedule` pass takes (the best of the first few
that fit, simulated), and the best of the first `--more` candidates.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.target import target_of
from tilewright.lowering.costs import Costs
from tilewright.lowering.measure import measure
from tilewright.lowering.schedule import SchedulePass
from xdsl.context import Context

import tilewright

EXAMPLES = Path(__file__).parent.parent / "examples"
TARGETS = ("davinci", "unified")


def groups(files: list[Path]) -> Iterator[tuple[str, str, FusedOp]]:
    for file in files:
        for target in TARGETS:
            dims = {"seq": 500} if "?" in file.read_text() else {}
            module = tilewright.compile(file, target=target, dims=dims, to="fuse").module
            yield from ((file.stem, target, op) for op in module.walk() if isinstance(op, FusedOp))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(EXAMPLES.glob("*.mlir")))
    parser.add_argument("--objective", choices=["time", "traffic"], default="time")
    parser.add_argument("--more", type=int, default=40, help="candidates to compare with")
    options = parser.parse_args()
    usual = SchedulePass()
    first_regrets: list[float] = []
    regrets: list[float] = []
    print(f"{'group':<28}{'target':<10}{'best':>10}{'first':>8}{'taken':>8}   1.000 = the best of {options.more}")
    for name, target, fused in groups(options.files):
        costs = Costs(target_of(fused), options.objective, usual.effort)
        found: list[int] = []
        for choice in costs.choices(fused.body.block)[: options.more]:
            try:
                found.append(costs.weigh(measure(Context(), fused, choice.schedule, costs.target))[0])
            except UserError:
                continue  # does not fit after all
        best = min(found)
        first_regrets.append(found[0] / best)
        regrets.append(min(found[: usual.measured]) / best)
        print(f"{name:<28}{target:<10}{best:>10}{first_regrets[-1]:>8.3f}{regrets[-1]:>8.3f}", flush=True)
    for what, values in (("first", first_regrets), ("taken", regrets)):
        print(f"{what}: median {median(values):.3f}, worst {max(values):.3f}")


if __name__ == "__main__":
    main()
