"""Join orders and their costs: the check values of the Windows document (5.3), the heuristic against all orders."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli_runner import headgate

from headgate.optimize.join_order import (
    EXHAUSTIVE_UP_TO,
    MOST_ORDERS,
    JoinInput,
    by_selectivity,
    choose_order,
    fast_inputs,
    heuristic_orders,
    join_size,
    order_cost,
)

EXAMPLES = Path(__file__).parents[2] / "examples"


def stream(name: str, rate: float, window: float, distinct: float) -> JoinInput:
    return JoinInput(name, rate, rate * window, (distinct,))


TABLE_5_3 = (
    stream("S1", 10, 100, 500),
    stream("S2", 1, 100, 50),
    stream("S3", 1, 200, 40),
    stream("S4", 3, 100, 5),
)
TABLE_5_5 = (
    stream("S1", 10, 100, 40),
    stream("S2", 1, 100, 100),
    stream("S3", 1, 100, 8),
    stream("S4", 1, 100, 5),
)
TABLE_5_6 = (
    stream("S1", 11, 100, 200),
    stream("S2", 10, 100, 100),
    stream("S3", 1, 100, 65),
    stream("S4", 1, 100, 20),
)


# -- the functions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "size"),
    [
        ("12", 200),
        ("13", 400),
        ("14", 600),
        ("23", 400),
        ("24", 600),
        ("34", 1500),
        ("123", 800),
        ("124", 1200),
    ],
)
def test_sizes_of_intermediate_results(members: str, size: float) -> None:
    """Table 5.4: φ of every pair and of two triples."""
    assert join_size(TABLE_5_3, [int(each) - 1 for each in members]) == pytest.approx(size)


@pytest.mark.parametrize(("new", "cost"), [(0, 3800), (1, 3800), (2, 2400), (3, 6000)])
def test_cost_of_the_arrivals_on_one_stream(new: int, cost: float) -> None:
    """X1 to X4: only the stream with a rate contributes."""
    only = [
        JoinInput(each.name, each.rate * (i == new), each.rows, each.distinct)
        for i, each in enumerate(TABLE_5_3)
    ]
    assert order_cost(only, (0, 1, 2, 3)) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("table", "order", "cost"),
    [
        (TABLE_5_3, "1234", 16000),
        (TABLE_5_5, "2134", 16200),
        (TABLE_5_5, "2341", 42600),
        (TABLE_5_5, "1234", 21000),
        (TABLE_5_6, "3412", 49542),
        (TABLE_5_6, "3142", 47977),
        (TABLE_5_6, "3124", 51954),
        (TABLE_5_6, "1234", 68200),
        (TABLE_5_6, "2134", 79000),
    ],
)
def test_cost_of_an_order(table: tuple[JoinInput, ...], order: str, cost: float) -> None:
    assert round(order_cost(table, [int(each) - 1 for each in order])) == cost


@pytest.mark.parametrize(
    ("table", "best", "worst"),
    [(TABLE_5_3, 16000, 86850), (TABLE_5_5, 16200, 135150), (TABLE_5_6, 47977, 79000)],
)
def test_best_and_worst_of_all_orders(table: tuple[JoinInput, ...], best: float, worst: float) -> None:
    costs = [order_cost(table, order) for order in permutations(range(4))]
    assert round(min(costs)) == best
    assert round(max(costs)) == worst


def test_average_of_all_orders_of_table_5_6() -> None:
    average = choose_order(TABLE_5_6).average
    assert average is not None
    assert round(average) == 63362


def test_the_initial_heuristic() -> None:
    assert by_selectivity(TABLE_5_3) == (0, 1, 2, 3)
    assert by_selectivity(TABLE_5_5) == (1, 2, 3, 0)
    assert by_selectivity(TABLE_5_6) == (2, 3, 0, 1)


def test_fast_streams_are_moved_up() -> None:
    assert fast_inputs(TABLE_5_5) == [0]
    assert heuristic_orders(TABLE_5_5) == [(1, 2, 3, 0), (0, 1, 2, 3), (1, 0, 2, 3), (1, 2, 0, 3)]
    assert fast_inputs(TABLE_5_6) == [0, 1]
    assert {(2, 3, 0, 1), (2, 0, 3, 1), (2, 0, 1, 3)} <= set(heuristic_orders(TABLE_5_6))


def test_the_heuristic_finds_the_best_of_the_tables() -> None:
    for table in (TABLE_5_3, TABLE_5_5, TABLE_5_6):
        considered = min(order_cost(table, order) for order in heuristic_orders(table))
        assert considered == pytest.approx(choose_order(table).best.cost)


INPUTS = st.lists(
    st.builds(
        lambda rate, window, distinct: stream("x", rate, window, distinct),
        st.floats(0.1, 100),
        st.floats(1, 1000),
        st.integers(1, 1000).map(float),
    ),
    min_size=2,
    max_size=5,
)


@given(INPUTS)
def test_the_heuristic_is_never_better_than_all_orders(inputs: list[JoinInput]) -> None:
    choice = choose_order(inputs)
    assert choice.best.cost == min(each.cost for each in choice.all)
    assert all(each.cost >= choice.best.cost for each in choice.considered)
    assert {each.order for each in choice.considered} <= {each.order for each in choice.all}


@given(INPUTS)
def test_the_size_of_a_join_does_not_depend_on_the_order(inputs: list[JoinInput]) -> None:
    members = range(len(inputs))
    assert join_size(inputs, members) == pytest.approx(join_size(inputs, reversed(members)))


def test_many_inputs_are_ordered_by_the_heuristic_and_few_orders() -> None:
    for count in (EXHAUSTIVE_UP_TO + 1, 10, 30, 100):
        inputs = [stream(f"S{i}", 1 + i % 7, 10, 10 + i) for i in range(count)]
        choice = choose_order(inputs)
        assert choice.all == ()
        assert 1 <= len(choice.considered) <= MOST_ORDERS
        assert sorted(choice.best.order) == list(range(count))


def test_absurd_statistics_give_finite_costs() -> None:
    inputs = [JoinInput("x", 1e15, 1e30, (1.0,)) for _ in range(12)]
    assert order_cost(inputs, range(12)) < float("inf")


# -- the command ----------------------------------------------------------------------------------


def join_of(table: str, *options: str) -> dict[str, Any]:
    """The join node that `explain` gives for one of the tables."""
    file = EXAMPLES / f"join_order_{table}.cql"
    outcome = headgate("explain", file, "--stats", file.with_suffix(".yaml"), "--format", "json", *options)
    assert outcome.code == 0
    (query,) = json.loads(outcome.out)["queries"]
    node = query["plan"]
    while node["op"] != "join":
        (node,) = node["inputs"]
    found: dict[str, Any] = node
    return found


@pytest.mark.parametrize(
    ("table", "order", "cost", "worst"),
    [
        ("5_3", ["S1", "S2", "S3", "S4"], 16000, 86850),
        ("5_5", ["S2", "S1", "S3", "S4"], 16200, 135150),
        ("5_6", ["S3", "S1", "S4", "S2"], 47977, 79000),
    ],
)
def test_explain_with_the_statistics_of_a_table(table: str, order: list[str], cost: int, worst: int) -> None:
    node = join_of(table)
    assert node["detail"]["order"] == order
    assert round(node["detail"]["cost"]) == cost
    assert round(node["detail"]["worst"]) == worst
    assert node["detail"]["exhaustive"]
    assert node["pattern"] == "WK"
    assert len(node["inputs"]) == 4


@pytest.mark.parametrize(
    ("table", "order", "cost"),
    [
        ("5_5", "S2 S3 S4 S1", 42600),
        ("5_5", "S1 S2 S3 S4", 21000),
        ("5_6", "S3 S4 S1 S2", 49542),
        ("5_6", "S3 S1 S2 S4", 51954),
        ("5_6", "S1 S2 S3 S4", 68200),
        ("5_6", "S2 S1 S3 S4", 79000),
    ],
)
def test_explain_lists_the_cost_of_every_order(table: str, order: str, cost: int) -> None:
    costs = {" ".join(each["order"]): each["cost"] for each in join_of(table)["detail"]["orders"]}
    assert len(costs) == 24
    assert round(costs[order]) == cost


def test_explain_gives_the_average_of_table_5_6() -> None:
    assert round(join_of("5_6")["detail"]["average"]) == 63362
