"""The split reader: what a task does with the splits that it is given, rows in and packed messages out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from headgate.plan.catalog import StreamDef
from headgate.runtime.sources.source import FileSource
from headgate.runtime.spark.aside import Aside, publish
from headgate.runtime.spark.messages import Message, to_shards
from headgate.runtime.spark.pack import NOW, Packer, pack_end
from headgate.runtime.spark.sources.file_log import TaskSplits
from headgate.runtime.stage import Stage

READ_ROWS = 250_000


@dataclass(frozen=True, eq=False)
class SplitReader:
    """Reads streams as they are declared, and packs what a stage wants of their rows."""

    stage: Stage
    streams: tuple[StreamDef, ...]
    labels: tuple[int, ...]
    aside: Aside

    @staticmethod
    def of(
        stage: Stage, streams: tuple[StreamDef, ...], labels: tuple[int, ...], aside: Aside
    ) -> SplitReader:
        """One that can be sent to tasks, without what only shards need."""
        return SplitReader(replace(stage, tables={}, onward=None), streams, labels, aside)

    def read(self, task: TaskSplits, now: int) -> Iterator[pa.RecordBatch]:
        """The packed rows of a task's splits; `now` is when these were found."""
        for piece in self.messages(task, now):
            yield to_shards(piece, self.labels)

    def end(self) -> Iterator[pa.RecordBatch]:
        """That all streams have ended."""
        for piece in pack_end(self.stage, [pa.record_batch({"end": [True]})]):
            yield to_shards(piece, self.labels)

    def messages(self, task: TaskSplits, now: int) -> Iterator[list[tuple[int, Message]]]:
        """The messages to shards, piece by piece."""
        declared = next(each for each in self.streams if each.name == task.stream)
        wanted = self.stage.stream(task.stream)
        yield from Packer(self.stage, wanted).messages(self._rows(declared, task, now), task.order)

    def _rows(self, stream: StreamDef, task: TaskSplits, now: int) -> Iterator[pa.RecordBatch]:
        clock = [] if self.stage.clock.future_us is None else [_instant(now)]
        for number, part in enumerate(task.slices):
            refused = self.aside.state(stream.name)
            source = FileSource(
                stream,
                part.file.parent,
                rows_per_chunk=READ_ROWS,
                on_bad_row=self.aside.policy,
                only=part,
                rejects=refused,
            )
            for chunk in source.chunks():
                yield from chunk.with_columns(*clock).to_arrow().to_batches()
            publish(refused, f"{task.order:08d}-{number:03d}")


def _instant(now: int) -> pl.Expr:
    return pl.lit(now, pl.Int64).cast(pl.Datetime("us", "UTC")).alias(NOW)
