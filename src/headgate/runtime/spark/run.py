"""Running queries from files to files on Spark: what is behind `headgate run`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from headgate.model.errors import SetupError, UnsupportedError
from headgate.optimize.optimize import Optimized
from headgate.physical.lower import Strategy
from headgate.physical.partition import route
from headgate.plan.bind import BoundQuery
from headgate.plan.catalog import StreamDef
from headgate.runtime.local.engine import static_table
from headgate.runtime.local.files import RunSummary
from headgate.runtime.local.start import require_time, runnable, used_tables, whole
from headgate.runtime.sources import FileSource, RejectPolicy
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.checkpoint import claim
from headgate.runtime.spark.cluster import cores, first_line, translated
from headgate.runtime.spark.folder import QueryFolder
from headgate.runtime.spark.stage import ClockOptions, Stage, build_stage
from headgate.runtime.spark.units import UnitLog, batches_of, units_of

FILE_FORMATS = ("parquet", "csv", "json")

BatchReport = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True)
class SparkOptions:
    """How queries run on Spark."""

    shards: int | None = None
    """None: as many as tasks run at once."""
    batch_rows: int = 1_000_000
    allow_unbounded: bool = False
    strategy: Strategy = "UPA"
    drain: bool = True
    idle_ms: int | None = None
    future_us: int | None = None
    ordered: bool = True


def make_stage(
    query: BoundQuery,
    optimized: Optimized,
    options: SparkOptions,
    *,
    shards: int,
    tables: Mapping[str, pl.DataFrame],
    base: Path,
) -> Stage:
    """A query's stage; RefusedError if it is not proven bounded."""
    ready = runnable(query, optimized, allow_unbounded=options.allow_unbounded, strategy=options.strategy)
    given = dict(tables)
    for table in used_tables([ready]):
        if table.name not in given:
            source = FileSource(table, base, rows_per_chunk=100_000, on_bad_row=RejectPolicy.stop())
            given[table.name] = static_table(whole(source.chunks(), table))
    used = {table.name: given[table.name] for table in used_tables([ready])}
    routes = route(ready.plan, optimized.best.edges, shards, {}, ready.graph.promises)
    clock = ClockOptions(options.ordered, options.idle_ms, options.future_us)
    stage = build_stage(ready.graph, ready.plan, routes, used, clock)
    for stream in stage.streams:
        require_time(stream)
    return stage


def stages_of(
    queries: Sequence[tuple[BoundQuery, Optimized]], options: SparkOptions, *, shards: int, base: Path
) -> list[Stage]:
    """The stages of queries that read files only."""
    stages = [
        make_stage(bound, optimized, options, shards=shards, tables={}, base=base)
        for bound, optimized in queries
    ]
    for stage in stages:
        _require_files(stage.streams)
    return stages


def run_to_folder(
    spark: SparkSession,
    queries: Sequence[tuple[BoundQuery, Optimized]],
    base: Path,
    output: Path,
    options: SparkOptions,
    *,
    checkpoint: Path | None,
    overwrite: bool,
    on_batch: BatchReport = lambda metrics: None,
) -> RunSummary:
    """Runs queries over all their files, one after the other, and writes what they say under a folder."""
    metrics: dict[str, dict[str, Any]] = {}
    reported: set[str] = set()
    stages = stages_of(queries, options, shards=options.shards or cores(spark), base=base)
    with ExitStack() as stack:
        place = checkpoint or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
        for stage in stages:
            mine = frozenset(each.name for each in stage.streams) - reported
            reported |= mine
            folder = QueryFolder(output, stage, mine, on_batch)
            run_query(spark, stage, base, place / stage.graph.query, folder, options, overwrite=overwrite)
            metrics[stage.graph.query] = folder.finish()
    return RunSummary(metrics, 0)


def run_query(
    spark: SparkSession,
    stage: Stage,
    base: Path,
    checkpoint: Path,
    folder: QueryFolder,
    options: SparkOptions,
    *,
    overwrite: bool,
) -> None:
    """Runs one query to the end of its files, from where its checkpoint stands."""
    fresh = claim(checkpoint, stage)
    folder.prepare(fresh=fresh, overwrite=overwrite)
    log = UnitLog(checkpoint / "headgate" / "units", stage.streams, cores(spark))
    known = log.known()
    units = {each.name: units_of(each, base, options.batch_rows, known) for each in stage.streams}
    if any(units.values()):
        log.add(batches_of(units, options.batch_rows), end=options.drain)
    wait(start_query(spark, stage, log, checkpoint, folder))


def start_query(
    spark: SparkSession, stage: Stage, log: UnitLog, checkpoint: Path, folder: QueryFolder
) -> Any:
    """Starts a query over all that its reading lists name; Spark's handle of it."""
    with partitions(spark, stage.shards):
        labels = pipeline.labels_for(spark, stage)
        packed = pipeline.packed_units(spark, stage, log.folder, log.files_per_batch, labels)
        answer = pipeline.answers(stage, [packed], labels)
        return (
            answer.writeStream.foreachBatch(folder.write)
            .option("checkpointLocation", str(checkpoint))
            .queryName(f"headgate-{stage.graph.query}")
            .trigger(availableNow=True)
            .start()
        )


def wait(query: Any) -> None:
    """Waits for a streaming query; its failure is raised as ours if it has to do with the user."""
    try:
        query.awaitTermination()
    except (StreamingQueryException, PySparkException) as error:
        ours = translated(error)
        if ours is not None:
            raise ours from None
        raise SetupError(f"Spark stopped the query: {first_line(error)}") from error
    except BaseException:
        query.stop()
        raise


class partitions:  # noqa: N801 - reads as a clause of `with`
    """Within it, queries start with so many shuffle partitions and the right state store."""

    def __init__(self, spark: SparkSession, count: int) -> None:
        self._spark, self._count = spark, count

    def __enter__(self) -> None:
        self._before = self._spark.conf.get("spark.sql.shuffle.partitions")
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._count))
        pipeline.prepare_session(self._spark)

    def __exit__(self, *failure: object) -> None:
        self._spark.conf.set("spark.sql.shuffle.partitions", self._before)


def _require_files(streams: Sequence[StreamDef]) -> None:
    for stream in streams:
        if stream.source is not None and stream.source.format not in FILE_FORMATS:
            raise UnsupportedError(
                f"stream {stream.name} reads from {stream.source.format}, which has no end",
                remedy="files (parquet, csv, json) can be run to their end",
            )
