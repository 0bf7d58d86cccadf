"""Files as a streaming source in Spark's Python Data Source interface, whose readers pack while they read.

```
planner, beside the driver    latestOffset: new files → log → offset (micro-batch, digest), which Spark keeps
                              partitions:   offsets → what each task reads
tasks                         read:         splits → rows → messages for shards; rows never pass through Java
```

A micro-batch that Spark repeats reads what the log says of it. Spark starts processes that import this module for
each query, so what is heavy is imported where it is used.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.spark.sources.file_log import FileBatch, FileLog, Offset, TaskSplits
    from headgate.runtime.spark.sources.file_planner import FilePlanner
    from headgate.runtime.spark.sources.split_reader import SplitReader

_NAME = "headgate_files"
_PLANNER, _READER = "planner", "reader"


def packed_files(spark: SparkSession, planner: FilePlanner, reader: SplitReader) -> DataFrame:
    """Streams read from files, packed: what is read when, and what tasks do with it."""
    spark.dataSource.register(FileDataSource)
    stream = spark.readStream.format(_NAME)
    options = {_PLANNER: planner, _READER: reader}
    return stream.options(**{name: _packed(each) for name, each in options.items()}).load()


class FileDataSource(DataSource):  # type: ignore[misc]
    """The source as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> str:
        from headgate.runtime.spark.messages import TO_SHARD_DDL  # noqa: PLC0415

        return TO_SHARD_DDL

    def streamReader(self, schema: object) -> FileStreamReader:  # noqa: N802 - Spark's name
        return FileStreamReader(self.options[_PLANNER], self.options[_READER])


class TaskPartition(InputPartition):  # type: ignore[misc]
    """What one task reads, and whether it says that all streams have ended, or that those who read none may begin."""

    def __init__(
        self, splits: TaskSplits | None, now: int, *, ends: bool = False, begins: bool = False
    ) -> None:
        super().__init__(None)
        self.splits, self.now, self.ends, self.begins = splits, now, ends, begins


class FileStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Offsets and partitions in the planner's process, rows in those of tasks."""

    def __init__(self, planner: str, reader: str) -> None:
        self._packed_planner, self._packed_reader = planner, reader
        self._available_now = self._planned = False

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        from headgate.runtime.spark.sources.file_log import START  # noqa: PLC0415

        return START.as_json

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._planner.batch_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        # Planned is with the first offset: nothing is added to a log that does not fit it.
        self._available_now = True

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """One micro-batch more than before, if there is any."""
        begun = _offset(start)
        self._log.check(begun)
        if self._available_now and not self._planned:
            self._planner.plan(ends=self._planner.ends)
            self._planned = True
        elif begun == self._log.last and not self._available_now:
            self._planner.look()
        last = self._log.last
        if begun == last or isinstance(limit, ReadAllAvailable):
            return last.as_json
        return self._log.offset(begun.batch + 1).as_json

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[TaskPartition]:
        begun = _offset(start)
        batches = self._log.between(begun, _offset(end))
        found = [each for batch in batches for each in _partitions(batch)]
        if batches and begun.batch == 0 and self._planner.at_once:
            found.append(TaskPartition(None, batches[0].now, begins=True))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from headgate.runtime.spark.worker_memory import leave_out_imports  # noqa: PLC0415

        assert isinstance(partition, TaskPartition)
        reader: SplitReader = _unpacked(self._packed_reader)
        if partition.splits is not None:
            yield from reader.read(partition.splits, partition.now)
        if partition.begins:
            yield from reader.begin()
        if partition.ends:
            yield from reader.end()
        leave_out_imports("read")

    def commit(self, end: Mapping[str, Any]) -> None:
        # The last one is kept: nothing else says what Spark has read.
        self._log.compact(_offset(end).batch - 1)

    @cached_property
    def _planner(self) -> FilePlanner:
        found: FilePlanner = _unpacked(self._packed_planner)
        return found

    @property
    def _log(self) -> FileLog:
        return self._planner.log


def _partitions(batch: FileBatch) -> list[TaskPartition]:
    found = [TaskPartition(task, batch.now) for task in batch.tasks]
    return [*found, TaskPartition(None, batch.now, ends=True)] if batch.ends else found


def _offset(found: Mapping[str, Any]) -> Offset:
    from headgate.runtime.spark.sources.file_log import Offset  # noqa: PLC0415

    return Offset(int(found["batch"]), str(found["digest"]))


def _packed(content: object) -> str:
    return b64encode(pickle.dumps(content)).decode()


@lru_cache(maxsize=8)
def _unpacked(content: str) -> Any:
    """What was packed, once for each process that runs tasks."""
    return pickle.loads(b64decode(content))
