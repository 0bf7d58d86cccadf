"""Tables that do not change, read in the driver. Files that only Spark's file systems know are copied here first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from pyspark.sql import SparkSession

from headgate.model.errors import HeadgateError, InputError
from headgate.plan.catalog import Source, TableDef
from headgate.runtime.io.changes import change_stream
from headgate.runtime.io.files import is_elsewhere
from headgate.runtime.io.registry import FILE_FORMATS
from headgate.runtime.io.tables import read_table
from headgate.runtime.spark.filesystem import Folder
from headgate.runtime.spark.rejects import TaskRejects

_CHUNK_ROWS = 100_000


@dataclass(frozen=True)
class ReadTables:
    """All rows of tables as they are now, with `_born` and `_sign`, and their bad rows, not written yet."""

    rows: dict[str, pl.DataFrame] = field(default_factory=dict)
    rejects: dict[str, TaskRejects] = field(default_factory=dict)

    def reading(
        self, tables: Iterable[TableDef], base: Path, *, keeps: bool, spark: SparkSession | None = None
    ) -> ReadTables:
        """These, and those of other tables that do not change; without Spark, not those that only it can reach."""
        rows, rejects = dict(self.rows), dict(self.rejects)
        for table in tables:
            far = _is_elsewhere(table)
            if table.name in rows or change_stream(table) is not None or (far and spark is None):
                continue
            refused = rejects[table.name] = TaskRejects.of(table.name, keeps=keeps)
            if far and spark is not None:
                rows[table.name] = _copied(spark, table, refused)
            else:
                rows[table.name] = _read(table, base, refused)
        return ReadTables(rows, rejects)

    @staticmethod
    def given(rows: Mapping[str, pl.DataFrame]) -> ReadTables:
        """Tables that somebody has read already."""
        return ReadTables(dict(rows))


def _read(table: TableDef, base: Path, refused: TaskRejects) -> pl.DataFrame:
    return read_table(table, base, rows_per_chunk=_CHUNK_ROWS, on_bad_row=refused.policy, rejects=refused)[0]


def _is_elsewhere(table: TableDef) -> bool:
    """Whether a table's files are not on this machine."""
    source = table.source
    return source is not None and source.format in FILE_FORMATS and is_elsewhere(_path(source))


def _copied(spark: SparkSession, table: TableDef, refused: TaskRejects) -> pl.DataFrame:
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
        # People know the file by its address.
        refused.renamed = (name, address.rstrip("/"))
        try:
            return _read(local, here, refused)
        except HeadgateError as error:
            error.cause = error.cause.replace(*refused.renamed)
            raise


def _path(source: Source) -> str:
    return dict(source.options).get("path", "")
