"""Streaming formats of Spark's by USING, its sinks by name, and what is said about formats and columns it has not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from headgate.model.errors import InputError, SetupError, UnsupportedError
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.run import RunTarget, follow, run_to_folder
from headgate.session import Session

RATE = """
CREATE STREAM r (timestamp TIMESTAMP, value BIGINT) TIMESTAMP BY timestamp
  USING rate-micro-batch OPTIONS (rowsPerBatch '10', advanceMillisPerBatch '1000', numPartitions '1');
CREATE QUERY q AS SELECT ISTREAM(value) FROM r [RANGE 5 SECONDS];
""".replace("rate-micro-batch", "`rate-micro-batch`")


def made(text: str, spark: Any = None) -> Session:
    session = Session(spark)
    session.sql(text)
    return session


def test_a_source_without_end_is_followed(spark: Any, tmp_path: Path) -> None:
    session = made(RATE)
    seen: list[Mapping[str, Any]] = []
    place = RunTarget(tmp_path / "out", on_batch=seen.append)
    summary = follow(
        spark,
        session.compile(None),
        tmp_path,
        SparkOptions(shards=1),
        place,
        is_over=lambda: bool(seen) and seen[-1]["rows_out"] >= 10,
    )
    assert summary.metrics["q"]["rows_out"] >= 10
    values = pl.read_parquet(tmp_path / "out" / "q" / "*.parquet")["value"].sort().to_list()
    assert values == list(range(len(values)))


def test_a_source_without_end_is_not_run_to_its_end(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="rate-micro-batch, which has no end") as refused:
        run_to_folder(spark, made(RATE).compile(None), tmp_path, SparkOptions(), RunTarget(tmp_path / "out"))
    assert refused.value.remedy is not None
    assert "--follow" in refused.value.remedy


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("nowhere", SetupError, "Spark has no format nowhere"),
        ("rate OPTIONS (rowsPerSecond 'x')", InputError, "Spark cannot read from rate"),
        ("rate", InputError, "rate has no column k"),
        ("rate", InputError, "rate: column value is declared INT but is BIGINT"),
    ],
)
def test_what_spark_has_not(source: str, kind: type[Exception], message: str, spark: Any) -> None:
    name = "value" if "value" in message else "k"
    session = made(
        f"CREATE STREAM s (timestamp TIMESTAMP, {name} INT) TIMESTAMP BY timestamp USING {source};", spark
    )
    query = session.sql(f"CREATE QUERY q AS SELECT ISTREAM({name}) FROM s [NOW];")
    assert query is not None
    with pytest.raises(kind, match=message):
        query.to_df()


def test_a_connector_that_is_missing_is_named(spark: Any) -> None:
    options = "OPTIONS (kafka.bootstrap.servers 'a:1', subscribe 't')"
    session = made(f"CREATE STREAM s (ts TIMESTAMP, k INT) TIMESTAMP BY ts USING kafka {options};", spark)
    query = session.sql("CREATE QUERY q AS SELECT ISTREAM(k) FROM s [NOW];")
    assert query is not None
    with pytest.raises(SetupError, match="Spark has no connector for kafka") as refused:
        query.to_df()
    assert refused.value.remedy is not None
    assert "spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10" in refused.value.remedy


def started(handle: Any) -> None:
    """Waits for a few micro-batches, then stops."""
    try:
        while handle.isActive and (handle.lastProgress or {"batchId": 0})["batchId"] < 3:
            handle.awaitTermination(1)
        assert handle.exception() is None
    finally:
        handle.stop()


def test_sinks_by_name(spark: Any, tmp_path: Path) -> None:
    query = made(RATE, spark).query("q")
    started(query.start("memory", shards=1))
    kept = sorted(row.value for row in spark.table("q").collect())
    assert kept
    assert kept == list(range(len(kept)))
    options = {"path": str(tmp_path / "files")}
    started(query.start("parquet", shards=1, checkpoint=tmp_path / "state", sink_options=options))
    stored = sorted(row.value for row in spark.read.parquet(options["path"]).collect())
    assert stored
    assert stored == list(range(len(stored)))
