"""The local workspace: rows given in memory, and queries run over them and over files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from headgate.model.batch import BORN, SIGN
from headgate.model.errors import NameResolutionError
from headgate.physical.program import Program
from headgate.plan.catalog import Catalog, TableDef
from headgate.runtime.data import Result, columns_of, frame_of, held
from headgate.runtime.in_memory import in_memory_stream, in_memory_table
from headgate.runtime.io import FileSource, RejectPolicy
from headgate.runtime.io.changes import changes_of, dated, static_table
from headgate.runtime.local.engine import LocalRun
from headgate.runtime.local.start import prepare
from headgate.runtime.output import arrow_schema, to_arrow


class LocalWorkspace:
    """Rows by stream or table, and the local engine over them."""

    def __init__(self) -> None:
        self.rows: dict[str, pl.DataFrame] = {}

    def add_stream(
        self, catalog: Catalog, name: str, data: Any, *, time: str | None, slack: int | None
    ) -> Catalog:
        """The catalog with the stream in it, declared by its data if need be; its rows are kept."""
        data = held(data)
        catalog, found = in_memory_stream(
            catalog, name, lambda: columns_of(frame_of(data)), time=time, slack=slack
        )
        self.rows[found.name] = frame_of(data, found.columns)
        return catalog

    def add_table(self, catalog: Catalog, name: str, data: Any, *, retroactive: bool | None) -> Catalog:
        """The catalog with the table in it, declared by its data if need be; its rows are kept."""
        data = held(data)
        catalog, found = in_memory_table(
            catalog, name, lambda: columns_of(frame_of(data)), retroactive=retroactive
        )
        self.rows[found.name] = static_table(frame_of(data, found.columns))
        return catalog

    def add_table_changes(self, catalog: Catalog, name: str, data: Any, *, time: str, op: str) -> Catalog:
        """The catalog in which the table changes; its changes, rows with an instant and "+" or "-", are kept."""
        found = catalog.find(name)
        if not isinstance(found, TableDef):
            raise NameResolutionError(f"{name} is not a table", remedy="declare it with CREATE TABLE first")
        changes = changes_of(found, time, op)
        columns = [column.name for column in found.columns]
        rows = dated(frame_of(data, changes.stream.columns), changes)
        self.rows[found.name] = rows.select(*columns, BORN, SIGN)
        return catalog.with_changes(found.name)

    def prepare(
        self,
        program: Program,
        catalog: Catalog,
        *,
        base: Path,
        batch_rows: int = 100_000,
        policy: RejectPolicy | None = None,
        drain: bool = True,
        future_us: int | None = None,
    ) -> tuple[LocalRun, list[FileSource]]:
        """A local run of a program."""
        return prepare(
            program,
            catalog,
            base=base,
            batch_rows=batch_rows,
            policy=policy or RejectPolicy.stop(),
            given=self.rows,
            drain=drain,
            future_us=future_us,
        )

    def run(self, program: Program, catalog: Catalog, **options: Any) -> dict[str, Result]:
        """The output of every query, by name. Options as in `prepare`."""
        run, _ = self.prepare(program, catalog, **options)
        pieces: dict[str, list[pl.DataFrame]] = {}
        run.run(
            lambda query, frame: pieces.setdefault(query, []).append(frame), lambda query, stream, late: None
        )
        results: dict[str, Result] = {}
        for query in run.program:
            graph = query.graph
            schema = arrow_schema(graph.columns, change_log=graph.is_change_log)
            tables = [to_arrow(frame, schema) for frame in pieces.get(graph.query, [])]
            table = pa.concat_tables(tables) if tables else schema.empty_table()
            results[graph.query] = Result(graph.query, table, run.states[graph.query].metrics)
        return results
