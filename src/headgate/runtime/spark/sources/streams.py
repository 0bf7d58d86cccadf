"""Declared streams as Spark's own sources read them, packed for the shards of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import current_timestamp

from headgate.model.errors import DeclarationError, InputError, SetupError
from headgate.plan.catalog import StreamDef
from headgate.runtime.io.files import find_files, is_elsewhere
from headgate.runtime.io.kafka_options import read_kafka_options
from headgate.runtime.io.registry import FILE_FORMATS, declared_files
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.cluster import first_line
from headgate.runtime.spark.frames import require_columns
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import TO_SHARD_DDL, to_shards
from headgate.runtime.spark.pack import NOW, Packer
from headgate.runtime.spark.rejects import TaskRejects, with_rejects
from headgate.runtime.spark.sources import connectors
from headgate.runtime.spark.sources.binary_files import file_contents, rows_of_files
from headgate.runtime.spark.sources.kafka import Decoder, kafka_frame, require_topics

Reading = Callable[[Iterator[pa.RecordBatch], TaskRejects], Iterator[pa.RecordBatch]]
"""What makes declared rows of what Spark has read, and refuses those that are none."""


def is_file(stream: StreamDef) -> bool:
    """Whether a stream is read from files, by the code that both engines share."""
    return stream.source is not None and stream.source.format in FILE_FORMATS


def has_end(stream: StreamDef) -> bool:
    """Whether what there is of a stream now can be read to its end: files, and messages that are there."""
    return stream.source is None or is_file(stream) or stream.source.format == "kafka"


def packed_stream(
    spark: SparkSession, job: JobStage, stream: StreamDef, base: Path, labels: tuple[int, ...], *, keeps: bool
) -> DataFrame:
    """A declared stream from Spark's source of its format, packed; bad rows are kept, or stop the run."""
    if stream.source is not None and stream.source.format == "kafka":
        return _packed_kafka(spark, job, stream, labels, keeps=keeps)
    if is_file(stream):
        return _packed_files(spark, job, stream, base, labels, keeps=keeps)
    return pipeline.packed_frame(job, stream.name, native(spark, stream), labels)


def _packed_kafka(
    spark: SparkSession, job: JobStage, stream: StreamDef, labels: tuple[int, ...], *, keeps: bool
) -> DataFrame:
    options = read_kafka_options(stream)
    with _known("kafka"):
        messages = kafka_frame(spark, options)
    require_topics(spark, stream.name, options)
    # Messages are read as they are declared; of their rows the job may want less.
    packer = Packer.of(job, stream.name)
    if packer.looks_ahead:
        messages = messages.withColumn(NOW, current_timestamp())
    decoder = Decoder(stream, options)
    return messages.mapInArrow(_packing(decoder.rows, packer, labels, keeps=keeps), TO_SHARD_DDL)


def _packed_files(
    spark: SparkSession, job: JobStage, stream: StreamDef, base: Path, labels: tuple[int, ...], *, keeps: bool
) -> DataFrame:
    path = declared_files(stream).path
    if not is_elsewhere(path):
        find_files(path, base)
    with _known(_format(stream)):
        files = file_contents(spark, stream, base)
    packer = Packer.of(job, stream.name)
    if packer.looks_ahead:
        files = files.withColumn(NOW, current_timestamp())
    return files.mapInArrow(
        _packing(partial(rows_of_files, stream), packer, labels, keeps=keeps), TO_SHARD_DDL
    )


def _format(stream: StreamDef) -> str:
    assert stream.source is not None
    return stream.source.format


def native(spark: SparkSession, stream: StreamDef) -> DataFrame:
    """A declared stream as Spark's own source reads it."""
    if stream.source is None:
        raise DeclarationError(
            f"stream {stream.name} has no rows",
            remedy=f"give it a DataFrame with session.stream({stream.name!r}, …), or declare it with USING",
        )
    options = dict(stream.source.options)
    reader = spark.readStream.format(stream.source.format)
    with _known(stream.source.format):
        frame = reader.options(**options).load()
    require_columns(frame, stream, f"stream {stream.name}: {stream.source.format}")
    return frame


class _known:  # noqa: N801 - reads as a clause of `with`
    """Within it, Spark's complaint that it does not know a format, or an option of it, is said in our words."""

    def __init__(self, format: str) -> None:
        self._format = format

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if failure is None or isinstance(failure, InputError | SetupError):
            return
        if isinstance(failure, PySparkException) or type(failure).__module__.startswith("py4j"):
            if connectors.is_missing(str(failure)):
                raise connectors.missing(self._format) from failure
            raise InputError(
                f"Spark cannot read from {self._format}: {first_line(failure)}", remedy="check its OPTIONS"
            ) from failure


def _packing(read: Reading, packer: Packer, labels: tuple[int, ...], *, keeps: bool) -> Any:
    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415 - exists in a worker only

        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        refused = TaskRejects.of(packer.stream.name, keeps=keeps)
        pieces = packer.messages(read(batches, refused), part)
        for piece in with_rejects(pieces, refused, packer.job):
            yield to_shards(piece, labels)

    return pack
