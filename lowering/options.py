"""Decisions of the user that the module carries, so that a dump continues as the run it came from did."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, StringAttr

from ..dialects.errors import UserError
from .search import Objective

OBJECTIVE = "tilewright.objective"


def objective_of(module: ModuleOp) -> Objective:
    """What schedules minimise: the module attribute `tilewright.objective`, "time" where there is none."""
    attr = module.attributes.get(OBJECTIVE)
    if attr is None:
        return "time"
    if not isinstance(attr, StringAttr) or attr.data not in ("time", "traffic"):
        raise UserError(f'{OBJECTIVE} is "time" or "traffic", got {attr}', module.location)
    return attr.data


def set_objective(module: ModuleOp, objective: Objective) -> None:
    module.attributes[OBJECTIVE] = StringAttr(objective)
