"""Trees of joins: which are safe, and which safe one is cheapest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.safety.punctuation_queries import TRIANGLE, join, random_joins

from headgate.safety.theory.punctuation.graph import is_safe, purge
from headgate.safety.theory.punctuation.plans import (
    Inputs,
    Join,
    Leaf,
    Plan,
    cheapest_plan,
    operator_query,
    safe_plans,
    unsafe_joins,
)
from headgate.safety.theory.punctuation.query import JoinQuery

S1, S2, S3 = Leaf("S1"), Leaf("S2"), Leaf("S3")


def every_tree(streams: tuple[str, ...]) -> Iterator[Plan]:
    """All trees over some streams, without asking whether they are safe."""
    if len(streams) == 1:
        yield Leaf(streams[0])
        return
    for blocks in partitions(streams):
        if len(blocks) > 1:
            choices: list[tuple[Plan, ...]] = [()]
            for block in blocks:
                choices = [(*chosen, tree) for chosen in choices for tree in every_tree(block)]
            yield from (Join(chosen) for chosen in choices)


def partitions(items: tuple[str, ...]) -> Iterator[list[tuple[str, ...]]]:
    if not items:
        yield []
        return
    for blocks in partitions(items[1:]):
        yield [(items[0],), *blocks]
        for place, block in enumerate(blocks):
            yield [*blocks[:place], (items[0], *block), *blocks[place + 1 :]]


def test_no_tree_of_binary_joins_is_safe_for_the_triangle() -> None:
    triangle = join(TRIANGLE, "S1(B), S2(C), S3(A)")
    assert list(safe_plans(triangle, max_inputs=2)) == []
    assert list(safe_plans(triangle)) == [Join((S1, S2, S3))]
    assert cheapest_plan(triangle, lambda inputs: 1.0, max_inputs=2) is None


def test_an_unsafe_join_says_which_input_is_stuck() -> None:
    triangle = join(TRIANGLE, "S1(B), S2(C), S3(A)")
    (lower,) = unsafe_joins(triangle, Join((Join((S1, S2)), S3)))
    assert str(lower.join) == "(S1 ⋈ S2)"
    assert [stuck.stream for stuck in lower.stuck] == ["S1"]


def test_an_operator_sees_only_what_joins_its_inputs() -> None:
    triangle = join(TRIANGLE, "S1(B), S2(C), S3(A)")
    seen = operator_query(triangle, (frozenset({"S1", "S2"}), frozenset({"S3"})))
    assert seen.streams == ("S1⋈S2", "S3")
    assert set(map(str, seen.predicates)) == {"S1⋈S2.S2.C = S3.S3.C", "S3.S3.A = S1⋈S2.S1.A"}


def test_a_scheme_whose_values_come_from_its_own_side_does_not_help() -> None:
    # S1 knows A but not C, which joins S2 and S3 below.
    triangle = join(TRIANGLE, "S3(A C)")
    seen = operator_query(triangle, (frozenset({"S1"}), frozenset({"S2", "S3"})))
    assert not purge(seen, "S1").possible


def test_the_cheapest_plan_follows_the_cost() -> None:
    star = join("S1.a=S2.a, S1.b=S3.b", "S1(a), S1(b), S2(a), S3(b)")
    expensive_together: dict[frozenset[str], float] = {
        frozenset({"S1", "S2"}): 10.0,
        frozenset({"S1", "S3"}): 1.0,
    }

    def cost(inputs: Inputs) -> float:
        streams = frozenset().union(*inputs)
        return expensive_together.get(streams, 5.0 if len(inputs) == 2 else 100.0)

    best = cheapest_plan(star, cost)
    assert best is not None
    assert str(best.plan) == "((S1 ⋈ S3) ⋈ S2)"
    assert best.cost == 6.0
    flat = cheapest_plan(star, lambda inputs: 1.0)
    assert flat is not None
    assert str(flat.plan) == "(S1 ⋈ S2 ⋈ S3)"


def test_a_join_has_inputs_of_its_own() -> None:
    with pytest.raises(ValueError, match="twice"):
        Join((S1, Join((S1, S2))))


@given(query=random_joins())
def test_the_join_of_all_streams_is_the_query_itself(query: JoinQuery) -> None:
    inputs = tuple(frozenset((stream,)) for stream in query.streams)
    assert is_safe(operator_query(query, inputs)) == is_safe(query)


@settings(max_examples=60)
@given(query=random_joins())
def test_blocks_find_every_safe_tree(query: JoinQuery) -> None:
    expected = {canonical(tree) for tree in every_tree(query.streams) if not unsafe_joins(query, tree)}
    found = [canonical(tree) for tree in safe_plans(query)]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert bool(expected) == is_safe(query)


@settings(max_examples=60)
@given(query=random_joins(), weights=st.lists(st.integers(1, 9), min_size=16, max_size=16))
def test_the_cheapest_plan_is_the_cheapest_of_all(query: JoinQuery, weights: list[int]) -> None:
    def cost(inputs: Inputs) -> float:
        return float(sum(weights[hash_of(block) % 16] for block in inputs)) + 3.0 * len(inputs)

    best = cheapest_plan(query, cost)
    costs = [total(tree, cost) for tree in safe_plans(query)]
    assert (best is None) == (not costs)
    if best is not None:
        assert best.cost == min(costs) == total(best.plan, cost)


def canonical(plan: Plan) -> str:
    if isinstance(plan, Leaf):
        return plan.stream
    return f"({' '.join(sorted(map(canonical, plan.inputs)))})"


def hash_of(block: frozenset[str]) -> int:
    return sum(2 ** int(stream[1:]) for stream in block)


def total(plan: Plan, cost: object) -> float:
    if isinstance(plan, Leaf):
        return 0.0
    assert callable(cost)
    own: float = cost(tuple(child.streams for child in plan.inputs))
    return own + sum(total(child, cost) for child in plan.inputs)
