"""The output of a run as Spark's tasks write it, at any address and in any format of files that Spark knows.

```
ADDRESS/<query>/batch=3/part-….parquet          rows of micro-batch 3
ADDRESS/_late/<stream>/query=<query>/batch=3/…  late rows, likewise
```

Nothing is renamed by us: a store cannot do that. Spark writes a micro-batch into a folder of its own, in place of
what an earlier attempt left there. Who reads the folder without hidden names finds every row once, and `batch` too.
A reader who comes in the middle of a micro-batch may see a part of it; the notes (`query_output`) say which are
complete.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, when
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.runtime.io.options import IN_FULL
from headgate.runtime.io.registry import file_format, is_file_format
from headgate.runtime.output import (
    LATE,
    as_declared,
    escaped_name,
    late_batches,
    require_writable,
    safe_name,
)
from headgate.runtime.spark import pipeline
from headgate.runtime.spark.codec import decode
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.query_output import QueryOutput
from headgate.runtime.spark.rejects import REJECTS, RejectSink, counted

OTHER_FORMATS = {**IN_FULL, "rowTag": "ROW", "attributePrefix": "@"}
"""Options for formats that only Spark knows; XML has to be told what to call a row, and that `_time` is a column."""


class RemoteFolder(QueryOutput):
    """Where one query's output goes, and what has come so far."""

    # Readers of a folder of Parquet files leave out what begins so.
    metrics_name = "_metrics.json"

    def __init__(self, spark: SparkSession, address: str, *rest: Any, **named: Any) -> None:
        super().__init__(*rest, **named)
        self.spark, self.root = spark, Folder(spark, address.rstrip("/"))
        self.query = safe_name(self.stage.graph.query)
        self.options: Mapping[str, str] = OTHER_FORMATS
        if is_file_format(self.format):
            format = file_format(self.format)
            self.options = format.spark_options
            require_writable(format, self.schemas)
        self.late = {each.name: self.root / LATE / escaped_name(each.name) for each in self.stage.streams}

    @property
    def files(self) -> Folder:
        return self.root / self.query

    def has_results(self) -> str | None:
        late = (each / self._late_name for each in self.late.values())
        found = next((each for each in (*late, self.files) if each.names()), None)
        return None if found is None else str(found)

    @property
    def _late_name(self) -> str:
        return late_batches(self.query)

    def clear(self) -> None:
        with self.writable():
            for folder in self.late.values():
                folder.delete(self._late_name)
            self.root.delete(self.query)

    def has_rows(self) -> bool:
        batches = (self.files / name for name in self.files.names() if name.startswith("batch="))
        return any(not name.startswith((".", "_")) for each in batches for name in each.names())

    def write_nothing(self) -> None:
        schema = from_arrow_schema(self.schemas["rows"])
        apart = self.spark.newSession()
        _write_instants_with_zone(apart)
        self._write(apart.createDataFrame([], schema), self.files, 0)

    def put(self, kept: DataFrame, query: int, batch: int, rows: Counter[tuple[str, str]]) -> None:
        """Has Spark write a query's rows and late rows of a micro-batch, as many as there are of each kind."""
        # What an attempt left that had other rows, as it may from a source that has changed.
        self.files.delete(f"batch={batch}")
        for folder in self.late.values():
            (folder / self._late_name).delete(f"batch={batch}")
        for (kind, name), count in rows.items():
            if kind == "rows" and count:
                self._write(pipeline.unpacked(self.stage, kept, query), self.files, batch)
            elif kind == "late" and count and name in self.late:
                schema = self.schemas[f"late/{name}"]
                mine = kept.where((col("query") == query) & (col("kind") == "late") & (col("name") == name))
                late = mine.select("blob").mapInArrow(_late_rows(schema), from_arrow_schema(schema))
                self._write(late, self.late[name] / self._late_name, batch)

    def _write(self, rows: DataFrame, folder: Folder, batch: int) -> None:
        writer = rows.write.format(self.format).options(**self.options)
        writer.mode("overwrite").save(f"{folder}/batch={batch}")


def write_remote(
    outputs: Sequence[RemoteFolder], answer: DataFrame, batch: int, rejects: RejectSink | None = None
) -> None:
    """Puts a micro-batch's answers of all queries of a job in place, once; their kernels run once."""
    for output in outputs:
        if not output.is_mine:
            raise output.foreign()
    _write_instants_with_zone(answer.sparkSession)
    kept = answer.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        said = when(col("kind").isin("metrics", REJECTS), col("blob")).alias("content")
        parts = kept.select("query", "kind", "name", "rows", said).collect()
        bad = [row for row in parts if row.kind == REJECTS]
        if rejects is not None and not all(output.is_done(batch) for output in outputs):
            rejects.put(batch, bad)
        for query, output in enumerate(outputs):
            if output.is_done(batch):
                continue
            mine = [row for row in parts if row.query == query]
            rows: Counter[tuple[str, str]] = Counter()
            for row in mine:
                rows[row.kind, row.name] += row.rows
            output.put(kept, query, batch, rows)
            reports = [json.loads(bytes(row.content)) for row in mine if row.kind == "metrics"]
            output.note(batch, rows["rows", output.stage.graph.query], reports, counted(bad))
    finally:
        kept.unpersist()


def _write_instants_with_zone(session: SparkSession) -> None:
    """Has a session, which is a micro-batch's own, write instants as other readers know them: in UTC."""
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


def _late_rows(schema: pa.Schema) -> Any:
    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0):
                yield from as_declared(decode(blob.as_py()), schema).to_batches()

    return unpack
