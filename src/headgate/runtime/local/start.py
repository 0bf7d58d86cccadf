"""Starting queries: admit, lower and gather the inputs that they read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from headgate.model.errors import DeclarationError
from headgate.optimize.optimize import Optimized
from headgate.physical.edges import Strategy
from headgate.physical.lower import lower
from headgate.plan.bind import BoundQuery
from headgate.plan.catalog import Catalog, StreamDef, TableDef
from headgate.plan.nodes import StreamScan, TableScan
from headgate.runtime.local.engine import LocalRun, RunnableQuery, Stop
from headgate.runtime.sources import FileSource, RejectPolicy
from headgate.runtime.sources.tables import read_table
from headgate.safety.gate import admit


def runnable(
    query: BoundQuery, optimized: Optimized, *, allow_unbounded: bool = False, strategy: Strategy = "UPA"
) -> RunnableQuery:
    """A query ready to run, or RefusedError."""
    admitted = admit(query, optimized.best.plan, allow_unbounded=allow_unbounded)
    return RunnableQuery(lower(admitted, optimized.best, strategy), admitted.plan)


def used_streams(queries: Sequence[RunnableQuery]) -> list[StreamDef]:
    """The streams that the queries read, each once, in order of first use."""
    scans = [node for query in queries for node in query.plan.walk() if isinstance(node, StreamScan)]
    return list({scan.stream.name: scan.stream for scan in scans}.values())


def used_tables(queries: Sequence[RunnableQuery]) -> list[TableDef]:
    """The tables that the queries read, each once, in order of first use."""
    scans = [node for query in queries for node in query.plan.walk() if isinstance(node, TableScan)]
    return list({scan.table.name: scan.table for scan in scans}.values())


def prepare(
    queries: Sequence[RunnableQuery],
    catalog: Catalog,
    *,
    base: Path,
    batch_rows: int,
    policy: RejectPolicy,
    given: Mapping[str, pl.DataFrame],
    drain: bool = True,
    future_us: int | None = None,
) -> tuple[LocalRun, list[FileSource]]:
    """A run over all inputs of the queries: rows given in memory, everything else from files."""
    streams: list[tuple[StreamDef, Iterator[pl.DataFrame]]] = []
    sources: list[FileSource] = []
    used = sorted(
        used_streams(queries), key=lambda each: list(catalog.definitions).index(each.name.casefold())
    )
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
    for table in used_tables(queries):
        if table.name in given:
            tables[table.name] = given[table.name]
        else:
            rows, read = read_table(table, base, rows_per_chunk=batch_rows, on_bad_row=policy)
            sources += read
            tables[table.name] = rows
    stop = Stop.DRAINED if drain else Stop.CERTAIN
    return LocalRun(queries, streams, tables, stop, future_us), sources


def require_time(stream: StreamDef) -> None:
    if stream.time is None:
        raise DeclarationError(
            f"stream {stream.name} has no event time",
            remedy=f"add TIMESTAMP BY column to CREATE STREAM {stream.name}",
        )
