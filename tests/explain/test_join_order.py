"""The orders and costs of the Windows document, 5.3, out of `headgate explain --stats`."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli_runner import headgate
from tests.explain.plans import nodes_of

from headgate.optimize.join_order import (
    EXHAUSTIVE_UP_TO,
    JoinInput,
    by_selectivity,
    choose_order,
    heuristic_orders,
    join_size,
    order_cost,
)

EXAMPLES = Path(__file__).parents[2] / "examples"

TABLE_5_3 = tuple(
    JoinInput(f"S{index + 1}", rate, rate * length, (distinct,))
    for index, (rate, length, distinct) in enumerate(
        [(10.0, 100, 500.0), (1.0, 100, 50.0), (1.0, 200, 40.0), (3.0, 100, 5.0)]
    )
)


def join_of(table: str) -> dict[str, Any]:
    file, stats = EXAMPLES / f"join_order_{table}.cql", EXAMPLES / f"join_order_{table}.yaml"
    done = headgate("explain", str(file), "--stats", str(stats), "--format", "json")
    assert done.code == 0
    (query,) = json.loads(done.out)["queries"]
    (join,) = nodes_of(query["plan"], "join")
    return dict(join["detail"])


def cost_of(join: dict[str, Any], order: str) -> float:
    (cost,) = [each["cost"] for each in join["orders"] if "".join(each["order"]) == order]
    return float(cost)


def test_table_5_3() -> None:
    join = join_of("5_3")
    assert join["order"] == ["S1", "S2", "S3", "S4"]
    assert join["cost"] == 16000
    assert join["worst"] == 86850


def test_table_5_5() -> None:
    join = join_of("5_5")
    assert (join["order"], join["cost"]) == (["S2", "S1", "S3", "S4"], 16200)
    assert cost_of(join, "S2S3S4S1") == 42600
    assert cost_of(join, "S1S2S3S4") == 21000
    assert join["worst"] == 135150


def test_table_5_6() -> None:
    join = join_of("5_6")
    assert join["order"] == ["S3", "S1", "S4", "S2"]
    assert join["cost"] == pytest.approx(47977, abs=0.5)
    assert cost_of(join, "S3S4S1S2") == pytest.approx(49542, abs=0.5)
    assert cost_of(join, "S3S1S2S4") == pytest.approx(51954, abs=0.5)
    assert cost_of(join, "S1S2S3S4") == 68200
    assert cost_of(join, "S2S1S3S4") == 79000
    assert join["average"] == pytest.approx(63362, abs=0.5)


def test_sizes_of_intermediate_results_in_table_5_4() -> None:
    pairs = [join_size(TABLE_5_3, pair) for pair in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))]
    assert pairs == [200, 400, 600, 400, 600, 1500]
    assert join_size(TABLE_5_3, (0, 1, 2)) == 800
    assert join_size(TABLE_5_3, (0, 1, 3)) == 1200


def test_the_initial_heuristic_takes_the_most_selective_pair_first() -> None:
    assert by_selectivity(TABLE_5_3) == (0, 1, 2, 3)


inputs = st.lists(
    st.tuples(st.integers(1, 50), st.integers(1, 500), st.integers(1, 1000)), min_size=2, max_size=5
).map(
    lambda rows: tuple(
        JoinInput(f"S{i}", float(rate), float(rate * length), (float(distinct),))
        for i, (rate, length, distinct) in enumerate(rows)
    )
)


@given(inputs)
def test_no_order_is_cheaper_than_the_chosen_one_and_the_heuristic_is_never_better(
    streams: tuple[JoinInput, ...],
) -> None:
    choice = choose_order(streams)
    everything = [order_cost(streams, order) for order in permutations(range(len(streams)))]
    assert choice.best.cost == min(everything)
    assert min(each.cost for each in choice.considered) >= choice.best.cost


def test_a_ten_way_join_looks_at_few_orders() -> None:
    streams = tuple(JoinInput(f"S{i}", float(1 + i % 3), 100.0 + i, (50.0 + i,)) for i in range(10))
    choice = choose_order(streams)
    assert len(streams) > EXHAUSTIVE_UP_TO
    assert not choice.all
    assert len(heuristic_orders(streams)) <= 10**3
