"""Delivery: a micro-batch's rows to a sink, and what else it says, late rows and metrics, to the output folder."""

from __future__ import annotations

from collections.abc import Callable

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from headgate.runtime.sinks.address import Sink
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.folder import QueryFolder
from headgate.runtime.stage import Stage


def delivery(stage: Stage, sink: Sink, folder: QueryFolder) -> Callable[[DataFrame, int], None]:
    """What takes the answer of a query's shards to a micro-batch.

    The sink comes first: a micro-batch that the folder knows as done has been delivered.
    """

    def deliver(answer: DataFrame, batch: int) -> None:
        # The kernels run once; sink and folder both read what they said.
        kept = answer.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            sink(pipeline.unpacked(stage, kept), batch)
            folder.write(kept.where("kind <> 'rows'"), batch)
        finally:
            kept.unpersist()

    return deliver
