"""The Python door on Spark: streaming DataFrames in, streaming DataFrames or folders out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import headgate as hg
from headgate.model.errors import DataError, InputError
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, run_to_folder

FOLDED = "SELECT ISTREAM(b.item, a.ts) FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] WHERE a.item = b.item"

FROM_CSV = """CREATE STREAM a (ts TIMESTAMP, item STRING) TIMESTAMP BY ts
  USING csv OPTIONS (path 'a.csv', header true)"""


def stream(spark: Any, folder: Path, rows: list[tuple[int, str]]) -> Any:
    """A streaming DataFrame (ts, item) of a file's rows."""
    folder.mkdir()
    frame = pl.DataFrame(rows, schema={"ts": pl.Int64, "item": pl.String}, orient="row")
    frame.with_columns(pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC")).write_parquet(
        folder / "rows.parquet"
    )
    return spark.readStream.schema("ts timestamp, item string").parquet(str(folder))


def test_dataframes_in_and_out(spark: Any, tmp_path: Path) -> None:
    session = hg.Session(spark)
    session.stream("a", stream(spark, tmp_path / "a", [(1, "x"), (2, "y"), (90, "z")]), time="ts")
    session.stream("b", stream(spark, tmp_path / "b", [(3, "x"), (30, "y"), (91, "z")]), time="ts")
    query = session.sql(FOLDED)
    assert query is not None
    out = query.to_df(shards=2)
    assert out.isStreaming
    assert out.columns == ["item", "ts", "_time"]
    found: list[Any] = []
    handle = query.start(
        lambda rows, batch: found.extend(rows.collect()),
        shards=2,
        trigger={"availableNow": True},
        checkpoint=tmp_path / "checkpoint",
    )
    handle.awaitTermination()
    # The row at 91 waits: until a later one comes, others may come with the same instant.
    assert [(row.item, row._time.second) for row in found] == [("x", 3)]


@pytest.mark.parametrize("files_at_once", [None, 1])
def test_streams_that_end_are_answered_to_the_end(
    spark: Any, tmp_path: Path, files_at_once: int | None
) -> None:
    """A limit of a source does not make its later files late."""
    session = hg.Session(spark)
    for name, parts in {"a": [[(1, "x")], [(2, "y")], [(90, "z")]], "b": [[(3, "x"), (91, "z")]]}.items():
        for number, rows in enumerate(parts):
            stream(spark, tmp_path / f"{name}{number}", rows)
        reader = spark.readStream.schema("ts timestamp, item string")
        if files_at_once is not None:
            reader = reader.option("maxFilesPerTrigger", files_at_once)
        session.stream(name, reader.parquet(str(tmp_path / f"{name}[0-9]")), time="ts")
    query = session.sql(
        "SELECT DSTREAM(b.item, COUNT(*) AS n) FROM a [RANGE 10 SECONDS], b [RANGE 10 SECONDS] "
        "WHERE a.item = b.item GROUP BY b.item"
    )
    assert query is not None

    def ran() -> list[tuple[str, int]]:
        found: list[Any] = []
        writer = query.to_df(finite=True, shards=2).writeStream.trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.foreachBatch(lambda rows, batch: found.extend(rows.collect())).start().awaitTermination()
        return sorted((row.item, row._time.timestamp()) for row in found)

    # The second pair leaves at 100, nine seconds after the last row.
    assert ran() == [("x", 11), ("z", 100)]
    stream(spark, tmp_path / "a3", [(200, "u")])
    stream(spark, tmp_path / "b3", [(202, "u")])
    assert ran() == [("u", 210)]


def test_a_finite_query_into_a_sink_stops_by_itself(spark: Any, tmp_path: Path) -> None:
    session = hg.Session(spark)
    session.stream("a", stream(spark, tmp_path / "a", [(1, "x"), (9, "z")]), slack=2_000_000)
    query = session.sql("SELECT ISTREAM(item, COUNT(*) AS n) FROM a [RANGE 3 SECONDS] GROUP BY item")
    assert query is not None
    query.start(tmp_path / "out", finite=True, shards=2, checkpoint=tmp_path / "c").awaitTermination()
    rows = pl.concat(pl.read_parquet(file) for file in (tmp_path / "out" / query.name).glob("*.parquet"))
    assert sorted(rows.select("item", "n").rows()) == [("x", 1), ("z", 1)]
    with pytest.raises(InputError, match="goes on"):
        query.start("memory", finite=True, trigger={"processingTime": "1 second"})


def test_a_folder_as_the_sink(spark: Any, tmp_path: Path) -> None:
    session = hg.Session(spark)
    session.stream(
        "a", stream(spark, tmp_path / "a", [(1, "x"), (2, "y"), (2, "x"), (9, "z")]), slack=2_000_000
    )
    query = session.sql("SELECT item, COUNT(*) AS n FROM a [RANGE 3 SECONDS] GROUP BY item")
    assert query is not None
    handle = query.start(
        tmp_path / "out", trigger={"availableNow": True}, shards=2, checkpoint=tmp_path / "c"
    )
    handle.awaitTermination()
    folder = tmp_path / "out" / query.name
    rows = pl.concat([pl.read_parquet(file) for file in folder.glob("*.parquet")])
    assert sorted(rows.select("item", "n", "_op").rows()) == [
        ("x", 1, "+"), ("x", 1, "+"), ("x", 1, "-"), ("x", 1, "-"), ("x", 2, "+"), ("x", 2, "-"),
        ("y", 1, "+"), ("y", 1, "-"),
    ]  # fmt: skip
    metrics = json.loads((folder / "metrics.json").read_text())
    assert (metrics["rows_in"], metrics["waiting_rows"], metrics["late_rows"]) == (3, 1, 0)


def test_what_is_not_a_stream_is_refused(spark: Any, tmp_path: Path) -> None:
    session = hg.Session(spark)
    with pytest.raises(InputError, match="not a streaming one"):
        session.stream("a", spark.range(3))
    with pytest.raises(InputError, match="needs one timestamp column"):
        session.stream("a", stream(spark, tmp_path / "a", [(1, "x")]).select("item"))


@pytest.mark.parametrize(
    ("column", "declared", "found"),
    [
        ("CAST(1.5 AS DOUBLE)", "INT", "DOUBLE"),
        ("CAST(0.5 AS DOUBLE)", "BOOLEAN", "DOUBLE"),
        ("CAST(1e300 AS DOUBLE)", "FLOAT", "DOUBLE"),
        ("CAST(1 AS BIGINT)", "INT", "BIGINT"),
        ("CAST(1 AS BIGINT)", "TIMESTAMP", "BIGINT"),
        ("CAST(1.2356 AS DECIMAL(10, 4))", "DECIMAL(10, 2)", r"DECIMAL\(10, 4\)"),
        ("array(CAST(1 AS BIGINT))", "ARRAY<INT>", "BIGINT"),
        ("INTERVAL 1 MONTH", "INT", "INTERVAL MONTH"),
    ],
)
def test_a_column_that_could_lose_something_is_refused(
    spark: Any, column: str, declared: str, found: str
) -> None:
    rows = spark.readStream.format("rate").load().selectExpr("timestamp AS TS", f"{column} AS x")
    session = hg.Session(spark)
    session.sql(f"CREATE STREAM a (ts TIMESTAMP, x {declared}) TIMESTAMP BY ts;")
    session.sql(f"CREATE TABLE p (x {declared});")
    with pytest.raises(InputError, match=rf"stream a: column x(\.element)? .*is {found}") as refused:
        session.stream("a", rows)
    assert "CAST" in (refused.value.remedy or "")
    changes = rows.selectExpr("TS", "x", "'+' AS op")
    with pytest.raises(InputError, match=rf"table p: column x(\.element)? .*is {found}"):
        session.table_changes("p", changes, time="ts", op="op")


def test_a_column_that_widens_keeps_its_values(spark: Any, tmp_path: Path) -> None:
    given = stream(spark, tmp_path / "a", [(1, "x"), (2, "y"), (9, "z")]).selectExpr(
        "ts AS TS", "CAST(length(item) AS INT) AS n", "CAST(1.25 AS DECIMAL(5, 2)) AS d",
        "CAST(0.5 AS FLOAT) AS f", "DATE '2026-01-01' AS day", "CAST(ts AS TIMESTAMP_NTZ) AS wall",
        "named_struct('B', 'u', 'a', 1) AS pair",
    )  # fmt: skip
    session = hg.Session(spark)
    session.sql(
        "CREATE STREAM a (ts TIMESTAMP, n BIGINT, d DECIMAL(10, 4), f DOUBLE, day TIMESTAMP, wall TIMESTAMP, "
        "pair STRUCT<a: BIGINT, b: STRING>) TIMESTAMP BY ts WITHIN INTERVAL 2 SECONDS"
    )
    session.stream("a", given, time="Ts", slack=2_000_000)
    query = session.sql(
        "SELECT ISTREAM(n, d, f, day, wall = ts AS utc, pair.a AS a) FROM a [RANGE 3 SECONDS]"
    )
    assert query is not None
    found: list[Any] = []
    query.start(
        lambda rows, batch: found.extend(rows.collect()),
        shards=1,
        trigger={"availableNow": True},
        checkpoint=tmp_path / "checkpoint",
    ).awaitTermination()
    assert [(row.n, str(row.d), row.f, row.day.year, row.utc, row.a) for row in found] == [
        (1, "1.2500", 0.5, 2026, True, 1)
    ] * 2


def test_what_contradicts_the_declaration_of_a_stream_is_refused(spark: Any) -> None:
    session = hg.Session(spark)
    session.sql("CREATE STREAM a (timestamp TIMESTAMP, value BIGINT) TIMESTAMP BY timestamp;")
    rows = spark.readStream.format("rate").load()
    with pytest.raises(InputError, match="the event time timestamp, not value"):
        session.stream("a", rows, time="value")
    with pytest.raises(InputError, match="a slack of 0 microseconds, not 5"):
        session.stream("a", rows, slack=5)
    with pytest.raises(InputError, match="has the column value twice"):
        session.stream("a", rows.selectExpr("timestamp", "value", "value AS VALUE"))
    with pytest.raises(InputError, match="table t is a streaming one") as refused:
        session.table("t", rows)
    assert "table_changes" in (refused.value.remedy or "")


def test_a_session_without_spark_says_so() -> None:
    session = hg.Session()
    session.sql("CREATE STREAM a (ts TIMESTAMP, item STRING) TIMESTAMP BY ts")
    query = session.sql("SELECT ISTREAM(item) FROM a [RANGE 3 SECONDS]")
    assert query is not None
    with pytest.raises(InputError, match="has no Spark"):
        query.to_df()


def test_a_bad_row_is_named_and_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,item\n2025-01-01 00:00:00,x\nyesterday,y\n")
    session = hg.Session()
    session.base = tmp_path
    session.sql(FROM_CSV)
    session.sql("CREATE QUERY q AS SELECT ISTREAM(item) FROM a [RANGE 3 SECONDS]")
    with pytest.raises(DataError, match=r"a\.csv, row 2 \(line 3\), column ts: 'yesterday'"):
        run_to_folder(spark, session.compile(None), tmp_path, SparkOptions(), RunTarget(tmp_path / "out"))
    assert not list((tmp_path / "out").iterdir())


def test_a_name_that_is_no_folder_is_refused(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,item\n2025-01-01 00:00:00,x\n")
    session = hg.Session()
    session.base = tmp_path
    session.sql(FROM_CSV)
    session.sql("CREATE QUERY `../q` AS SELECT ISTREAM(item) FROM a [RANGE 3 SECONDS]")
    with pytest.raises(InputError, match="cannot name an output folder"):
        run_to_folder(spark, session.compile(None), tmp_path, SparkOptions(), RunTarget(tmp_path / "out"))
