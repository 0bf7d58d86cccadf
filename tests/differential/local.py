"""Runs CQL text on the local engine over given arrivals, and reads the output as the oracle writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
from tests.oracle.inputs import TimedRow
from tests.oracle.values import Change, canonical_row, change_key

from headgate.kernels.pieces import Pieces
from headgate.model.batch import BORN, SIGN
from headgate.physical.edges import Strategy
from headgate.runtime.local.data import frame_of
from headgate.runtime.local.engine import LocalRun, Stop, static_table
from headgate.runtime.local.start import runnable, used_streams, used_tables
from headgate.runtime.query import QueryState
from headgate.session import Session


def output_of(
    text: str,
    query: str,
    arrivals: Sequence[Mapping[str, pa.Table]],
    tables: Mapping[str, pa.Table | Sequence[TimedRow]],
    *,
    strategy: Strategy = "UPA",
    restore_every_step: bool = False,
    stop: Stop = Stop.DRAINED,
) -> list[Change]:
    """All that a query says when its streams' rows arrive in the given pieces, in canonical order."""
    session = Session()
    session.sql(text)
    mark_changing(session, tables)
    found = session.query(query)
    ready = runnable(found.bound, found.optimized, allow_unbounded=True, strategy=strategy)
    streams = [
        (stream, _chunks(arrivals, stream.name, list(stream.columns))) for stream in used_streams([ready])
    ]
    given = {table.name: _table(tables[table.name], table.columns) for table in used_tables([ready])}
    run = LocalRun([ready], streams, given, stop)
    if restore_every_step:
        run.states[query] = _Restoring(run.states[query].graph)
    pieces: list[pl.DataFrame] = []
    run.run(lambda name, frame: pieces.append(frame), lambda query, stream, late: None)
    return sorted((change for piece in pieces for change in _changes(piece)), key=change_key)


def mark_changing(session: Session, tables: Mapping[str, pa.Table | Sequence[TimedRow]]) -> None:
    """Lets a session know which tables change: those that are given as timed rows."""
    for name, rows in tables.items():
        if not isinstance(rows, pa.Table):
            session.catalog = session.catalog.with_changes(name)


class _Restoring(QueryState):
    """A query that is taken down and set up again from its chunks before every step."""

    def parts(self, rows: Mapping[str, pl.DataFrame], upto: int) -> Iterator[Pieces]:
        self.restore(self.snapshot())
        return super().parts(rows, upto)


def _chunks(arrivals: Sequence[Mapping[str, pa.Table]], name: str, columns: Any) -> Iterator[pl.DataFrame]:
    for arrival in arrivals:
        piece = arrival.get(name)
        if piece is not None and piece.num_rows:
            yield frame_of(piece, columns)


def _table(rows: pa.Table | Sequence[TimedRow], columns: Any) -> pl.DataFrame:
    if isinstance(rows, pa.Table):
        return static_table(frame_of(rows, columns))
    frame = frame_of([dict(row) for _, _, row in rows], columns)
    born = pl.Series(BORN, [time for time, _, _ in rows], dtype=pl.Int64)
    sign = pl.Series(SIGN, [1 if op == "+" else -1 for _, op, _ in rows], dtype=pl.Int8)
    return frame.with_columns(born, sign).sort(BORN, maintain_order=True)


def _changes(frame: pl.DataFrame) -> Iterator[Change]:
    for row in frame.to_dicts():
        time, op = row.pop("_time"), row.pop("_op", None)
        yield Change(time, op, canonical_row(list(row.values())))
