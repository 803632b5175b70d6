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


MASKS = ("graph.le %j, %i", "graph.lt %i, %j", "graph.gt %j, %i", "graph.eq %i, %j")
CONSTANTS = {"low": "0xFF800000", "high": "0x7F800000", "zero": "0.0", "minus": "-1.5", "half": "0.5"}
GREATEST = 20.0
"""What is at most exponentiated: nothing overflows by itself, infinities come from masks."""


@st.composite
def masked_cascades(draw: st.DrawFn) -> str:
    """A function of `x` and `z` (rows × cols) whose values are masked by ±∞ or 0, and made of such ones by operators
    that turn −∞ into +∞, or an infinity into a number again; every reduction is a result."""
    rows, cols = draw(st.integers(1, 9)), draw(st.integers(2, 24))
    shape, row = f"tensor<{rows}x{cols}xf32>", f"tensor<{rows}x1xf32>"
    lines = [
        f"%i = graph.iota {{dim = 0 : i64}} : tensor<{rows}x1xi32>",
        f"%j = graph.iota {{dim = 1 : i64}} : tensor<1x{cols}xi32>",
        f"%m = {draw(st.sampled_from(MASKS))}",
        *(f"%{name} = graph.constant dense<{value}> : tensor<f32>" for name, value in CONSTANTS.items()),
    ]
    streamed, reduced = {"%x": 4.0, "%z": 4.0}, dict[str, float]()
    results: list[str] = []

    def add(kind: dict[str, float], bound: float, text: str) -> str:
        name = f"%v{len(lines)}"
        lines.append(f"{name} = graph.{text}")
        kind[name] = bound
        return name

    def reduce(value: str) -> str:
        fn = draw(st.sampled_from(("max", "min", "max", "min", "sum", "mean")))
        bound = streamed[value] * (cols if fn == "sum" else 1)
        results.append(add(reduced, bound, f"reduce_{fn} {value} {{axes = [-1], keepdims}}"))
        return results[-1]

    for _ in range(draw(st.integers(3, 9))):
        value = draw(st.sampled_from(list(streamed)))
        bound = streamed[value]
        match draw(st.sampled_from(("mask", "mask", "neg", "scale", "shift", "shift", "exp", "exp", "pair", "reduce"))):
            case "mask":
                pair = [value, f"%{draw(st.sampled_from(('low', 'high', 'zero')))}"]
                first, second = pair if draw(st.booleans()) else pair[::-1]
                add(streamed, bound, f"where %m, {first}, {second}")
            case "neg":
                add(streamed, bound, f"neg {value}")
            case "scale":
                add(streamed, 2 * bound, f"mul {value}, %{draw(st.sampled_from(('minus', 'half')))}")
            case "shift":
                one = draw(st.sampled_from(list(reduced))) if reduced and draw(st.booleans()) else reduce(value)
                pair = [value, one] if draw(st.booleans()) else [one, value]
                fn = draw(st.sampled_from(("sub", "sub", "add")))
                made = add(streamed, bound + reduced[one], f"{fn} {pair[0]}, {pair[1]}")
                if streamed[made] <= GREATEST and draw(st.booleans()):
                    add(streamed, 1e9, f"exp {made}")
            case "exp" if bound <= GREATEST:
                add(streamed, 1e9, f"exp {value}")
            case "pair":
                other = draw(st.sampled_from(list(streamed)))
                add(
                    streamed,
                    bound + streamed[other],
                    f"{draw(st.sampled_from(('sub', 'add', 'max')))} {value}, {other}",
                )
            case _:
                reduce(value)
    results.append(add(reduced, 0.0, f"reduce_sum {list(streamed)[-1]} {{axes = [-1], keepdims}}"))
    results = list(dict.fromkeys(results))
    kinds = ", ".join([row] * len(results))
    body = [f"  {line}" for line in lines]
    head = f"func.func @main(%x: {shape}, %z: {shape}) -> ({kinds}) {{"
    return "\n".join([head, *body, f"  func.return {', '.join(results)} : {kinds}", "}"])
