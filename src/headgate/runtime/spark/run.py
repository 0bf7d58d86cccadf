"""Running queries from files to files on Spark: what is behind `headgate run`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import sleep
from typing import Any

from pyspark.sql import SparkSession

from headgate.model.errors import InputError, UnsupportedError
from headgate.physical.program import Program
from headgate.plan.catalog import StreamDef
from headgate.runtime.io.address import Sink, sink_at
from headgate.runtime.io.changes import change_stream
from headgate.runtime.io.files import is_elsewhere, local_path
from headgate.runtime.io.kafka_topic import KafkaTopic
from headgate.runtime.io.registry import is_file_format
from headgate.runtime.lateness import require_few
from headgate.runtime.output import RunSummary
from headgate.runtime.spark.checkpoint import Claim, claim, held
from headgate.runtime.spark.cluster import cores
from headgate.runtime.spark.failures import translate_spark_errors
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.first_stage import make_stage
from headgate.runtime.spark.folder import QueryFolder
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.job_run import JobRun, job_name, log_folder
from headgate.runtime.spark.listener import listening
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.query_output import prepare
from headgate.runtime.spark.rejects import RejectSink
from headgate.runtime.spark.remote_folder import RemoteFolder
from headgate.runtime.spark.sources.connectors import require_files
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.streams import has_end, is_file
from headgate.runtime.spark.sources.tables import ReadTables
from headgate.runtime.stage import Stage
from headgate.runtime.staging import staging

BatchReport = Callable[[Mapping[str, Any]], None]


def _ignored(metrics: Mapping[str, Any]) -> None:
    """Nobody asked."""


@dataclass(frozen=True)
class RunTarget:
    """Where a run's results go, where its state is kept (nowhere for long if None), and who hears of its batches.

    Both are folders of this machine or addresses of Spark's file systems.
    """

    output: Path | str
    checkpoint: Path | str | None = None
    overwrite: bool = False
    on_batch: BatchReport = _ignored
    format: str = "parquet"
    """Of the files with rows: one of the registry, or any format of files that Spark can write."""
    to: str | None = None
    """Where rows go instead of the folder, an address as `sink_at` reads it; metrics and late rows stay there."""
    tables: ReadTables = field(default_factory=ReadTables)
    """Tables that do not change, as far as they were read already."""


def run_to_folder(
    spark: SparkSession,
    program: Program,
    base: Path,
    options: SparkOptions,
    place: RunTarget,
) -> RunSummary:
    """Runs queries, as one job, over all that there is of their input; what they say goes to a folder."""
    for stream in (*program.streams, *_changes(program)):
        _require_end(stream)
    with _job(spark, program, base, options, place, follows=False) as run:
        drains = any(run.job.drains)
        run.run_available(spark, ends=drains and run.plans_all)
        if drains and not run.plans_all:
            run.end(spark)
        return run.finish(options, ended=True)


def follow(
    spark: SparkSession,
    program: Program,
    base: Path,
    options: SparkOptions,
    place: RunTarget,
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


@contextmanager
def _job(
    spark: SparkSession,
    program: Program,
    base: Path,
    options: SparkOptions,
    place: RunTarget,
    *,
    follows: bool,
) -> Iterator[JobRun]:
    """The queries with their folders and their checkpoint, not started.

    A run that nothing can go on from writes beside the final place; what it leaves if it fails is thrown away.
    A checkpoint is this run's alone until the block ends.
    """
    tasks = cores(spark)
    _require_checkpoint(spark, place)
    if not is_file_format(place.format):
        require_files(spark, place.format)
    planned = _is_planned(program, place)
    if not planned:
        # Spark's own source gives files no order among each other.
        options = replace(options, ordered=False)
    tables = place.tables.reading(program.tables, base, keeps=options.rejects is not None, spark=spark)
    stages = [
        make_stage(query, options, shards=options.shards or tasks, tables=tables.rows) for query in program
    ]
    drains = [_drains(stage, options, follows=follows, planned=planned) for stage in stages]
    job = JobStage.of(stages, drains)

    def on_batch(metrics: Mapping[str, Any]) -> None:
        place.on_batch(metrics)
        require_few(metrics, options.max_late)

    with translate_spark_errors("Spark cannot run the queries"), ExitStack() as stack:
        checkpoint = None if place.checkpoint is None else _place(place.checkpoint)
        output, staged = _place(place.output), None
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
        how = (claimed, place.format, on_batch, progress)
        folders = [_output(spark, output, stage, *how) for stage in stages]
        rejects = None
        if options.rejects is not None:
            inputs = [name for stage in stages for name in stage.inputs]
            rejects = RejectSink.at(spark, options.rejects, inputs, claimed.run)
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
        prepare(folders, overwrite=place.overwrite, rejects=rejects, tables=tables.rejects)
        yield JobRun(
            job,
            base,
            checkpoint,
            planner,
            folders,
            rejects,
            sinks,
            staged,
            progress,
            max_late=options.max_late,
        )


def _place(address: Path | str) -> Path | str:
    """A folder of this machine, or an address elsewhere."""
    return address if is_elsewhere(str(address)) else local_path(str(address))


def _require_checkpoint(spark: SparkSession, place: RunTarget) -> None:
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


def _changes(program: Program) -> list[StreamDef]:
    """The streams that tell the changes of tables."""
    return [found.stream for table in program.tables if (found := change_stream(table)) is not None]


def _is_planned(program: Program, place: RunTarget) -> bool:
    """Whether a run plans by itself which files are read when: if they and the log of it are on a disk."""
    paths = [
        dict(each.source.options).get("path", "")
        for each in (*program.streams, *_changes(program))
        if each.source is not None and is_file(each)
    ]
    return not any(map(is_elsewhere, [*paths, str(place.checkpoint or "")]))


def _output(
    spark: SparkSession, output: Path | str, stage: Stage, claim: Claim, format: str, *rest: Any
) -> QueryFolder | RemoteFolder:
    """Where a query's output goes: Spark writes what only it can."""
    far = is_elsewhere(str(output))
    if is_file_format(format) and not far:
        return QueryFolder(Path(output), stage, claim, format, *rest)
    address = str(output) if far else Path(output).absolute().as_uri()
    return RemoteFolder(spark, address, stage, claim, format, *rest)


def _drains(stage: Stage, options: SparkOptions, *, follows: bool, planned: bool) -> bool:
    """Whether a query's clock runs on after the last row; if nothing is said, that of files does."""
    if not stage.streams:
        # It has nothing to wait for; where files are planned, it is answered with the first micro-batch.
        return not planned
    if follows:
        return False
    return all(map(is_file, stage.streams)) if options.drain is None else options.drain


def _sink(address: str, query: str, checkpoint: Folder) -> Sink:
    sink = sink_at(address, query)
    return sink.beside(checkpoint, query) if isinstance(sink, KafkaTopic) else sink


def _require_end(stream: StreamDef) -> None:
    if not has_end(stream):
        assert stream.source is not None
        raise UnsupportedError(
            f"stream {stream.name} reads from {stream.source.format}, which has no end",
            remedy="add --follow to run until interrupted",
        )
