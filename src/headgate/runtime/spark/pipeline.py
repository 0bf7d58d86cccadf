"""The pipeline of a job as Spark's streaming DataFrames: sources, pack, shards, rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql.functions import col, current_timestamp
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.runtime.output import arrow_schema
from headgate.runtime.spark.cluster import PROVIDER, STATE_STORE
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import FROM_SHARD_DDL, TO_SHARD_DDL, decode_table, to_shards
from headgate.runtime.spark.pack import NOW, Packer
from headgate.runtime.spark.partition_keys import shard_partition_keys
from headgate.runtime.spark.processor import RowsProcessor, ShardProcessor
from headgate.runtime.stage import Stage


def packed_frame(job: JobStage, name: str, rows: DataFrame, labels: tuple[int, ...]) -> DataFrame:
    """A stream's rows from any streaming DataFrame, packed."""
    packer = Packer.of(job, name)
    chosen = rows.select([col(f"`{column.name}`") for column in packer.stream.columns])
    if packer.looks_ahead:
        chosen = chosen.withColumn(NOW, current_timestamp())
    return chosen.mapInArrow(_packing(packer, labels), TO_SHARD_DDL)


def answers(job: JobStage, packed: list[DataFrame], labels: tuple[int, ...]) -> DataFrame:
    """What all shards say, packed: rows of (query, kind, name, rows, blob)."""
    last, messages = _to_last(job, packed, labels)
    return _shards(messages, last, labels, FROM_SHARD_DDL)


def rows(job: JobStage, packed: list[DataFrame], labels: tuple[int, ...]) -> DataFrame:
    """The output of a job's only query as rows."""
    [stage] = job.queries.values()
    graph = stage.graph
    schema = from_arrow_schema(arrow_schema(graph.columns, change_log=graph.is_change_log))
    last, messages = _to_last(job, packed, labels)
    return messages.transformWithStateInPandas(
        RowsProcessor(last, labels), schema, "Append", _time_mode(last)
    )


def unpacked(stage: Stage, answer: DataFrame, query: int = 0) -> DataFrame:
    """A query's output as rows, from the packed answers of its shards."""
    graph = stage.graph
    schema = arrow_schema(graph.columns, change_log=graph.is_change_log)
    blobs = answer.where(f"kind = 'rows' AND query = {query:d}").select("blob")
    return blobs.mapInArrow(_unpacking(schema), from_arrow_schema(schema))


def _to_last(job: JobStage, packed: list[DataFrame], labels: tuple[int, ...]) -> tuple[JobStage, GroupedData]:
    """The last stage of a job, and the messages that reach its shards through those before it."""
    messages = packed[0]
    for each in packed[1:]:
        messages = messages.union(each)
    *before, last = job.chain
    for each in before:
        messages = _shards(messages.groupBy("shard"), each, labels, TO_SHARD_DDL)
    return last, messages.groupBy("shard")


def _shards(messages: GroupedData, job: JobStage, labels: tuple[int, ...], ddl: str) -> DataFrame:
    """What the shards of a stage say to messages, as rows of the given form."""
    return messages.transformWithState(ShardProcessor(job, labels), ddl, "Append", _time_mode(job))


def _time_mode(job: JobStage) -> str:
    return "none" if job.idle_ms is None else "processingTime"


def labels_for(spark: SparkSession, job: JobStage) -> tuple[int, ...]:
    """Labels for the number of shuffle partitions that the session has now."""
    return shard_partition_keys(job.places, int(spark.conf.get("spark.sql.shuffle.partitions")))


def prepare_session(spark: SparkSession) -> None:
    """Sees to the state store, which `transformWithState` works with only if it is RocksDB; other words stand."""
    chosen = spark.conf.getAll
    for key, value in STATE_STORE.items():
        if key not in chosen or (key == PROVIDER and "RocksDB" not in chosen[key]):
            spark.conf.set(key, value)


# Spark takes functions and looks at their arguments; what they refer to lives in modules that workers import.


def _packing(packer: Packer, labels: tuple[int, ...]) -> Any:
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - exists in a worker only

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        for piece in packer.messages(batches, part):
            yield to_shards(piece, labels)

    return pack


def _unpacking(schema: pa.Schema) -> Any:
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0):
                yield from decode_table(blob.as_py()).cast(schema).to_batches()

    return unpack
