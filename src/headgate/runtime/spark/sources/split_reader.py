"""The split reader: what a task does with the splits that it is given, rows in and packed messages out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from headgate.plan.catalog import StreamDef
from headgate.runtime.io.source import FileSource
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import Message, to_shards
from headgate.runtime.spark.pack import NOW, Packer, pack_end
from headgate.runtime.spark.rejects import TaskRejects, with_rejects
from headgate.runtime.spark.sources.file_log import TaskSplits

READ_ROWS = 250_000


@dataclass(frozen=True, eq=False)
class SplitReader:
    """Reads streams as they are declared, and packs what a job wants of their rows."""

    job: JobStage
    streams: tuple[StreamDef, ...]
    labels: tuple[int, ...]
    keeps: bool = False
    """Whether bad rows are kept; otherwise the first of them stops the run."""

    @staticmethod
    def of(
        job: JobStage, streams: tuple[StreamDef, ...], labels: tuple[int, ...], *, keeps: bool = False
    ) -> SplitReader:
        """One that can be sent to tasks, without what only shards need."""
        return SplitReader(job.for_packing(), streams, labels, keeps)

    def read(self, task: TaskSplits, now: int) -> Iterator[pa.RecordBatch]:
        """The packed rows of a task's splits; `now` is when these were found."""
        for piece in self.messages(task, now):
            yield to_shards(piece, self.labels)

    def begin(self) -> Iterator[pa.RecordBatch]:
        """That queries over tables alone have nothing to wait for."""
        for piece in pack_end(self.job, [pa.record_batch({"end": [True]})], at_once=True):
            yield to_shards(piece, self.labels)

    def end(self) -> Iterator[pa.RecordBatch]:
        """That all streams have ended."""
        for piece in pack_end(self.job, [pa.record_batch({"end": [True]})]):
            yield to_shards(piece, self.labels)

    def messages(self, task: TaskSplits, now: int) -> Iterator[list[tuple[int, Message]]]:
        """The messages to shards, piece by piece."""
        declared = next(each for each in self.streams if each.name == task.stream)
        packer = Packer.of(self.job, task.stream)
        clock = [_instant(now)] if packer.looks_ahead else []
        refused = TaskRejects.of(task.stream, keeps=self.keeps)
        rows = _rows(declared, task, clock, refused)
        yield from with_rejects(packer.messages(rows, task.order), refused, self.job)


def _rows(
    stream: StreamDef, task: TaskSplits, clock: Sequence[pl.Expr], refused: TaskRejects
) -> Iterator[pa.RecordBatch]:
    for part in task.slices:
        source = FileSource(
            stream,
            part.file.parent,
            rows_per_chunk=READ_ROWS,
            on_bad_row=refused.policy,
            only=part,
            rejects=refused,
        )
        for chunk in source.chunks():
            yield from chunk.with_columns(*clock).to_arrow().to_batches()


def _instant(now: int) -> pl.Expr:
    return pl.lit(now, pl.Int64).cast(pl.Datetime("us", "UTC")).alias(NOW)
