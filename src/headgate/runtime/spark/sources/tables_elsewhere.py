"""Tables whose files are at an address that only Spark's file systems know: copied here, and read as any other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from pyspark.sql import SparkSession

from headgate.model.errors import HeadgateError, InputError
from headgate.plan.catalog import Source, TableDef
from headgate.runtime.io.files import is_elsewhere
from headgate.runtime.io.registry import FILE_FORMATS
from headgate.runtime.io.rejects import RejectPolicy
from headgate.runtime.io.tables import read_table
from headgate.runtime.spark.filesystem import Folder


def is_table_elsewhere(table: TableDef) -> bool:
    """Whether a table's files are not on this machine."""
    source = table.source
    return source is not None and source.format in FILE_FORMATS and is_elsewhere(_path(source))


def table_elsewhere(spark: SparkSession, table: TableDef) -> pl.DataFrame:
    """All rows of a table as they are now, with `_born` and `_sign`. A bad row stops the run."""
    assert table.source is not None
    address = _path(table.source)
    with TemporaryDirectory(prefix="headgate-") as name:
        here = Path(name)
        try:
            found = Folder(spark, address).download(here)
        except OSError as error:
            raise InputError(
                f"table {table.name}: {error}", remedy="check its path, and Spark's settings"
            ) from error
        if not found:
            raise InputError(f"table {table.name}: there is no file at {address}", remedy="check its path")
        options = dict(table.source.options) | {"path": name}
        local = replace(table, source=Source(table.source.format, tuple(options.items())))
        try:
            rows, _ = read_table(local, here, rows_per_chunk=100_000, on_bad_row=RejectPolicy.stop())
        except HeadgateError as error:
            # People know the file by its address.
            error.cause = error.cause.replace(name, address.rstrip("/"))
            raise
    return rows


def _path(source: Source) -> str:
    return dict(source.options).get("path", "")
