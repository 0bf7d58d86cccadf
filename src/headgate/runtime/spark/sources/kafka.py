"""Kafka topics as streams: JSON values by declared columns, read through Spark's own connector.

```
CREATE STREAM bids (ts TIMESTAMP, item STRING, price DOUBLE) TIMESTAMP BY ts
  USING kafka OPTIONS (kafka.bootstrap.servers 'localhost:9092', subscribe 'bids', keyColumn 'item')
```

Spark keeps the offsets in its checkpoint, and a micro-batch that is tried again reads the same messages. The values
become rows inside the tasks that pack them, by the code that reads JSON files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from headgate.kernels.expressions.dtypes import polars_type
from headgate.model.errors import InputError, SetupError
from headgate.model.schema import Column
from headgate.model.suggest import did_you_mean
from headgate.model.types import STRING
from headgate.plan.catalog import StreamDef
from headgate.runtime.io.conform import conformed
from headgate.runtime.io.documents import Documents
from headgate.runtime.io.fitting import unfit_reason
from headgate.runtime.io.kafka_options import KafkaOptions, type_of
from headgate.runtime.io.kafka_topic import SERVERS
from headgate.runtime.io.rejects import BadRow, RejectState
from headgate.runtime.spark.pack import NOW

_ANSWER_MS = 15_000


def kafka_frame(spark: SparkSession, options: KafkaOptions) -> DataFrame:
    """The messages of a stream's topics as Spark streams them."""
    reader = spark.readStream.format("kafka").options(**options.spark)
    return reader.load().select("key", "value", "topic", "partition", "offset", "timestamp")


def require_topics(spark: SparkSession, name: str, options: KafkaOptions) -> None:
    """Raises InputError if a topic of a stream is not there, SetupError if no server answers.

    Spark would wait, or stop with a message about partitions.
    """
    for topic in options.topics or []:
        require_topic(spark, topic, options.spark, f"stream {name}: ")


def require_topic(spark: SparkSession, topic: str, options: Mapping[str, str], reader: str = "") -> None:
    """Raises InputError if a topic is not there, SetupError if no server answers."""
    jvm: Any = spark._jvm
    settings = _client(jvm, options)
    servers = options[SERVERS]
    try:
        client = jvm.org.apache.kafka.clients.admin.AdminClient.create(settings)
        try:
            known = sorted(client.listTopics().names().get())
        finally:
            client.close(jvm.java.time.Duration.ofSeconds(1))
    except Exception as error:
        if not type(error).__module__.startswith(("py4j", "pyspark")):
            raise
        raise SetupError(
            f"{reader}Kafka at {servers} does not answer: {_reason(error)}",
            remedy=f"check {SERVERS} and that the server runs; nothing is lost",
        ) from error
    if topic not in known:
        raise InputError(
            f"{reader}there is no topic {topic} at {servers}",
            remedy=did_you_mean(topic, known) or "create it first",
        )


def ends_of(spark: SparkSession, topic: str, options: Mapping[str, str]) -> dict[str, int]:
    """By partition, the offset that the next message of a topic will get."""
    jvm: Any = spark._jvm
    settings = _client(jvm, options)
    for each in ("key", "value"):
        settings.put(f"{each}.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer")
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    try:
        places = jvm.java.util.ArrayList()
        for each in consumer.partitionsFor(topic):
            places.add(jvm.org.apache.kafka.common.TopicPartition(topic, each.partition()))
        ends = consumer.endOffsets(places)
        return {str(place.partition()): int(ends[place]) for place in places}
    finally:
        consumer.close()


def _client(jvm: Any, options: Mapping[str, str]) -> Any:
    """The properties of a Kafka client in Spark's process."""
    settings = jvm.java.util.Properties()
    given = {key[len("kafka.") :]: value for key, value in options.items() if key.startswith("kafka.")}
    for key, value in {"default.api.timeout.ms": _ANSWER_MS, "request.timeout.ms": 10_000, **given}.items():
        settings.put(key, str(value))
    return settings


def _reason(error: Exception) -> str:
    """The innermost cause of a failure in Java, in one line."""
    lines = [line for line in str(error).splitlines() if "Exception" in line and not line.startswith("\tat")]
    return lines[-1].removeprefix("Caused by: ").lstrip(": ")[:300] if lines else type(error).__name__


@dataclass(frozen=True)
class Decoder:
    """Makes rows of messages, in the tasks that read them."""

    stream: StreamDef
    options: KafkaOptions

    def rows(self, batches: Iterator[pa.RecordBatch], refused: RejectState) -> Iterator[pa.RecordBatch]:
        """The rows of a task's messages, with the column `NOW` if the messages have it."""
        for batch in batches:
            if batch.num_rows:
                rows = self._decoded(batch, refused)
                if rows.height:
                    yield from rows.to_arrow().to_batches()

    def _decoded(self, batch: pa.RecordBatch, refused: RejectState) -> pl.DataFrame:
        """The rows of a batch in the declared order; bad messages are refused."""
        aside = {self.options.key, self.options.timestamp}
        columns = tuple(each for each in self.stream.columns if each.name not in aside)
        inner = replace(self.stream, columns=columns)
        read = Documents(inner, self.options.forms, self.options.complete).read(
            batch.column("value").cast(pa.binary()), stops=refused.policy.stops
        )
        bad = [*read.bad]
        chosen = batch.take(pa.array(read.places))
        frame = read.rows
        if self.options.timestamp is not None:
            series = pl.Series(self.options.timestamp, chosen.column("timestamp"))
            kind = polars_type(type_of(self.stream, self.options.timestamp))
            frame = frame.with_columns(series.dt.cast_time_unit("us").cast(kind))
        good = pl.Series([True]).new_from_index(0, frame.height)
        if self.options.key is not None:
            keys, failed = self._keys(chosen.column("key"))
            frame = frame.with_columns(keys)
            if failed is not None:
                column = next(each for each in self.stream.columns if each.name == self.options.key)
                text = chosen.column("key").cast(pa.binary())
                bad += [
                    BadRow(
                        "",
                        unfit_reason(text[index], column, self.options.forms),
                        int(read.places[index]),
                        None,
                        column.name,
                    )
                    for index in failed.arg_true().to_list()
                ]
                good = ~failed
        if NOW in batch.schema.names:
            frame = frame.with_columns(pl.Series(NOW, chosen.column(NOW)))
        refused.refuse([self._placed(each, batch) for each in sorted(bad, key=lambda each: each.row or 0)])
        names = [each.name for each in self.stream.columns]
        return frame.select(*names, *([NOW] if NOW in frame.columns else [])).filter(good)

    def _keys(self, keys: pa.Array) -> tuple[pl.Series, pl.Series | None]:
        """The keys in the type of their column, and which of them are none."""
        name = self.options.key
        assert name is not None
        declared = type_of(self.stream, name)
        if declared == pa.binary():
            return pl.Series(name, keys.cast(pa.binary())), None
        valid = pc.is_valid(keys)
        try:
            texts = keys.cast(pa.binary()).cast(STRING)
        except pa.ArrowInvalid:
            texts = _readable(keys.cast(pa.binary()))
        series, _ = conformed(texts, Column(name, declared), self.options.forms)
        lost = pl.Series(valid) & series.is_null()
        return series, lost if lost.any() else None

    def _placed(self, bad: BadRow, batch: pa.RecordBatch) -> BadRow:
        """A bad message with its place in its topic."""
        index = bad.row or 0
        topic, partition, offset = (batch.column(name)[index] for name in ("topic", "partition", "offset"))
        return replace(
            bad,
            file=f"topic {topic.as_py()}, partition {partition.as_py()}, offset {offset.as_py()}",
            row=None,
        )


def _readable(keys: pa.Array) -> pa.Array:
    """Keys that are text, and NULL for those that are not."""
    return pa.array([_text(each) for each in keys.to_pylist()], STRING)


def _text(key: bytes | None) -> str | None:
    try:
        return None if key is None else key.decode()
    except UnicodeDecodeError:
        return None
