"""Runs CQL text on the local engine over given arrivals, and reads the output as the oracle writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import polars as pl
import pyarrow as pa
from tests.oracle.inputs import TimedRow
from tests.oracle.values import Change, canonical_row, change_key

from headgate.model import monitoring
from headgate.model.batch import BORN, SIGN
from headgate.physical import purge_lowering
from headgate.physical.compile import compile_query
from headgate.physical.edges import Strategy
from headgate.physical.program import CompiledQuery, Program
from headgate.runtime.data import frame_of
from headgate.runtime.io.changes import static_table
from headgate.runtime.local.engine import LocalRun, LocalShard, Progress, Stop
from headgate.runtime.query import Metrics
from headgate.runtime.shard import ShardState
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
    found, _ = ran(
        text, query, arrivals, tables, strategy=strategy, restore_every_step=restore_every_step, stop=stop
    )
    return found


def ran(
    text: str,
    query: str,
    arrivals: Sequence[Mapping[str, pa.Table]],
    tables: Mapping[str, pa.Table | Sequence[TimedRow]],
    *,
    strategy: Strategy = "UPA",
    restore_every_step: bool = False,
    stop: Stop = Stop.DRAINED,
) -> tuple[list[Change], Metrics]:
    """The same, and what the run has measured."""
    ready = compiled(text, query, tables, strategy=strategy)
    streams = [(stream, _chunks(arrivals, stream.name, list(stream.columns))) for stream in ready.streams]
    given = {table.name: table_rows(tables[table.name], table.columns) for table in ready.tables}
    run = LocalRun(Program((ready,)), streams, given, stop)
    pieces: list[pl.DataFrame] = []

    def after_step(_: Progress) -> None:
        if restore_every_step:
            restore(run.shards[query])

    run.run(lambda name, frame: pieces.append(frame), lambda query, stream, late: None, after_step)
    changes = sorted((change for piece in pieces for change in _changes(piece)), key=change_key)
    return changes, run.states[query].metrics


def compiled(
    text: str,
    query: str,
    tables: Mapping[str, pa.Table | Sequence[TimedRow]],
    *,
    strategy: Strategy = "UPA",
) -> CompiledQuery:
    """A query as it will run, whatever the gate says of it; those of `tables` that are timed rows change."""
    changing = _changing_among(tables)
    return _compiled(text, query, changing, strategy, purge_lowering.LIFESPAN, monitoring.DEFAULT)


@lru_cache(maxsize=256)
def _compiled(
    text: str,
    query: str,
    changing: tuple[str, ...],
    strategy: Strategy,
    lifespan: int,
    monitors: monitoring.Monitoring,
) -> CompiledQuery:
    """A query as it will run; a compiled query is not changed by running. Some tests alter `lifespan`, `monitors`."""
    session = Session()
    session.sql(text)
    _mark_changing(session, changing)
    return compile_query(session.query(query).planned, allow_unbounded=True, strategy=strategy)


def mark_changing(session: Session, tables: Mapping[str, pa.Table | Sequence[TimedRow]]) -> None:
    """Lets a session know which tables change: those that are given as timed rows."""
    _mark_changing(session, _changing_among(tables))


def _changing_among(tables: Mapping[str, pa.Table | Sequence[TimedRow]]) -> tuple[str, ...]:
    return tuple(name for name, rows in tables.items() if not isinstance(rows, pa.Table))


def _mark_changing(session: Session, names: Sequence[str]) -> None:
    for name in names:
        session.catalog = session.catalog.with_changes(name)


def restore(shard: LocalShard) -> None:
    """Takes a shard down and sets it up again from what it would have stored."""
    facts, chunks = json.loads(json.dumps(shard.state.facts())), shard.state.chunks()
    shard.state = ShardState.restored(shard.stage, facts, chunks)


def _chunks(arrivals: Sequence[Mapping[str, pa.Table]], name: str, columns: Any) -> Iterator[pl.DataFrame]:
    for arrival in arrivals:
        piece = arrival.get(name)
        if piece is not None and piece.num_rows:
            yield frame_of(piece, columns)


def table_rows(rows: pa.Table | Sequence[TimedRow], columns: Any) -> pl.DataFrame:
    """A table's rows, or its changes, as an engine takes them."""
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
