"""A group of primitives that becomes one kernel, and the end of its region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .errors import UserError
from .graph_types import Properties, as_tensor


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the region of a `graph.fused` with the values of its results."""

    name = "graph.yield"
    args = var_operand_def()
    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(FusedOp), Pure()))


@irdl_op_definition
class FusedOp(IRDLOperation):
    """One kernel to be: a region of primitives (its logic), and the `schedule` that says how it is to be run.

    Block arguments have the operands' types, `graph.yield` gives the results. The region refers to nothing outside.
    """

    name = "graph.fused"
    args = var_operand_def()
    res = var_result_def()
    body = region_def("single_block")
    schedule = opt_prop_def(Attribute)
    traits = traits_def(Pure(), IsolatedFromAbove())
    WHAT: ClassVar[str] = "'graph.fused'"

    def __init__(self, args: Sequence[SSAValue], result_types: Sequence[Attribute], body: Region) -> None:
        super().__init__(operands=[args], result_types=[result_types], regions=[body])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        """Always raises UserError: the types of a region's results are written."""
        raise UserError(f"{cls.WHAT} needs its result types written")

    @property
    def yield_op(self) -> YieldOp:
        """The terminator of the region. Raises UserError if it is not a `graph.yield`."""
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise UserError(f"{self.WHAT} ends with 'graph.yield'", self.location)
        return last

    def verify_(self) -> None:
        try:
            for value in (*self.args, *self.res):
                as_tensor(value.type, self.WHAT)
            inside = [a.type for a in self.body.block.args]
            results = [v.type for v in self.yield_op.args]
        except UserError as error:
            raise VerifyException(error.message) from error
        if inside != [a.type for a in self.args]:
            raise VerifyException(f"{self.WHAT}: block arguments {_texts(inside)} differ from the operands' types")
        if results != [r.type for r in self.res]:
            raise VerifyException(f"{self.WHAT}: yields {_texts(results)}, which differ from its result types")


def _texts(types: Sequence[Attribute]) -> str:
    return str(ArrayAttr(types))
