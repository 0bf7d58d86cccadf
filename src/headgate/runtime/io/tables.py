"""Tables: a declared table's rows, or their changes, from wherever its declaration says."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from headgate.model.errors import DeclarationError
from headgate.plan.catalog import StreamDef, TableDef
from headgate.runtime.io.changes import change_stream, dated, static_table
from headgate.runtime.io.postgres_table import is_in_postgres, read_postgres
from headgate.runtime.io.rejects import RejectPolicy, RejectState
from headgate.runtime.io.source import FileSource


def read_table(
    table: TableDef,
    base: Path,
    *,
    rows_per_chunk: int,
    on_bad_row: RejectPolicy,
    rejects: RejectState | None = None,
) -> tuple[pl.DataFrame, list[FileSource]]:
    """All changes of a table in order of time, with `_born` and `_sign`, and the files that were read for them."""
    if is_in_postgres(table):
        return static_table(read_postgres(table)), []
    changes = change_stream(table)
    definition: StreamDef | TableDef = table if changes is None else changes.stream
    source = FileSource(
        definition, base, rows_per_chunk=rows_per_chunk, on_bad_row=on_bad_row, rejects=rejects
    )
    found = list(source.chunks())
    if not found:
        raise DeclarationError(f"table {table.name} has no rows and no schema to read")
    rows = pl.concat(found)
    return static_table(rows) if changes is None else dated(rows, changes), [source]
