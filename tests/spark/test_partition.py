"""By which columns rows are cut into shards, and when they cannot be."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.local import output_of
from tests.spark.shards import Cluster, stage_of

STREAMS = """
CREATE STREAM a (ts TIMESTAMP, x BIGINT, y BIGINT) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, y BIGINT, z BIGINT) TIMESTAMP BY ts;
CREATE STREAM c (ts TIMESTAMP, z BIGINT, x BIGINT) TIMESTAMP BY ts;
CREATE TABLE t (x BIGINT, name STRING);
CREATE QUERY q AS
"""
TABLES = {"t": pa.table({"x": [1, 2], "name": ["one", "two"]})}
A, B, C = "a [RANGE 4 SECONDS]", "b [RANGE 4 SECONDS]", "c [RANGE 4 SECONDS]"
CHAIN = f"SELECT a.x, a.y, b.z FROM {A}, {B}, {C} WHERE a.y = b.y AND b.z = c.z"


@pytest.mark.parametrize(
    ("query", "routes"),
    [
        (f"SELECT a.x, b.z, a.y FROM {A}, {B} WHERE a.y = b.y", {"a": (("y",),), "b": (("y",),)}),
        (f"SELECT y, COUNT(*) AS n FROM {A} GROUP BY y", {"a": (("y",),)}),
        (f"SELECT y, x, COUNT(*) AS n FROM {A} GROUP BY y, x", {"a": (("x", "y"),)}),
        (f"SELECT a.y, t.name FROM {A}, t WHERE a.x = t.x", {"a": (("y",),)}),
        ("SELECT x, y FROM a [PARTITION BY y ROWS 3]", {"a": (("y",),)}),
        (f"SELECT y, x FROM {A} UNION ALL SELECT x, 1 FROM {C}", {"a": (("y",),), "c": (("x",),)}),
        (f"SELECT ISTREAM(DISTINCT x) FROM {A}", {"a": (("x",),)}),
        (f"SELECT x FROM {A} WHERE NOT EXISTS (SELECT 1 FROM {C} WHERE c.x = a.x)", {"a": (("x",),), "c": (("x",),)}),
    ],
)  # fmt: skip
def test_rows_that_meet_agree_on_the_columns(
    query: str, routes: dict[str, tuple[tuple[str, ...], ...]]
) -> None:
    stage = stage_of(STREAMS + query, "q", TABLES, shards=4)
    assert {feed.name: feed.columns for feed in stage.feeds} == routes
    assert stage.shares == (4,)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT COUNT(*) AS n FROM {A}",
        "SELECT x, y FROM a [ROWS 3]",
        f"SELECT RSTREAM(x, y) FROM {A}",
        "SELECT COUNT(*) AS n FROM a [ROWS 5]",
        "SELECT DISTINCT x FROM a [ROWS 5]",
    ],
)
def test_one_shard_where_nothing_tells_rows_apart(query: str) -> None:
    stage = stage_of(STREAMS + query, "q", TABLES, shards=4)
    assert (stage.shards, stage.onward) == (1, None)


def test_a_join_on_different_attributes_has_a_hypercube() -> None:
    stage = stage_of(STREAMS + CHAIN, "q", TABLES, shards=6)
    assert sorted(stage.shares) == [2, 3]
    assert {feed.name: [bool(columns) for columns in feed.columns] for feed in stage.feeds} == {
        "a": [True, False],
        "b": [True, True],
        "c": [False, True],
    }


@pytest.mark.parametrize(
    ("statistics", "shares"),
    [
        ("{a: {rate: 100}, b: {rate: 100}, c: {rate: 100}}", (4, 4)),
        ("{a: {rate: 10000}, b: {rate: 100}, c: {rate: 1}}", (16, 1)),  # c is copied, a never
        ("{a: {rate: 1}, b: {rate: 100}, c: {rate: 10000}}", (1, 16)),
        ("{a: {rate: 1000}, b: {rate: 1000}, c: {rate: 10}}", (16, 1)),
        # y has three values: rows could not tell more places apart
        ("{a: {rate: 1000, distinct: {y: 3}}, b: {rate: 1000, distinct: {y: 3}}, c: {rate: 10}}", (3, 5)),
    ],
)
def test_shares_follow_from_rates_and_values(statistics: str, shares: tuple[int, ...]) -> None:
    stage = stage_of(STREAMS + CHAIN, "q", TABLES, shards=16, statistics=f"streams: {statistics}")
    assert stage.shares == shares


def test_slow_streams_are_not_worth_an_exchange() -> None:
    query = f"SELECT ISTREAM(DISTINCT a.x) FROM {A}, {B} WHERE a.y = b.y"
    chains = [
        stage_of(
            STREAMS + query,
            "q",
            TABLES,
            shards=4,
            statistics=f"streams: {{a: {{rate: {r}}}, b: {{rate: {r}}}}}",
        ).chain
        for r in (10, 500_000)
    ]
    assert [[stage.shards for stage in chain] for chain in chains] == [[1], [4, 4]]


def test_a_hypercube_finds_every_result_once() -> None:
    random = np.random.default_rng(3)
    inputs = {}
    for name, columns in (("a", "xy"), ("b", "yz"), ("c", "zx")):
        instants = np.sort(random.integers(0, 20_000_000, 120))
        data = {column: random.integers(0, 5, 120) for column in columns}
        inputs[name] = pa.table({"ts": pa.array(instants, pa.timestamp("us", tz="UTC")), **data})
    expected = output_of(STREAMS + CHAIN, "q", [inputs], TABLES)
    for shards in (1, 4, 6):
        cluster = Cluster(stage_of(STREAMS + CHAIN, "q", TABLES, shards=shards))
        for start in range(0, 120, 50):
            cluster.batch({name: [table.slice(start, 50)] for name, table in inputs.items()})
        cluster.end()
        assert cluster.changes() == expected
        assert len(expected) > 500


def test_a_copied_late_row_is_counted_once() -> None:
    late = pa.table({"ts": pa.array([9_000_000, 1], pa.timestamp("us", tz="UTC")), "x": [1, 1], "y": [2, 2]})
    cluster = Cluster(stage_of(STREAMS + CHAIN, "q", TABLES, shards=4))
    cluster.batch({"a": [late.slice(0, 1)]})
    cluster.batch({"a": [late.slice(1, 1)]})
    assert cluster.late == {"a": 1}
