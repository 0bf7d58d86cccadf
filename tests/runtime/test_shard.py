"""What a shard says besides its answer: late rows and counts, each once, however many feeds and shards there are."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.shards import Cluster, stage_of

from headgate.model.time import SECOND
from headgate.runtime.lateness import Arrivals
from headgate.runtime.spark import store
from headgate.runtime.spark.pack import NOW
from headgate.runtime.stage import ClockOptions

STREAM = "CREATE STREAM s (ts TIMESTAMP, a BIGINT, c BIGINT, CHECK (a BETWEEN 0 AND 9)) TIMESTAMP BY ts;"
TABLE = "CREATE TABLE t (a BIGINT, name STRING);"


def arrived(*rows: tuple[int, int, int], now: int | None = None) -> pa.Table:
    """Rows of s, at these seconds."""
    columns = list(zip(*rows, strict=True))
    instants = pa.timestamp("us", tz="UTC")
    table = pa.table(
        {
            "ts": pa.array([second * SECOND for second in columns[0]], instants),
            "a": pa.array(columns[1], pa.int64()),
            "c": pa.array(columns[2], pa.int64()),
        }
    )
    if now is None:
        return table
    return table.append_column(NOW, pa.array([now * SECOND] * len(rows), instants))


def metrics(cluster: Cluster) -> list[dict[str, Any]]:
    """What each shard of the first stage has counted."""
    facts = [each.facts() for each in cluster.stores[0]]
    return [json.loads(each)["queries"]["0"]["metrics"] for each in facts if each is not None]


@pytest.mark.parametrize("shards", [1, 3])
def test_streams_may_end_before_they_have_rows(shards: int) -> None:
    query = "SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS]"
    cluster = Cluster(stage_of(f"{STREAM} CREATE QUERY q AS {query};", "q", {}, shards=shards))
    cluster.end()
    assert cluster.changes() == []


@pytest.mark.parametrize("shards", [1, 3])
def test_a_row_that_breaks_a_promise_is_late_once_though_two_feeds_bring_it(shards: int) -> None:
    query = "SELECT x.a FROM (SELECT DISTINCT a FROM s) x, s [RANGE 1 MINUTE] y WHERE x.a = y.c"
    cluster = Cluster(stage_of(f"{STREAM} CREATE QUERY q AS {query};", "q", {}, shards=shards))
    assert len(cluster.stage.feeds) == min(2, shards)
    cluster.batch({"s": [arrived((1, 1, 11), (2, 2, 12), (3, 30, 13), (4, 4, 14))]})
    cluster.end()
    assert cluster.late == {"s": 1}
    assert sum(each["late_rows"] for each in metrics(cluster)) == 1


@pytest.mark.parametrize("shards", [1, 3])
def test_rows_are_counted_once_for_each_time_that_the_query_reads_them(shards: int) -> None:
    query = "SELECT x.a, t.name FROM s [RANGE 2 SECONDS] x, s [RANGE 9 SECONDS] y, t WHERE x.a = y.a AND y.a = t.a"
    names = pa.table({"a": pa.array([1, 2], pa.int64()), "name": ["one", "two"]})
    cluster = Cluster(
        stage_of(f"{STREAM} {TABLE} CREATE QUERY q AS {query};", "q", {"t": names}, shards=shards)
    )
    cluster.batch({"s": [arrived((1, 1, 11), (2, 2, 12), (3, 3, 13))]})
    cluster.end()
    assert sum(each["rows_in"] for each in metrics(cluster)) == 2 * 3 + 2


def test_rows_from_the_future_are_not_counted_as_late() -> None:
    query = "SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS]"
    clock = ClockOptions(ordered=True, future_us=60 * SECOND)
    cluster = Cluster(stage_of(f"{STREAM} CREATE QUERY q AS {query};", "q", {}, shards=1, clock=clock))
    cluster.batch({"s": [arrived((10, 1, 11), (2, 2, 12), (900, 3, 13), now=20)]})
    (found,) = metrics(cluster)
    assert (found["late_rows"], found["future_rows"]) == (1, 1)
    assert found["streams"]["s"]["late_rows"] == 1


def test_a_silent_stream_holds_the_clock_until_its_time_is_up() -> None:
    other = STREAM.replace("STREAM s", "STREAM r")
    query = "SELECT ISTREAM(a) FROM (SELECT a FROM s UNION ALL SELECT a FROM r) x"
    text = f"{STREAM} {other} CREATE QUERY q AS {query};"
    clock = ClockOptions(ordered=True, idle_ms=1_000)
    cluster = Cluster(stage_of(text, "q", {}, shards=1, clock=clock))
    said = []
    for second, now in ((1, 5_000), (2, 6_000), (3, 6_001), (4, 6_002)):
        cluster.batch({"s": [arrived((second, second, 0))]}, now_ms=now)
        said.append(len(cluster.changes()))
    # What is at the instant of the last row may go on.
    assert said == [0, 0, 2, 3]


@pytest.mark.parametrize("same_worker", [True, False])
def test_counts_go_on_from_batch_to_batch(same_worker: bool) -> None:
    query = "SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS]"
    cluster = Cluster(stage_of(f"{STREAM} CREATE QUERY q AS {query};", "q", {}, shards=1))
    for second in (100, 200, 300):
        if not same_worker:
            store._CACHE.clear()
        cluster.batch({"s": [arrived((second, 1, 11), (second - 9, 2, 12))]})
    (found,) = metrics(cluster)
    assert found["late_rows"] == 3
    # The last row may have others beside it.
    assert found["rows_in"] == 2


@pytest.mark.parametrize("shards", [1, 3])
def test_a_row_behind_an_earlier_batch_is_late_once(shards: int) -> None:
    query = "SELECT a, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY a"
    cluster = Cluster(stage_of(f"{STREAM} CREATE QUERY q AS {query};", "q", {}, shards=shards))
    cluster.batch({"s": [arrived((100, 1, 11), (101, 2, 12))]})
    cluster.batch({"s": [arrived((5, 1, 13), (102, 1, 14), (99, 2, 15))]})
    cluster.end()
    assert cluster.late == {"s": 2}
    found = metrics(cluster)
    assert sum(each["late_rows"] for each in found) == 2
    assert sum(each["rows_in"] for each in found) == 3
    # One by 96 seconds, the other by 3.
    counted = Arrivals.together(each["streams"] for each in found)["s"]
    assert (counted["rows"], counted["late_rows"]) == (5, 2)
    assert [most // SECOND for _, most in counted["late_by"].values()] == [3, 96]
