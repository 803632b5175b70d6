"""The pass `match`: what an operator computes is found in a program and done by the operator's kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.errors import UserError
from ..dialects.locations import fuse_locations
from ..dialects.operators import MATCH, is_generic, types_of
from .block_order import sort_block
from .decompose import DecomposePass
from .handwritten import choose_kernel, erase_unused_kernels, listed_kernels, operator_group, tell_derived
from .instances import Binding, elements_of, instantiate, own_element, unify_type
from .normal_form import normalize
from .occurrences import Rejected, legal
from .pattern import Occurrence, Pattern
from .remarks import Placed, remark

MOST_INSTANCES = 500
"""For how many choices of types one operator is looked for."""


@dataclass(frozen=True)
class MatchPass(ModulePass):
    """Requires primitives only (after `decompose`); ensures that no function is left that is to be matched.

    For each function with the flag `tilewright.match`, in order, which is what `--use` makes of the operators of a
    library:

    1. It is taken for all types that values of the program have and that it may have (see `instances`), and brought
       into the form in which the program is: primitives, canonicalized (see `normal_form`).
    2. Where its body occurs (see `pattern`) and its values are not used outside (see `occurrences`), and one of its
       kernels fits (see `handwritten`), the occurrence becomes a `graph.fused` that holds the body and names the
       kernel. Where none fits, the occurrence stays: a kernel is derived, as for anything.
    3. Where nothing was found, `tilewright.remarks` of the module says what came nearest; where no kernel fits, why.

    What computes the same but rounds in between, or associates sums in another way, is not the same.
    """

    name = "match"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        operators = [f for f in op.ops if isinstance(f, FuncOp) and MATCH in f.attributes]
        if not operators:
            return
        for operator in operators:
            operator.detach()
        normalize(ctx, op)
        for operator in operators:
            _Operator(operator, op, ctx).use()
        erase_unused_kernels(op)


@dataclass
class _Operator:
    """One operator and what is to be said of it."""

    function: FuncOp
    module: ModuleOp
    ctx: Context
    used: int = 0
    """Occurrences found, whether or not a kernel fits."""

    notes: list[Placed] = field(default_factory=list[Placed])
    nearest: tuple[int, int, list[Placed]] | None = None
    """Operations that agree, of how many, and where the best attempt fails."""

    @property
    def name(self) -> str:
        return f"@{self.function.sym_name.data}"

    def use(self) -> None:
        """Replaces its occurrences, or tells why there are none."""
        if not listed_kernels(self.function, self.module):
            self.tell("has no kernels: what it computes is derived")
            return
        patterns = list(self.patterns())
        for pattern in patterns:
            for function in [f for f in self.module.ops if isinstance(f, FuncOp) and not f.is_declaration]:
                self.replace(pattern, function.body.block)
        if not self.used and not self.notes:
            if not patterns:
                types = ", ".join(map(str, types_of(self.function)))
                self.tell(f"occurs nowhere: no values of the program have its types, {types}")
            elif self.nearest is None:
                self.tell("occurs nowhere: nothing in the program begins like it")
            else:
                count, size, self.notes = self.nearest
                self.tell(f"occurs nowhere: at best {count} of its {size} operations agree")
        elif not self.used:
            self.tell("is not used")

    def tell(self, what: str) -> None:
        remark(self.module, f"{self.name} {what}", self.function.location, self.notes)

    def patterns(self) -> Iterator[Pattern]:
        """Its body for each choice of types, in the form in which the program is."""
        for binding in self.bindings():
            instance = instantiate(self.function, binding, self.function.sym_name.data)
            assert isinstance(instance, FuncOp)
            instance.properties.pop("sym_visibility", None)
            alone = ModuleOp([instance])
            try:
                DecomposePass().apply(self.ctx, alone)
                normalize(self.ctx, alone)
            except UserError:
                if not is_generic(self.function):
                    raise
                continue  # its operations do not exist for these sizes
            pattern = Pattern(instance)
            reason = pattern.unfindable()
            if reason is not None:
                raise UserError(f"{self.name} cannot be looked for: {reason}", self.function.location)
            yield pattern

    def bindings(self) -> Iterator[Binding]:
        """Every way in which its arguments can have types of values of the program, and its results too."""
        values = (value for op in self.module.walk() for value in (*op.results, *_arguments(op)))
        known = list(dict.fromkeys(value.type for value in values))
        for found, binding in enumerate(_bindings(types_of(self.function), known, self.function, Binding())):
            if found == MOST_INSTANCES:
                remark(
                    self.module,
                    f"{self.name} was looked for in {MOST_INSTANCES} choices of its types only",
                    self.function.location,
                )
                return
            yield binding

    def replace(self, pattern: Pattern, block: Block) -> None:
        """Groups in place of the occurrences in one function."""
        found = list(pattern.occurrences(block))
        if not found:
            self.remember(pattern, block)
        accepted, rejected = legal(found)
        self.notes += [_outside(one) for one in rejected]
        values: dict[SSAValue, SSAValue] = {}  # what occurrences gave, and what their groups give
        for occurrence in accepted:
            matched = {op for op in occurrence.ops.values() if op.name != "graph.constant"}
            types = [value.type for value in (*occurrence.args, *occurrence.results)]
            choice = choose_kernel(self.function, types, self.module)
            self.used += 1
            if choice.kernel is None:
                tell_derived(self.module, self.function, choice, _place(occurrence.results[0].owner))
                continue
            at = fuse_locations([op.location for op in block.ops if op in matched])
            args = [values.get(value, value) for value in occurrence.args]
            fused = operator_group(pattern.function, args, choice.kernel, at)
            values.update(zip(occurrence.results, fused.res, strict=True))
            _put(fused, occurrence, block)

    def remember(self, pattern: Pattern, block: Block) -> None:
        """The attempt of all functions and types that came nearest."""
        nearest = pattern.nearest(block)
        if nearest is not None and (self.nearest is None or nearest[0] > self.nearest[0]):
            count, mismatch = nearest
            places = [_place(value.owner) for value in (mismatch.found, mismatch.wanted)]
            notes = [(f"here is {mismatch.reason}", places[0]), ("of the operator", places[1])]
            self.nearest = count, pattern.size, notes


def _bindings(
    wanted: Sequence[Attribute], known: Sequence[Attribute], op: FuncOp, binding: Binding
) -> Iterator[Binding]:
    """Every way in which the types of a function, from one on, can be among those known."""
    if not wanted:
        yield binding
        return
    seen: set[str] = set()
    for type_ in known:
        more = Binding(dict(binding.dims), binding.element)
        if unify_type(more, wanted[0], type_, own_element(op), elements_of(op)) is None and more.suffix() not in seen:
            seen.add(more.suffix())
            yield from _bindings(wanted[1:], known, op, more)


def _arguments(op: Operation) -> list[SSAValue]:
    return [arg for region in op.regions for block in region.blocks for arg in block.args]


def _put(fused: Operation, occurrence: Occurrence, block: Block) -> None:
    place = {op: number for number, op in enumerate(block.ops)}
    matched = sorted(occurrence.ops.values(), key=lambda op: place[op])
    Rewriter.insert_op(fused, InsertPoint.after(matched[-1]))
    for old, new in zip(occurrence.results, fused.results, strict=True):
        new.name_hint = new.name_hint or old.name_hint
        old.replace_uses_with_if(new, lambda use: use.operation not in occurrence.interior)
    for op in dict.fromkeys(reversed(matched)):
        if not any(True for result in op.results for _ in result.uses):
            Rewriter.erase_op(op)
    sort_block(block)


def _outside(rejected: Rejected) -> Placed:
    what = rejected.inside.name.removeprefix("graph.")
    return f"the value of this {what} is used outside of the operator", rejected.inside.location


def _place(owner: Operation | Block) -> Attribute:
    if isinstance(owner, Block):
        parent = owner.parent_op()
        assert parent is not None
        return parent.location
    return owner.location
