"""Workloads on Spark: as Spark itself runs them, and as Headgate does.

Both read the same files, one file of each stream in a micro-batch, and throw the answer away after counting it.
Headgate reads files as `headgate run` does, in the tasks that pack them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from headgate.lab.bench.engines.outcome import Outcome
from headgate.lab.bench.workload import WINDOW_SECONDS, WINDOWED, Workload, batch_rows
from headgate.runtime.io.source import Slice
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.cluster import open_spark
from headgate.runtime.spark.failures import close
from headgate.runtime.spark.first_stage import make_stage
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.job_run import log_folder
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.file_source import packed_files
from headgate.runtime.spark.sources.split_reader import SplitReader
from headgate.runtime.spark.sources.splits import FileSplit
from headgate.runtime.spark.start_settings import checkpoint_files, start_settings
from headgate.session import Session

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_STORE = "spark.sql.streaming.stateStore"

_SETTINGS = {
    "spark.driver.memory": "6g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
}

OURS = "headgate-spark"
_HEADGATE = {
    f"{_STORE}.providerClass": _ROCKSDB,
    f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500000",
}

VARIANTS: Mapping[str, Mapping[str, str]] = {
    "spark-hdfs": {f"{_STORE}.providerClass": _HDFS},
    "spark-rocksdb": {f"{_STORE}.providerClass": _ROCKSDB},
    "spark-rocksdb-v4": {
        f"{_STORE}.providerClass": _ROCKSDB,
        f"{_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.join.stateFormatVersion": "4",
    },
    OURS: _HEADGATE,
    WINDOWED: _HEADGATE,
}


def run(name: str, workload: Workload, folder: Path, scratch: Path) -> Outcome:
    """Runs a workload to the end of its files."""
    spark = open_spark("local[*]", {**_SETTINGS, **VARIANTS[name]})
    try:
        checkpoint = scratch / f"checkpoint-{name}"
        # As many partitions as tasks run at once; Headgate sees to that itself.
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
        if name in (OURS, WINDOWED):
            for key, value in checkpoint_files(spark, checkpoint).items():
                spark.conf.set(key, value)
            answer = _headgate(spark, workload, folder, checkpoint, constrained=name == OURS)
        else:
            answer = NATIVE[workload.name]({each: _stream(spark, folder / each) for each in workload.streams})
        # Not a filter: Spark would push it below the watermark, and the rows that close windows would be lost on it.
        real = f.col("k") >= 0
        sums = [f.sum(f.when(real, f.col(each))).alias(each) for each in workload.sums]
        seen = answer.observe("answer", f.count_if(real).alias("results"), *sums)
        query = (
            seen.writeStream.format("noop")
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        rows = batch_rows(workload, folder)
        return _outcome(name, workload, rows, [dict(each) for each in query.recentProgress])
    finally:
        close(spark)


def _stream(spark: SparkSession, folder: Path) -> DataFrame:
    reader = spark.readStream.schema("ts timestamp, k long, m long, v long")
    return reader.option("maxFilesPerTrigger", 1).parquet(str(folder))


def _headgate(
    spark: SparkSession, workload: Workload, folder: Path, checkpoint: Path, *, constrained: bool
) -> DataFrame:
    session = Session()
    session.sql(workload.statements(constrained=constrained))
    (query,) = session.compile(["answer"])
    cores = int(spark.sparkContext.defaultParallelism)
    stage = make_stage(query, SparkOptions(), shards=cores, tables={}, narrow=True)
    planner = FilePlanner(log_folder(checkpoint), stage.streams, folder, 1, cores, discovers=False)
    files = [sorted((folder / stream.name).iterdir()) for stream in stage.streams]
    names = [stream.name for stream in stage.streams]
    planner.log.add(
        [
            [FileSplit(name, Slice(file), 1.0) for name, file in zip(names, batch, strict=True)]
            for batch in zip(*files, strict=True)
        ],
        end=True,
    )
    job = JobStage.of([stage])
    with start_settings(spark, job.places):
        labels = pipeline.labels_for(spark, job)
        packed = packed_files(spark, planner, SplitReader.of(job, stage.streams, labels))
        return pipeline.rows(job, [packed], labels)


def _near(one: str, other: str) -> Any:
    window = f.expr(f"INTERVAL {WINDOW_SECONDS} SECONDS")
    return (f.col(one) < f.col(other) + window) & (f.col(other) < f.col(one) + window)


def _side(streams: Mapping[str, DataFrame], name: str, **columns: str) -> DataFrame:
    """A stream with a watermark, its columns renamed."""
    chosen = [f.col(theirs).alias(mine) for mine, theirs in columns.items()]
    time = next(mine for mine, theirs in columns.items() if theirs == "ts")
    return streams[name].select(*chosen).withWatermark(time, "0 seconds")


def _pairs(streams: Mapping[str, DataFrame], together: Any) -> DataFrame:
    """R and S by key, and by a condition on their times."""
    left = _side(streams, "R", r_ts="ts", k="k", v="v")
    right = _side(streams, "S", s_ts="ts", s_k="k", w="v")
    return left.join(right, (f.col("k") == f.col("s_k")) & together).select("k", "v", "w")


def _join(streams: Mapping[str, DataFrame]) -> DataFrame:
    return _pairs(streams, _near("r_ts", "s_ts"))


def _interval(streams: Mapping[str, DataFrame]) -> DataFrame:
    last = f.col("r_ts") + f.expr(f"INTERVAL {WINDOW_SECONDS} SECONDS")
    return _pairs(streams, f.col("s_ts").between(f.col("r_ts"), last))


def _multijoin(streams: Mapping[str, DataFrame]) -> DataFrame:
    first = _side(streams, "R", r_ts="ts", k="k", v="v")
    second = _side(streams, "S", s_ts="ts", s_k="k", s_m="m", w="v")
    third = _side(streams, "T", t_ts="ts", t_m="m", x="v")
    pairs = first.join(second, (f.col("k") == f.col("s_k")) & _near("r_ts", "s_ts"))
    # Spark wants one event time in a stream; the other becomes a plain column.
    plain = f.timestamp_micros(f.unix_micros("r_ts")).alias("r_at")
    pairs = pairs.select("k", "v", "w", "s_m", "s_ts", plain)
    near = _near("s_ts", "t_ts") & _near("r_at", "t_ts")
    return pairs.join(third, (f.col("s_m") == f.col("t_m")) & near).select("k", "v", "w", "x")


def _windowed(streams: Mapping[str, DataFrame]) -> Any:
    rows = streams["R"].withWatermark("ts", "0 seconds")
    return rows.groupBy(f.window("ts", f"{WINDOW_SECONDS} seconds"), "k")


NATIVE: Mapping[str, Any] = {
    "join": _join,
    "interval": _interval,
    "multijoin": _multijoin,
    "many-one": _multijoin,
    "distinct": lambda streams: _windowed(streams).agg(f.count(f.lit(1)).alias("n")).select("k"),
    "aggregate": lambda streams: (
        _windowed(streams)
        .agg(f.count(f.lit(1)).alias("n"), f.sum("v").alias("total"))
        .select("k", "n", "total")
    ),
}


def _outcome(name: str, workload: Workload, rows: list[int], progress: list[dict[str, Any]]) -> Outcome:
    """What Spark reported of a run. A batch brings the rows of the files of its number; the last may bring none."""
    batches, state = [], 0
    totals = dict.fromkeys(("results", *workload.sums), 0)
    for number, each in enumerate(progress):
        height = rows[number] if number < len(rows) and int(each["numInputRows"]) else 0
        batches.append((height, each["durationMs"].get("triggerExecution", 0) / 1000))
        state = max(state, sum(_state_bytes(operator) for operator in each["stateOperators"]))
        found = (each.get("observedMetrics") or {}).get("answer")
        if found is not None:
            for key in totals:
                totals[key] += int(found[key] or 0)
    results = totals.pop("results")
    return Outcome(name, batches, state, results, totals)


def _state_bytes(operator: Mapping[str, Any]) -> int:
    """What an operator holds: memory of the store or, if that is more, its files."""
    files = operator.get("customMetrics", {}).get("rocksdbSstFileSize", 0)
    return max(int(operator["memoryUsedBytes"]), int(files))
