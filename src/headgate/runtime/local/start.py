"""Starting programs: the inputs that their queries read, gathered into a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from headgate.physical.program import Program
from headgate.plan.catalog import Catalog, StreamDef
from headgate.runtime.io import FileSource, RejectPolicy
from headgate.runtime.io.declared import require_time
from headgate.runtime.io.tables import read_table
from headgate.runtime.local.engine import LocalRun, Stop


def prepare(
    program: Program,
    catalog: Catalog,
    *,
    base: Path,
    batch_rows: int,
    policy: RejectPolicy,
    given: Mapping[str, pl.DataFrame],
    drain: bool = True,
    future_us: int | None = None,
) -> tuple[LocalRun, list[FileSource]]:
    """A run over all inputs of a program: rows given in memory, everything else from files."""
    streams: list[tuple[StreamDef, Iterator[pl.DataFrame]]] = []
    sources: list[FileSource] = []
    used = sorted(program.streams, key=lambda each: list(catalog.definitions).index(each.name.casefold()))
    rows_per_chunk = max(1, batch_rows // max(1, len(used)))
    for stream in used:
        require_time(stream)
        if stream.name in given:
            streams.append((stream, given[stream.name].iter_slices(rows_per_chunk)))
        else:
            source = FileSource(stream, base, rows_per_chunk=rows_per_chunk, on_bad_row=policy)
            sources.append(source)
            streams.append((stream, iter(source.chunks())))
    tables: dict[str, pl.DataFrame] = {}
    for table in program.tables:
        if table.name in given:
            tables[table.name] = given[table.name]
        else:
            rows, read = read_table(table, base, rows_per_chunk=batch_rows, on_bad_row=policy)
            sources += read
            tables[table.name] = rows
    stop = Stop.DRAINED if drain else Stop.CERTAIN
    return LocalRun(program, streams, tables, stop, future_us), sources
