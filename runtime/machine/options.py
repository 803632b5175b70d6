"""What a run of the machine checks and in which order it executes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Interleaving: TypeAlias = Literal["program", "eager", "late", "random"]


@dataclass(frozen=True)
class MachineOptions:
    """Options of `run`. Every check that costs time can be turned off; those that cost none are always on.

    check         False turns off every check that costs time, whatever the ones below say
    check_poison  reading a byte that nothing defined is an error
    check_owner   a byte holds a value of the buffer through which it was written only: read as a byte of another buffer
                  that was given the same address, it is poison
    check_order   bytes that two engines touch without an order between them are an error (once per kernel)
    batch         many iterations are executed at once where no result and no error can change; False executes one
                  instruction after another, on bytes
    interleaving  order in which engines execute, within what their queues and events allow:
                  "program" as listed; "eager" transfers as soon as they can; "late" transfers only when nothing else
                  can go on; "random" any engine that can, by `seed`
    seed          of the random interleaving
    weights_dir   folder of the weights' files, where the caller gives no loader
    """

    check: bool = True
    check_poison: bool = True
    check_owner: bool = True
    check_order: bool = True
    batch: bool = True
    interleaving: Interleaving = "program"
    seed: int = 0
    weights_dir: Path = Path()

    @property
    def poison(self) -> bool:
        """Whether poison is tracked."""
        return self.check and self.check_poison

    @property
    def order(self) -> bool:
        """Whether races are looked for."""
        return self.check and self.check_order
