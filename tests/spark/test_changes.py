"""Tables whose changes are streamed on Spark answer as the local engine does, which knows all changes at once."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.local import _changes
from tests.oracle.values import Change, change_key
from tests.spark.shards import Cluster

from headgate.model.errors import DataError
from headgate.physical.compile import compile_query
from headgate.runtime.io.changes import changes_of
from headgate.runtime.spark.first_stage import make_stage
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder
from headgate.session import Session

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DECLARED = """
CREATE STREAM s (ts TIMESTAMP, k INT, n INT) TIMESTAMP BY ts{stream};
CREATE TABLE p (k INT, price INT){table};
"""
QUERIES = {
    "join": "CREATE QUERY q AS SELECT s.k, s.n, p.price FROM s [RANGE 5 SECONDS], p WHERE s.k = p.k;",
    "births": "CREATE QUERY q AS SELECT ISTREAM(s.n, p.price) FROM s [RANGE 5 SECONDS], p WHERE s.k = p.k;",
    "group": "CREATE QUERY q AS SELECT p.price, COUNT(*) AS c FROM s [RANGE 4 SECONDS], p WHERE s.k = p.k "
    "GROUP BY p.price;",
    "absent": "CREATE QUERY q AS SELECT s.k, s.n FROM s [RANGE 5 SECONDS] "
    "WHERE NOT EXISTS (SELECT 1 FROM p WHERE p.k = s.k);",
}

Told = tuple[int, str, int, int]


def at(second: int) -> dt.datetime:
    return START + dt.timedelta(seconds=second)


@st.composite
def told(draw: st.DrawFn) -> list[Told]:
    """Changes of a table: a row goes only if it is there."""
    there: list[tuple[int, int]] = []
    changes: list[Told] = []
    for second in sorted(draw(st.lists(st.integers(0, 25), max_size=12))):
        if there and draw(st.booleans()):
            row = there.pop(draw(st.integers(0, len(there) - 1)))
            changes.append((second, "-", *row))
        else:
            row = draw(st.tuples(st.integers(0, 2), st.integers(10, 11)))
            there.append(row)
            changes.append((second, "+", *row))
    return changes


def rows_of(told: list[Told]) -> list[dict[str, Any]]:
    return [{"at": at(t), "op": op, "k": k, "price": price} for t, op, k, price in told]


def arrow(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> pa.Table:
    types = {"ts": pa.timestamp("us", "UTC"), "at": pa.timestamp("us", "UTC"), "op": pa.string()}
    schema = pa.schema([(name, types.get(name, pa.int32())) for name in columns])
    return pa.Table.from_pylist(rows, schema=schema)


def in_order(frame: pl.DataFrame) -> list[Change]:
    stamped = frame.with_columns(pl.col("_time").dt.epoch("us"))
    return sorted(_changes(stamped), key=change_key)


def expected(query: str, rows: list[dict[str, Any]], changes: list[Told]) -> list[Change]:
    session = Session()
    session.sql(DECLARED.format(stream="", table="") + QUERIES[query])
    session.stream("s", arrow(rows, ("ts", "k", "n")))
    session.table_changes("p", arrow(rows_of(changes), ("k", "price", "at", "op")), time="at", op="op")
    return in_order(session.run()["q"].to_polars())


@settings(max_examples=40)
@given(
    query=st.sampled_from(sorted(QUERIES)),
    instants=st.lists(st.tuples(st.integers(0, 25), st.integers(0, 2)), min_size=1, max_size=15),
    changes=told(),
    cuts=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 12)), max_size=4),
    shards=st.sampled_from([1, 4]),
)
def test_the_answer_is_that_of_the_local_engine(
    query: str, instants: list[tuple[int, int]], changes: list[Told], cuts: list[tuple[int, int]], shards: int
) -> None:
    rows = [{"ts": at(t), "k": k, "n": n} for n, (t, k) in enumerate(sorted(instants))]
    session = Session()
    session.sql(DECLARED.format(stream="", table="") + QUERIES[query])
    session.catalog = session.catalog.with_changes("p")
    table = session.catalog.find("p")
    found = session.query("q")
    stage = make_stage(
        compile_query(found.planned),
        SparkOptions(),
        shards=shards,
        tables={},
        changes={"p": changes_of(table, "at", "op")},  # type: ignore[arg-type]
    )
    cluster = Cluster(pickle.loads(pickle.dumps(stage)))
    told_rows = rows_of(changes)
    places = [(0, 0), *_rising(cuts, len(rows), len(told_rows)), (len(rows), len(told_rows))]
    for (a, b), (c, d) in pairwise(places):
        arrival = {"s": [arrow(rows[a:c], ("ts", "k", "n"))]} if c > a else {}
        if d > b:
            arrival["p"] = [arrow(told_rows[b:d], ("k", "price", "at", "op"))]
        if arrival:
            cluster.batch(arrival)
    cluster.end()
    assert cluster.changes() == expected(query, rows, changes)
    assert not cluster.late


def _rising(cuts: list[tuple[int, int]], most: int, most_told: int) -> list[tuple[int, int]]:
    firsts, seconds = (sorted(each) for each in (zip(*cuts, strict=True) if cuts else ((), ())))
    return [(min(a, most), min(b, most_told)) for a, b in zip(firsts, seconds, strict=True)]


def test_a_change_of_another_kind_stops_the_query() -> None:
    session = Session()
    session.sql(DECLARED.format(stream="", table="") + QUERIES["join"])
    session.catalog = session.catalog.with_changes("p")
    found, table = session.query("q"), session.catalog.find("p")
    changes = {"p": changes_of(table, "at", "op")}  # type: ignore[arg-type]
    stage = make_stage(compile_query(found.planned), SparkOptions(), shards=1, tables={}, changes=changes)
    cluster = Cluster(stage)
    wrong = arrow(rows_of([(0, "?", 1, 1)]), ("k", "price", "at", "op"))
    cluster.batch({"p": [wrong], "s": [arrow([{"ts": at(5), "k": 1, "n": 1}], ("ts", "k", "n"))]})
    with pytest.raises(DataError, match=r"table p: a change is '\?'"):
        cluster.end()


def test_changes_from_files_on_spark(spark: Any, tmp_path: Path) -> None:
    changes: list[Told] = [(0, "+", 1, 10), (3, "-", 1, 10), (3, "+", 1, 11), (9, "+", 2, 20)]
    rows = [{"ts": at(each), "k": each % 3, "n": each} for each in range(1, 12)]
    lines = [json.dumps({**each, "at": each["at"].isoformat()}) for each in rows_of(changes)]
    (tmp_path / "p.json").write_text("\n".join(lines))
    (tmp_path / "s.json").write_text("\n".join(json.dumps({**r, "ts": r["ts"].isoformat()}) for r in rows))
    session = Session()
    session.sql(
        DECLARED.format(
            stream=" USING json OPTIONS (path 's.json')",
            table=" USING json OPTIONS (path 'p.json', changeTime 'at', changeOp 'op')",
        )
        + QUERIES["join"]
    )
    run_to_folder(
        spark,
        session.compile(None),
        tmp_path,
        SparkOptions(shards=2, batch_rows=4),
        RunTarget(tmp_path / "out"),
    )
    found = pl.read_parquet(tmp_path / "out" / "q" / "*.parquet")
    assert in_order(found) == expected("join", rows, changes)


def test_changes_from_a_streaming_dataframe(spark: Any, tmp_path: Path) -> None:
    changes: list[Told] = [(0, "+", 1, 10), (3, "-", 1, 10), (3, "+", 1, 11), (9, "+", 2, 20)]
    rows = [{"ts": at(each), "k": each % 3, "n": each} for each in range(1, 12)]
    frames = {}
    for name, table in (
        ("s", arrow(rows, ("ts", "k", "n"))),
        ("p", arrow(rows_of(changes), ("k", "price", "at", "op"))),
    ):
        (tmp_path / name).mkdir()
        pq.write_table(table, tmp_path / name / "rows.parquet")
        schema = spark.read.parquet(str(tmp_path / name)).schema
        frames[name] = spark.readStream.schema(schema).parquet(str(tmp_path / name))
    session = Session(spark)
    session.sql(DECLARED.format(stream="", table="") + QUERIES["join"])
    session.stream("s", frames["s"])
    session.table_changes("p", frames["p"], time="at", op="op")
    handle = session.query("q").start(
        tmp_path / "out", trigger={"availableNow": True}, shards=2, checkpoint=tmp_path / "checkpoint"
    )
    handle.awaitTermination()
    found = pl.read_parquet(tmp_path / "out" / "q" / "*.parquet")
    # The table may still change at the instant of its last change, and the clock waits for it.
    upto = 9 * 1_000_000 + int(START.timestamp()) * 1_000_000
    assert in_order(found) == [each for each in expected("join", rows, changes) if each[0] < upto]
