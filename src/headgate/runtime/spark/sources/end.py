"""The end of streams as a source: one row that comes with all that there is of the other sources.

```
bids             ─── all that is there ───┐
rate-micro-batch ─── one row ── END ──────┼── one micro-batch, started with `availableNow`
rate             ─── nothing ─────────────┘
```

Spark splits what is there into several micro-batches only if every source can take part in that. `rate` cannot, so
beside it there is one, and the end never comes before the last row. Both sources are Spark's own: no file
has to be reached by all machines, and no other Python has to start.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.messages import TO_SHARD_DDL, to_shards
from headgate.runtime.spark.pack import pack_end


def packed_end(spark: SparkSession, job: JobStage, labels: tuple[int, ...]) -> DataFrame:
    """The message that all streams have ended, packed, which also makes one micro-batch of all that there is."""
    one = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=1, numPartitions=1).load()
    undivided = spark.readStream.format("rate").options(rowsPerSecond=1, numPartitions=1).load()
    ends = one.select("value").union(undivided.where("false").select("value"))
    return ends.mapInArrow(_ending(job, labels), TO_SHARD_DDL)


def _ending(job: JobStage, labels: tuple[int, ...]) -> Any:
    def end(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in pack_end(job, batches):
            yield to_shards(piece, labels)

    return end
