"""Hand-written hardware-level programs: a double-buffered matmul with a vector step behind it, on two machines.

Tests change them by replacing a line; `line` finds it by its words and complains if it is not there once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.source import parse_module
from xdsl.dialects.builtin import ModuleOp

TILE_K = 32
SIDE = 64
"""Rows and columns of the tiles; also the most the problem may have."""


def program(text: str) -> ModuleOp:
    return parse_module(text, "program.mlir")


def without(text: str, *words: str) -> str:
    """The text without the one line that has all these words."""
    return text.replace(line(text, *words) + "\n", "", 1)


def line(text: str, *words: str) -> str:
    found = [row for row in text.splitlines() if all(word in row for word in words)]
    assert len(found) == 1, f"{len(found)} lines with {words}"
    return found[0]


def changed(text: str, old: str, new: str, *words: str) -> str:
    """The text with `old` replaced in the one line that has all these words."""
    row = line(text, *words)
    assert old in row, f"no '{old}' in '{row}'"
    return text.replace(row, row.replace(old, new), 1)


def buffer(shape: Sequence[int], kind: str, memory: str, layout: str) -> str:
    return f'!tile.buffer<{"x".join(map(str, shape))}x{kind}, "{memory}", #tile.layout<{layout}>>'


def view(name: str, of: str, shape: str, memory: str, layout: str, offset: str = "0", valid: str = "") -> str:
    """One view over the counter %k, if offset or valid use it (as d0)."""
    dims, counter = ("(d0)", ", %k") if "d0" in offset + valid else ("()", "")
    bound = f", valid = affine_map<{dims} -> ({valid})>" if valid else ""
    return (
        f"%{name} = hardware.view %{of}{counter} {{offset = affine_map<{dims} -> ({offset})>, "
        f'layout = #tile.layout<{layout}>{bound}}} : !hardware.view<{shape}, "{memory}">'
    )


def unified(m: int = 64, n: int = 64, k: int = 128, fn: str = "relu") -> str:
    """relu(a · b) with a in m × k, b in k × n, both f16, k in steps of 32 through two slots; result f32."""
    left, right = f"{m}, d0 * -32 + {k}", f"d0 * -32 + {k}, {n}"
    steps, sp = -(-k // TILE_K), "scratchpad"
    rows, columns = f"[{SIDE}, 64], [{TILE_K}, 2]", f"[{TILE_K}, 128], [{SIDE}, 2]"
    out = f"[{SIDE}, 256], [{SIDE}, 4]"
    ins = [buffer((m, k), "f16", "gm", f"[{m}, {2 * k}], [{k}, 2]"),
           buffer((k, n), "f16", "gm", f"[{k}, {2 * n}], [{n}, 2]"),
           buffer((m, n), "f32", "gm", f"[{m}, {4 * n}], [{n}, 4]")]  # fmt: skip
    slotted = 'role = "local", slots = 2 : i64'
    kinds = [buffer((SIDE, TILE_K), "f16", sp, rows), buffer((TILE_K, SIDE), "f16", sp, columns)]
    step, wide = f"[{TILE_K}, {2 * n}], [{SIDE}, 2]", f"{TILE_K}x{SIDE}xf16"
    return f"""module attributes {{tilewright.target = "unified"}} {{
  hardware.kernel @k(%a: {ins[0]}, %b: {ins[1]}, %o: {ins[2]}) {{
    %at = hardware.buffer {{offset = 0 : i64, {slotted}}} : {kinds[0]}
    %bt = hardware.buffer {{offset = 8192 : i64, {slotted}}} : {kinds[1]}
    %ct = hardware.buffer {{offset = 16384 : i64, role = "local"}} : {buffer((SIDE, SIDE), "f32", sp, out)}
    hardware.signal {{event = 0 : i64, from = "matrix", to = "load", count = 2 : i64}}
    hardware.for %k = 0 to {steps} {{
      hardware.wait {{event = 0 : i64, from = "matrix", to = "load"}}
      {view("ag", "a", f"{SIDE}x{TILE_K}xf16", "gm", f"[{SIDE}, {2 * k}], [{TILE_K}, 2]", "d0 * 64", left)}
      {view("as", "at", f"{SIDE}x{TILE_K}xf16", sp, rows, "(d0 mod 2) * 4096", left)}
      hardware.dma %ag, %as {{engine = "load", fresh}}
      {view("bg", "b", wide, "gm", step, f"d0 * {64 * n}", right)}
      {view("bs", "bt", wide, sp, columns, "(d0 mod 2) * 4096", right)}
      hardware.dma %bg, %bs {{engine = "load", fresh}}
      hardware.signal {{event = 0 : i64, from = "load", to = "matrix"}}
      hardware.wait {{event = 0 : i64, from = "load", to = "matrix"}}
      {view("am", "at", f"{SIDE}x{TILE_K}xf16", sp, rows, "(d0 mod 2) * 4096", left)}
      {view("bm", "bt", wide, sp, columns, "(d0 mod 2) * 4096", right)}
      {view("cm", "ct", f"{SIDE}x{SIDE}xf32", sp, out, "0", f"{m}, {n}")}
      hardware.matmul %am, %bm, %cm, %k {{spec = "mk,kn->mn", init = affine_map<(d0) -> (d0)>, engine = "matrix"}}
      hardware.signal {{event = 0 : i64, from = "matrix", to = "load"}}
    }}
    hardware.wait {{event = 0 : i64, from = "matrix", to = "load", count = 2 : i64}}
    hardware.signal {{event = 0 : i64, from = "matrix", to = "vector"}}
    hardware.wait {{event = 0 : i64, from = "matrix", to = "vector"}}
    {view("cv", "ct", f"{SIDE}x{SIDE}xf32", sp, out, "0", f"{m}, {n}")}
    hardware.vector %cv, %cv {{fn = "{fn}", engine = "vector"}}
    hardware.signal {{event = 0 : i64, from = "vector", to = "store"}}
    hardware.wait {{event = 0 : i64, from = "vector", to = "store"}}
    {view("og", "o", f"{SIDE}x{SIDE}xf32", "gm", f"[{SIDE}, {4 * n}], [{SIDE}, 4]", "0", f"{m}, {n}")}
    hardware.dma %cv, %og {{engine = "store"}}
  }}
  {_launch(ins, (2 * m * k, 2 * k * n))}
}}
"""


def davinci(m: int = 64, n: int = 64, k: int = 128) -> str:
    """The same on davinci: through l1 (two slots), l0a and l0b (two slots), l0c and ub, in fractal layouts."""
    steps = -(-k // TILE_K)
    tile = "[64, 32], [2, 2048, 16, 2]"
    acc, ub = "[64, 32], [8, 2048, 8, 4]", "[64, 256], [64, 4]"
    left, right, out = f"{m}, d0 * -32 + {k}", f"{n}, d0 * -32 + {k}", f"{m}, {n}"
    ins = [buffer((m, k), "f16", "gm", f"[{m}, {2 * k}], [{k}, 2]"),
           buffer((k, n), "f16", "gm", f"[{k}, {2 * n}], [{n}, 2]"),
           buffer((m, n), "f32", "gm", f"[{m}, {4 * n}], [{n}, 4]")]  # fmt: skip

    def local(name: str, memory: str, offset: int, layout: str = tile, kind: str = "f16", slots: int = 2) -> str:
        columns = TILE_K if kind == "f16" else SIDE
        made = f'offset = {offset} : i64, role = "local", slots = {slots} : i64'
        return f"%{name} = hardware.buffer {{{made}}} : {buffer((SIDE, columns), kind, memory, layout)}"

    def part(name: str, of: str, memory: str, valid: str) -> str:
        return view(name, of, "64x32xf16", memory, tile, "(d0 mod 2) * 4096", valid)

    return f"""module attributes {{tilewright.target = "davinci"}} {{
  hardware.kernel @k(%a: {ins[0]}, %b: {ins[1]}, %o: {ins[2]}) {{
    {local("a1", "l1", 0)}
    {local("b1", "l1", 8192)}
    {local("a0", "l0a", 0)}
    {local("b0", "l0b", 0)}
    {local("c0", "l0c", 0, acc, "f32", 1)}
    {local("cu", "ub", 0, ub, "f32", 1)}
    hardware.signal {{event = 0 : i64, from = "mte1", to = "mte2", count = 2 : i64}}
    hardware.signal {{event = 0 : i64, from = "matrix", to = "mte1", count = 2 : i64}}
    hardware.for %k = 0 to {steps} {{
      hardware.wait {{event = 0 : i64, from = "mte1", to = "mte2"}}
      {view("ag", "a", "64x32xf16", "gm", f"[64, {2 * k}], [32, 2]", "d0 * 64", left)}
      {part("as", "a1", "l1", left)}
      hardware.dma %ag, %as {{engine = "mte2", fresh}}
      {view("bg", "b", "64x32xf16", "gm", f"[64, 2], [32, {2 * n}]", f"d0 * {64 * n}", right)}
      {part("bs", "b1", "l1", right)}
      hardware.dma %bg, %bs {{engine = "mte2", fresh}}
      hardware.signal {{event = 0 : i64, from = "mte2", to = "mte1"}}
      hardware.wait {{event = 0 : i64, from = "mte2", to = "mte1"}}
      hardware.wait {{event = 0 : i64, from = "matrix", to = "mte1"}}
      {part("am", "a0", "l0a", left)}
      hardware.dma %as, %am {{engine = "mte1", fresh}}
      {part("bm", "b0", "l0b", right)}
      hardware.dma %bs, %bm {{engine = "mte1", fresh}}
      hardware.signal {{event = 0 : i64, from = "mte1", to = "mte2"}}
      hardware.signal {{event = 0 : i64, from = "mte1", to = "matrix"}}
      hardware.wait {{event = 0 : i64, from = "mte1", to = "matrix"}}
      {view("cm", "c0", "64x64xf32", "l0c", acc, "0", out)}
      hardware.matmul %am, %bm, %cm, %k {{spec = "mk,nk->mn", init = affine_map<(d0) -> (d0)>, engine = "matrix"}}
      hardware.signal {{event = 0 : i64, from = "matrix", to = "mte1"}}
    }}
    hardware.wait {{event = 0 : i64, from = "mte1", to = "mte2", count = 2 : i64}}
    hardware.wait {{event = 0 : i64, from = "matrix", to = "mte1", count = 2 : i64}}
    hardware.signal {{event = 0 : i64, from = "matrix", to = "fixpipe"}}
    hardware.wait {{event = 0 : i64, from = "matrix", to = "fixpipe"}}
    {view("cf", "c0", "64x64xf32", "l0c", acc, "0", out)}
    {view("cv", "cu", "64x64xf32", "ub", ub, "0", out)}
    hardware.dma %cf, %cv {{engine = "fixpipe", fresh}}
    hardware.signal {{event = 0 : i64, from = "fixpipe", to = "vector"}}
    hardware.wait {{event = 0 : i64, from = "fixpipe", to = "vector"}}
    hardware.vector %cv, %cv {{fn = "relu", engine = "vector"}}
    hardware.signal {{event = 0 : i64, from = "vector", to = "mte3"}}
    hardware.wait {{event = 0 : i64, from = "vector", to = "mte3"}}
    {view("og", "o", "64x64xf32", "gm", f"[64, {4 * n}], [64, 4]", "0", out)}
    hardware.dma %cv, %og {{engine = "mte3"}}
  }}
  {_launch(ins, (2 * m * k, 2 * k * n))}
}}
"""


def _launch(kinds: Sequence[str], sizes: Sequence[int]) -> str:
    ends = [-(-size // 32) * 32 for size in sizes]
    roles = ['role = "input", index = 0 : i64', 'role = "input", index = 1 : i64', 'role = "output", index = 0 : i64']
    offsets = (0, ends[0], ends[0] + ends[1])
    rows = [
        f"%{name} = hardware.buffer {{offset = {offset} : i64, {role}}} : {kind}"
        for name, offset, role, kind in zip("xyz", offsets, roles, kinds, strict=True)
    ]
    body = "\n    ".join([*rows, "hardware.launch %x, %y, %z {callee = @k}"])
    return f'hardware.program {{sym_name = "main"}} ({{\n    {body}\n  }})'
