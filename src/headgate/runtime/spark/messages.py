"""Messages: what travels to a shard and back, one Spark row each, with Arrow inside."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_NONE = -(1 << 63)
"""Stands for no instant: whole numbers among which some are missing would become fractions on the way."""

END = -1
"""The feed of the message that says that no more rows will come on any stream."""
RELAY = -3
"""The feed of a message that is passed on: `blob` is its contents, `late` its kind, name and number of rows."""

TO_SHARD = pa.schema(
    [
        ("shard", pa.int32()),
        ("query", pa.int32()),
        ("feed", pa.int32()),
        ("part", pa.int32()),
        ("seq", pa.int32()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        ("blob", pa.binary()),
        ("late", pa.binary()),
        ("read", pa.int64()),
    ]
)
TO_SHARD_DDL = (
    "shard int, query int, feed int, part int, seq int, low long, high long, blob binary, late binary, "
    "read long"
)
FROM_SHARD_DDL = "query int, kind string, name string, rows long, blob binary"
"""kind: `rows` of the query's output, `late` rows or `rejects` of the stream `name`, or `metrics` as JSON."""


@dataclass(frozen=True)
class Message:
    """A piece of a stream for one shard: its rows there, if any, and the piece's instants over all shards.

    It is for one query of a job, or for all that read the feed, where that is one of the job.
    Pieces of a stream are ordered by the partition and by the place in it from which they come. `late` are rows that
    were behind their own partition's clock already, by as much as they say, or too far ahead of the wall clock.
    `read` is how many rows the piece had but for those ahead.
    """

    feed: int
    part: int
    seq: int
    low: int | None
    high: int | None
    blob: bytes | None
    late: bytes | None = None
    read: int = 0
    query: int = 0

    def columns(self) -> dict[str, Any]:
        """The message as columns of a Spark row."""
        found = {name: _shown(getattr(self, name), name) for name in TO_SHARD.names[1:]}
        blobs = {name: bytearray(value) for name, value in found.items() if isinstance(value, bytes)}
        return found | blobs


@dataclass(frozen=True, eq=False)
class Reply:
    """One part of a shard's answer: a table of `rows` of the query, or bytes."""

    kind: str
    name: str
    rows: int
    content: pa.Table | bytes
    query: int = 0

    def columns(self) -> dict[str, Any]:
        """The reply as columns of a Spark row."""
        found = {name: getattr(self, name) for name in ("query", "kind", "name", "rows")}
        return found | {"blob": bytearray(self.blob)}

    @property
    def blob(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else encode_table(self.content)


def relay(reply: Reply) -> Message:
    """A reply as a message to the next stage, which passes it on."""
    header = json.dumps([reply.kind, reply.name, reply.rows]).encode()
    return Message(RELAY, 0, 0, None, None, reply.blob, header, query=reply.query)


def relayed(message: Message) -> Reply:
    """The reply that an earlier stage gave."""
    assert message.late is not None
    assert message.blob is not None
    kind, name, rows = json.loads(message.late)
    return Reply(kind, name, rows, message.blob, message.query)


def encode_table(table: pa.Table) -> bytes:
    """An Arrow table as an IPC stream, in exactly its types."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def decode_table(blob: bytes) -> pa.Table:
    """The Arrow table in an IPC stream."""
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()


def pandas_frame(table: pa.Table) -> Any:
    """A table as a pandas frame of Arrow columns, as Spark takes them; nested values have to be objects."""
    import pandas as pd  # noqa: PLC0415, TID251 - Spark asks for its frames, in a worker that has loaded it

    frame = pd.DataFrame(index=range(table.num_rows))
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            values = column.to_pylist(maps_as_pydicts="strict")
            frame[name] = pd.Series(values, dtype=object)
        else:
            frame[name] = pd.Series(pd.arrays.ArrowExtensionArray(column))
    return frame


def to_shards(rows: Sequence[tuple[int, Message]], labels: Sequence[int]) -> pa.RecordBatch:
    """Messages and the numbers of the shards they are for, as Spark rows."""
    columns: dict[str, list[Any]] = {name: [] for name in TO_SHARD.names}
    for shard, message in rows:
        columns["shard"].append(labels[shard])
        for name in TO_SHARD.names[1:]:
            columns[name].append(_shown(getattr(message, name), name))
    return pa.RecordBatch.from_pydict(columns, schema=TO_SHARD)


def _shown(value: Any, name: str) -> Any:
    return _NONE if value is None and name in ("low", "high") else value


def message_of(row: Any) -> Message:
    """The message in a Spark row."""
    return Message(
        int(row.feed),
        int(row.part),
        int(row.seq),
        None if row.low == _NONE else int(row.low),
        None if row.high == _NONE else int(row.high),
        None if row.blob is None else bytes(row.blob),
        None if row.late is None else bytes(row.late),
        int(row.read),
        int(row.query),
    )
