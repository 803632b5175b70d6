"""Synchronisation that orders nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects import hardware
from tilewright.dialects.errors import UserError
from tilewright.runtime import machine

from ..profiling import Profile, place
from .base import Advice

TRIED = 48
"""Events of a program that are left out one after another at most; each trial checks the order of all instructions and
simulates them."""

Key: TypeAlias = tuple[str, str, int]


def needless_events(profile: Profile) -> Iterator[Advice]:
    """Events without which everything is ordered all the same: tried, one after another, those first for which engines
    wait longest. The events that the sync pass makes are irredundant."""
    module = profile.program.module
    keys: dict[tuple[str, Key], hardware.EventOp] = {}
    for kernel in module.ops:
        if isinstance(kernel, hardware.KernelOp):
            for op in kernel.walk():
                if isinstance(op, hardware.EventOp):
                    keys.setdefault((kernel.sym_name.data, _key(op)), op)
    waited: dict[tuple[str, Key], int] = {}
    for kernel in profile.kernels:
        for wait in kernel.waits:
            key = kernel.name, (wait.source, wait.engine, wait.event)
            waited[key] = waited.get(key, 0) + wait.cycles
    # One that nobody waits for saves nothing.
    costly = sorted((key for key in keys if waited.get(key)), key=lambda key: -waited[key])[:TRIED]
    if sum(kernel.instructions for kernel in profile.result.kernels) > machine.TRACED:
        return
    for name, key in costly:
        without = _without(module, name, key)
        try:
            machine.check_order(without)
            cycles = machine.analyze(without).cycles
        except UserError:
            continue
        source, sink, number = key
        yield Advice(
            "needless synchronisation",
            f"event {number} from '{source}' to '{sink}' in {name} orders nothing that others do not order",
            "leave out its signals and waits, or the events and let the sync pass make them",
            profile.result.cycles - cycles,
            place(keys[name, key].location),
        )


def _key(op: hardware.EventOp) -> Key:
    return op.from_engine.data, op.to_engine.data, op.event.value.data


def _without(module: ModuleOp, kernel: str, key: Key) -> ModuleOp:
    copy = module.clone()
    for op in list(copy.ops):
        if isinstance(op, hardware.KernelOp) and op.sym_name.data == kernel:
            for event in [e for e in op.walk() if isinstance(e, hardware.EventOp) and _key(e) == key]:
                event.detach()
                event.erase()
    return copy
