"""Settings of a session that a query has to start with; its own come back afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.runtime.spark import pipeline
from headgate.runtime.spark.failures import ignore_dead_jvm
from headgate.runtime.spark.filesystem import Folder

_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_RENAME = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


class start_settings:  # noqa: N801 - reads as a clause of `with`
    """Within it, queries start with so many shuffle partitions, and keep state and checkpoint as they should."""

    def __init__(self, spark: SparkSession, partitions: int, checkpoint: str | Path | None = None) -> None:
        self._spark = spark
        self._wanted = {"spark.sql.shuffle.partitions": str(partitions)} | checkpoint_files(spark, checkpoint)

    def __enter__(self) -> None:
        self._before = {key: self._spark.conf.get(key, None) for key in self._wanted}
        self._set(self._wanted)
        pipeline.prepare_session(self._spark)

    def __exit__(self, *failure: object) -> None:
        with ignore_dead_jvm():
            self._set(self._before)

    def _set(self, settings: Mapping[str, str | None]) -> None:
        for key, value in settings.items():
            if value is None:
                self._spark.conf.unset(key)
            else:
                self._spark.conf.set(key, value)


def checkpoint_files(spark: SparkSession, checkpoint: str | Path | None) -> dict[str, str]:
    """The setting by which Spark writes a checkpoint's files, if it lies on a disk and nobody has chosen.

    On a disk Spark's usual way starts ten processes (`chmod`, `readlink`) for each file; by Hadoop's older interface
    there are two. A micro-batch writes two files, and one more for each shard. Both ways put a file in place by one
    rename.
    """
    if (
        checkpoint is None
        or spark.conf.get(_FILE_MANAGER, None) is not None
        or Folder(spark, str(checkpoint)).local is None
    ):
        return {}
    return {_FILE_MANAGER: _BY_RENAME}
