"""Output folders: a query's rows as Parquet, complete or not there at all.

```
DIR/<query>/part-00000.parquet …   the rows
DIR/<query>/metrics.json           what the run did
DIR/_late/<stream>/part-<query>.…  rows that came later than the stream's slack allows, as this query saw them
```

Late rows belong to the query that read them: they are kept, replaced and refused together with its answer.

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
import pyarrow.parquet as pq

from headgate.model.errors import InputError
from headgate.model.schema import Column
from headgate.model.types import TIMESTAMP

TIME, OP = "_time", "_op"
_ROWS_PER_FILE = 1_000_000
LATE = "_late"
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}|_[A-Za-z0-9_-]{1,199}")


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
    return as_declared(stamped, schema)


def as_declared(frame: pl.DataFrame, schema: pa.Schema) -> pa.Table:
    """The columns of a schema, with its types."""
    table = frame.select(schema.names).to_arrow()
    columns = [_as_declared(table.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _as_declared(column: pa.ChunkedArray, dtype: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([_array(chunk, dtype) for chunk in column.chunks], dtype)


def _array(array: pa.Array, dtype: pa.DataType) -> pa.Array:
    """An array of Polars' with a declared type; maps, also within others, come as lists of key-value structs."""
    if array.type == dtype:
        return array
    if not _has_map(dtype):
        return array.cast(dtype)
    nulls = array.is_null()
    if pa.types.is_struct(dtype):
        parts = [_array(array.field(each.name), each.type) for each in dtype]
        return pa.StructArray.from_arrays(parts, fields=list(dtype), mask=nulls)
    # With a mask Arrow takes no slice of offsets, so they are copied.
    offsets, entries = pa.concat_arrays([array.offsets, array.offsets[:0]]).cast(pa.int32()), array.values
    if not pa.types.is_map(dtype):
        values = _array(entries, dtype.value_type)
        return pa.ListArray.from_arrays(offsets, values, type=dtype, mask=nulls)
    keys, items = (
        _array(entries.field("key"), dtype.key_type),
        _array(entries.field("value"), dtype.item_type),
    )
    return pa.MapArray.from_arrays(offsets, keys, items, type=dtype, mask=nulls)


def _has_map(dtype: pa.DataType) -> bool:
    """Whether there is a map in a type."""
    if pa.types.is_map(dtype):
        return True
    return pa.types.is_nested(dtype) and any(
        _has_map(dtype.field(number).type) for number in range(dtype.num_fields)
    )


def safe_name(name: str) -> str:
    """The name, if a file or a folder may be called so."""
    if name == LATE or not _SAFE_NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name an output folder",
            remedy="name queries and streams with letters, digits, _ and -",
        )
    return name


def late_folder(root: Path, stream: str) -> Path:
    """Where late rows of a stream go."""
    return root / LATE / safe_name(stream)


def late_parts(query: str) -> str:
    """How the names of the files with a query's late rows begin; no query's name has a point."""
    return f"part-{safe_name(query)}."


def output_places(root: Path, query: str) -> list[Path]:
    """What there is of a query's output: files of late rows, even of streams of old, and last its answer's folder."""
    late = sorted((root / LATE).glob(f"*/{late_parts(query)}*.parquet"))
    return [*late, *([root / query] if (root / query).exists() else [])]


def check_free(root: Path, query: str, *, overwrite: bool) -> None:
    """Raises InputError if a query has results there that must not be replaced."""
    found = output_places(root, query)
    if found and not overwrite:
        raise InputError(
            f"{found[-1]} exists already",
            remedy="choose another --output, or give --overwrite to replace it",
        )


def clear(root: Path, query: str) -> None:
    """Removes all that there is of a query's output; its answer last, so that whose it is stays known."""
    for each in output_places(root, query):
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()


def move(source: Path, target: Path, query: str) -> None:
    """Puts all that there is of a query's output into another folder, where there is none of it."""
    for each in output_places(source, query):
        place = target / each.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        each.rename(place)


class OutputFolder:
    """Collects everything a run writes, and puts it in place when the run has succeeded."""

    def __init__(self, folder: Path, *, overwrite: bool) -> None:
        self.folder = folder
        self._overwrite = overwrite
        self._staging = folder / f".staging-{os.getpid()}"
        self._writers: dict[str, _PartWriter] = {}
        self._late: dict[tuple[str, str], _PartWriter] = {}

    def __enter__(self) -> OutputFolder:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._staging.mkdir()
        except OSError as error:
            raise InputError(
                f"cannot write to {self.folder}: {error.strerror or error}", remedy="choose another --output"
            ) from error
        return self

    def declare(self, query: str, schema: pa.Schema) -> None:
        """Announces a query's answer, whose folder will exist even if no row comes."""
        check_free(self.folder, safe_name(query), overwrite=self._overwrite)
        self._writers[query] = _PartWriter(self._staging / query, "part-", schema)

    def append_late(self, stream: str, query: str, table: pa.Table) -> None:
        """Adds late rows of a declared query."""
        if (stream, query) not in self._late:
            folder = late_folder(self._staging, stream)
            self._late[stream, query] = _PartWriter(folder, late_parts(query), table.schema)
        self._late[stream, query].append(table)

    def append(self, name: str, table: pa.Table) -> None:
        self._writers[name].append(table)

    def write_json(self, name: str, file: str, content: Mapping[str, Any]) -> None:
        path = self._staging / name / file
        path.write_text(json.dumps(content, indent=2) + "\n")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            for writer in (*self._writers.values(), *self._late.values()):
                writer.close()
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self._staging, ignore_errors=True)

    def _publish(self) -> None:
        for query in self._writers:
            clear(self.folder, query)
            move(self._staging, self.folder, query)


class _PartWriter:
    """Parquet files of bounded size in one folder; at least one, so that the schema can be read."""

    def __init__(self, folder: Path, prefix: str, schema: pa.Schema) -> None:
        self._folder, self._prefix, self._schema = folder, prefix, schema
        self._number, self._rows = 0, 0
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = self._open()

    def _open(self) -> pq.ParquetWriter:
        path = self._folder / f"{self._prefix}{self._number:05d}.parquet"
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
