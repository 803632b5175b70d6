"""Hardware-level programs written by hand, to run on the machine and to break."""

from __future__ import annotations

from tilewright.dialects.layout import Layout, LayoutAttr
from tilewright.ir.source import load_module
from xdsl.dialects.builtin import ModuleOp

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i8": 1, "i32": 4, "i1": 1}


def layout(*dims: list[int]) -> str:
    """Text of a layout: per dimension extent, byte stride, …"""
    return f"#tile.layout<{', '.join(map(str, dims))}>"


def dense(shape: tuple[int, ...], element: str) -> str:
    return str(LayoutAttr.from_layout(Layout.row_major(shape, BYTES[element])))


def fractal(shape: tuple[int, int], element: str) -> str:
    """Blocks of 16 rows × 32 bytes, block columns outermost: what davinci's L1 and L0 keep."""
    return str(LayoutAttr.from_layout(Layout.fractal(shape, BYTES[element], 16, 32)))


def shaped(shape: tuple[int, ...], element: str) -> str:
    return "x".join([*map(str, shape), element])


def buffer_type(shape: tuple[int, ...], element: str, memory: str, written: str | None = None) -> str:
    return f'!tile.buffer<{shaped(shape, element)}, "{memory}", {written or dense(shape, element)}>'


def local(
    name: str,
    offset: int,
    shape: tuple[int, ...],
    element: str,
    memory: str,
    written: str | None = None,
    slots: int = 1,
) -> str:
    kind = buffer_type(shape, element, memory, written)
    return f'%{name} = hardware.buffer {{offset = {offset} : i64, slots = {slots} : i64, role = "local"}} : {kind}'


def view(
    name: str,
    buffer: str,
    shape: tuple[int, ...],
    element: str,
    memory: str,
    written: str | None = None,
    offset: str = "0",
    counters: tuple[str, ...] = (),
    valid: str | None = None,
    start: str | None = None,
) -> str:
    """`offset`, `valid` and `start` are written over d0, d1, … (the counters)."""
    args = ", ".join(f"%{arg}" for arg in (buffer, *counters))
    dims = ", ".join(f"d{n}" for n in range(len(counters)))
    given = [f"offset = affine_map<({dims}) -> ({offset})>", f"layout = {written or dense(shape, element)}"]
    given += [f"{key} = affine_map<({dims}) -> ({text})>" for key, text in (("valid", valid), ("start", start)) if text]
    return (
        f'%{name} = hardware.view {args} {{{", ".join(given)}}} : !hardware.view<{shaped(shape, element)}, "{memory}">'
    )


def signal(source: str, sink: str, event: int = 0, count: int = 1) -> str:
    return _event("signal", source, sink, event, count)


def wait(source: str, sink: str, event: int = 0, count: int = 1) -> str:
    return _event("wait", source, sink, event, count)


def _event(what: str, source: str, sink: str, event: int, count: int) -> str:
    return f'hardware.{what} {{event = {event} : i64, from = "{source}", to = "{sink}", count = {count} : i64}}'


def both(source: str, sink: str, event: int = 0) -> str:
    """A signal and its wait."""
    return signal(source, sink, event) + "\n" + wait(source, sink, event)


def loop(counter: str, end: int, body: str) -> str:
    return f"hardware.for %{counter} = 0 to {end} {{\n{body}\n}}"


def lines(*parts: str) -> str:
    return "\n".join(parts)


Spec = tuple[tuple[int, ...], str]


def program(body: str, inputs: list[Spec], outputs: list[Spec], target: str = "davinci", more: str = "") -> str:
    """One kernel on input buffers %x0, %x1, … and output buffers %y0, …, launched once."""
    arguments: list[str] = []
    buffers: list[str] = []
    offset = 0
    memory = "gm" if target.startswith("davinci") else "dram"
    for role, letter, specs in (("input", "x", inputs), ("output", "y", outputs)):
        for number, (shape, element) in enumerate(specs):
            kind = buffer_type(shape, element, memory)
            arguments.append(f"%{letter}{number}: {kind}")
            buffers.append(
                f"%{letter}{number} = hardware.buffer "
                f'{{offset = {offset} : i64, role = "{role}", index = {number} : i64}} : {kind}'
            )
            size = Layout.row_major(shape, BYTES[element]).size_bytes
            offset += -(-size // 512) * 512
    names = ", ".join(argument.partition(":")[0] for argument in arguments)
    return lines(
        f'module attributes {{tilewright.target = "{target}"}} {{',
        f"hardware.kernel @k({', '.join(arguments)}) {{",
        body,
        "}",
        'hardware.program {sym_name = "main"} ({',
        *buffers,
        more,
        f"hardware.launch {names} {{callee = @k}}",
        "})",
        "}",
    )


def parsed(text: str) -> ModuleOp:
    return load_module(text)[0]


def row_pipeline(tiles: int = 4, valid: str | None = None, rows: int | None = None) -> str:
    """exp of 2-row tiles of `rows` × 64 f32: load, compute and store on three engines, two slots for each buffer."""
    rows = 2 * tiles if rows is None else rows
    tile, whole = (2, 64), (rows, 64)
    slot = "(d0 mod 2) * 512"
    return program(
        lines(
            local("in", 0, tile, "f32", "ub", slots=2),
            local("out", 1024, tile, "f32", "ub", slots=2),
            signal("vector", "mte2", count=2),
            signal("mte3", "vector", count=2),
            loop(
                "i",
                tiles,
                lines(
                    view("s", "x0", tile, "f32", "gm", offset="d0 * 512", counters=("i",), valid=valid),
                    view("a", "in", tile, "f32", "ub", offset=slot, counters=("i",), valid=valid),
                    view("b", "out", tile, "f32", "ub", offset=slot, counters=("i",), valid=valid),
                    view("t", "y0", tile, "f32", "gm", offset="d0 * 512", counters=("i",), valid=valid),
                    wait("vector", "mte2"),
                    'hardware.dma %s, %a {engine = "mte2", fresh}',
                    both("mte2", "vector"),
                    wait("mte3", "vector"),
                    'hardware.vector %a, %b {fn = "exp", engine = "vector", fresh}',
                    signal("vector", "mte2"),
                    both("vector", "mte3"),
                    'hardware.dma %b, %t {engine = "mte3"}',
                    signal("mte3", "vector"),
                ),
            ),
            wait("vector", "mte2", count=2),
            wait("mte3", "vector", count=2),
        ),
        [(whole, "f32")],
        [(whole, "f32")],
    )


def product(m: int, k: int, n: int, steps: int = 1, element: str = "f16") -> str:
    """x0 · x1 of m × k by k × n on davinci's matrix engine, k in `steps` equal parts; the result is cast and stored."""
    part = k // steps
    width = BYTES[element]
    accumulator = "i32" if element == "i8" else "f32"
    result = accumulator if element == "i8" else element
    moves = [
        view(
            "xs", "x0", (m, part), element, "gm", layout([m, k * width], [part, width]), f"d0 * {part * width}", ("i",)
        ),
        view(
            "ws",
            "x1",
            (part, n),
            element,
            "gm",
            layout([part, n * width], [n, width]),
            f"d0 * {part * n * width}",
            ("i",),
        ),
    ]
    operands = (("x", "l", "l0a", (m, part)), ("w", "r", "l0b", (part, n)))
    local_buffers: list[str] = []
    for name, small, memory, shape in operands:
        blocks = fractal(shape, element)
        local_buffers += [
            local(f"{name}n", 0 if name == "x" else 65536, shape, element, "l1", blocks),
            local(small, 0, shape, element, memory, blocks),
        ]
        moves += [
            view(f"{name}d", f"{name}n", shape, element, "l1", blocks),
            view(f"{small}d", small, shape, element, memory, blocks),
        ]
    acc = fractal((m, n), accumulator)
    return program(
        lines(
            *local_buffers,
            local("c", 0, (m, n), accumulator, "l0c", acc),
            view("cd", "c", (m, n), accumulator, "l0c", acc),
            view("yd", "y0", (m, n), result, "gm"),
            signal("mte1", "mte2"),
            signal("matrix", "mte1"),
            loop(
                "i",
                steps,
                lines(
                    *moves,
                    wait("mte1", "mte2"),
                    'hardware.dma %xs, %xd {engine = "mte2", fresh}',
                    'hardware.dma %ws, %wd {engine = "mte2", fresh}',
                    both("mte2", "mte1"),
                    wait("matrix", "mte1"),
                    'hardware.dma %xd, %ld {engine = "mte1", fresh}',
                    'hardware.dma %wd, %rd {engine = "mte1", fresh}',
                    signal("mte1", "mte2"),
                    both("mte1", "matrix"),
                    'hardware.matmul %ld, %rd, %cd, %i {engine = "matrix", spec = "mk,kn->mn", '
                    "init = affine_map<(d0) -> (d0)>}",
                    signal("matrix", "mte1"),
                ),
            ),
            wait("mte1", "mte2"),
            wait("matrix", "mte1"),
            both("matrix", "fixpipe"),
            'hardware.dma %cd, %yd {engine = "fixpipe"}',
        ),
        [((m, k), element), ((k, n), element)],
        [((m, n), result)],
    )


def on_vector(
    inputs: list[Spec], output: Spec, instructions: str, more_buffers: str = "", valid: str | None = None
) -> str:
    """Loads the inputs to %a0, %a1, … (buffers %p0, …), executes `instructions` into %b, stores it."""
    parts: list[str] = [more_buffers]
    offset = 0
    for number, (shape, element) in enumerate([*inputs, output]):
        name = f"p{number}" if number < len(inputs) else "q"
        parts.append(local(name, offset, shape, element, "ub"))
        offset += -(-Layout.row_major(shape, BYTES[element]).size_bytes // 32) * 32
    for number, (shape, element) in enumerate(inputs):
        parts += [
            view(f"s{number}", f"x{number}", shape, element, "gm"),
            view(f"a{number}", f"p{number}", shape, element, "ub", valid=valid),
            f'hardware.dma %s{number}, %a{number} {{engine = "mte2", fresh}}',
        ]
    shape, element = output
    parts += [
        both("mte2", "vector"),
        view("b", "q", shape, element, "ub"),
        view("t", "y0", shape, element, "gm"),
        instructions,
        both("vector", "mte3"),
        'hardware.dma %b, %t {engine = "mte3"}',
    ]
    return program(lines(*parts), inputs, [output])
