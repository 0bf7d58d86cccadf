"""Output folders: a query's rows in files, as Parquet if nothing else is said, complete or not there at all.

```
DIR/<query>/part-00000.parquet …   the rows
DIR/<query>/metrics.json           what the run did
DIR/_late/<stream>/part-<query>.…  rows that came later than the stream's slack allows, as this query saw them
```

Letters of a stream's name that a folder cannot have stand there as %XX.

Late rows belong to the query that read them: they are kept, replaced and refused together with its answer.

Everything is written beside its final place and renamed at the end (`staging`), so a failed run leaves nothing
half-written.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from headgate.model.errors import InputError
from headgate.model.schema import Column
from headgate.model.types import TIMESTAMP, spark_name
from headgate.runtime.io.format import FileFormat
from headgate.runtime.io.rejects import folder_name

TIME, OP = "_time", "_op"
LATE = "_late"
_LONGEST_NAME = 200
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}|_[A-Za-z0-9_-]{1,199}")


@dataclass(frozen=True)
class RunSummary:
    """What a finished run did, by query."""

    metrics: dict[str, dict[str, Any]]
    rejected_rows: int


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
            remedy="name queries with letters, digits, _ and -",
        )
    return name


def escaped_name(stream: str) -> str:
    """A stream's name as that of a file or folder: as it is if it can be, else with its other letters as %XX.

    InputError if it would be too long; ask at the start of a run, not when the first row has to go there.
    """
    if _SAFE_NAME.fullmatch(stream):
        return stream
    escaped = folder_name(stream) if stream else ""
    if not 0 < len(escaped) <= _LONGEST_NAME:
        raise InputError(
            f"{stream[:80]!r} cannot name a folder for late rows", remedy="give the stream a shorter name"
        )
    return escaped


def late_folder(root: Path, stream: str) -> Path:
    """Where late rows of a stream go."""
    return root / LATE / escaped_name(stream)


def late_parts(query: str) -> str:
    """How the names of the files with a query's late rows begin; no query's name has a point."""
    return f"part-{safe_name(query)}."


def late_batches(query: str) -> str:
    """The folder with a query's late rows where Spark writes them, which has one for each micro-batch."""
    return f"query={safe_name(query)}"


def require_writable(format: FileFormat, schemas: Mapping[str, pa.Schema]) -> None:
    """Raises InputError if rows of one of these forms have a column that a format has no way to write."""
    for what, schema in schemas.items():
        for column in schema:
            if not format.writes(column.type):
                raise InputError(
                    f"column {column.name} of {what} is {spark_name(column.type)}, which {format.name} cannot hold",
                    remedy="leave the column out, or write another --output-format",
                )


def output_places(root: Path, query: str) -> list[Path]:
    """What there is of a query's output: files of late rows, even of streams of old, and last its answer's folder."""
    late = sorted(
        each
        for name in (f"{late_parts(query)}*", late_batches(query))
        for each in (root / LATE).glob(f"*/{name}")
    )
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
