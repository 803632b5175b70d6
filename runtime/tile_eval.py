"""The evaluator of the tile level, in value form and in buffer form: the oracle of every pass after `tile`.

Undefined elements are tracked by masks, not by special numbers, so integers are covered too. Memories, layouts and
offsets do not matter here: a buffer has elements of its own wherever the plan puts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects import tile
from ..dialects.affine_eval import evaluate, lower_bound, upper_bound
from ..dialects.dtypes import element
from ..dialects.errors import UserError
from ..dialects.graph_functions import output_arguments
from ..dialects.graph_primitives import ConstantOp, WeightOp
from . import reference_primitives as primitives
from .reference import entry_function
from .reference_numbers import Numbers
from .reference_primitives import Loader
from .tile_ops import apply_contract, apply_map, apply_reduce, apply_stage, immediate, reduced_axes
from .tile_values import Held, Region, Storage, clamp, open_mesh

Array: TypeAlias = npt.NDArray[Any]
Environment: TypeAlias = dict[SSAValue, Held | int]


def evaluate_tile(
    module: ModuleOp,
    inputs: Sequence[Array],
    precision: Literal["f32", "f64"] = "f32",
    loader: Loader | None = None,
) -> list[Array]:
    """The results of the module's function on `inputs` (rounded to the argument types first).

    precision "f32": elements rounded to their types, products and sums accumulated in f32 (i32); "f64": floats are
    float64 throughout. `loader(file, key)` reads weights. Raises UserError, at the op, for inputs that do not fit, for
    storing an element that is not defined and for positions outside a tile.
    """
    numbers = Numbers("f64" if precision == "f64" else "native")
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, tile.KernelOp)}
    return _Evaluation(numbers, kernels, loader).run(entry_function(module), inputs)


class _Evaluation:
    def __init__(self, numbers: Numbers, kernels: dict[str, tile.KernelOp], loader: Loader | None) -> None:
        self.numbers = numbers
        self.kernels = kernels
        self.loader = loader

    # --- the function ---------------------------------------------------------------------------------------------

    def run(self, func: FuncOp, inputs: Sequence[Array]) -> list[Array]:
        count = output_arguments(func)
        args = list(func.body.block.args)
        taken, given = args[: len(args) - count], args[len(args) - count :]
        if len(inputs) != len(taken):
            raise UserError(f"@{func.sym_name.data} takes {len(taken)} inputs, got {len(inputs)}", func.location)
        env: Environment = {}
        for number, (arg, value) in enumerate(zip(taken, inputs, strict=True)):
            if np.shape(value) != tile.shape_of(arg):
                shape = list(np.shape(value))
                raise UserError(f"input {number} has shape {shape}, it should be {list(tile.shape_of(arg))}")
            env[arg] = self.tensor(self.numbers.enter(np.asarray(value), tile.element_of(arg)))
        for arg in given:
            env[arg] = self.fresh(arg)
        results: Sequence[SSAValue] = given
        for op in func.body.block.ops:
            if isinstance(op, ReturnOp):
                results = results or list(op.arguments)
                break
            self.func_op(op, env)
        held = [self.held(env, value) for value in results]
        for each in held:
            if not each.storage.defined.all():
                raise UserError("a result has elements that were never stored", func.location)
        return [each.storage.data for each in held]

    def func_op(self, op: Operation, env: Environment) -> None:
        match op:
            case ConstantOp():
                env[op.res] = self.tensor(primitives.constant(self.numbers, op))
            case WeightOp():
                env[op.res] = self.tensor(primitives.weight(self.numbers, op, self.loader))
            case tile.AllocOp():
                env[op.res[0]] = self.fresh(op.res[0])
            case tile.AliasOp():
                source = self.held(env, op.args[0]).storage
                shape = tile.shape_of(op.res[0])
                # A view of the same NumPy arrays: what is written through one is read through the other.
                same = Storage(source.data.reshape(shape), source.defined.reshape(shape))
                env[op.res[0]] = Held(same, shape, shape)
            case tile.LaunchOp():
                self.launch(op, env)
            case _:
                raise UserError(f"'{op.name}' has no meaning in a function at the tile level", op.location)

    def launch(self, op: tile.LaunchOp, env: Environment) -> None:
        name = op.callee.root_reference.data
        kernel = self.kernels.get(name)
        if kernel is None:
            raise UserError(f"there is no kernel @{name}", op.location)
        given = [self.held(env, arg) for arg in op.args]
        if op.into is None:
            made = [self.fresh(result) for result in op.res]
            env.update(zip(op.res, made, strict=True))
            given += made
        if len(given) != len(kernel.body.block.args):
            raise UserError(f"@{name} takes {len(kernel.body.block.args)} tensors, got {len(given)}", op.location)
        self.block(kernel.body.block, dict(zip(kernel.body.block.args, given, strict=True)))

    # --- blocks and loops -----------------------------------------------------------------------------------------

    def block(self, block: Block, env: Environment) -> list[Held]:
        for op in block.ops:
            match op:
                case tile.YieldOp():
                    return [self.held(env, value) for value in op.args]
                case tile.ForOp():
                    self.loop(op, env)
                case tile.AllocOp():
                    env[op.res[0]] = self.fresh(op.res[0])
                case tile.TileOp():
                    try:
                        self.tile_op(op, env)
                    except IndexError as error:
                        raise UserError(f"'{op.name}' reaches outside a tile: {error}", op.location) from None
                case _:
                    raise UserError(f"'{op.name}' has no meaning in a kernel", op.location)
        return []

    def loop(self, op: tile.ForOp, env: Environment) -> None:
        low = int(cast(int, lower_bound(op.lower.data.results, [self.counter(env, v) for v in op.lower_operands])))
        high = int(cast(int, upper_bound(op.upper.data.results, [self.counter(env, v) for v in op.upper_operands])))
        carried = [self.held(env, init) for init in op.inits]
        valid = [held.valid for held in carried]
        counter, *args = op.body.block.args
        for step in range(low, high):
            env[counter] = step
            env.update(zip(args, carried, strict=True))
            carried = self.block(op.body.block, env)
            for held, wanted in zip(carried, valid, strict=True):
                if any(have < want for have, want in zip(held.valid, wanted, strict=True)):
                    raise UserError(
                        f"yielded valid extents {held.valid} are less than the initial {wanted}", op.location
                    )
            carried = [Held(h.storage, h.shape, v, h.steps, h.stated) for h, v in zip(carried, valid, strict=True)]
        env.update(zip(op.res, carried, strict=True))

    # --- ops ------------------------------------------------------------------------------------------------------

    def tile_op(self, op: tile.TileOp, env: Environment) -> None:
        counters = tuple(self.counter(env, value) for value in op.counters)
        tiles = [self.held(env, value) for value in op.tiles]
        if isinstance(op, tile.StoreOp):
            return self.store(op, tiles, counters)
        if isinstance(op, tile.SliceOp):
            shape = tile.shape_of(op.target)
            valid = self.extents(op.valid, counters, shape)
            env[op.target] = tiles[0].part(op.map.data, counters, shape, valid)
            return None
        target = self.held(env, op.target) if op.into is not None else self.fresh(op.target)
        if op.into is None:
            env[op.target] = target
        kind = tile.element_of(op.target)
        match op:
            case tile.LoadOp():
                self.load(op, tiles[0], target, counters, tiles[1] if op.gather is not None else None)
            case tile.FillOp():
                value, _ = immediate(self.numbers, op.value)
                self.put(target, self.extents(op.valid, counters, target.shape), value)
            case tile.EmptyOp():
                target.valid = self.extents(op.valid, counters, target.shape)
            case tile.IotaOp():
                region = self.extents(op.valid, counters, target.shape)
                index = np.asarray(evaluate(op.map.data.results[0], (*counters, *open_mesh(region))))
                self.put(target, region, self.numbers.enter(index, kind))
            case tile.MapOp():
                self.map(op, tiles, target, kind)
            case tile.ReduceOp():
                axes = reduced_axes(op)
                data, defined = apply_reduce(self.numbers, op, tiles[0].read(tiles[0].valid), kind)
                region = tuple(1 if d in axes else v for d, v in enumerate(tiles[0].valid))
                self.put(target, region, data, defined)
            case tile.ContractOp():
                self.contract(op, tiles, target, counters, kind)
            case tile.InsertOp():
                self.insert(op, tiles, target, counters)
            case tile.MoveOp():
                data, defined = tiles[0].read(tiles[0].valid)
                self.put(target, tiles[0].valid, apply_stage(self.numbers, op, data, kind), defined)
            case _:
                raise UserError(f"'{op.name}' has no meaning in a kernel", op.location)

    def put(self, target: Held, region: Region, data: Array, defined: Array | None = None) -> None:
        """Writes the part of [0, region) that the target states as valid."""
        mask = np.asarray(True) if defined is None else defined
        data, mask = np.broadcast_to(data, region), np.broadcast_to(mask, region)
        if target.stated:
            region = tuple(min(have, want) for have, want in zip(region, target.valid, strict=True))
            cut = tuple(slice(0, extent) for extent in region)
            data, mask = data[cut], mask[cut]
        target.write(region, data, mask)

    def load(
        self, op: tile.LoadOp, source: Held, target: Held, counters: tuple[int, ...], rows: Held | None = None
    ) -> None:
        region = self.extents(op.valid, counters, target.shape)
        mesh = open_mesh(region)
        bounds = tile.shape_of(op.tiles[0])
        inside = np.ones(region, np.bool_)
        for expr in op.inside.data.results if op.inside is not None else ():
            inside &= np.asarray(evaluate(expr, (*counters, *mesh))) >= 0
        index: list[Array] = []
        for d, (expr, bound) in enumerate(zip(op.map.data.results, bounds, strict=True)):
            where = np.asarray(evaluate(expr, (*counters, *mesh)))
            if rows is not None and op.gather is not None and op.gather.value.data == d and prod(region):
                where = self.rows(op, rows, region, bound)
            inside &= (where >= 0) & (where < bound)
            index.append(np.clip(where, 0, max(bound - 1, 0)))
        if not prod(region):
            return target.write(region, np.zeros(region, target.storage.data.dtype), inside)
        at = tuple(np.broadcast_to(where, region) for where in index)
        data, defined = source.storage.data[at], source.storage.defined[at]
        if not np.all(defined | ~inside):
            raise UserError("this load reads elements that were never stored", op.location)
        if op.fill is None:
            return target.write(region, data, inside)
        fill, _ = immediate(self.numbers, op.fill)
        return target.write(region, np.where(inside, data, fill.astype(data.dtype)), np.ones(region, np.bool_))

    def rows(self, op: tile.LoadOp, indices: Held, region: Region, bound: int) -> Array:
        """The indices of a region. Raises UserError for one that is no row's."""
        part = tuple(min(have, 1 if n == 1 else want) for have, n, want in zip(
            indices.valid, indices.shape, region, strict=True))  # fmt: skip
        data, defined = indices.read(part)
        if not defined.all():
            raise UserError("this load gathers by indices that are not defined", op.location)
        if any(have < want != 1 and n > 1 for have, want, n in zip(part, region, indices.shape, strict=True)):
            raise UserError("this load gathers more rows than there are valid indices", op.location)
        if (data < 0).any() or (data >= bound).any():
            wrong = int(data[(data < 0) | (data >= bound)][0])
            raise UserError(f"index {wrong} is none of the {bound} rows that this load gathers from", op.location)
        return data.astype(np.int64)

    def store(self, op: tile.StoreOp, tiles: Sequence[Held], counters: tuple[int, ...]) -> None:
        source, destination = tiles
        stated = self.extents(op.valid, counters, source.shape)
        region = tuple(min(have, want) for have, want in zip(source.valid, stated, strict=True))
        if not prod(stated):
            return
        data, defined = source.read(region)
        if region != stated or not defined.all():
            raise UserError(f"this store writes elements that are not defined (valid {list(source.valid)}, "
                            f"stored {list(stated)})", op.location)  # fmt: skip
        mesh = open_mesh(region)
        index: list[Array] = []
        for expr, bound in zip(op.map.data.results, tile.shape_of(op.destination), strict=True):
            where = np.asarray(evaluate(expr, (*counters, *mesh)))
            if where.min() < 0 or where.max() >= bound:
                raise IndexError(f"index {int(where.max())} of {bound}")
            index.append(np.broadcast_to(where, region))
        kind = tile.element_of(op.destination)
        value = self.numbers.lower(data, kind) if self.numbers.precision == "f64" else self.numbers.enter(data, kind)
        destination.storage.data[tuple(index)] = value if index else value.reshape(())
        destination.storage.defined[tuple(index)] = True

    def map(self, op: tile.MapOp, tiles: Sequence[Held], target: Held, kind: Attribute) -> None:
        region = list(target.shape)
        for held in tiles:
            for d, (extent, valid) in enumerate(zip(held.shape, held.valid, strict=True)):
                if extent != 1 or target.shape[d] == 1:
                    region[d] = min(region[d], valid)
        parts = [h.read(tuple(min(v, r) for v, r in zip(h.valid, region, strict=True))) for h in tiles]
        data, defined = apply_map(self.numbers, op, parts, kind)
        self.put(target, tuple(region), data, defined)

    def contract(
        self, op: tile.ContractOp, tiles: Sequence[Held], target: Held, counters: tuple[int, ...], kind: Attribute
    ) -> None:
        letters = op.letters()
        before = target if op.into is not None else tiles[2] if op.accumulate is not None else None
        extents: dict[str, int] = {}
        known = [*zip(letters[:2], tiles[:2], strict=True), *([(letters[2], before)] if before is not None else [])]
        for names, held in known:
            for name, valid in zip(names, held.valid, strict=True):
                extents[name] = min(valid, extents.get(name, valid))
        left, right, out = (tuple(extents[name] for name in names) for names in letters)
        starts = op.init is not None and all(evaluate(e, counters) == 0 for e in op.init.data.results)
        carries = op.accumulate is not None and not starts
        previous = before.read(out) if carries and before is not None else None
        data, defined = apply_contract(self.numbers, op, tiles[0].read(left), tiles[1].read(right), previous, kind)
        self.put(target, out, data, defined)

    def insert(self, op: tile.InsertOp, tiles: Sequence[Held], target: Held, counters: tuple[int, ...]) -> None:
        part, whole = tiles
        data, defined = whole.read(whole.shape) if not whole.steps else whole.read(whole.valid)
        region = data.shape
        target.write(region, data, defined)
        target.valid = whole.valid
        place = target.part(op.map.data, counters, part.shape, part.valid)
        place.write(part.valid, *part.read(part.valid))

    # --- values ---------------------------------------------------------------------------------------------------

    def tensor(self, data: Array) -> Held:
        return Held(Storage.of(data), data.shape, data.shape)

    def fresh(self, value: SSAValue) -> Held:
        shape = tile.shape_of(value)
        return Held(Storage.poison(shape, self.numbers.held(element(tile.element_of(value)))), shape, shape)

    def extents(self, attr: AffineMapAttr, counters: tuple[int, ...], shape: Sequence[int]) -> Region:
        return clamp([evaluate(expr, counters) for expr in attr.data.results], shape)

    @staticmethod
    def held(env: Environment, value: SSAValue) -> Held:
        held = env[value]
        assert isinstance(held, Held), f"{value} is a counter"
        return held

    @staticmethod
    def counter(env: Environment, value: SSAValue) -> int:
        held = env[value]
        assert isinstance(held, int), f"{value} is not a counter"
        return held
