"""Saved programs: what was saved comes back, and nothing else is taken for one. Notebooks and threads."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from example_programs import FOLDER
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from tilewright.ir.source import print_module

import tilewright
from tilewright import SourceError

WEIGHTED = """func.func @main(%x: tensor<8x16xf16>) -> tensor<8x4xf16> {
  %w = graph.weight {file = "w.safetensors", key = "w"} : tensor<16x4xf16>
  %y = graph.matmul %x, %w
  return %y : tensor<8x4xf16>
}
"""


@cache
def small() -> tilewright.Program:
    return tilewright.compile(FOLDER / "batched_matmul_bias_relu.mlir", "unified", simplest=True)


@cache
def saved_bytes() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tilewright.save(small(), Path(folder) / "p.tilewright")
        return (Path(folder) / "p.tilewright").read_bytes()


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    file = tmp_path / "p.tilewright"
    tilewright.save(small(), file)
    again = tilewright.load_program(file)
    assert again.passes == small().passes and again.inputs == small().inputs and again.outputs == small().outputs
    for one, two in zip(again.snapshots, small().snapshots, strict=True):
        assert print_module(one.module, locations=True) == print_module(two.module, locations=True)
    a, b = again.run(seed=3), small().run(seed=3)
    for name in a.outputs:
        np.testing.assert_array_equal(a.outputs[name], b.outputs[name])
    assert a.cycles == b.cycles and again.compulsory == small().compulsory
    assert again.unfused_twin is not None and small().unfused_twin is not None
    tilewright.save(again, tmp_path / "q")
    assert (tmp_path / "q").read_bytes() == file.read_bytes()


def test_weights_are_inside(tmp_path: Path) -> None:
    w = np.arange(64, dtype=np.float16).reshape(16, 4) / 64
    save_file({"w": w}, tmp_path / "w.safetensors")
    (tmp_path / "p.mlir").write_text(WEIGHTED)
    program = tilewright.compile(tmp_path / "p.mlir", "unified")
    tilewright.save(program, tmp_path / "p")
    wanted = program.run(seed=0).outputs["y"]
    (tmp_path / "w.safetensors").unlink()
    np.testing.assert_array_equal(tilewright.load_program(tmp_path / "p").run(seed=0).outputs["y"], wanted)
    with pytest.raises(SourceError, match=r"cannot read .*w\.safetensors"):
        tilewright.save(program, tmp_path / "r")
    assert not (tmp_path / "r").exists()


def rewritten(change: dict[str, bytes | None], manifest: dict[str, object] | None = None) -> bytes:
    """The archive with members replaced, added or (None) left out, and entries of the manifest changed."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved_bytes())) as old, zipfile.ZipFile(stream, "w") as new:
        members = {name: old.read(name) for name in old.namelist()} | change
        if manifest is not None:
            members["manifest.json"] = json.dumps(json.loads(members["manifest.json"] or b"") | manifest).encode()
        for name, data in members.items():
            if data is not None:
                new.writestr(name, data)
    return stream.getvalue()


def signed(members: dict[str, bytes | None], **entries: object) -> bytes:
    """As `rewritten`, with the sums that belong to it: what a hand that edits the archive with care can write."""
    with zipfile.ZipFile(io.BytesIO(saved_bytes())) as old:
        sums = json.loads(old.read("manifest.json"))["sha256"]
    for name, data in members.items():
        sums.pop(name, None)
        if data is not None:
            sums[name] = hashlib.sha256(data).hexdigest()
    return rewritten(members, {"sha256": sums, **entries})


def other_stage(number: int, example: Path, other: int) -> bytes:
    """A stage that is one of another program."""
    program = tilewright.compile(example, "unified", simplest=True)
    text = print_module(program.snapshots[other].module, locations=True).encode()
    last = len(small().snapshots) - 1
    return signed({f"{last:02}-{small().snapshots[number].name}.mlir": text})


def other_name(name: str, new: str) -> bytes:
    """A stage under another name."""
    names = [snapshot.name for snapshot in small().snapshots]
    number = names.index(name)
    with zipfile.ZipFile(io.BytesIO(saved_bytes())) as old:
        text = old.read(f"{number:02}-{name}.mlir")
    names[number] = new
    return signed({f"{number:02}-{name}.mlir": None, f"{number:02}-{new}.mlir": text}, snapshots=names)


BROKEN = {
    "no archive": (lambda: b"func.func @main() {}", "is not a saved program"),
    "empty": (lambda: b"", "is not a saved program"),
    "no manifest": (lambda: rewritten({"manifest.json": None}), "it has no manifest.json"),
    "another archive": (lambda: rewritten({}, {"format": "wheel"}), "is not a saved program"),
    "a later version": (lambda: rewritten({}, {"version": 2}), "is of version 2; this tilewright reads version 1"),
    "a changed text": (lambda: rewritten({"source.mlir": b"other"}), "'source.mlir' is not what was written"),
    "a lost member": (lambda: rewritten({"source.mlir": None}), "its members are not those"),
    "a new member": (lambda: rewritten({"run.py": b"print()"}), "its members are not those"),
    "no list": (lambda: rewritten({}, {"snapshots": 3}), "lacks entries"),
    "another list": (lambda: rewritten({}, {"snapshots": ["input", "elsewhere"]}), "is missing"),
    "names of no member": (lambda: rewritten({}, {"sha256": {"files/x/y": "0"}}), "lists what no program has"),
    "a stage of another program": (
        lambda: other_stage(-1, FOLDER / "unary_chain.mlir", -1),
        "after 'sync' the program is",
    ),
    "a stage of a level above": (
        lambda: other_stage(-1, FOLDER / "unary_chain.mlir", 0),
        "is at the graph level again",
    ),
    "another first stage": (lambda: other_name("input", "before"), "its first stage is 'before'"),
    "no text": (lambda: rewritten({"manifest.json": b"\xff"}), "is not a saved program"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_not_as_it_was_written_is_rejected(case: str, tmp_path: Path) -> None:
    make, message = BROKEN[case]
    (tmp_path / "p").write_bytes(make())
    with pytest.raises(SourceError, match=message):
        tilewright.load_program(tmp_path / "p")
    with pytest.raises(SourceError, match="no file"):
        tilewright.load_program(tmp_path / "q")


def test_a_small_file_that_unpacks_to_much_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what comes out of it, not by what it says of itself; each member alone may be within bounds."""
    largest = 1 << 20
    monkeypatch.setattr("tilewright.saved.LARGEST_TEXTS", largest)
    texts = {f"{number:02}-input.mlir": b" " * (largest - 1) for number in range(2)}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        sums = {name: hashlib.sha256(data).hexdigest() for name, data in texts.items()}
        manifest = {"format": "tilewright program", "version": 1, "file": "x", "snapshots": ["input"], "sha256": sums}
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, data in texts.items():
            archive.writestr(name, data)
    (tmp_path / "p").write_bytes(stream.getvalue())
    with pytest.raises(SourceError, match="its texts are larger than 1 MiB"):
        tilewright.load_program(tmp_path / "p")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_changed_bytes_never_pass_and_never_crash(data: st.DataObject) -> None:
    """Either the file is rejected, or what changed was of no consequence (a date, say) and the program is the same."""
    import tempfile

    original = saved_bytes()
    content = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    content = content[: data.draw(st.sampled_from([len(content), len(content) // 2, 100]))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "p"
        path.write_bytes(content)
        try:
            found = tilewright.load_program(path)
        except SourceError:
            return
        assert found.ir() == small().ir()


def test_a_program_runs_in_several_threads() -> None:
    """With results, traffic and cycles as alone; half of the threads check everything, half analyse."""
    wanted = [small().run(seed=seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda seed: small().run(seed=seed), [0, 1, 2, 3] * 2))
        analyses = list(pool.map(lambda _: small().analyze().cycles, range(4)))
    for run, alone in zip(found, wanted * 2, strict=True):
        for name in run.outputs:
            np.testing.assert_array_equal(run.outputs[name], alone.outputs[name])
        assert run.traffic == alone.traffic and run.cycles == alone.cycles
    assert set(analyses) == {wanted[0].cycles}


def test_compilations_in_several_threads_give_the_same_text() -> None:
    """Of several programs for several targets at once, each read, compiled and run in a thread."""

    def work(case: tuple[str, str]) -> tuple[str, bytes]:
        program = tilewright.compile(FOLDER / case[0], case[1], simplest=True)
        return program.ir(), b"".join(array.tobytes() for array in program.run(seed=1).outputs.values())

    cases = [(file, target) for file in ("softmax_rows.mlir", "gated_unit.mlir") for target in ("unified", "davinci")]
    alone = [work(case) for case in cases]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, cases * 2)) == alone * 2


def test_objects_in_a_notebook() -> None:
    program, run = small(), small().run(seed=0)
    assert "&lt;" in program.source._repr_html_() and "<pre>" in program.source._repr_html_()
    html = program._repr_html_()
    assert html.count("<details>") == 3 and "hardware.kernel" in html
    assert run.kernels[0].name in run._repr_html_() and f"{run.cycles:,}" in run._repr_html_()
    assert "cycles" not in program.run(seed=0, level="graph")._repr_html_()
    assert tilewright.report(program, ["fusion"])._repr_html_().startswith("<iframe")
