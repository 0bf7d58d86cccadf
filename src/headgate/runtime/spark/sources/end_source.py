"""The end of all streams as a source of its own, in Spark's Python Data Source interface.

A run that Spark's own sources feed reads all that is there first. If its queries drain, it is then started once more,
and this source has one more offset, whose only row says that the streams have ended. A run that is killed behind that
says it again when it goes on, which changes nothing.
"""

from __future__ import annotations

import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.runtime.spark.job import JobStage

_NAME = "headgate_end"


def packed_end_when_due(
    spark: SparkSession, job: JobStage, labels: tuple[int, ...], *, due: bool
) -> DataFrame:
    """The message that all streams have ended, packed, if this start of a job is the one that says it."""
    spark.dataSource.register(EndDataSource)
    content = b64encode(pickle.dumps((job.for_packing(), labels))).decode()
    return spark.readStream.format(_NAME).options(job=content, due=str(due).lower()).load()


class EndDataSource(DataSource):  # type: ignore[misc]
    """The source as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> str:
        from headgate.runtime.spark.messages import TO_SHARD_DDL  # noqa: PLC0415 - workers import this module

        return TO_SHARD_DDL

    def streamReader(self, schema: object) -> EndReader:  # noqa: N802 - Spark's name
        return EndReader(self.options["job"], due=self.options["due"] == "true")


class EndReader(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """How often the end was said is the offset."""

    def __init__(self, job: str, *, due: bool) -> None:
        self._job, self._due = job, due

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"ends": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Nothing comes while the query runs."""

    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        said, self._due = int(self._due), False
        return {"ends": int(start["ends"]) + said}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(0)] if int(end["ends"]) > int(start["ends"]) else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - the planner needs none of these

        from headgate.runtime.spark.messages import to_shards  # noqa: PLC0415
        from headgate.runtime.spark.pack import pack_end  # noqa: PLC0415

        job, labels = pickle.loads(b64decode(self._job))
        for piece in pack_end(job, [pa.record_batch({"end": [True]})]):
            yield to_shards(piece, labels)
