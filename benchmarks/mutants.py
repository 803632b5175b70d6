"""Does the tool chain notice? Ten compiled programs, each changed in one place at a time, judged by checks and results.

    python benchmarks/mutants.py [--each 40] [--seed 0] [--all]

Prints per kind of edit how many mutants the machine's checks report, how many change the result (what `validate`
reports), and how many do neither; of the last, whether any legal interleaving changes a result. Those would be holes:
the script lists them and exits with 1. The others are listed with the reason why they are the same program; a kind of
edit that has none counts as a hole too.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from mutant_programs import PROGRAMS
from mutants import judge, mutants

import tilewright
from tilewright.arrays import gather_inputs

REASONS = {
    "a slot less": "the events order the tiles of one slot already: a tile is never written before its last reader",
    "a slot more": "one more slot, free bytes behind the buffer: other addresses, the same values",
    "drop fresh": "it only tells the checks what to forget; every byte that is read was written in the same iteration",
    "one credit less": "a tile less in flight: slower, the same order of all that conflicts",
    "signal earlier": "the instruction it passes touches nothing that the waiting engine does",
    "swap two of an engine": "the two share no byte, and no signal stands between them and who waits for either",
    "wait later": "the instruction it passes touches nothing that the signalling engine does",
}
"""Why an edit of a kind can leave every result as it is, under every legal interleaving."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--each", type=int, default=40, help="mutants drawn of each program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="every mutant of every program")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {}
    same: Counter[tuple[str, str]] = Counter()
    missed: list[str] = []
    for name, (target, text) in PROGRAMS.items():
        program = tilewright.compile(tilewright.load(text), target)
        module, inputs = program.module, gather_inputs(program.source, None, 0)
        found = list(mutants(module))
        if not options.all:
            found = random.Random(options.seed).sample(found, min(options.each, len(found)))
        for mutant in found:
            verdict = judge(mutant, module, list(inputs))
            counts.setdefault(mutant.kind, Counter())[verdict.by] += 1
            if verdict.by == "same":
                same[mutant.kind, name] += 1
            if verdict.by == "missed" or (verdict.by == "same" and mutant.kind not in REASONS):
                missed.append(f"{name}: {mutant.kind}, {mutant.what}: {verdict.message or 'unexplained'}")
    print(f"{'edit':24}{'mutants':>9}{'checks':>9}{'result':>9}{'same':>9}{'missed':>9}")
    for kind, row in sorted(counts.items()):
        figures = (row.total(), row["checks"], row["result"], row["same"], row["missed"])
        print(f"{kind:24}" + "".join(f"{n:9}" for n in figures))
    print(f"{'all':24}{sum(row.total() for row in counts.values()):9}")
    for (kind, name), count in sorted(same.items()):
        print(f"same program: {count} × {kind} in {name}: {REASONS.get(kind, 'unexplained')}")
    print("\n".join(f"MISSED {line}" for line in missed) or "nothing missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
