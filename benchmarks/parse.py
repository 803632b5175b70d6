"""Reading and printing speed of the text layer beside xDSL's own parser, on the same texts.

    python benchmarks/parse.py [operations]

Prints, per text, the best time of three alternating runs of both parsers and the ratio (below 1 is faster than xDSL).
Both sides read the generic form with garbage collection paused, so the ratio compares the parsers only.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable

from tilewright.dialects.registry import make_context
from tilewright.ir.source import parse_module, print_module
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test
from xdsl.parser import Parser


def simple_text(count: int) -> str:
    """A chain of ops with two operands and no attributes."""
    lines = [f'  %{i} = "test.op"(%{i - 1}, %{i - 1}) : (i64, i64) -> i64' for i in range(1, count)]
    return "\n".join(['"builtin.module"() ({', '  %0 = "test.op"() : () -> i64', *lines, "}) : () -> ()"])


def rich_text(count: int) -> str:
    """The same with three attributes and tensor types, each op with names of its own."""
    kind = "tensor<16x16xf32>"
    lines = [
        f'  %{i} = "test.op"(%{i - 1}, %{i - 1}) {{a = {i} : i64, name = "x{i}", shape = [16, 16]}} '
        f": ({kind}, {kind}) -> {kind}"
        for i in range(1, count)
    ]
    return "\n".join(['"builtin.module"() ({', f'  %0 = "test.op"() : () -> {kind}', *lines, "}) : () -> ()"])


def nested_text(count: int) -> str:
    """Regions of nine ops."""
    body = "\n".join(f'    %{i} = "test.op"(%{i - 1}) : (i64) -> i64' for i in range(1, 9))
    region = f'  "test.op"() ({{\n    %0 = "test.op"() : () -> i64\n{body}\n  }}) : () -> ()'
    return "\n".join(['"builtin.module"() ({', *([region] * (count // 10)), "}) : () -> ()"])


def best(action: Callable[[], object], other: Callable[[], object]) -> tuple[float, float]:
    """The best times of both, run alternately so that both meet the same machine."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        for run, record in ((action, times[0]), (other, times[1])):
            gc.collect()
            gc.disable()
            start = time.perf_counter()
            run()
            record.append(time.perf_counter() - start)
            gc.enable()
    return min(times[0]), min(times[1])


def xdsl_context() -> Context:
    context = Context()
    for dialect in (Builtin, Func, Test):
        context.load_dialect(dialect)
    return context


def our_context() -> Context:
    context = make_context()
    context.load_dialect(Test)
    return context


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    parse_module(simple_text(10), context=our_context())  # builds the grammar's tables, once per process
    print(f"{count} operations, generic form{'':8} tilewright      xDSL     ratio     print")
    for name, text in (("simple", simple_text(count)), ("rich", rich_text(count)), ("nested", nested_text(count))):
        ours, theirs = best(
            lambda text=text: parse_module(text, context=our_context()),
            lambda text=text: Parser(xdsl_context(), text).parse_module(),
        )
        module = parse_module(text, context=our_context())
        assert module.is_structurally_equivalent(Parser(xdsl_context(), text).parse_module())
        start = time.perf_counter()
        print_module(module)
        printing = time.perf_counter() - start
        print(
            f"{name:8} {len(text) / 1e6:6.2f} MB {'':14} {ours * 1e3:8.0f} ms {theirs * 1e3:6.0f} ms "
            f"{ours / theirs:7.2f} {printing * 1e3:6.0f} ms"
        )


if __name__ == "__main__":
    main()
