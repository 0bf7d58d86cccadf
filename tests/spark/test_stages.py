"""Where a query is cut into stages, and that every way to cut it answers the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.oracle.generate import Example, examples
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

from headgate.runtime.spark import store
from headgate.runtime.stage import ClockOptions, Stage
from headgate.session import Session

STREAMS = """
CREATE STREAM a (ts TIMESTAMP, x BIGINT, y BIGINT) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, y BIGINT, z BIGINT) TIMESTAMP BY ts;
CREATE STREAM c (ts TIMESTAMP, z BIGINT, x BIGINT) TIMESTAMP BY ts;
CREATE TABLE t (x BIGINT, name STRING);
CREATE QUERY q AS
"""
TABLES = {"t": pa.table({"x": [1, 2], "name": ["one", "two"]})}
A, B, C = "a [RANGE 4 SECONDS]", "b [RANGE 4 SECONDS]", "c [RANGE 4 SECONDS]"
JOIN = f"FROM {A}, {B} WHERE a.y = b.y"
CHAIN = f"FROM {A}, {B}, {C} WHERE a.y = b.y AND b.z = c.z"


def random_rows(seed: int, count: int = 90) -> dict[str, pa.Table]:
    random = np.random.default_rng(seed)
    inputs = {}
    for name, columns in (("a", "xy"), ("b", "yz"), ("c", "zx")):
        instants = np.sort(random.integers(0, 20_000_000, count)) // 500_000 * 500_000
        data = {column: random.integers(0, 6, count) for column in columns}
        inputs[name] = pa.table({"ts": pa.array(instants, pa.timestamp("us", tz="UTC")), **data})
    return inputs


def shape(stage: Stage) -> list[tuple[tuple[int, ...], dict[str, tuple[tuple[str, ...], ...]]]]:
    return [(each.shares, {feed.name: feed.columns for feed in each.feeds}) for each in stage.chain]


def say(stage: Stage, inputs: dict[str, pa.Table], step: int = 40) -> Cluster:
    cluster = Cluster(stage)
    for start in range(0, 90, step):
        cluster.batch({name: [table.slice(start, step)] for name, table in inputs.items()})
    cluster.end()
    return cluster


BY_Y = {"a": (("y",),), "b": (("y",),)}


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        (
            f"SELECT b.z, COUNT(*) AS n {JOIN} GROUP BY b.z",
            [((4,), BY_Y), ((4,), {"exchange 0": (("b.z",),)})],
        ),
        (f"SELECT ISTREAM(DISTINCT a.x) {JOIN}", [((4,), BY_Y), ((4,), {"exchange 0": (("x",),)})]),
        (f"SELECT a.x {JOIN}", [((4,), BY_Y), ((4,), {"exchange 0": (("x",),)})]),
        (f"SELECT COUNT(*) AS n {JOIN}", [((4,), BY_Y), ((1,), {"exchange 0": ((),)})]),
        (f"SELECT RSTREAM(a.x, b.z) {JOIN}", [((4,), BY_Y), ((1,), {"exchange 0": ((),)})]),
        (
            f"SELECT a.x, COUNT(*) AS n {CHAIN} GROUP BY a.x",
            [
                ((2, 2), {"a": (("y",), ()), "b": (("y",), ("z",)), "c": ((), ("z",))}),
                ((4,), {"exchange 0": (("a.x",),)}),
            ],
        ),
    ],
)
def test_a_stage_ends_where_rows_have_to_meet_by_other_columns(
    query: str, stages: list[tuple[tuple[int, ...], dict[str, tuple[tuple[str, ...], ...]]]]
) -> None:
    stage = stage_of(STREAMS + query, "q", TABLES, shards=4)
    assert shape(stage) == stages


def test_an_idle_stream_holds_no_later_stage_back() -> None:
    def at(second: int, **values: int) -> list[pa.Table]:
        instants = pa.array([second * 1_000_000], pa.timestamp("us", tz="UTC"))
        return [pa.table({"ts": instants, **{name: [value] for name, value in values.items()}})]

    query = f"SELECT b.z, COUNT(*) AS n {JOIN} GROUP BY b.z"
    clock = ClockOptions(ordered=True, idle_ms=1_000)
    cluster = Cluster(stage_of(STREAMS + query, "q", {}, shards=4, clock=clock))
    assert len(cluster.stores) == 2
    cluster.batch({"a": at(1, x=1, y=7), "b": at(1, y=7, z=3)}, now_ms=0)
    cluster.batch({"a": at(2, x=1, y=8)}, now_ms=900)
    assert not cluster.rows, "the clock waits for b"
    cluster.batch({"a": at(3, x=1, y=8)}, now_ms=5_000)
    assert pl.concat(cluster.rows).select("z", "n").rows() == [(3, 1)]


QUERIES = (
    f"SELECT b.z, COUNT(*) AS n, SUM(a.x) AS s {JOIN} GROUP BY b.z",
    f"SELECT COUNT(*) AS n, MIN(a.x) AS least {JOIN}",
    "SELECT COUNT(*) AS n, MIN(x) AS l, MAX(x) AS m, AVG(y) AS v FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS]",
    "SELECT y, COUNT(x) AS n, SUM(x / 7.0) AS s FROM a [RANGE 4 SECONDS SLIDE 1 SECOND] GROUP BY y",
    f"SELECT b.z, COUNT(*) AS n, SUM(a.x / 3.0) AS s FROM a [ROWS 7], {B} WHERE a.y = b.y GROUP BY b.z",
    f"SELECT RSTREAM(DISTINCT a.x) {JOIN}",
    f"SELECT DSTREAM(a.x) {JOIN}",
    f"SELECT a.x, COUNT(*) AS n {CHAIN} GROUP BY a.x",
    f"SELECT u.x, c.z FROM (SELECT x, COUNT(*) AS n FROM {A} GROUP BY x) u, {C} WHERE u.n = c.x",
    f"SELECT n, COUNT(*) AS m FROM (SELECT x, COUNT(*) AS n FROM {A} GROUP BY x) u GROUP BY n",
    f"SELECT a.x, t.name FROM {A}, b [ROWS 5], t WHERE a.y = b.y AND a.x = t.x",
    f"SELECT x FROM {A} WHERE NOT EXISTS (SELECT 1 FROM {B} WHERE b.y = a.y)",
    f"SELECT x FROM {A} EXCEPT SELECT z FROM {B}",
    "SELECT WSTREAM(COUNT(*))[RANGE 3 SECONDS] FROM a [RANGE 4 SECONDS INTERNAL] GROUP BY x",
    f"SELECT WSTREAM(a.x)[RANGE 3 SECONDS] {JOIN.replace(']', ' INTERNAL]')}",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("shards", [1, 4])
def test_every_way_to_cut_says_what_the_local_engine_says(query: str, shards: int) -> None:
    inputs = random_rows(len(query))
    expected = output_of(STREAMS + query, "q", [inputs], TABLES)
    assert len(expected) >= 10
    for way in range(12):
        stage = stage_of(STREAMS + query, "q", TABLES, shards=shards, way=way)
        assert say(stage, inputs).changes() == expected


def test_only_what_is_looked_at_reaches_the_shards() -> None:
    text = STREAMS + f"SELECT COUNT(*) AS n FROM {A} WHERE a.x > 3"
    inputs = random_rows(4)
    expected = output_of(text, "q", [inputs], TABLES)
    for way in range(4):
        stage = stage_of(text, "q", TABLES, shards=4, narrow=True, way=way)
        assert [column.name for column in stage.streams[0].columns] == ["ts", "x"]
        assert [feed.predicate.show() for feed in stage.feeds if feed.predicate] == ["x > 3"]
        assert say(stage, {"a": inputs["a"]}).changes() == expected


def test_a_row_that_is_not_sent_still_moves_the_clock() -> None:
    text = STREAMS + f"SELECT ISTREAM(x, y) FROM {A} WHERE x < 2"
    cluster = Cluster(stage_of(text, "q", TABLES, shards=2, narrow=True))
    stamps = pa.array([1_000_000, 9_000_000], pa.timestamp("us", tz="UTC"))
    cluster.batch({"a": [pa.table({"ts": stamps, "x": [1, 5], "y": [2, 2]})]})
    assert [change.row for change in cluster.changes()] == [(1, 2)]


@pytest.mark.parametrize("query", QUERIES[::3])
def test_narrow_streams_say_the_same(query: str) -> None:
    inputs = random_rows(len(query))
    expected = output_of(STREAMS + query, "q", [inputs], TABLES)
    stage = stage_of(STREAMS + query, "q", TABLES, shards=4, narrow=True)
    assert say(stage, inputs).changes() == expected


def test_a_global_aggregate_has_several_shards_if_there_is_enough_to_add_up() -> None:
    text = STREAMS + "SELECT COUNT(*) AS n FROM a [RANGE 4 SECONDS SLIDE 1 SECOND]"
    fast, slow = (
        stage_of(text, "q", TABLES, shards=4, statistics=f"streams: {{a: {{rate: {rate}}}}}")
        for rate in (3_000_000, 1_000)
    )
    assert shape(fast) == [((4,), {"a": (("ts",),)}), ((1,), {"exchange 0": ((),)})]
    assert any("condense" in str(step) for step in fast.graph.steps)
    assert shape(slow) == [((1,), {"a": ((),)})]


def test_explain_says_stages_keys_and_shares() -> None:
    session = Session()
    session.sql(STREAMS + f"SELECT COUNT(*) AS n {CHAIN}")
    [query] = session.query("q").explain(shards=4).as_dict()["queries"]
    first, last = query["stages"]
    assert first["shares"] == [2, 2]
    assert {each["input"]: each["by"] for each in first["inputs"]} == {
        "a": [["y"], []],
        "b": [["y"], ["z"]],
        "c": [[], ["z"]],
    }
    assert (last["shares"], last["inputs"][0]["by"]) == ([1], [[]])
    assert "stage 1  2 × 2 shards: a by y × all; b by y × z" in str(session.query("q").explain(shards=4))
    assert "stage" not in str(session.query("q").explain())


def test_rows_that_are_counted_as_they_come_never_pass_through_several_shards() -> None:
    text = STREAMS + f"SELECT DISTINCT a.x FROM a [ROWS 5], {B} WHERE a.y = b.y"
    for way in range(12):
        chain = stage_of(text, "q", TABLES, shards=4, way=way).chain
        assert chain[0].shards == 1
        assert any("Rows(" in str(step) for step in chain[0].graph.steps)


def test_late_rows_are_counted_once() -> None:
    late = pa.table({"ts": pa.array([9_000_000, 1], pa.timestamp("us", tz="UTC")), "x": [1, 1], "y": [2, 2]})
    stage = stage_of(STREAMS + f"SELECT DISTINCT a.x {JOIN}", "q", TABLES, shards=4)
    assert stage.onward is not None
    cluster = Cluster(stage)
    cluster.batch({"a": [late.slice(0, 1)]})
    cluster.batch({"a": [late.slice(1, 1)]})
    assert cluster.late == {"a": 1}


def test_a_checkpoint_knows_all_stages() -> None:
    query = "SELECT b.z, COUNT(*) AS n {} GROUP BY b.z HAVING COUNT(*) > {}"
    one, other = (stage_of(STREAMS + query.format(JOIN, n), "q", TABLES, shards=4) for n in (1, 2))
    assert one.description() != other.description()
    assert one.fingerprint != other.fingerprint


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(), st.integers(1, 5), st.integers(0, 60), st.booleans())
def test_generated_queries_cut_anywhere_say_what_the_oracle_says(
    example: Example, shards: int, way: int, forget: bool
) -> None:
    agree(example, shards, way, forget=forget)


@pytest.mark.long
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(), st.integers(1, 9), st.integers(0, 60), st.booleans())
def test_many_more(example: Example, shards: int, way: int, forget: bool) -> None:
    agree(example, shards, way, forget=forget)


def agree(example: Example, shards: int, way: int, *, forget: bool) -> None:
    oracle = Oracle(example.text, example.inputs, example.tables)
    expected = oracle.output(example.query)
    if oracle.order_matters:
        return
    if "changing table" in example.features:
        # It has one stage.
        return
    cluster = Cluster(stage_of(example.text, example.query, example.tables, shards=shards, way=way))
    for arrival in example.arrivals():
        if forget:
            store._CACHE.clear()
        cluster.batch({name: [rows] for name, rows in arrival.items() if rows.num_rows})
    cluster.end()
    found = cluster.changes()
    assert same_output(found, expected, ticking=oracle.ticking(example.query)), (
        f"expected {expected}\nfound    {found}"
    )
