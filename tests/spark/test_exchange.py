"""Queries in several stages on Spark: the same answers, in the same micro-batch, also after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.differential.local import output_of
from tests.spark.on_spark import output_on_spark
from tests.spark.shards import stage_of
from tests.spark.test_stages import JOIN, STREAMS, TABLES, random_rows

import headgate as hg

SLIDING = JOIN.replace("SECONDS]", "SECONDS SLIDE 1 SECOND]")


@pytest.mark.parametrize(
    ("query", "shards"),
    [
        (f"SELECT b.z, COUNT(*) AS n, SUM(a.x) AS s {JOIN} GROUP BY b.z", 4),
        (f"SELECT COUNT(*) AS n, AVG(a.x) AS v {SLIDING}", 4),
        (f"SELECT RSTREAM(DISTINCT a.x) {JOIN}", 3),
    ],
)
def test_stages_say_what_the_local_engine_says(spark: Any, tmp_path: Path, query: str, shards: int) -> None:
    text, inputs = STREAMS + query, random_rows(7)
    arrivals = [{name: rows.slice(at, 30) for name, rows in inputs.items()} for at in (0, 30, 60)]
    stages = len(stage_of(text, "q", TABLES, shards=shards).chain)
    assert stages > 1
    found, metrics = output_on_spark(spark, tmp_path, text, "q", arrivals, TABLES, shards=shards)
    assert found == output_of(text, "q", [inputs], TABLES)
    assert (metrics["stages"], metrics["late_rows"], metrics["rows_out"]) == (stages, 0, len(found))


def put(folder: Path, number: int, rows: list[tuple[int, int, int]]) -> None:
    """A file of rows (second, key, value) and a column that nobody reads."""
    folder.mkdir(exist_ok=True)
    seconds, keys, values = zip(*rows, strict=True)
    stamps = pa.array([each * 1_000_000 for each in seconds], pa.timestamp("us", tz="UTC"))
    frame = pl.DataFrame({"ts": stamps, "k": keys, "v": values, "note": ["…"] * len(rows)})
    frame.write_parquet(folder / f"{number}.parquet")


def test_both_stages_go_on_from_a_checkpoint(spark: Any, tmp_path: Path) -> None:
    session = hg.Session(spark)
    for name in ("a", "b"):
        put(tmp_path / name, 0, [(1, 1, 7), (2, 2, 7), (3, 3, 9)])
        rows = spark.readStream.schema("ts timestamp, k long, v long, note string").parquet(
            str(tmp_path / name)
        )
        session.stream(name, rows, time="ts")
    query = session.sql(
        "SELECT ISTREAM(DISTINCT a.v) FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR] WHERE a.k = b.k AND b.v < 100"
    )
    assert query is not None
    found: list[list[int]] = []

    def run() -> None:
        found.append([])
        handle = query.start(
            lambda rows, batch: found[-1].extend(row.v for row in rows.collect()),
            shards=2,
            trigger={"availableNow": True},
            checkpoint=tmp_path / "checkpoint",
        )
        handle.awaitTermination()

    run()
    for name in ("a", "b"):
        put(tmp_path / name, 1, [(4, 1, 7), (5, 4, 8), (6, 5, 9), (9, 6, 500)])
    run()
    # 7 is born at 1; 9 at 3, which is answered when later rows have come; 8 at 5; 500 never.
    assert [sorted(each) for each in found] == [[7], [8, 9]]
