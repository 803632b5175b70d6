"""Loop placement (semantics 6.1): what is computed where, how often a stream axis is walked."""

from __future__ import annotations

import pytest
from lowering_cases import BOTH_WAYS, MATMUL, SOFTMAX, group_of
from tilewright.dialects.errors import UserError
from tilewright.dialects.schedule import Schedule
from tilewright.lowering.nest import Item, Loop, Nest
from tilewright.lowering.nest_build import build_nest, place_nest


def schedule(
    extents: tuple[int, ...], tiles: tuple[int, ...], order: str, strategy: str, hold: tuple[str, ...], **kw: object
) -> Schedule:
    axes = "abcdefgh"[: len(extents)]
    return Schedule(axes, extents, tiles, order, strategy, hold=hold, slots=(1,) * len(hold)).with_(**kw)


def outline(nest: Nest, items: list[Item] | None = None) -> str:
    """Loops as `axis[…]`, everything else by the first letter of its kind."""
    names = nest.group.names
    parts: list[str] = []
    for item in nest.items if items is None else items:
        if isinstance(item, Loop):
            parts.append(f"{names[item.axis]}[{outline(nest, item.body)}]")
        else:
            node = getattr(item, "node", None)
            parts.append(type(item).__name__[0] + (node.kind[0] if node is not None else ""))
    return " ".join(parts)


def test_resident_rows_are_read_once() -> None:
    nest = build_nest(group_of(SOFTMAX), schedule((24, 40), (8, 40), "a", "resident", ("a",)))
    assert outline(nest) == "a[Ll Cr Cm Cm Cr Cm S]" and nest.strategy == "resident"


def test_streamed_rows_take_a_pass_per_reduction() -> None:
    nest = build_nest(group_of(SOFTMAX), schedule((24, 40), (8, 16), "ab", "multipass", ("ab",)))
    assert outline(nest) == "a[b[Ll Ar] b[Ll Cm Cm Ar] b[Ll Cm Cm Cm S]]"
    assert nest.passes == 2  # and a walk that stores


def test_held_rows_are_loaded_once_and_sliced_in_each_pass() -> None:
    nest = build_nest(group_of(SOFTMAX), schedule((24, 40), (8, 16), "ab", "multipass", ("a",)))
    assert outline(nest) == "a[Ll b[Sl Ar] b[Sl Cm Cm Ar] b[Sl Cm Cm Cm S]]"


def test_a_product_walks_k_once_with_its_accumulator() -> None:
    group = group_of(MATMUL)
    assert [a.extent for a in group.axes] == [40, 50, 70]
    nest = build_nest(group, schedule((40, 50, 70), (16, 16, 32), "abc", "online", ("ac", "bc", "b")))
    assert outline(nest) == "a[b[c[Ll Ll Ac] Ll Cm Cm S]]"


def test_loads_that_do_not_vary_are_hoisted() -> None:
    nest = build_nest(group_of(MATMUL), schedule((40, 50, 70), (16, 16, 70), "ab", "resident", ("a", "b", "b")))
    assert outline(nest) == "a[Ll b[Ll Cc Ll Cm Cm S]]"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": "resident"}, "these tiles make it 'multipass'"),
        ({"strategy": "recompute"}, "these tiles make it 'multipass'"),
        ({"strategy": "magic"}, "strategy is one of"),
        ({"tiles": (8, 41)}, "between 1 and its extent 40"),
        ({"tiles": (8, 0)}, "between 1 and its extent 40"),
        ({"extents": (24, 41)}, "the group has a:24, b:40"),
        ({"order": "a"}, "must list the looped axes 'ab'"),
        ({"order": "aa"}, "must list the looped axes 'ab'"),
        ({"hold": ("c",)}, "not looped over"),
        ({"hold": ()}, "an entry for each of 1 loads"),
        ({"slots": (0,)}, "at least 1"),
        ({"inner": (8, 5)}, "must divide its tile"),
        ({"pins": (1,)}, "pins tiles of load 0, which no outer loop repeats"),
        ({"skew": (1, -1)}, "skew is how many iterations each stage runs ahead, at least 0"),
        ({"sums": "cube"}, "'sums' is one of vector, matrix, got 'cube'"),
        ({"cores": (2,)}, "'cores' has an entry for each of 2 axes"),
    ],
)
def test_schedules_that_do_not_fit_are_rejected(changes: dict[str, object], message: str) -> None:
    good = schedule((24, 40), (8, 16), "ab", "multipass", ("ab",))
    with pytest.raises(UserError, match=message):
        build_nest(group_of(SOFTMAX), good.with_(**changes))


def test_the_attribute_carries_the_schedule() -> None:
    made = schedule((24, 40), (8, 16), "ab", "multipass", ("ab",), inner=(8, 8), move_slots=2)
    assert Schedule.from_attr(made.to_attr()) == made


def test_place_does_not_judge_the_strategy() -> None:
    given = schedule((24, 40), (8, 16), "ab", "resident", ("ab",))
    assert place_nest(group_of(SOFTMAX), given).strategy == "multipass"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_reduction_inside_its_own_loop_is_rejected(order: str) -> None:
    """Rows reduce over b inside a, columns over a inside b: with both looped over, one of them has no place."""
    given = schedule((24, 40), (8, 16), order, "multipass", ("ab",))
    with pytest.raises(UserError, match="is needed inside the loop over it"):
        place_nest(group_of(BOTH_WAYS), given)


def test_one_whole_axis_gives_both_reductions_a_place() -> None:
    nest = place_nest(group_of(BOTH_WAYS), schedule((24, 40), (24, 16), "b", "multipass", ("b",)))
    assert outline(nest) == "b[Ll Ar] b[Ll Cm Cr Cm S]"
