"""Running queries from files to files on Spark: what is behind `headgate run`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import sleep
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

from headgate.model.errors import HeadgateError, InputError, SetupError, UnsupportedError
from headgate.physical.program import CompiledQuery, Program
from headgate.physical.stages import cut, ways
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.lateness import require_few
from headgate.runtime.local.engine import require_static
from headgate.runtime.local.files import RunSummary
from headgate.runtime.local.start import require_time
from headgate.runtime.sinks.address import Sink, sink_at
from headgate.runtime.sinks.kafka import KafkaTopic
from headgate.runtime.sources.changes import ChangeStream, change_stream
from headgate.runtime.sources.tables import read_table
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.aside import TABLE, Aside, publish
from headgate.runtime.spark.changes import with_changes
from headgate.runtime.spark.checkpoint import claim, held
from headgate.runtime.spark.cluster import cores
from headgate.runtime.spark.delivery import delivery
from headgate.runtime.spark.failures import ignore_dead_jvm, translate_spark_errors
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.folder import QueryFolder
from headgate.runtime.spark.listener import listening
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.split_reader import SplitReader
from headgate.runtime.spark.sources.streams import has_end, is_file, packed_stream
from headgate.runtime.stage import ClockOptions, Stage, build_stages
from headgate.runtime.staging import Staging, staging

BatchReport = Callable[[Mapping[str, Any]], None]


def _ignored(metrics: Mapping[str, Any]) -> None:
    """Nobody asked."""


@dataclass(frozen=True)
class SparkOptions:
    """How queries run on Spark."""

    shards: int | None = None
    """None: as many as tasks run at once."""
    batch_rows: int = 1_000_000
    drain: bool | None = None
    """Whether the clock runs on after the last row; None: if all streams are files, which have an end."""
    idle_ms: int | None = None
    future_us: int | None = None
    max_late: float | None = None
    """A stream of whose rows a larger share comes late stops the query."""
    ordered: bool = True
    rejects: str | None = None
    """A folder for bad rows; without one, the first of them stops the query."""


def make_stage(
    query: CompiledQuery,
    options: SparkOptions,
    *,
    shards: int,
    tables: Mapping[str, pl.DataFrame],
    base: Path,
    narrow: bool = False,
    changes: Mapping[str, ChangeStream] | None = None,
) -> Stage:
    """A query's first stage.

    `changes` are streams of changes by table, besides those that tables are declared with.
    """
    used, told = dict(tables), dict(changes or {})
    for table in query.tables:
        declared = None if table.name in used or table.name in told else change_stream(table)
        if declared is not None:
            told[table.name] = declared
        if table.name not in used and table.name not in told:
            used[table.name] = _read_table(table, base, options)
        require_static(table, None if table.name in told else used[table.name])
    read = [table.name for table in query.tables]
    streamed = [told[name] for name in read if name in told]
    # All shards hear of a table's changes, which only the first stage reads.
    staged = (
        next(ways(query.graph, query.facts, shards)) if streamed else cut(query.graph, query.facts, shards)
    )
    inputs = [*query.streams, *(each.stream for each in streamed)]
    # Partitions of other sources have no order among each other.
    ordered = options.ordered and all(is_file(each) or each.source is None for each in inputs)
    clock = ClockOptions(ordered, options.idle_ms, options.future_us)
    static = {name: used[name] for name in read if name not in told}
    stage = with_changes(build_stages(query.plan, staged, static, clock, narrow=narrow), streamed)
    for stream in stage.streams:
        require_time(stream)
    return stage


def _read_table(table: TableDef, base: Path, options: SparkOptions) -> pl.DataFrame:
    """All rows of a table as they are now, with `_born` and `_sign`."""
    aside = Aside(options.rejects, frozenset([table.name]))
    refused = aside.state(table.name)
    rows, _ = read_table(table, base, rows_per_chunk=100_000, on_bad_row=aside.policy, rejects=refused)
    publish(refused, TABLE)
    return rows


def read_tables(program: Program, base: Path, options: SparkOptions) -> dict[str, pl.DataFrame]:
    """The rows of the tables of a program that do not change, each read once."""
    return {
        table.name: _read_table(table, base, options)
        for table in program.tables
        if change_stream(table) is None
    }


_STARTS = 8
_SLOW_WORKER = "connect back"


@dataclass(frozen=True)
class Place:
    """Where a run's results go, where its state is kept (nowhere for long if None), and who hears of its batches."""

    output: Path
    checkpoint: Path | None = None
    overwrite: bool = False
    on_batch: BatchReport = _ignored
    to: str | None = None
    """Where rows go instead of the folder, an address as `sink_at` reads it; metrics and late rows stay there."""
    tables: Mapping[str, pl.DataFrame] | None = None
    """Tables that do not change, if they were read already."""


def run_to_folder(
    spark: SparkSession,
    program: Program,
    base: Path,
    options: SparkOptions,
    place: Place,
) -> RunSummary:
    """Runs queries over all that there is of their input, one after the other; what they say goes to a folder."""
    metrics: dict[str, dict[str, Any]] = {}
    with _runs(spark, program, base, options, place) as (runs, staged):
        for run in runs:
            for stream in run.stage.streams:
                _require_end(stream)
            only_files = len(run.files) == len(run.stage.streams)
            drain = only_files if options.drain is None else options.drain
            run.through(spark, ends=drain and only_files)
            if drain and not only_files:
                run.planner = replace(run.planner, discovers=False)
                run.through(spark, ends=True)
            metrics[run.stage.graph.query] = found = run.folder.finish()
            require_few(found, options.max_late, ended=True)
        _publish(runs, staged)
    return RunSummary(metrics, _rejected(metrics))


def follow(
    spark: SparkSession,
    program: Program,
    base: Path,
    options: SparkOptions,
    place: Place,
    *,
    is_over: Callable[[], bool],
    every_s: float = 1.0,
) -> RunSummary:
    """Runs queries side by side over their files and those that come, until `is_over` or one of them fails."""
    with _runs(spark, program, base, options, place) as (runs, staged), ExitStack() as stack:
        for run in runs:
            run.planner = replace(run.planner, moving=True)
            stack.push(run.ended)
            run.start(spark, {"processingTime": "0 seconds"})
        while not is_over():
            for run in runs:
                run.see_to_it(spark)
            sleep(every_s)
        stack.close()
        metrics = {run.stage.graph.query: run.folder.finish() for run in runs}
        _publish(runs, staged)
        return RunSummary(metrics, _rejected(metrics))


def _rejected(metrics: Mapping[str, Mapping[str, Any]]) -> int:
    return sum(each.get("rejected_rows", 0) for each in metrics.values())


@dataclass
class _Run:
    """One query of a run: its stage, its files and its folder."""

    stage: Stage
    base: Path
    checkpoint: Path
    planner: FilePlanner
    folder: QueryFolder
    sink: Sink | None = None
    handle: Any = None
    """Spark's, once it is started."""
    trigger: Mapping[str, Any] = field(default_factory=dict)
    failures: int = 0
    max_late: float | None = None

    @property
    def files(self) -> list[StreamDef]:
        """The streams that are read from files."""
        return [each for each in self.stage.streams if is_file(each)]

    def through(self, spark: SparkSession, *, ends: bool) -> None:
        """Runs over all that there is to read, and with `ends` to the end of all streams."""
        self.planner = replace(self.planner, ends=ends)
        self.start(spark, {"availableNow": True})
        while self._goes_on(spark):
            pass
        self._hear_out()

    def see_to_it(self, spark: SparkSession) -> None:
        """Raises if a query that should be running has failed, unless starting it anew may help."""
        if not self.handle.isActive:
            self._goes_on(spark)

    def stop(self) -> None:
        if self.handle is not None:
            self.handle.stop()
            self._hear_out()

    def ended(self, kind: object, failure: BaseException | None, trace: object) -> None:
        """Stops the query; if the run has failed already, that is what is told of it."""
        with nullcontext() if failure is None else ignore_dead_jvm():
            self.stop()

    def _goes_on(self, spark: SparkSession) -> bool:
        """Waits for the end; whether the query then goes on all the same.

        Spark gives a worker ten seconds to start, which a busy machine may not keep: then the query is started anew.
        """
        try:
            wait(self.handle)
        except SetupError as error:
            require_few(self.folder.last_metrics(), self.max_late)
            self.failures += 1
            if self.failures >= _STARTS or _SLOW_WORKER not in str(error):
                raise
            self.start(spark, self.trigger)
            return True
        return False

    def _hear_out(self) -> None:
        """Counts what Spark reported of the last micro-batches; a listener hears of them a little later."""
        if self.folder.progress is not None:
            for each in self.handle.recentProgress:
                self.folder.progress.absorb(json.loads(each.json))

    def start(self, spark: SparkSession, trigger: Mapping[str, Any]) -> None:
        self.trigger = trigger
        self.handle = start_query(
            spark,
            self.stage,
            self.planner,
            self.checkpoint,
            self.folder,
            trigger,
            base=self.base,
            sink=self.sink,
        )


@contextmanager
def _runs(
    spark: SparkSession,
    program: Program,
    base: Path,
    options: SparkOptions,
    place: Place,
) -> Iterator[tuple[list[_Run], Staging | None]]:
    """The queries with their folders and checkpoints, none of them started.

    A run that nothing can go on from writes beside the final place; what it leaves if it fails is thrown away.
    A checkpoint is this run's alone until the block ends.
    """
    tasks = cores(spark)
    if place.checkpoint is None and not str(spark.sparkContext.master).startswith("local"):
        raise InputError(
            "a run on several machines needs --checkpoint", remedy="name a folder that all of them reach"
        )
    tables = read_tables(program, base, options) if place.tables is None else place.tables
    stages = [
        make_stage(query, options, shards=options.shards or tasks, tables=tables, base=base)
        for query in program
    ]
    reported: set[str] = set()

    def on_batch(metrics: Mapping[str, Any]) -> None:
        place.on_batch(metrics)
        require_few(metrics, options.max_late)

    with translate_spark_errors("Spark cannot run the queries"), ExitStack() as stack:
        root, output, staged = place.checkpoint, place.output, None
        if root is None:
            names = [stage.graph.query for stage in stages]
            staged = stack.enter_context(staging(output, names, overwrite=place.overwrite))
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
            output = staged.folder
        runs = []
        listener = stack.enter_context(listening(spark))
        for stage in stages:
            checkpoint = root / stage.graph.query
            stack.enter_context(held(checkpoint))
            kept = Folder(spark, str(checkpoint))
            claimed = claim(kept, stage)
            inputs = {*(each.name for each in stage.streams), *stage.tables}
            aside = Aside(options.rejects, frozenset(inputs - reported), claimed.run)
            reported |= aside.names
            progress = listener.of(query_name(stage))
            folder = QueryFolder(output, stage, claimed, on_batch, aside, progress)
            folder.check(overwrite=place.overwrite)
            planner = FilePlanner(
                log_folder(checkpoint),
                tuple(each for each in stage.streams if is_file(each)),
                base.absolute(),
                options.batch_rows,
                tasks,
                has_streams=bool(stage.streams),
            )
            sink = None if place.to is None else sink_at(place.to, stage.graph.query)
            sink = sink.beside(kept) if isinstance(sink, KafkaTopic) else sink
            runs.append(_Run(stage, base, checkpoint, planner, folder, sink, max_late=options.max_late))
        for run in runs:
            run.folder.take()
        yield runs, staged


def _publish(runs: Sequence[_Run], staged: Staging | None) -> None:
    """Puts the results of a finished run in place, if they are not there already."""
    if staged is not None:
        for run in runs:
            run.folder.strip()
        staged.publish()


def log_folder(checkpoint: Path) -> Path:
    """Where the log of the files that a run has read is kept."""
    return checkpoint.absolute() / "headgate" / "files"


def start_query(
    spark: SparkSession,
    stage: Stage,
    planner: FilePlanner,
    checkpoint: Path,
    folder: QueryFolder,
    trigger: Mapping[str, Any] | None = None,
    *,
    base: Path = Path(),
    sink: Sink | None = None,
) -> Any:
    """Starts a query over its files and its other sources; Spark's handle of it."""
    from headgate.runtime.spark.sources.file_source import packed_files  # noqa: PLC0415 - needs PySpark 4.2

    with partitions(spark, stage.most_shards):
        labels = pipeline.labels_for(spark, stage)
        reader = SplitReader.of(stage, planner.streams, labels, folder.aside)
        packed = [packed_files(spark, planner, reader)]
        packed += [
            packed_stream(spark, stage, each, base, labels, folder.aside)
            for each in stage.streams
            if not is_file(each)
        ]
        answer = pipeline.answers(stage, packed, labels)
        writer = (
            answer.writeStream.foreachBatch(folder.write if sink is None else delivery(stage, sink, folder))
            .option("checkpointLocation", str(checkpoint))
            .queryName(query_name(stage))
            .trigger(**(trigger or {"availableNow": True}))
        )
        return started(writer, checkpoint)


def started(writer: Any, checkpoint: str | Path | None) -> Any:
    """Starts what a writer describes; Spark's handle of it."""
    damaged = (
        None
        if checkpoint is None
        else f"if the checkpoint {checkpoint} is damaged, restore it or choose another"
    )
    with translate_spark_errors("Spark does not start the query", remedy=damaged):
        return writer.start()


def query_name(stage: Stage) -> str:
    """The name by which Spark knows a query."""
    return f"headgate-{stage.graph.query}"


def wait(query: Any) -> None:
    """Waits for a streaming query; its failure is raised as ours if it has to do with the user."""
    try:
        with translate_spark_errors("Spark stopped the query"):
            query.awaitTermination()
    except HeadgateError:
        raise
    except BaseException:
        with ignore_dead_jvm():
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
        with ignore_dead_jvm():
            self._spark.conf.set("spark.sql.shuffle.partitions", self._before)


def _require_end(stream: StreamDef) -> None:
    if not has_end(stream):
        assert stream.source is not None
        raise UnsupportedError(
            f"stream {stream.name} reads from {stream.source.format}, which has no end",
            remedy="add --follow to run until interrupted",
        )
