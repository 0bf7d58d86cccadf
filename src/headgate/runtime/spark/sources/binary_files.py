"""Files that Spark's own file source finds and reads, and our own readers make rows of.

Spark streams the names and bytes of whole files, from any address that its file systems know; which of them it has
read stands in its own checkpoint. A task puts a file's bytes into a folder of its own, where the reader of the
declared format finds them. So a declaration has one meaning wherever its files are, and bad rows are named by file
and line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headgate.model.errors import HeadgateError
from headgate.plan.catalog import StreamDef
from headgate.runtime.io.files import is_elsewhere, local_path
from headgate.runtime.io.options import PACING
from headgate.runtime.io.registry import declared_files
from headgate.runtime.io.source import FileSource, Slice
from headgate.runtime.spark.pack import NOW
from headgate.runtime.spark.rejects import TaskRejects

READ_ROWS = 250_000
_SCHEMA = "path string, modificationTime timestamp, length long, content binary"


def file_contents(spark: SparkSession, stream: StreamDef, base: Path) -> DataFrame:
    """The files of a stream as Spark's source streams them, by `path` and `content`."""
    assert stream.source is not None
    given = {name.casefold(): value for name, value in stream.source.options}
    pacing = {name: given[name.casefold()] for name in PACING if name.casefold() in given}
    reader = spark.readStream.format("binaryFile").schema(_SCHEMA)
    reader = reader.options(recursiveFileLookup="true", **pacing)
    return reader.load(_address(declared_files(stream).path, base)).select("path", "content")


def _address(path: str, base: Path) -> str:
    """The path or pattern of a declaration as Spark reads it."""
    if is_elsewhere(path):
        return path
    return f"file:{(base / local_path(path)).absolute()}"


def rows_of_files(
    stream: StreamDef, batches: Iterator[pa.RecordBatch], refused: TaskRejects
) -> Iterator[pa.RecordBatch]:
    """The rows of a task's files, as they are declared, with the column `NOW` if the files have it."""
    for batch in batches:
        for place in range(batch.num_rows):
            clock = {} if NOW not in batch.schema.names else {NOW: batch.column(NOW)[place]}
            path, content = (batch.column(name)[place] for name in ("path", "content"))
            yield from _rows(stream, unquote(path.as_py()), content.as_buffer(), refused, clock)


def _rows(
    stream: StreamDef, address: str, content: pa.Buffer, refused: TaskRejects, clock: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    with TemporaryDirectory(prefix="headgate-") as name:
        file = Path(name) / address.rpartition("/")[2]
        refused.renamed = (str(file), address)
        file.write_bytes(content)
        source = FileSource(
            stream,
            file.parent,
            rows_per_chunk=READ_ROWS,
            on_bad_row=refused.policy,
            only=Slice(file),
            rejects=refused,
        )
        try:
            for chunk in source.chunks():
                table = chunk.to_arrow()
                for name_, value in clock.items():
                    repeated = pa.repeat(value, table.num_rows)
                    table = table.append_column(name_, repeated)
                yield from table.to_batches()
        except HeadgateError as error:
            # People know the file by its address.
            error.cause = error.cause.replace(*refused.renamed)
            raise
