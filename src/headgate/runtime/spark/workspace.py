"""The workspace on Spark: streaming DataFrames by stream, and queries over them as streaming DataFrames again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from headgate.model.errors import InputError, NameResolutionError, UnsupportedError
from headgate.physical.program import CompiledQuery
from headgate.plan.catalog import Catalog, TableDef
from headgate.plan.nodes import StreamScan
from headgate.runtime.in_memory import in_memory_stream
from headgate.runtime.io.changes import ChangeStream, changes_of
from headgate.runtime.io.kafka_topic import KafkaTopic
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.checkpoint import claim, require_free
from headgate.runtime.spark.delivery import delivery, rows_delivery
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.first_stage import make_stage
from headgate.runtime.spark.folder import QueryFolder
from headgate.runtime.spark.frames import frame_columns, require_columns
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.job_run import started
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.query_output import prepare
from headgate.runtime.spark.rejects import RejectSink
from headgate.runtime.spark.sources.end import packed_end
from headgate.runtime.spark.sources.streams import packed_stream
from headgate.runtime.spark.sources.tables import ReadTables
from headgate.runtime.spark.start_settings import start_settings
from headgate.runtime.spark.workers import prepare_workers
from headgate.runtime.stage import Stage

Sink = str | Path | Callable[[DataFrame, int], None]


class SparkWorkspace:
    """Streams as DataFrames, and the engine on Spark over them."""

    def __init__(self, spark: SparkSession) -> None:
        prepare_workers(spark)
        self.spark = spark
        self.frames: dict[str, DataFrame] = {}
        self.changes: dict[str, ChangeStream] = {}
        """By table, whose changes are among the frames."""

    def add_stream(
        self, catalog: Catalog, name: str, data: DataFrame, *, time: str | None, slack: int | None
    ) -> Catalog:
        """The catalog with the stream in it, declared by the DataFrame's columns if need be."""
        what = f"the DataFrame for stream {name}"
        _require_streaming(data, what)
        catalog, found = in_memory_stream(
            catalog, name, lambda: frame_columns(data, what), time=time, slack=slack
        )
        require_columns(data, found, what)
        self.frames[found.name] = data
        return catalog

    def add_table_changes(
        self, catalog: Catalog, name: str, data: DataFrame, *, time: str, op: str
    ) -> Catalog:
        """The catalog in which a declared table changes, fed by a streaming DataFrame of its changes."""
        found = catalog.find(name)
        if not isinstance(found, TableDef):
            raise NameResolutionError(f"{name} is not a table", remedy="declare it with CREATE TABLE first")
        changes = changes_of(found, time, op)
        what = f"the DataFrame for changes of table {name}"
        _require_streaming(data, what)
        require_columns(data, changes.stream, what)
        self.frames[found.name], self.changes[found.name] = data, changes
        return catalog.with_changes(found.name)

    def to_df(
        self,
        query: CompiledQuery,
        *,
        base: Path,
        tables: Mapping[str, pl.DataFrame],
        finite: bool = False,
        **options: Any,
    ) -> DataFrame:
        """The output of a query as a streaming DataFrame, with as many shards as the session's shuffle partitions."""
        pipeline.prepare_session(self.spark)
        chosen = SparkOptions(**{"ordered": False, **options})
        shards = chosen.shards or int(self.spark.conf.get("spark.sql.shuffle.partitions"))
        _require_no_rejects(chosen, "a DataFrame")
        stage, _ = self._stage(query, chosen, shards=shards, tables=tables, base=base, narrow=True)
        return pipeline.rows(JobStage.of([stage]), *self._packed(stage, base, chosen, finite=finite))

    def start(
        self,
        query: CompiledQuery,
        sink: Sink,
        *,
        base: Path,
        tables: Mapping[str, pl.DataFrame],
        checkpoint: str | Path | None,
        finite: bool = False,
        trigger: Mapping[str, Any] | None = None,
        sink_options: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Any:
        """Starts a query into a sink; Spark's handle of it."""
        if finite:
            trigger = _require_one_go(trigger)
        chosen = SparkOptions(**{"ordered": False, **options})
        shards = chosen.shards or int(self.spark.sparkContext.defaultParallelism)
        # A folder gets late rows too, and whole ones.
        narrow = not isinstance(sink, Path)
        if isinstance(sink, str):
            _require_no_rejects(chosen, f"the sink {sink}")
        stage, read = self._stage(query, chosen, shards=shards, tables=tables, base=base, narrow=narrow)
        if sink == "kafka":
            sink, sink_options = KafkaTopic.of(sink_options or {}), None
        kept = None if checkpoint is None else Folder(self.spark, str(checkpoint))
        if isinstance(sink, KafkaTopic) and kept is not None:
            sink = sink.beside(kept, stage.graph.query)
        if kept is not None:
            require_free(kept)
        claimed = claim(kept, [stage])
        job = JobStage.of([stage])
        rejects = None
        if chosen.rejects is not None:
            rejects = RejectSink.at(self.spark, chosen.rejects, stage.inputs, claimed.run)
        with start_settings(self.spark, stage.most_shards, checkpoint):
            packed = self._packed(stage, base, chosen, finite=finite)
            match sink:
                case Path():
                    folder = QueryFolder(sink, stage, claimed)
                    prepare([folder], overwrite=False, rejects=rejects, tables=read.rejects)
                    delivered = delivery([folder], rejects=rejects)
                    writer = pipeline.answers(job, *packed).writeStream.foreachBatch(delivered)
                case _ if rejects is not None:
                    assert not isinstance(sink, str)
                    rejects.check()
                    claimed.keep()
                    rejects.take(read.rejects)
                    delivered = rows_delivery(stage, sink, rejects)
                    writer = pipeline.answers(job, *packed).writeStream.foreachBatch(delivered)
                case _:
                    claimed.keep()
                    rows = pipeline.rows(job, *packed).writeStream
                    writer = rows.format(sink) if isinstance(sink, str) else rows.foreachBatch(sink)
            writer = writer.queryName(stage.graph.query).options(**(sink_options or {}))
            if checkpoint is not None:
                writer = writer.option("checkpointLocation", str(checkpoint))
            if trigger is not None:
                writer = writer.trigger(**trigger)
            return started(writer, checkpoint)

    def _stage(
        self,
        query: CompiledQuery,
        options: SparkOptions,
        *,
        tables: Mapping[str, pl.DataFrame],
        base: Path,
        **how: Any,
    ) -> tuple[Stage, ReadTables]:
        """A query's first stage, and the tables that were read for it."""
        wanted = [table for table in query.tables if table.name not in self.changes]
        keeps = options.rejects is not None
        read = ReadTables.given(tables).reading(wanted, base, keeps=keeps, spark=self.spark)
        return make_stage(query, options, changes=self.changes, tables=read.rows, **how), read

    def _packed(
        self, stage: Stage, base: Path, options: SparkOptions, *, finite: bool
    ) -> tuple[list[DataFrame], tuple[int, ...]]:
        """The streams of a stage, packed, with their end if they are finite, and the labels of its shards."""
        job = JobStage.of([stage])
        labels = pipeline.labels_for(self.spark, job)
        # A file's columns may be known by their places, so it is read by the whole declaration.
        scans = [node.stream for node in stage.plan.walk() if isinstance(node, StreamScan)]
        scans += [each for each in stage.streams if stage.is_changes(each.name)]
        if not scans:
            raise UnsupportedError(
                f"{stage.graph.query} reads tables that do not change, and no stream that Spark could follow",
                remedy="run it with a Session without Spark, or with headgate run",
            )
        packed = [
            pipeline.packed_frame(job, stream.name, self.frames[stream.name], labels)
            if stream.name in self.frames
            else packed_stream(self.spark, job, stream, base, labels, keeps=options.rejects is not None)
            for stream in {scan.name: scan for scan in scans}.values()
        ]
        if finite:
            packed.append(packed_end(self.spark, job, labels))
        return packed, labels


def _require_no_rejects(options: SparkOptions, where: str) -> None:
    """Raises UnsupportedError if bad rows are to be kept where only rows can go."""
    if options.rejects is not None:
        raise UnsupportedError(
            f"bad rows cannot be kept beside {where}",
            remedy="start the query into a folder or a function, or leave rejects out",
        )


def _require_one_go(trigger: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The trigger that reads all that is there and ends; InputError if another was asked for."""
    if trigger is not None and not (trigger.get("availableNow") or trigger.get("once")):
        raise InputError(
            f"finite=True ends the query with what is there, and the trigger {dict(trigger)} goes on",
            remedy="leave the trigger out, or finite",
        )
    return {"availableNow": True} if trigger is None else trigger


def _require_streaming(data: DataFrame, what: str) -> None:
    if not data.isStreaming:
        raise InputError(
            f"{what} is not a streaming one",
            remedy="read it with spark.readStream, or use session.table for rows that do not change",
        )
