"""`headgate bench join`: one sliding-window join on every engine, over the same files, with the same results.

Two streams of rows (ts, k, v), each with 10,000 rows per second of event time and keys drawn evenly; rows join if
their keys are equal and they are less than a minute apart. Every Spark engine reads one Parquet file of each stream
per micro-batch and hands its results to a sink that only counts them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from headgate.model.errors import InputError
from headgate.runtime.sources.source import Slice
from headgate.runtime.spark.cluster import open_spark
from headgate.session import Session

ENGINES = ("headgate-spark", "spark-hdfs", "spark-rocksdb", "spark-rocksdb-v4", "polars")
WINDOW_S = 60
_STEP_US = 100
_WARM = 2
"""Batches that are not counted: processes start and windows fill."""

QUERY = f"""
CREATE STREAM r (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 'r');
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 's');
CREATE QUERY joined AS
SELECT ISTREAM(r.k, r.v, s.v AS w)
FROM r [RANGE {WINDOW_S} SECONDS], s [RANGE {WINDOW_S} SECONDS] WHERE r.k = s.k;
"""


@dataclass(frozen=True)
class EngineResult:
    """What one engine did; `rows_per_s` after the first two batches."""

    name: str
    rows_per_s: float
    state_bytes: int
    results: int
    checksum: int
    p50_batch_s: float
    p95_batch_s: float
    batches_s: tuple[float, ...] = ()


@dataclass(frozen=True)
class JoinBench:
    """All engines over the same rows."""

    rows: int
    batch: int
    engines: tuple[EngineResult, ...]

    @property
    def agree(self) -> bool:
        """Whether all engines found the same."""
        return len({(each.results, each.checksum) for each in self.engines}) <= 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "bench": "join",
            "rows": self.rows,
            "batch": self.batch,
            "agree": self.agree,
            "engines": [asdict(each) for each in self.engines],
        }


def run(
    rows: int,
    batch: int,
    engines: Sequence[str] = ENGINES,
    *,
    master: str = "local[*]",
    on_engine: Callable[[str], None] = lambda name: None,
) -> JoinBench:
    """Generates the rows and lets every engine join them."""
    unknown = [name for name in engines if name not in ENGINES]
    if unknown:
        raise InputError(f"there is no engine {unknown[0]}", remedy=f"engines are {', '.join(ENGINES)}")
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    spark = None
    try:
        generate(folder, rows, batch)
        if any(name != "polars" for name in engines):
            spark = open_spark(master, {"spark.driver.memory": "6g"})
        found = []
        for name in engines:
            on_engine(name)
            if name == "polars":
                found.append(_polars(folder))
            elif name == "headgate-spark":
                found.append(_headgate(spark, folder, name))
            else:
                found.append(_native(spark, folder, name))
        return JoinBench(rows, batch, tuple(found))
    finally:
        if spark is not None:
            spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def generate(folder: Path, rows: int, batch: int) -> None:
    """Writes both streams, one file for each batch; file names and times are in order."""
    each, per_file = rows // 2, max(1, batch // 2)
    for salt, name in enumerate("rs"):
        place = folder / name
        place.mkdir(parents=True)
        random = np.random.default_rng((salt, 7))
        for number, start in enumerate(range(0, each, per_file)):
            count = min(per_file, each - start)
            instants = (np.arange(start, start + count, dtype=np.int64) * _STEP_US) + 1_700_000_000_000_000
            frame = pl.DataFrame(
                {
                    "ts": pl.Series(instants).cast(pl.Datetime("us", "UTC")),
                    "k": random.integers(0, max(1, rows // 10), count),
                    "v": random.integers(0, 1_000, count),
                }
            )
            frame.write_parquet(place / f"part-{number:05d}.parquet")


def _polars(folder: Path) -> EngineResult:
    begun = perf_counter()
    left = pl.read_parquet(folder / "r" / "*.parquet")
    right = pl.read_parquet(folder / "s" / "*.parquet")
    pairs = left.join(right, on="k", suffix="_s")
    near = pairs.filter((pl.col("ts") - pl.col("ts_s")).dt.total_microseconds().abs() < WINDOW_S * 1_000_000)
    total = int((near["v"] * near["v_s"]).sum())
    spent = perf_counter() - begun
    rows = left.height + right.height
    return EngineResult("polars", rows / spent, 0, near.height, total, spent, spent, (spent,))


def _headgate(spark: Any, folder: Path, name: str) -> EngineResult:
    from headgate.runtime.spark import pipeline  # noqa: PLC0415 - needs an extra
    from headgate.runtime.spark.run import SparkOptions, make_stage, partitions  # noqa: PLC0415
    from headgate.runtime.spark.units import Unit, UnitLog  # noqa: PLC0415

    session = Session()
    session.sql(QUERY)
    query = session.query("joined")
    cores = int(spark.sparkContext.defaultParallelism)
    stage = make_stage(query.bound, query.optimized, SparkOptions(), shards=cores, tables={}, base=folder)
    log = UnitLog(folder / "checkpoint-headgate" / "headgate" / "units", stage.streams, cores)
    files = {stream.name: sorted((folder / stream.name).glob("*.parquet")) for stream in stage.streams}
    batches = [
        [Unit(stream, Slice(files[stream][number]), 1.0) for stream in files]
        for number in range(len(files["r"]))
    ]
    log.add(batches, end=True)
    with partitions(spark, stage.shards):
        labels = pipeline.labels_for(spark, stage)
        packed = pipeline.packed_units(spark, stage, log.folder, log.files_per_batch, labels)
        answer = pipeline.unpacked(stage, pipeline.answers(stage, [packed], labels))
        return _measured(spark, name, answer, folder / "checkpoint-headgate", folder)


def _native(spark: Any, folder: Path, name: str) -> EngineResult:
    from pyspark.sql.functions import col, expr  # noqa: PLC0415 - needs an extra

    provider = "HDFSBackedStateStoreProvider" if name == "spark-hdfs" else "RocksDBStateStoreProvider"
    settings = {
        "spark.sql.streaming.stateStore.providerClass": f"org.apache.spark.sql.execution.streaming.state.{provider}",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": "4" if name.endswith("v4") else "2",
        "spark.sql.shuffle.partitions": str(spark.sparkContext.defaultParallelism),
    }
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        sides = []
        for side, suffix in (("r", ""), ("s", "_s")):
            rows = spark.readStream.schema("ts timestamp, k long, v long").option("maxFilesPerTrigger", 1)
            rows = rows.parquet(str(folder / side)).withWatermark("ts", "0 seconds")
            sides.append(rows.select(*(col(each).alias(each + suffix) for each in ("ts", "k", "v"))))
        near = f"ts_s > ts - interval {WINDOW_S} seconds and ts_s < ts + interval {WINDOW_S} seconds"
        joined = sides[0].join(sides[1], expr(f"k = k_s and {near}")).selectExpr("k", "v", "v_s as w")
        return _measured(spark, name, joined, folder / f"checkpoint-{name}", folder)
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _measured(spark: Any, name: str, rows: Any, checkpoint: Path, folder: Path) -> EngineResult:
    """Runs a streaming DataFrame to its end and reads what Spark reports of it."""
    from pyspark.sql.functions import col, count, lit  # noqa: PLC0415 - needs an extra
    from pyspark.sql.functions import sum as total  # noqa: PLC0415

    spark.conf.set("spark.sql.streaming.numRecentProgressUpdates", "100000")
    counted = rows.observe(
        "bench", count(lit(1)).alias("results"), total(col("v") * col("w")).alias("checksum")
    )
    query = (
        counted.writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    per_batch = _rows_per_batch(folder)
    times, results, checksum, state = [], 0, 0, 0
    for progress in query.recentProgress:
        observed = progress["observedMetrics"].get("bench")
        if observed is not None:
            results += observed["results"] or 0
            checksum += observed["checksum"] or 0
        state = max(state, sum(_state_bytes(each) for each in progress["stateOperators"]))
        if progress["numInputRows"] > 0:
            times.append(progress["durationMs"]["triggerExecution"] / 1_000)
    steady = times[_WARM:] or times
    rate = sum(per_batch[_WARM:] or per_batch) / sum(steady)
    p50, p95 = _percentiles(steady)
    return EngineResult(name, rate, state, results, checksum, p50, p95, tuple(times))


def _state_bytes(operator: Mapping[str, Any]) -> int:
    """What an operator holds: memory of the store or, if that is more, its files."""
    files = operator.get("customMetrics", {}).get("rocksdbSstFileSize", 0)
    return max(int(operator["memoryUsedBytes"]), int(files))


def _rows_per_batch(folder: Path) -> list[int]:
    heights = [
        [
            pl.scan_parquet(file).select(pl.len()).collect().item()
            for file in sorted((folder / side).glob("*"))
        ]
        for side in "rs"
    ]
    return [sum(each) for each in zip(*heights, strict=True)]


def _percentiles(times: Sequence[float]) -> tuple[float, float]:
    if len(times) < 2:
        return times[0], times[0]
    cuts = quantiles(times, n=20, method="inclusive")
    return cuts[9], cuts[18]
