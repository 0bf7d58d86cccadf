"""The local engine: feeds streams through running queries, in this process, until the input ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import polars as pl

from headgate.model.batch import BORN, SIGN
from headgate.model.errors import DeclarationError
from headgate.model.time import BEGINNING, NEVER
from headgate.physical.graph import OperatorGraph
from headgate.physical.horizon import EPOCH, horizon, is_timeless
from headgate.plan.catalog import StreamDef, TableDef
from headgate.plan.nodes import Emit, TableScan
from headgate.runtime.lateness import Arrivals
from headgate.runtime.local.feed import Feed
from headgate.runtime.query import QueryState
from headgate.runtime.sources.kept_promises import KeptPromises

_FIRST = BEGINNING + 1
"""When the rows of a static table came."""


@dataclass(frozen=True)
class RunnableQuery:
    """A query's graph and the plan it came from."""

    graph: OperatorGraph
    plan: Emit

    @cached_property
    def changing(self) -> frozenset[str]:
        """The tables that it reads and that change."""
        scans = [node for node in self.plan.walk() if isinstance(node, TableScan)]
        return frozenset(scan.table.name for scan in scans if scan.table.changes)


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a clock step."""

    clock: int
    rows: int
    state_rows: int
    state_bytes: int


class Stop(Enum):
    """How far the clock runs when the input has ended."""

    DRAINED = "until no announced death, tick or change of a table is due"
    CERTAIN = (
        "until just before the clock of the slowest input: rows that may still come change nothing before it"
    )
    LAST_ROW = "until the last row"


@dataclass
class LocalRun:
    """Queries over finite inputs: `run` calls back with every piece of output, in order."""

    queries: Sequence[RunnableQuery]
    streams: Sequence[tuple[StreamDef, Iterator[pl.DataFrame]]]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Table changes in order of time, with `_born` and `_sign`; a static table's are before all time."""
    stop: Stop = Stop.DRAINED
    future_us: int | None = None
    """Rows further ahead of the wall clock than this are set aside, and do not move the clock."""

    def __post_init__(self) -> None:
        scans = [node for query in self.queries for node in query.plan.walk() if isinstance(node, TableScan)]
        for table in {
            scan.table.name: scan.table for scan in scans if scan.table.name in self.tables
        }.values():
            require_static(table, self.tables[table.name])
        self.states = {query.graph.query: QueryState(query.graph) for query in self.queries}

    def run(
        self,
        on_output: Callable[[str, pl.DataFrame], None],
        on_late: Callable[[str, str, pl.DataFrame], None],
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        """Processes all input, until the clock has come to where `stop` says.

        Late rows come with the query that does not see them, and their stream.
        """
        feed = Feed(self.streams, self.future_us)
        sieves = {query.graph.query: self._sieves(query.graph) for query in self.queries}

        def set_aside(query: str, stream: str, frame: pl.DataFrame) -> None:
            on_late(query, stream, frame)
            self.states[query].metrics.late_rows += frame.height

        rows_read, done = 0, BEGINNING
        for step in feed.steps():
            for name, frame in step.late.items():
                for reader in self._readers(name):
                    set_aside(reader, name, frame)
            for name, frame in step.ahead.items():
                for reader in self._readers(name):
                    on_late(reader, name, frame)
                    self.states[reader].metrics.future_rows += frame.height
            rows = {name: frame for name, frame in step.rows.items() if not frame.is_empty()}
            for query in self.queries:
                reader, upto = query.graph.query, step.upto
                state, seen = self.states[reader], dict(rows)
                state.metrics.streams = self._arrivals(feed, state)
                if self.stop is Stop.CERTAIN:
                    upto = min(upto, feed.certain(query.graph.streams), self._certain(query))
                    seen = {name: frame.filter(pl.col(BORN) <= upto) for name, frame in rows.items()}
                    if upto <= state.clock:
                        continue
                changes = self._table_changes(state.clock, upto)
                for name in (each for each in sieves[reader] if each in seen):
                    seen[name], broken = sieves[reader][name].sift(seen[name])
                    if not broken.is_empty():
                        set_aside(reader, name, broken)
                seen = {name: frame for name, frame in seen.items() if not frame.is_empty()}
                for part in state.parts({**seen, **changes}, upto):
                    for piece in part.frames:
                        on_output(reader, piece)
            done = step.upto
            rows_read += sum(frame.height for frame in rows.values())
            on_progress(self._progress(done, rows_read))
        for query in self.queries:
            state = self.states[query.graph.query]
            end = self._end(query, feed)
            if end is not None and end > state.clock:
                changes = self._table_changes(state.clock, end)
                for part in state.parts(changes, end):
                    for piece in part.frames:
                        on_output(query.graph.query, piece)

    def _end(self, query: RunnableQuery, feed: Feed) -> int | None:
        """How far a query's clock runs on after the last row; None if nothing is due."""
        if is_timeless(query.plan):
            self.states[query.graph.query].start = EPOCH
            return EPOCH
        if self.stop is Stop.CERTAIN:
            return min(feed.certain(query.graph.streams), self._certain(query))
        if self.stop is Stop.LAST_ROW:
            return None
        changes = {name: last for name in query.changing if (last := self._last_change(name)) is not None}
        return horizon(query.plan, {**feed.last, **changes})

    def _certain(self, query: RunnableQuery) -> int:
        """The last instant up to which the changes of a query's tables are all known."""
        last = [self._last_change(name) for name in query.changing]
        return min((BEGINNING if each is None else each - 1 for each in last), default=NEVER)

    def _last_change(self, table: str) -> int | None:
        last = self.tables[table][BORN].max()
        assert last is None or isinstance(last, int)
        return last

    def _sieves(self, graph: OperatorGraph) -> dict[str, KeptPromises]:
        """What tells the rows that break a promise that a query relies on, for each stream that made one."""
        promised = dict.fromkeys(each.stream for each in graph.promises)
        return {
            name: KeptPromises([each for each in graph.promises if each.stream == name]) for name in promised
        }

    def _arrivals(self, feed: Feed, state: QueryState) -> Arrivals:
        """What has been read of the streams of a query."""
        return Arrivals(
            {name: dict(each) for name, each in feed.arrivals.items() if name in state.graph.streams}
        )

    def _readers(self, stream: str) -> list[str]:
        """The queries that read a stream."""
        return [query.graph.query for query in self.queries if stream in query.graph.streams]

    def _table_changes(self, after: int, upto: int) -> dict[str, pl.DataFrame]:
        found = {}
        for name, rows in self.tables.items():
            first, end = (rows[BORN].search_sorted(at, side="right") for at in (after, upto))
            found[name] = rows.slice(first, end - first)
        return found

    def _progress(self, clock: int, rows: int) -> Progress:
        metrics = [state.metrics for state in self.states.values()]
        return Progress(
            clock, rows, sum(each.state_rows for each in metrics), sum(each.state_bytes for each in metrics)
        )


def require_static(table: TableDef, rows: pl.DataFrame | None) -> None:
    """Raises DeclarationError if a table that queries take as static has changes; None: a stream of them."""
    if table.changes or (
        rows is not None and rows.filter((pl.col(BORN) > _FIRST) | (pl.col(SIGN) < 0)).is_empty()
    ):
        return
    raise DeclarationError(
        f"table {table.name} changes, but the query was planned for one that does not",
        remedy=f"declare {table.name} with changeTime and changeOp, or give its changes before you ask for the query",
    )


def static_table(rows: pl.DataFrame) -> pl.DataFrame:
    """A table that has been as it is since before all time."""
    first = pl.lit(_FIRST, dtype=pl.Int64).alias(BORN)
    return rows.with_columns(first, pl.lit(1, dtype=pl.Int8).alias(SIGN))
