"""Targets: the bundled ones, files with bases, overrides, and what a module carries."""

from __future__ import annotations

import json

import pytest
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import (
    TARGET_ATTRIBUTE,
    MatrixEngine,
    TargetError,
    VectorEngine,
    list_targets,
    load_target,
    set_target,
    target_of,
)
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr


def ends(path):
    return None if path is None else [move.destination for move in path]


def test_bundled_targets_load():
    assert {"davinci", "unified"} <= set(list_targets())
    for name in list_targets():
        assert load_target(name).name == name


def test_davinci_figures():
    target = load_target("davinci")
    assert (target.cores, target.max_cores, target.clock_hz, target.launch_cycles) == (1, 32, 1_650_000_000, 2000)
    sizes = {name: (memory.bytes >> 10, memory.align) for name, memory in target.memories.items()}
    assert sizes == {
        "gm": (128 << 20, 32), "l1": (512, 32), "l0a": (64, 512), "l0b": (64, 512), "l0c": (256, 64), "ub": (248, 32),
    }  # fmt: skip
    gm = target.offchip_memory
    assert (gm.granule, gm.core_rate, gm.pool_rate, gm.read_latency, gm.write_latency) == (32, 100, 992, 1400, 300)
    assert {(m.source, m.destination, m.engine, m.rate) for m in target.moves} == {
        ("gm", "l1", "mte2", None), ("gm", "ub", "mte2", None),
        ("l1", "l0a", "mte1", 256), ("l1", "l0b", "mte1", 256),
        ("l0c", "ub", "fixpipe", 128), ("l0c", "l1", "fixpipe", 128), ("l0c", "gm", "fixpipe", 128),
        ("ub", "gm", "mte3", 128), ("ub", "l1", "mte3", 128),
    }  # fmt: skip
    name, matrix = target.matrix_engine
    assert (name, matrix.lhs, matrix.rhs, matrix.result) == ("matrix", "l0a", "l0b", "l0c")
    assert target.vector_engine[1].memories == ("ub",)


def test_unified_figures():
    target = load_target("unified")
    assert target.memories["scratchpad"].bytes == 1 << 20
    assert target.offchip_memory.granule == 1 and target.offchip_memory.core_rate == 256
    assert target.clock_hz == 10**9 and target.launch_cycles == 0
    matrix, vector = target.matrix_engine[1], target.vector_engine[1]
    assert {matrix.lhs, matrix.rhs, matrix.result, *vector.memories} == {"scratchpad"}
    davinci = load_target("davinci").vector_engine[1]
    assert vector.model_copy(update={"memories": davinci.memories}) == davinci
    types = load_target("davinci").matrix_engine[1].types.items()  # of unlimited shapes
    assert matrix.types == {name: entry.model_copy(update={"max_shape": None}) for name, entry in types}
    assert all(move.convert and move.transpose and move.pad and move.cast for move in target.moves)


def test_paths():
    target = load_target("davinci")
    assert ends(target.path("gm", "l0a")) == ["l1", "l0a"]
    assert ends(target.path("ub", "l0b")) == ["l1", "l0b"]
    assert ends(target.path("l0c", "gm")) == ["gm"]
    assert target.path("ub", "ub") == ()
    assert target.path("l0a", "gm") is None
    assert target.move("gm", "l1") is target.path("gm", "l1")[0]
    assert target.move("gm", "l0a") is None


def test_of_equally_long_paths_the_faster_is_taken(tmp_path):
    file = tmp_path / "two.toml"
    text = 'base = "davinci"\n[memory.side]\nbytes = 1024\nalign = 32\n'
    for source, destination, rate in (("l0c", "side", 256), ("side", "l1", 256)):
        text += f'[[move]]\nfrom = "{source}"\nto = "{destination}"\nengine = "mte3"\nrate = {rate}\n'
    file.write_text(text + '[[move]]\nfrom = "l0c"\nto = "l1"\nremove = true\n')
    assert ends(load_target(str(file)).path("l0c", "l1")) == ["side", "l1"]


def test_overrides():
    target = load_target("unified{memory.scratchpad.bytes=192KiB cores=2 description='a b' memory.gm.core_rate=12.5}")
    assert target.memories["scratchpad"].bytes == 196608
    assert (target.cores, target.description, target.offchip_memory.core_rate) == (2, "a b", 12.5)
    assert load_target("unified{memory.scratchpad.bytes=196608}").memories["scratchpad"].bytes == 196608
    assert load_target("davinci{move.l1.l0a.rate=512}").move("l1", "l0a").rate == 512
    types = load_target("davinci{engine.matrix.types.f16.block=[8, 8, 8], cores=3}").matrix_engine[1].types
    assert types["f16"].block == (8, 8, 8)
    assert load_target("unified{}") == load_target("unified") == load_target(" unified ")


def test_file_merges_deeply_with_its_base(tmp_path):
    (tmp_path / "big.toml").write_text('base = "davinci"\ndescription = "larger"\n[memory.l1]\nbytes = "1MiB"\n')
    (tmp_path / "bigger.toml").write_text(
        'base = "big.toml"\n[memory.ub]\nbytes = "512KiB"\n[engine.vector.startup]\nadd = 3\n'
        '[[move]]\nfrom = "l1"\nto = "l0a"\nrate = 512\n'
        '[[move]]\nfrom = "gm"\nto = "l0b"\nengine = "mte2"\n'
        '[[move]]\nfrom = "ub"\nto = "l1"\nremove = true\n'
    )
    target, davinci = load_target(str(tmp_path / "bigger.toml")), load_target("davinci")
    assert (target.name, target.description) == ("bigger", "larger")
    assert target.memories["l1"].bytes == 1 << 20 and target.memories["l1"].fractal_rows == 16
    assert target.memories["ub"].bytes == 512 << 10
    vector = target.vector_engine[1]
    assert vector.startup == {**davinci.vector_engine[1].startup, "add": 3}
    assert target.move("l1", "l0a") == davinci.move("l1", "l0a").model_copy(update={"rate": 512.0})
    assert target.move("gm", "l0b") is not None
    assert target.move("ub", "l1") is None and target.path("ub", "l1") == (
        target.move("ub", "gm"),
        target.move("gm", "l1"),
    )
    assert load_target(f"{tmp_path / 'bigger.toml'}{{memory.l1.bytes=64KiB}}").memories["l1"].bytes == 65536


def test_files_are_read_again(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "unified"\ncores = 2\n')
    assert load_target(str(file)).cores == 2
    assert load_target(str(file)) is load_target(str(file))
    file.write_text('base = "unified"\ncores = 3\n')
    assert load_target(str(file)).cores == 3


def test_module_carries_bundled_names_as_written():
    module = ModuleOp([])
    spec = "unified{memory.scratchpad.bytes=196608 cores=1}"
    assert set_target(module, spec) is target_of(module)
    assert module.attributes[TARGET_ATTRIBUTE] == StringAttr(spec)


def test_module_carries_files_by_content(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('base = "davinci"\n[memory.l1]\nbytes = "1MiB"\n')
    module, again = ModuleOp([]), ModuleOp([])
    target = set_target(module, f"{file}{{cores=4}}")
    file.unlink()
    assert target_of(module) == target and hash(target_of(module)) == hash(target)
    assert list(target_of(module).memories) == list(target.memories)
    text = module.attributes[TARGET_ATTRIBUTE].data
    assert json.loads(text)["cores"] == 4
    assert set_target(again, target) == target
    assert again.attributes[TARGET_ATTRIBUTE].data == text
    assert load_target(text).canonical == text == target.canonical
    assert load_target(text + "{cores=5}").cores == 5


def test_module_carries_a_bundled_target_object_by_name():
    module = ModuleOp([])
    set_target(module, load_target("davinci"))
    assert module.attributes[TARGET_ATTRIBUTE] == StringAttr("davinci")


def test_target_is_found_from_inside_a_module():
    inner = ModuleOp([])
    outer = ModuleOp([inner])
    set_target(outer, "davinci")
    assert target_of(inner).name == "davinci"


def test_module_without_target():
    with pytest.raises(UserError, match=r"no target \(attribute tilewright\.target\)"):
        target_of(ModuleOp([]))
    with pytest.raises(UserError, match="not a string"):
        target_of(ModuleOp([], {TARGET_ATTRIBUTE: UnitAttr()}))
    with pytest.raises(TargetError, match="unknown target"):
        set_target(ModuleOp([]), "davincy")


def test_records_are_frozen():
    target = load_target("davinci")
    with pytest.raises(Exception, match="frozen"):
        target.cores = 2
    assert isinstance(target.engines["matrix"], MatrixEngine) and isinstance(target.engines["vector"], VectorEngine)


def test_split_cores_meet_only_off_chip():
    target = load_target("ascend910b")
    assert ends(target.path("l0c", "ub")) == ["gm", "ub"]
    assert ends(target.path("ub", "l0a")) == ["gm", "l1", "l0a"]
    assert target.move("l1", "l0a").rate == 512 and target.move("ub", "gm").rate == 64
