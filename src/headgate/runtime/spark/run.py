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
from headgate.runtime.sources.files import is_elsewhere
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
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.listener import SparkProgress, listening
from headgate.runtime.spark.query_output import QueryOutput, prepare
from headgate.runtime.spark.remote_folder import RemoteFolder
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.split_reader import SplitReader
from headgate.runtime.spark.sources.streams import has_end, is_file, packed_stream
from headgate.runtime.spark.sources.tables_elsewhere import is_table_elsewhere, table_elsewhere
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
    clock = ClockOptions(options.ordered, options.idle_ms, options.future_us)
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
    """The rows of the tables of a program that do not change, each read once; not those that only Spark can read."""
    return {
        table.name: _read_table(table, base, options)
        for table in program.tables
        if change_stream(table) is None and not is_table_elsewhere(table)
    }


_NAMES_SHOWN = 4
_STARTS = 4
_SLOW_WORKER = "connect back"


@dataclass(frozen=True)
class Place:
    """Where a run's results go, where its state is kept (nowhere for long if None), and who hears of its batches.

    Both are folders of this machine or addresses of Spark's file systems.
    """

    output: Path | str
    checkpoint: Path | str | None = None
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
    """Runs queries, as one job, over all that there is of their input; what they say goes to a folder."""
    with _job(spark, program, base, options, place, follows=False) as run:
        for stream in run.job.streams:
            _require_end(stream)
        drains = any(run.job.drains)
        run.through(spark, ends=drains and run.plans_all)
        if drains and not run.plans_all:
            run.end(spark)
        return run.finish(options, ended=True)


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
    """Runs queries, as one job, over their files and those that come, until `is_over` or the job fails."""
    with _job(spark, program, base, options, place, follows=True) as run, ExitStack() as stack:
        run.follow(spark)
        stack.push(run.ended)
        while not is_over():
            run.check_alive(spark)
            sleep(every_s)
        stack.close()
        return run.finish(options, ended=False)


@dataclass
class _JobRun:
    """A job: its queries' stages, what it reads from files, its checkpoint and the folders of its queries."""

    job: JobStage
    base: Path
    checkpoint: Path | str
    planner: FilePlanner | None
    """None if Spark's own source reads the files."""
    folders: Sequence[QueryOutput]
    aside: Aside
    sinks: Sequence[Sink] | None = None
    staged: Staging | None = None
    progress: SparkProgress | None = None
    handle: Any = None
    """Spark's, once it is started."""
    trigger: Mapping[str, Any] = field(default_factory=dict)
    failures: int = 0
    max_late: float | None = None
    ends: bool = False
    """Whether this start says that all streams have ended, if no planner does."""

    @property
    def plans_all(self) -> bool:
        """Whether all that the job reads is planned here, so that the end can be said with the last row."""
        return self.planner is not None and len(self.planner.streams) == len(self.job.streams)

    def through(self, spark: SparkSession, *, ends: bool) -> None:
        """Runs over all that there is to read, and with `ends` to the end of all streams."""
        if self.planner is not None:
            self.planner = replace(self.planner, ends=ends)
        self.ends = ends
        self.start(spark, {"availableNow": True})
        while self._goes_on(spark):
            pass
        self._drain_progress()

    def end(self, spark: SparkSession) -> None:
        """Says that all streams have ended, after all that there was has been read."""
        if self.planner is not None:
            self.planner = replace(self.planner, discovers=False)
        self.through(spark, ends=True)

    def follow(self, spark: SparkSession) -> None:
        """Starts the job over what is there and what comes."""
        if self.planner is not None:
            self.planner = replace(self.planner, moving=True)
        # Queries over tables alone have nothing to wait for.
        self.ends = any(self.job.drains)
        self.start(spark, {"processingTime": "0 seconds"})

    def check_alive(self, spark: SparkSession) -> None:
        """Raises if a job that should be running has failed, unless starting it anew may help."""
        if not self.handle.isActive:
            self._goes_on(spark)

    def stop(self) -> None:
        if self.handle is not None:
            self.handle.stop()
            self._drain_progress()

    def ended(self, kind: object, failure: BaseException | None, trace: object) -> None:
        """Stops the job; if the run has failed already, that is what is told of it."""
        with nullcontext() if failure is None else ignore_dead_jvm():
            self.stop()

    def finish(self, options: SparkOptions, *, ended: bool) -> RunSummary:
        """What the queries have done; their results are then in place."""
        metrics = {}
        for folder in self.folders:
            metrics[folder.stage.graph.query] = found = folder.finish()
            if ended:
                require_few(found, options.max_late, ended=True)
        if self.staged is not None:
            for folder in self.folders:
                folder.strip()
            self.staged.publish()
        return RunSummary(metrics, self.aside.count())

    def _goes_on(self, spark: SparkSession) -> bool:
        """Waits for the end; whether the job then goes on all the same.

        Spark gives a worker ten seconds to start, which a busy machine may not keep: then the job is started anew.
        """
        try:
            wait(self.handle)
        except SetupError as error:
            for folder in self.folders:
                require_few(folder.last_metrics(), self.max_late)
            self.failures += 1
            if self.failures >= _STARTS or _SLOW_WORKER not in str(error):
                raise
            self.start(spark, self.trigger)
            return True
        return False

    def _drain_progress(self) -> None:
        """Counts what Spark reported of the last micro-batches; a listener hears of them a little later."""
        if self.progress is not None:
            for each in self.handle.recentProgress:
                self.progress.absorb(json.loads(each.json))

    def start(self, spark: SparkSession, trigger: Mapping[str, Any]) -> None:
        self.trigger = trigger
        self.handle = start_job(
            spark,
            self.job,
            self.planner,
            self.checkpoint,
            self.folders,
            self.aside,
            trigger,
            base=self.base,
            sinks=self.sinks,
            ends=self.ends,
        )


@contextmanager
def _job(
    spark: SparkSession,
    program: Program,
    base: Path,
    options: SparkOptions,
    place: Place,
    *,
    follows: bool,
) -> Iterator[_JobRun]:
    """The queries with their folders and their checkpoint, not started.

    A run that nothing can go on from writes beside the final place; what it leaves if it fails is thrown away.
    A checkpoint is this run's alone until the block ends.
    """
    tasks = cores(spark)
    _require_checkpoint(spark, place)
    if options.rejects is not None and is_elsewhere(options.rejects):
        raise UnsupportedError(
            f"bad rows cannot be written to {options.rejects}",
            remedy="name a folder for --rejects that is on a disk of all machines",
        )
    planned = _is_planned(program, place)
    if not planned:
        # Spark's own source gives files no order among each other.
        options = replace(options, ordered=False)
    tables = read_tables(program, base, options) if place.tables is None else dict(place.tables)
    tables |= {
        table.name: table_elsewhere(spark, table)
        for table in program.tables
        if table.name not in tables and change_stream(table) is None
    }
    stages = [
        make_stage(query, options, shards=options.shards or tasks, tables=tables, base=base)
        for query in program
    ]
    job = JobStage.of(stages, [_drains(stage, options, follows=follows) for stage in stages])

    def on_batch(metrics: Mapping[str, Any]) -> None:
        place.on_batch(metrics)
        require_few(metrics, options.max_late)

    with translate_spark_errors("Spark cannot run the queries"), ExitStack() as stack:
        checkpoint, output, staged = place.checkpoint, place.output, None
        if checkpoint is None:
            names = [stage.graph.query for stage in stages]
            staged = stack.enter_context(staging(Path(output), names, overwrite=place.overwrite))
            checkpoint = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="headgate-")))
            output = staged.folder
        listener = stack.enter_context(listening(spark))
        if not is_elsewhere(str(checkpoint)):
            stack.enter_context(held(Path(checkpoint)))
        kept = Folder(spark, str(checkpoint))
        claimed = claim(kept, stages)
        progress = listener.of(job_name(job))
        asides = [Aside(options.rejects, _inputs(stage), claimed.run) for stage in stages]
        folders = [
            _output(spark, output, stage, claimed, on_batch, aside, progress)
            for stage, aside in zip(stages, asides, strict=True)
        ]
        sinks = None
        if place.to is not None:
            sinks = [_sink(place.to, stage.graph.query, kept) for stage in stages]
        planner = None
        if planned:
            planner = FilePlanner(
                log_folder(Path(checkpoint)),
                tuple(each for each in job.streams if is_file(each)),
                base.absolute(),
                options.batch_rows,
                tasks,
                at_once=not all(stage.streams for stage in stages),
            )
        prepare(folders, overwrite=place.overwrite)
        whole = Aside(options.rejects, frozenset[str]().union(*map(_inputs, stages)), claimed.run)
        yield _JobRun(
            job, base, checkpoint, planner, folders, whole, sinks, staged, progress, max_late=options.max_late
        )


def _require_checkpoint(spark: SparkSession, place: Place) -> None:
    """Raises InputError where a run cannot do without a checkpoint that lasts."""
    if place.checkpoint is not None:
        return
    if not str(spark.sparkContext.master).startswith("local"):
        raise InputError(
            "a run on several machines needs --checkpoint", remedy="name a folder that all of them reach"
        )
    if is_elsewhere(str(place.output)):
        raise InputError(
            f"a run with results in {place.output} needs --checkpoint",
            remedy="a store cannot put all results in place at once; with a checkpoint they come one micro-batch "
            "after the other",
        )


def _is_planned(program: Program, place: Place) -> bool:
    """Whether a run plans by itself which files are read when: if they and the log of it are on a disk."""
    changes = [found.stream for table in program.tables if (found := change_stream(table)) is not None]
    paths = [
        dict(each.source.options).get("path", "")
        for each in (*program.streams, *changes)
        if each.source is not None and is_file(each)
    ]
    return not any(map(is_elsewhere, [*paths, str(place.checkpoint or "")]))


def _output(spark: SparkSession, output: Path | str, stage: Stage, *rest: Any) -> QueryFolder | RemoteFolder:
    """Where a query's output goes."""
    if is_elsewhere(str(output)):
        return RemoteFolder(spark, str(output), stage, *rest)
    return QueryFolder(Path(output), stage, *rest)


def _drains(stage: Stage, options: SparkOptions, *, follows: bool) -> bool:
    """Whether a query's clock runs on after the last row; if nothing is said, that of files does."""
    if not stage.streams:
        # It has nothing to wait for.
        return True
    if follows:
        return False
    return all(map(is_file, stage.streams)) if options.drain is None else options.drain


def _inputs(stage: Stage) -> frozenset[str]:
    """The streams and tables of a query."""
    return frozenset([*(each.name for each in stage.streams), *stage.tables])


def _sink(address: str, query: str, checkpoint: Folder) -> Sink:
    sink = sink_at(address, query)
    return sink.beside(checkpoint, query) if isinstance(sink, KafkaTopic) else sink


def log_folder(checkpoint: Path) -> Path:
    """Where the log of the files that a run has read is kept."""
    return checkpoint.absolute() / "headgate" / "files"


def start_job(
    spark: SparkSession,
    job: JobStage,
    planner: FilePlanner | None,
    checkpoint: Path | str,
    folders: Sequence[QueryOutput],
    aside: Aside,
    trigger: Mapping[str, Any] | None = None,
    *,
    base: Path = Path(),
    sinks: Sequence[Sink] | None = None,
    ends: bool = False,
) -> Any:
    """Starts a job over its files and its other sources; Spark's handle of it.

    Without a planner Spark's own source reads the files, and `ends` says that no more come.
    """
    # These need PySpark 4.2.
    from headgate.runtime.spark.sources.end_source import packed_end_when_due  # noqa: PLC0415
    from headgate.runtime.spark.sources.file_source import packed_files  # noqa: PLC0415

    with partitions(spark, job.places):
        labels = pipeline.labels_for(spark, job)
        if planner is None:
            packed = [packed_end_when_due(spark, job, labels, due=ends)]
        else:
            packed = [packed_files(spark, planner, SplitReader.of(job, planner.streams, labels, aside))]
        packed += [
            packed_stream(spark, job, each, base, labels, aside)
            for each in job.streams
            if planner is None or not is_file(each)
        ]
        answer = pipeline.answers(job, packed, labels)
        writer = (
            answer.writeStream.foreachBatch(delivery(folders, sinks))
            .option("checkpointLocation", str(checkpoint))
            .queryName(job_name(job))
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


def job_name(job: JobStage) -> str:
    """The name by which Spark knows a job: that of its queries, as many as are quickly read."""
    names = [stage.graph.query for stage in job.queries.values()]
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"headgate-{', '.join(names[:_NAMES_SHOWN])}{more}"


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
