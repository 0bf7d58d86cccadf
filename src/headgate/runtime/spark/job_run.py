"""A job that runs: started, watched, ended, and its results put in place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.model.errors import HeadgateError, SetupError
from headgate.runtime.io.address import Sink
from headgate.runtime.lateness import require_few
from headgate.runtime.output import RunSummary
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.delivery import delivery
from headgate.runtime.spark.failures import SlowWorkerError, ignore_dead_jvm, translate_spark_errors
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.listener import SparkProgress
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.query_output import QueryOutput
from headgate.runtime.spark.rejects import RejectSink
from headgate.runtime.spark.sources.end_source import packed_end_when_due
from headgate.runtime.spark.sources.file_planner import FilePlanner
from headgate.runtime.spark.sources.file_source import packed_files
from headgate.runtime.spark.sources.split_reader import SplitReader
from headgate.runtime.spark.sources.streams import is_file, packed_stream
from headgate.runtime.spark.start_settings import start_settings
from headgate.runtime.staging import Staging

_NAMES_SHOWN = 4
_STARTS = 8


@dataclass
class JobRun:
    """A job: its queries' stages, what it reads from files, its checkpoint and the folders of its queries."""

    job: JobStage
    base: Path
    checkpoint: Path | str
    planner: FilePlanner | None
    """None if Spark's own source reads the files."""
    folders: Sequence[QueryOutput]
    rejects: RejectSink | None = None
    sinks: Sequence[Sink] | None = None
    staged: Staging | None = None
    progress: SparkProgress | None = None
    handle: Any = None
    """Spark's, once it is started."""
    trigger: Mapping[str, Any] = field(default_factory=dict)
    failures: int = 0
    """Starts in vain since the last micro-batch that was done."""
    done: int = 0
    max_late: float | None = None
    ends: bool = False
    """Whether this start says that all streams have ended, if no planner does."""

    @property
    def plans_all(self) -> bool:
        """Whether all that the job reads is planned here, so that the end can be said with the last row."""
        return self.planner is not None and len(self.planner.streams) == len(self.job.streams)

    def run_available(self, spark: SparkSession, *, ends: bool) -> None:
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
        self.run_available(spark, ends=True)

    def follow(self, spark: SparkSession) -> None:
        """Starts the job over what is there and what comes."""
        if self.planner is not None:
            self.planner = replace(self.planner, moving=True)
        # Queries over tables alone have nothing to wait for.
        self.ends = any(self.job.drains)
        self.start(spark, {"processingTime": "0 seconds"})

    def check_alive(self, spark: SparkSession) -> None:
        """Raises if a job that should be running has failed, unless starting it anew may help."""
        if not self.handle.isActive and not self._goes_on(spark):
            raise SetupError(
                "Spark has ended the queries", remedy="start the run again; it goes on from its checkpoint"
            )

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
        # Queries count the bad rows of what they read, which are there once.
        rejected = {name: rows for folder in self.folders for name, rows in folder.rejected.items()}
        return RunSummary(metrics, sum(rejected.values()))

    def _goes_on(self, spark: SparkSession) -> bool:
        """Waits for the end; whether the job then goes on all the same.

        Spark gives a worker ten seconds to start, which a busy machine may not keep: then the job is started anew.
        """
        try:
            wait(self.handle)
        except SetupError as error:
            for folder in self.folders:
                require_few(folder.last_metrics(), self.max_late)
            done = self.folders[0].last_metrics().get("batches", 0)
            self.failures = self.failures + 1 if done == self.done else 1
            self.done = done
            if self.failures >= _STARTS or not isinstance(error, SlowWorkerError):
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
            self.rejects,
            trigger,
            base=self.base,
            sinks=self.sinks,
            ends=self.ends,
        )


def log_folder(checkpoint: Path) -> Path:
    """Where the log of the files that a run has read is kept."""
    return checkpoint.absolute() / "headgate" / "files"


def start_job(
    spark: SparkSession,
    job: JobStage,
    planner: FilePlanner | None,
    checkpoint: Path | str,
    folders: Sequence[QueryOutput],
    rejects: RejectSink | None = None,
    trigger: Mapping[str, Any] | None = None,
    *,
    base: Path = Path(),
    sinks: Sequence[Sink] | None = None,
    ends: bool = False,
) -> Any:
    """Starts a job over its files and its other sources; Spark's handle of it.

    Without a planner Spark's own source reads the files, and `ends` says that no more come.
    """
    keeps = rejects is not None
    with start_settings(spark, job.places, checkpoint):
        labels = pipeline.labels_for(spark, job)
        if planner is None:
            packed = [packed_end_when_due(spark, job, labels, due=ends)]
        else:
            packed = [packed_files(spark, planner, SplitReader.of(job, planner.streams, labels, keeps=keeps))]
        packed += [
            packed_stream(spark, job, each, base, labels, keeps=keeps)
            for each in job.streams
            if planner is None or not is_file(each)
        ]
        answer = pipeline.answers(job, packed, labels)
        writer = (
            answer.writeStream.foreachBatch(delivery(folders, sinks, rejects))
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
