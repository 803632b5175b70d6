"""Random programs in which reductions over one axis wait for one another, as text."""

from __future__ import annotations

from hypothesis import strategies as st

STREAMED = ("tanh", "sigmoid", "neg", "abs", "relu", "square", "exp")
REDUCED = ("tanh", "square", "sigmoid", "neg")


@st.composite
def cascades(draw: st.DrawFn) -> str:
    """A function of `x` and `z` (rows × cols), a row `g` and a matrix `w`; every reduction is a result."""
    rows, cols, wide = draw(st.integers(1, 9)), draw(st.integers(1, 40)), draw(st.integers(1, 9))
    lines: list[str] = []
    streamed, reduced, results = ["%x", "%z"], list[str](), list[tuple[str, str]]()

    def add(kind: list[str], text: str) -> str:
        name = f"%v{len(lines)}"
        lines.append(f"  {name} = {text}")
        kind.append(name)
        return name

    def close(value: str) -> str:
        """A value kept between −1 and 1: what is random should not overflow."""
        return add([], f"graph.tanh {value}")

    for step in range(draw(st.integers(4, 12))):
        value = draw(st.sampled_from(streamed))
        kinds_of_step = ["unary", "binary", "row", "with", "with", "softmax", "reduce", "reduce", "product"]
        match draw(st.sampled_from(kinds_of_step)) if step else "reduce":
            case "unary":
                add(streamed, f"graph.{draw(st.sampled_from(STREAMED))} {close(value)}")
            case "binary":
                other = draw(st.sampled_from(streamed))
                add(streamed, f"graph.{draw(st.sampled_from(('add', 'sub', 'mul')))} {value}, {other}")
            case "row":
                add(streamed, f"graph.{draw(st.sampled_from(('add', 'mul')))} {value}, %g")
            case "with" if reduced:
                fn, finished = draw(st.sampled_from(("add", "sub", "mul", "max"))), draw(st.sampled_from(reduced))
                pair = [value, finished] if draw(st.booleans()) else [finished, value]
                add(streamed, f"graph.{fn} {pair[0]}, {pair[1]}")
            case "softmax":
                top = add(reduced, f"graph.reduce_max {value} {{axes = [-1], keepdims}}")
                shifted = add(streamed, f"graph.sub {value}, {top}")
                add(streamed, f"graph.exp {shifted}")
            case "reduce":
                fn = draw(st.sampled_from(("sum", "mean", "max", "min")))
                made = add(reduced, f"graph.reduce_{fn} {value} {{axes = [-1], keepdims}}")
                results.append((made, f"tensor<{rows}x1xf32>"))
                if draw(st.booleans()):
                    add(reduced, f"graph.{draw(st.sampled_from(REDUCED))} {made}")
            case "product":
                results.append((add([], f"graph.matmul {value}, %w"), f"tensor<{rows}x{wide}xf32>"))
            case _:
                pass
    if not results:
        made = add(reduced, f"graph.reduce_sum {streamed[-1]} {{axes = [-1], keepdims}}")
        results.append((made, f"tensor<{rows}x1xf32>"))
    values, kinds = ", ".join(value for value, _ in results), ", ".join(kind for _, kind in results)
    shape = f"tensor<{rows}x{cols}xf32>"
    head = f"func.func @main(%x: {shape}, %z: {shape}, %g: tensor<{cols}xf32>, %w: tensor<{cols}x{wide}xf32>)"
    return "\n".join([f"{head}\n    -> ({kinds}) {{", *lines, f"  func.return {values} : {kinds}", "}"])
