"""A library whose operator has something of everything that is matched, and programs that spell it in other ways."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

# y = Σ over columns of exp(a·wᵀ·0.5 − 1) · b, a product of matrices, constants, a map that does not commute, a sum.
LIBRARY = """tile.kernel @rows(%0: tensor<?x16xf32, #graph.dims<["m"]>>, %1: tensor<8x16xf32>,
    %2: tensor<?x8xf32, #graph.dims<["m"]>>) -> (%3: tensor<?x1xf32, #graph.dims<["m"]>>) {
  %4 = tile.load %1 {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>} : !tile.tile<8x16xf32>
  tile.for %i = 0 to affine_map<()[s0] -> (s0 ceildiv 4)>() {axis = "m", kind = "grid"} {
    %5 = tile.load %0, %i {map = #rows, valid = affine_map<(d0)[s0] -> (s0 - d0 * 4, 16)>} : !tile.tile<4x16xf32>
    %6 = tile.load %2, %i {map = #rows, valid = affine_map<(d0)[s0] -> (s0 - d0 * 4, 8)>} : !tile.tile<4x8xf32>
    %7 = tile.contract %5, %4 {spec = "mk,nk->mn"} : !tile.tile<4x8xf32>
    %8 = tile.map %7 {fn = "mul", immediates = [0 : index, 0.5 : f32]} : !tile.tile<4x8xf32>
    %9 = tile.map %8 {fn = "sub", immediates = [0 : index, 1.0 : f32]} : !tile.tile<4x8xf32>
    %10 = tile.map %9 {fn = "exp"} : !tile.tile<4x8xf32>
    %11 = tile.map %10, %6 {fn = "mul"} : !tile.tile<4x8xf32>
    %12 = tile.reduce %11 {monoid = "sum", axes = [1]} : !tile.tile<4x1xf32>
    tile.store %12, %3, %i {map = #rows, valid = affine_map<(d0)[s0] -> (s0 - d0 * 4, 1)>}
    tile.yield
  }
}
#rows = affine_map<(d0, d1, d2) -> (d0 * 4 + d1, d2)>
func.func private @weighted(%a: tensor<?x16xf32, #graph.dims<["m"]>>, %w: tensor<8x16xf32>,
    %b: tensor<?x8xf32, #graph.dims<["m"]>>) -> tensor<?x1xf32, #graph.dims<["m"]>>
    attributes {tilewright.kernels = [@rows]} {
  %half = graph.constant dense<0.5> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %s = graph.matmul %a, %w {transpose_b}
  %h = graph.mul %s, %half
  %d = graph.sub %h, %one
  %e = graph.exp %d
  %p = graph.mul %e, %b
  %y = graph.reduce_sum %p {axes = [1], keepdims}
  return %y : tensor<?x1xf32, #graph.dims<["m"]>>
}
"""
_ALIAS = "#rows = affine_map<(d0, d1, d2) -> (d0 * 4 + d1, d2)>\n"
LIBRARY = _ALIAS + LIBRARY.replace(_ALIAS, "")

ARGUMENTS = "%x: tensor<12x16xf32>, %v: tensor<8x16xf32>, %u: tensor<12x8xf32>"


def program(body: str, result: str = "%y", types: str = "tensor<12x1xf32>") -> str:
    return f"func.func @main({ARGUMENTS}) -> ({types}) {{\n{body}  return {result} : {types}\n}}\n"


SPELLED = """  %half = graph.constant dense<0.5> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
  %s = graph.matmul %x, %v {transpose_b}
  %h = graph.mul %s, %half
  %d = graph.sub %h, %one
  %e = graph.exp %d
  %p = graph.mul %e, %u
  %y = graph.reduce_sum %p {axes = [1], keepdims}
"""


@dataclass
class _Writer:
    """Draws a spelling of each step; every line is named after its number."""

    draw: st.DrawFn
    lines: list[str] = field(default_factory=list[str])

    def line(self, text: str) -> str:
        name = f"%n{len(self.lines)}"
        self.lines.append(f"  {name} = {text}\n")
        return name

    def one_of(self, *ways: str) -> str:
        return self.draw(st.sampled_from(ways))

    def same(self, value: str, type_: str) -> str:
        """The value, or something that is it bit for bit."""
        match self.one_of("itself", "times one", "twice negated", "identity"):
            case "times one":
                one = self.constant("1.0", type_)
                return self.line(f"graph.mul {', '.join(self.draw(st.permutations([value, one])))}")
            case "twice negated":
                return self.line(f"graph.neg {self.line(f'graph.neg {value}')}")
            case "identity":
                return self.line(f'graph.map {value} {{fn = "identity"}} : {type_}')
            case _:
                return value

    def constant(self, number: str, type_: str) -> str:
        shape = self.one_of("tensor<f32>", "tensor<1xf32>", type_)
        return self.line(f"graph.constant dense<{number}> : {shape}")

    def scalar(self, fn: str, type_: str, *values: str) -> str:
        operands = ", ".join(values)
        spelled = self.one_of(f"graph.{fn} {operands}", f'graph.map {operands} {{fn = "{fn}"}} : {type_}')
        return self.line(spelled)

    def commuted(self, fn: str, type_: str, *values: str) -> str:
        return self.scalar(fn, type_, *self.draw(st.permutations(values)))

    def product(self) -> str:
        match self.one_of("flag", "transpose", "contract", "contract, swapped", "transposed twice", "result"):
            case "flag":
                return self.line("graph.matmul %x, %v {transpose_b}")
            case "transpose":
                return self.line(f"graph.matmul %x, {self.line('graph.transpose %v')}")
            case "contract":
                return self.line('graph.contract %x, %v {spec = "qr,pr->qp"} : tensor<12x8xf32>')
            case "contract, swapped":
                return self.line('graph.contract %v, %x {spec = "ab,cb->ca"} : tensor<12x8xf32>')
            case "result":
                return self.line(f"graph.transpose {self.line('graph.matmul %v, %x {transpose_b}')}")
            case _:
                twice = self.line(f"graph.transpose {self.line('graph.transpose %v')}")
                return self.line(f"graph.matmul %x, {twice} {{transpose_b}}")

    def sum(self, value: str) -> str:
        match self.one_of("named", "from the end", "primitive", "primitive, from the end"):
            case "named":
                return self.line(f"graph.reduce_sum {value} {{axes = [1], keepdims}}")
            case "from the end":
                return self.line(f"graph.reduce_sum {value} {{axes = [-1], keepdims}}")
            case "primitive":
                return self.line(f'graph.reduce {value} {{monoid = "sum", axes = [1]}} : tensor<12x1xf32>')
            case _:
                return self.line(f'graph.reduce {value} {{monoid = "sum", axes = array<i64: -1>}} : tensor<12x1xf32>')


@st.composite
def respellings(draw: st.DrawFn) -> str:
    """Programs that compute what the operator does, bit for bit, each step spelled in some way."""
    write, inner = _Writer(draw), "tensor<12x8xf32>"
    scaled = write.commuted("mul", inner, write.product(), write.constant("0.5", inner))
    less = write.scalar("sub", inner, write.same(scaled, inner), write.constant("1.0", inner))
    weighted = write.commuted("mul", inner, write.scalar("exp", inner, less), write.same("%u", inner))
    result = write.sum(write.same(weighted, inner))
    return program("".join(write.lines), result)
