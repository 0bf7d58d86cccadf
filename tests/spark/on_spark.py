"""Runs a query on Spark over given arrivals, a Parquet file for each; reads the output as the oracle writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.differential.local import _changes
from tests.oracle.inputs import TimedRow
from tests.oracle.values import Change, change_key
from tests.spark.shards import arriving, stage_of

from headgate.plan.catalog import Source
from headgate.runtime.io.source import Slice
from headgate.runtime.spark.checkpoint import claim
from headgate.runtime.spark.failures import SlowWorkerError
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.folder import QueryFolder
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.job_run import log_folder, start_job, wait
from headgate.runtime.spark.query_output import prepare
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.splits import FileSplit
from headgate.runtime.stage import Stage


def output_on_spark(
    spark: Any,
    folder: Path,
    text: str,
    query: str,
    arrivals: Sequence[Mapping[str, pa.Table]],
    tables: Mapping[str, pa.Table | Sequence[TimedRow]],
    *,
    shards: int,
) -> tuple[list[Change], dict[str, Any]]:
    """All that a query says when its streams' rows come in these micro-batches, and the run's metrics."""
    stage = stage_of(text, query, tables, shards=shards)
    source = Source("parquet", (("path", str(folder)),))
    stage = replace(stage, streams=tuple(replace(each, source=source) for each in stage.streams))
    whole = arriving(stage, arrivals, tables)
    batches = [list(_written(folder, number, stage, arrival)) for number, arrival in enumerate(whole)]
    logged = log_folder(folder / "checkpoint")
    planner = FilePlanner(logged, stage.streams, folder, 1_000_000, 2, discovers=False)
    planner.log.add([each for each in batches if each], end=True)
    output = QueryFolder(folder / "out", stage, claim(None, [stage]))
    prepare([output], overwrite=False)
    for left in reversed(range(4)):
        try:
            wait(start_job(spark, JobStage.of([stage]), planner, folder / "checkpoint", [output]))
            break
        except SlowWorkerError:
            # The command starts anew too.
            if not left:
                raise
    return read_changes(output.folder), output.finish()


def folder_at(path: Path) -> Folder:
    """A folder of this machine as Spark reaches it."""
    return Folder(SparkSession.active(), str(path))


def read_changes(folder: Path) -> list[Change]:
    """The rows of an output folder, in canonical order."""
    changes: list[Change] = []
    for file in sorted(folder.glob("*.parquet")):
        frame = pl.from_arrow(pq.read_table(file))
        assert isinstance(frame, pl.DataFrame)
        changes += _changes(frame.with_columns(pl.col("_time").dt.epoch("us")))
    return sorted(changes, key=change_key)


def _written(folder: Path, number: int, stage: Stage, arrival: Mapping[str, pa.Table]) -> list[FileSplit]:
    splits = []
    for stream in stage.streams:
        rows = arrival.get(stream.name)
        if rows is not None and rows.num_rows:
            file = folder / f"{stream.name}-{number}.parquet"
            pq.write_table(rows, file)
            splits.append(FileSplit(stream.name, Slice(file), rows.num_rows))
    return splits
