"""A Kafka topic as the place of a query's output: one JSON object for each row, or for each birth and death.

```
key      "anvil"                                                          the columns of `key`
value    {"item": "anvil", "bids": 3, "_time": "2026-…", "_op": "+"}
headers  headgate-batch 7 · headgate-id <run>-7-0-0-3f2a…
```

A message has a `headgate-id`, made of the run, the micro-batch, the shard, the row and its number among equal rows,
and no other message has it. Before a micro-batch is written, the ends of the topic's partitions are noted in the
checkpoint; a micro-batch that comes again after a crash finds the note, reads what is behind it, and writes only what
is not there. Where Spark tries a task again within a micro-batch, messages may still be there twice: with one id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from headgate.model.errors import InputError
from headgate.model.suggest import did_you_mean
from headgate.runtime.output import OP, TIME, escaped_name

if TYPE_CHECKING:
    from headgate.runtime.spark.filesystem import Folder

NUMBER, IDENTITY = "_headgate_number", "_headgate_id"
SERVERS = "kafka.bootstrap.servers"
NO_USER = "Kafka's servers have no user in their address"
HOW_TO_SIGN_IN = (
    "name servers as host:9092, and sign in with the options kafka.security.protocol, kafka.sasl.mechanism "
    "and kafka.sasl.jaas.config"
)
_ID_HEADER = "headgate-id"
_JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timeZone": "UTC", "ignoreNullFields": "false"}


@dataclass
class KafkaTopic:
    """A sink that writes a query's output to a topic. Hand it to `Query.start` as the sink.

    `key` names the columns by which messages are keyed, so that Kafka keeps them in order; without it, those of a
    query whose answer changes are keyed by the whole row, and others have no key. `options` go to Spark's connector,
    such as `kafka.security.protocol`.
    """

    servers: str
    topic: str
    key: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    notes: Folder | None = field(default=None, repr=False)
    """A folder of the checkpoint, if there is one."""
    query: str = field(default="", repr=False)
    """Tells the messages of several queries of one job apart."""
    checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if "@" in self.servers:
            raise InputError(f"topic {self.topic}: {NO_USER}", remedy=HOW_TO_SIGN_IN)

    @staticmethod
    def of(options: Mapping[str, str]) -> KafkaTopic:
        """The sink that options in Spark's words mean, with `keyColumn` for the key."""
        rest = dict(options)
        servers, topic = rest.pop(SERVERS, None), rest.pop("topic", None)
        if servers is None or topic is None:
            raise InputError(
                f"a Kafka sink needs {SERVERS} and topic",
                remedy=f"give sink_options={{'{SERVERS}': …, 'topic': …}}",
            )
        key = tuple(each.strip() for each in rest.pop("keyColumn", "").split(",") if each.strip())
        return KafkaTopic(servers, topic, key, rest)

    def __call__(self, rows: Any, batch: int) -> None:
        """Writes a micro-batch of Spark's."""
        spark = rows.sparkSession
        if not self.checked:
            self._check(spark, rows.columns)
        run = (spark.sparkContext.getLocalProperty("sql.streaming.queryId") or "") + self.query
        messages = as_messages(rows, batch, run, self.key)
        reached = {**self.options, SERVERS: self.servers}
        if self.notes is not None:
            messages = self._missing(spark, messages, batch, reached)
        given = {**reached, "topic": self.topic, "includeHeaders": "true"}
        messages.drop(IDENTITY).write.format("kafka").options(**given).save()

    def beside(self, checkpoint: Folder, query: str) -> KafkaTopic:
        """The same sink for a query, with its notes in a checkpoint."""
        return replace(self, notes=checkpoint / "headgate" / "kafka" / escaped_name(query), query=query)

    def _missing(self, spark: Any, messages: Any, batch: int, reached: Mapping[str, str]) -> Any:
        """The messages of a micro-batch without those that an earlier attempt has written."""
        from pyspark.sql import functions as f

        from headgate.runtime.spark.sources.kafka import ends_of

        assert self.notes is not None
        note = self.notes.read(f"{batch}.json")
        if note is None:
            ends = json.dumps({self.topic: ends_of(spark, self.topic, reached)})
            self.notes.write(f"{batch}.json", ends.encode())
            for old in self.notes.names():
                number = old.removesuffix(".json")
                if number.isdecimal() and int(number) < batch - 1:
                    self.notes.delete(old)
            return messages
        window = {"subscribe": self.topic, "startingOffsets": note.decode(), "includeHeaders": "true"}
        found = spark.read.format("kafka").options(**reached, **window).load()
        header = f.filter("headers", lambda each: each["key"] == _ID_HEADER)[0]["value"]
        written = found.select(header.cast("string").alias(IDENTITY)).where(f.col(IDENTITY).isNotNull())
        return messages.join(f.broadcast(written.distinct()), IDENTITY, "left_anti")

    def _check(self, spark: Any, columns: list[str]) -> None:
        """Raises InputError if a column of the key, or the topic, is not there."""
        from headgate.runtime.spark.sources.kafka import require_topic

        known = {each.casefold(): each for each in columns}
        for name in self.key:
            if name.casefold() not in known:
                raise InputError(
                    f"the key of topic {self.topic} names {name}, which is no column of the query",
                    remedy=did_you_mean(name, columns),
                )
        require_topic(spark, self.topic, {**self.options, SERVERS: self.servers})
        self.checked = True


def as_messages(rows: Any, batch: int, run: str, key: tuple[str, ...]) -> Any:
    """Rows of a query's output as messages: key, value and headers, and the id beside them.

    -0.0 is written as 0.0, so that a birth and a death of equal rows have one key.
    """
    from pyspark.sql import functions as f

    quoted = {each: f.col(f"`{each.replace('`', '``')}`") for each in rows.columns}
    floats = [each.name for each in rows.schema if each.dataType.typeName() in ("float", "double")]
    plain = {each: f.when(quoted[each] == 0, f.abs(quoted[each])).otherwise(quoted[each]) for each in floats}
    rows = rows.withColumns(plain) if plain else rows
    if not key and OP in quoted:
        key = tuple(each for each in rows.columns if each not in (TIME, OP))
    value = f.to_json(f.struct(*quoted.values()), _JSON)
    chosen = [quoted[name] for name in rows.columns if name.casefold() in {each.casefold() for each in key}]
    match chosen:
        case []:
            keyed = f.lit(None).cast("string")
        case [one]:
            keyed = one.cast("string")
        case _:
            keyed = f.to_json(f.struct(*chosen), _JSON)
    numbered = rows.mapInArrow(_numbering(), _with_number(rows.schema))
    made = numbered.select(
        keyed.alias("key"), value.alias("value"), f.col(NUMBER), f.spark_partition_id().alias("p")
    )
    identity = f.concat_ws(
        "-",
        f.lit(run),
        f.lit(batch),
        f.col("p"),
        f.col(NUMBER),
        f.substring(f.sha2(f.col("value"), 256), 1, 16),
    )
    made = made.withColumn(IDENTITY, identity)
    headers = {"headgate-batch": f.lit(str(batch)), _ID_HEADER: f.col(IDENTITY)}
    listed = [
        f.struct(f.lit(name).alias("key"), text.cast("binary").alias("value"))
        for name, text in headers.items()
    ]
    return made.select("key", "value", f.array(*listed).alias("headers"), IDENTITY)


def _with_number(schema: Any) -> Any:
    from pyspark.sql.types import IntegerType, StructField, StructType

    return StructType([*schema.fields, StructField(NUMBER, IntegerType())])


def _numbering() -> Any:
    """Gives every row of a partition its number among equal rows."""

    def number(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return
        table = pa.Table.from_batches(held)
        frame = pl.DataFrame(pl.from_arrow(table))
        equal = pl.DataFrame({"row": frame.hash_rows()})
        numbers = equal.select(pl.int_range(pl.len(), dtype=pl.Int32).over("row").alias(NUMBER)).to_series()
        column = numbers.to_arrow()
        yield from table.append_column(NUMBER, pa.chunked_array([column])).combine_chunks().to_batches()

    return number
