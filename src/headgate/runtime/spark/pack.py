"""Pack: rows of a stream's partition in, one message per shard out; rows never cross the shuffle as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl
import pyarrow as pa

from headgate.kernels.expressions import keep_rows, polars_type
from headgate.model.batch import BORN
from headgate.plan.catalog import StreamDef
from headgate.runtime.data import frame_of
from headgate.runtime.io.arrival import Arrival, without_future
from headgate.runtime.lateness import LATE_BY
from headgate.runtime.spark.codec import encode
from headgate.runtime.spark.job import JobFeed, JobStage
from headgate.runtime.spark.messages import END, Message
from headgate.runtime.spark.routing import routed
from headgate.runtime.stage import Stage

NOW = "_headgate_now"
"""The instant of the micro-batch, where rows from the future are looked for."""

_PIECE_ROWS = 500_000
_PIECE_BYTES = 1 << 27


@dataclass(frozen=True, eq=False)
class Packer:
    """Packs partitions of one stream for the shards of a job."""

    job: JobStage
    stream: StreamDef

    @staticmethod
    def of(job: JobStage, name: str) -> Packer:
        """What packs the stream of that name."""
        return Packer(job, next(each for each in job.streams if each.name == name))

    @property
    def looks_ahead(self) -> bool:
        """Whether rows from the future are looked for, so that the instant of the micro-batch is needed."""
        return self._stage.clock.future_us is not None

    @cached_property
    def _stage(self) -> Stage:
        """A stage that reads the stream; all of a job have the same clock."""
        return next(
            stage
            for stage in self.job.queries.values()
            if self.stream.name in {s.name for s in stage.streams}
        )

    def messages(self, batches: Iterable[pa.RecordBatch], part: int) -> Iterator[list[tuple[int, Message]]]:
        """All messages of a partition, piece by piece, each with the place that it goes to."""
        arrival = Arrival(self.stream)
        for seq, frame in enumerate(_pieces(batches)):
            rows, ahead = self._without_future(frame)
            ahead = ahead.with_columns(pl.lit(None, dtype=pl.Int64).alias(LATE_BY))
            if self._stage.in_order(self.stream):
                admitted = arrival.admit(rows)
                late = admitted.late.drop(BORN).with_columns(admitted.late_by.alias(LATE_BY))
                yield self._split(admitted.rows, pl.concat([late, ahead]), rows.height, part, seq)
            else:
                # Late by the micro-batches before, which the shard knows.
                yield self._split(arrival.timed(rows), ahead, rows.height, part, seq)

    def _without_future(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows that are not from the far future, and those that are, in the declared types."""
        rows, limit = frame_of(frame, self.stream.columns), self._stage.clock.future_us
        return without_future(rows, self.stream, limit, None if limit is None else frame[NOW])

    def _split(
        self, rows: pl.DataFrame, aside: pl.DataFrame, read: int, part: int, seq: int
    ) -> list[tuple[int, Message]]:
        """The messages of a piece; `aside` are rows that are late by so much, or too early."""
        low, high = (None, None) if rows.is_empty() else (rows[BORN].min(), rows[BORN].max())
        assert low is None or isinstance(low, int)
        assert high is None or isinstance(high, int)
        messages: list[tuple[int, Message]] = []
        late = encode(aside) if aside.height else None
        for number, feed in self.job.feeds_of(self.stream.name):
            blobs = self._by_shard(feed, rows)
            for shard, place in enumerate(self.job.places_of(feed.query)):
                message = Message(number, part, seq, low, high, blobs.get(shard), query=feed.query)
                if shard == 0 and feed.counts:
                    message = replace(message, late=late, read=read)
                messages.append((place, message))
        return messages

    def _by_shard(self, feed: JobFeed, rows: pl.DataFrame) -> dict[int, bytes]:
        """The rows as each shard gets them; what goes to several shards is encoded once."""
        blobs: dict[int, bytes] = {}
        predicate = self.job.feed(feed).predicate
        if predicate is not None:
            rows = keep_rows(rows, predicate)
        for shards, part in routed(self.job.routes(feed), feed.feed, rows):
            blob = encode(without_time(part, self.stream))
            for shard in shards:
                blobs[shard] = blob
        return blobs


def without_time(rows: pl.DataFrame, stream: StreamDef) -> pl.DataFrame:
    """The rows without their event time, which `_born` says too."""
    assert stream.time is not None
    return rows.drop(stream.time)


def with_time(rows: pl.DataFrame, stream: StreamDef) -> pl.DataFrame:
    """The rows with their event time again, where it was."""
    columns = {column.name: pl.col(column.name) for column in stream.columns}
    for column in stream.columns:
        if column.name == stream.time:
            dtype = polars_type(column.type)
            instant = dtype if isinstance(dtype, pl.Datetime) else pl.Datetime("us")
            columns[column.name] = pl.col(BORN).cast(instant).cast(dtype).alias(column.name)
    return rows.select(*columns.values(), BORN)


def pack_end(
    job: JobStage, batches: Iterable[pa.RecordBatch], *, at_once: bool = False
) -> Iterator[list[tuple[int, Message]]]:
    """The message that all streams have ended, to every shard of queries that drain, if there is any row.

    With `at_once`, it goes to queries that read no stream instead.
    """
    if sum(batch.num_rows for batch in batches):
        for query, drains in enumerate(job.drains):
            stage = job.stages[query]
            if not (stage is None or stage.streams) if at_once else drains:
                message = Message(END, 0, 0, None, None, None, query=query)
                yield [(place, message) for place in job.places_of(query)]


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pl.DataFrame]:
    """Arrow batches gathered into larger frames."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows == 0:
            continue
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _PIECE_ROWS or size >= _PIECE_BYTES:
            yield _frame(held)
            held, rows, size = [], 0, 0
    if held:
        yield _frame(held)


def _frame(batches: list[pa.RecordBatch]) -> pl.DataFrame:
    frame = pl.from_arrow(pa.Table.from_batches(batches), rechunk=True)
    assert isinstance(frame, pl.DataFrame)
    return frame
