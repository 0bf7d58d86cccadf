"""Output folders: a query's rows as Parquet, complete or not there at all.

```
DIR/<query>/part-00000.parquet …   the rows
DIR/<query>/metrics.json           what the run did
DIR/_late/<stream>/…               rows that came later than the stream's slack allows
```

Everything is written beside its final place and renamed at the end, so a failed run leaves nothing half-written.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headgate.model.errors import InputError
from headgate.model.schema import Column
from headgate.model.types import TIMESTAMP

TIME, OP = "_time", "_op"
_ROWS_PER_FILE = 1_000_000
_SAFE_NAME = re.compile(r"(_late/)?[A-Za-z0-9][A-Za-z0-9_-]{0,199}|(_late/)?_[A-Za-z0-9_-]{1,199}")


def arrow_schema(columns: Sequence[Column], *, change_log: bool) -> pa.Schema:
    """The schema of a query's output: the select list, `_time`, and `_op` for a change log."""
    fields = [pa.field(column.name, column.type) for column in columns]
    fields.append(pa.field(TIME, TIMESTAMP))
    if change_log:
        fields.append(pa.field(OP, pa.string()))
    return pa.schema(fields)


def to_arrow(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """Output rows with the declared types; `_time` becomes a timestamp in UTC."""
    stamped = frame.with_columns(pl.from_epoch(pl.col(TIME), time_unit="us").dt.replace_time_zone("UTC"))
    table = stamped.select(schema.names).to_arrow()
    columns = [_as_declared(table.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _as_declared(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    if column.type == dtype:
        return column
    if pa.types.is_map(dtype):
        return _as_map(column, dtype)
    return column.cast(dtype)


def _as_map(column: pa.ChunkedArray, dtype: pa.MapType) -> pa.ChunkedArray:
    """Polars holds a map as a list of key-value structs."""
    chunks = []
    for chunk in column.cast(
        pa.list_(pa.struct([("key", dtype.key_type), ("value", dtype.item_type)]))
    ).chunks:
        entries = chunk.values
        maps = pa.MapArray.from_arrays(chunk.offsets, entries.field("key"), entries.field("value"))
        chunks.append(pc.if_else(pc.is_null(chunk), pa.scalar(None, maps.type), maps).cast(dtype))
    return pa.chunked_array(chunks, dtype)


def safe_name(name: str) -> str:
    """The name, if a file or a folder may be called so."""
    if not _SAFE_NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name an output folder",
            remedy="name queries and streams with letters, digits, _ and -",
        )
    return name


class OutputFolder:
    """Collects everything a run writes, and puts it in place when the run has succeeded."""

    def __init__(self, folder: Path, *, overwrite: bool) -> None:
        self.folder = folder
        self._overwrite = overwrite
        self._staging = folder / f".staging-{os.getpid()}"
        self._writers: dict[str, _PartWriter] = {}

    def __enter__(self) -> OutputFolder:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._staging.mkdir()
        except OSError as error:
            raise InputError(
                f"cannot write to {self.folder}: {error.strerror or error}", remedy="choose another --output"
            ) from error
        return self

    def declare(self, name: str, schema: pa.Schema) -> None:
        """Announces a sub-folder that will exist even if no row comes."""
        target = self.folder / safe_name(name)
        if target.exists() and not self._overwrite:
            raise InputError(
                f"{target} exists already",
                remedy="choose another --output, or give --overwrite to replace it",
            )
        self._writers[name] = _PartWriter(self._staging / name, schema)

    def append(self, name: str, table: pa.Table) -> None:
        self._writers[name].append(table)

    def knows(self, name: str) -> bool:
        return name in self._writers

    def write_json(self, name: str, file: str, content: Mapping[str, Any]) -> None:
        path = self._staging / name / file
        path.write_text(json.dumps(content, indent=2) + "\n")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            for writer in self._writers.values():
                writer.close()
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _publish(self) -> None:
        for name in self._writers:
            target = self.folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                shutil.rmtree(target)
            (self._staging / name).rename(target)


class _PartWriter:
    """Parquet files of bounded size in one folder; at least one, so that the schema can be read."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder, self._schema = folder, schema
        self._number, self._rows = 0, 0
        folder.mkdir(parents=True)
        self._writer = self._open()

    def _open(self) -> pq.ParquetWriter:
        path = self._folder / f"part-{self._number:05d}.parquet"
        return pq.ParquetWriter(path, self._schema, compression="zstd")

    def append(self, table: pa.Table) -> None:
        if self._rows >= _ROWS_PER_FILE:
            self._writer.close()
            self._number, self._rows = self._number + 1, 0
            self._writer = self._open()
        if table.num_rows:
            self._writer.write_table(table)
            self._rows += table.num_rows

    def close(self) -> None:
        self._writer.close()
