"""Tables: a declared table's rows from wherever its declaration says."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from headgate.model.errors import SetupError
from headgate.plan.catalog import TableDef
from headgate.runtime.sources.postgres import is_in_postgres, read_postgres
from headgate.runtime.sources.rejects import RejectPolicy, RejectState
from headgate.runtime.sources.source import FileSource


def read_table(
    table: TableDef,
    base: Path,
    *,
    rows_per_chunk: int,
    on_bad_row: RejectPolicy,
    rejects: RejectState | None = None,
) -> tuple[pl.DataFrame, list[FileSource]]:
    """All rows of a table, and the files that were read for them."""
    if is_in_postgres(table):
        return read_postgres(table), []
    source = FileSource(table, base, rows_per_chunk=rows_per_chunk, on_bad_row=on_bad_row, rejects=rejects)
    found = list(source.chunks())
    if not found:
        raise SetupError(f"table {table.name} has no rows and no schema to read")
    return pl.concat(found), [source]
