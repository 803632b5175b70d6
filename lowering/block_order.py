"""The order of the operations of a block."""

from __future__ import annotations

from xdsl.ir import Block, Operation


def sort_block(body: Block) -> None:
    """Topological order, keeping the given order where it can be kept."""
    ops = list(body.ops)
    place = {op: position for position, op in enumerate(ops)}
    done: set[Operation] = set()
    ordered: list[Operation] = []
    for root in ops:
        stack = [root]
        while stack:
            op = stack[-1]
            waiting = [
                operand.owner
                for operand in op.operands
                if isinstance(operand.owner, Operation) and operand.owner in place and operand.owner not in done
            ]
            if waiting:
                stack.extend(sorted(waiting, key=lambda o: -place[o]))
                continue
            stack.pop()
            if op not in done:
                done.add(op)
                ordered.append(op)
    for op in ops:
        op.detach()
    body.add_ops(ordered)
