"""Delivery: a micro-batch's rows to the queries' sinks, and what else it says, late rows and metrics, to folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from headgate.runtime.io.address import Sink
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.folder import QueryFolder, write_batch
from headgate.runtime.spark.query_output import QueryOutput
from headgate.runtime.spark.rejects import REJECTS, RejectSink
from headgate.runtime.spark.remote_folder import RemoteFolder, write_remote
from headgate.runtime.stage import Stage


def delivery(
    outputs: Sequence[QueryOutput],
    sinks: Sequence[Sink] | None = None,
    rejects: RejectSink | None = None,
) -> Callable[[DataFrame, int], None]:
    """What takes the answers of a job's shards to a micro-batch; without sinks, rows go to the folders too.

    The sinks come first: a micro-batch that a folder knows as done has been delivered.
    """

    def write(answer: DataFrame, batch: int) -> None:
        # All outputs of a job are of one kind.
        if all(isinstance(each, RemoteFolder) for each in outputs):
            write_remote([each for each in outputs if isinstance(each, RemoteFolder)], answer, batch, rejects)
        else:
            write_batch([each for each in outputs if isinstance(each, QueryFolder)], answer, batch, rejects)

    def deliver(answer: DataFrame, batch: int) -> None:
        assert sinks is not None
        # The kernels run once; sinks and folders all read what they said.
        kept = answer.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            for query, (sink, output) in enumerate(zip(sinks, outputs, strict=True)):
                sink(pipeline.unpacked(output.stage, kept, query), batch)
            write(kept.where("kind <> 'rows'"), batch)
        finally:
            kept.unpersist()

    return write if sinks is None else deliver


def rows_delivery(stage: Stage, sink: Sink, rejects: RejectSink) -> Callable[[DataFrame, int], None]:
    """What takes the answers of a query's shards to a micro-batch: rows to a sink, after bad rows to theirs."""

    def deliver(answer: DataFrame, batch: int) -> None:
        kept = answer.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            rejects.put(
                batch, kept.where(f"kind = '{REJECTS}'").withColumnRenamed("blob", "content").collect()
            )
            sink(pipeline.unpacked(stage, kept), batch)
        finally:
            kept.unpersist()

    return deliver
