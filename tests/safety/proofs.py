"""Looks at a witness from outside: do its rows keep the promises, are they kept, and do they change answers to come?

Nothing here asks the code that found or played the rows: promises are read off the declarations, conditions are put
to DuckDB, and the rows are run anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from itertools import combinations, pairwise
from random import Random
from typing import Any

import duckdb
import polars as pl

from headgate.model.adherence import Adherence, Auto, WithinRows, WithinTime
from headgate.physical.compile import compile_query
from headgate.physical.program import Program
from headgate.plan.catalog import StreamDef
from headgate.runtime.data import frame_of
from headgate.runtime.io.changes import static_table
from headgate.runtime.local.engine import LocalRun, Stop
from headgate.runtime.local.witnessing import Shown
from headgate.session import Query

Row = dict[str, Any]


@dataclass(frozen=True)
class Proof:
    """The rows of a witness, apart: those that may have come, those that come in any case, and those that ask."""

    query: Query
    shown: Shown

    @cached_property
    def ready(self) -> Any:
        return compile_query(self.query.planned, allow_unbounded=True)

    @cached_property
    def streams(self) -> list[StreamDef]:
        return self.ready.streams

    @cached_property
    def arrivals(self) -> list[tuple[str, Row]]:
        """All rows in order of time; at one instant in the order of the asking ones' streams."""
        adversary = self.shown.adversary
        asking = [name for probe in adversary.probes for name, _ in probe]
        order = [adversary.stream] * len(adversary.rows) + [name for name, _ in adversary.setting] + asking
        left = {name: frame.to_dicts()[::-1] for name, frame in self.shown.frames.items()}
        return [(name, left[name].pop()) for name in order]

    @property
    def size(self) -> int:
        return len(self.shown.adversary.rows)

    def history(self, places: Sequence[int], probe: int | None) -> list[tuple[str, Row]]:
        adversary = self.shown.adversary
        settled = self.size + len(adversary.setting)
        found = [self.arrivals[place] for place in sorted(places)] + self.arrivals[self.size : settled]
        if probe is not None:
            start = settled + sum(len(each) for each in adversary.probes[:probe])
            found += self.arrivals[start : start + len(adversary.probes[probe])]
        return found

    def run(
        self, history: Sequence[tuple[str, Row]], stop: Stop = Stop.LAST_ROW
    ) -> tuple[list[pl.DataFrame], int, int]:
        """What is said, how many rows are kept at the end, and how many were late."""
        streams = []
        for stream in self.streams:
            rows = [row for name, row in history if name == stream.name]
            empty = self.shown.frames[stream.name].clear()
            frame = pl.DataFrame(rows, schema=empty.schema) if rows else empty
            streams.append((stream, iter([frame_of(frame, stream.columns)])))
        tables = {t.name: static_table(frame_of([], t.columns)) for t in self.ready.tables}
        run = LocalRun(Program((self.ready,)), streams, tables, stop=stop)
        said: list[pl.DataFrame] = []
        run.run(lambda query, frame: said.append(frame), lambda query, stream, late: None)
        metrics = run.states[self.query.name].metrics
        return said, metrics.state_rows, metrics.late_rows

    def answers(self, places: Sequence[int], probe: int) -> list[str]:
        """What is said once the asking rows have come, and as time goes on after them.

        A row that one of them hides comes back, and is told of, when that one has left its window.
        """
        history = self.history(places, probe)
        asked = history[-len(self.shown.adversary.probes[probe]) :]
        times = {stream.name: stream.time or "" for stream in self.streams}
        first = min(row[times[name]] for name, row in asked)
        since = (first - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        said, _, _ = self.run(history, Stop.DRAINED)
        rows = (row for frame in said for row in frame.iter_rows(named=True))
        return sorted(repr(row) for row in rows if row["_time"] >= since)


def assert_true(proof: Proof, random: Random) -> None:
    """Raises unless the witness is what it claims to be."""
    for stream in proof.streams:
        rows = [row for name, row in proof.arrivals if name == stream.name]
        broken = broken_promises(stream, rows)
        assert not broken, broken
    assert not overdue(proof)
    _, _, late = proof.run(proof.arrivals)
    assert late == 0
    alone = proof.run(proof.history([], None))[1]
    kept = [alone, *(proof.run(proof.history(range(proof.size * q // 4), None))[1] for q in (1, 2, 3, 4))]
    steps = [after - before for before, after in pairwise(kept)]
    assert min(steps) >= proof.size // 8, f"kept after each quarter: {kept}"
    for _ in range(3):
        half = random.sample(range(proof.size), proof.size // 2)
        other = random.sample(range(proof.size), proof.size // 2)
        if set(half) != set(other):
            last = max(set(half) ^ set(other))
            probe = min(last, len(proof.shown.adversary.probes) - 1)
            assert proof.answers(half, probe) != proof.answers(other, probe), (half, other, last)


def assert_tells_all_apart(proof: Proof) -> None:
    """Raises unless all parts of the rows, of one size if only such are claimed, are told apart: for few rows."""
    adversary = proof.shown.adversary
    sizes = [proof.size // 2] if adversary.one_size else range(proof.size + 1)
    parts = [part for size in sizes for part in combinations(range(proof.size), size)]
    answers = cache(proof.answers)
    for one, other in combinations(parts, 2):
        probe = min(max(set(one) ^ set(other)), len(adversary.probes) - 1)
        assert answers(one, probe) != answers(other, probe), (one, other, probe)


def broken_promises(stream: StreamDef, rows: Sequence[Row]) -> list[str]:
    """The promises of a stream that its rows break, read off its declaration."""
    broken = []
    for key in stream.keys:
        values = [tuple(row[name] for name in key) for row in rows]
        if len(set(values)) < len(values):
            broken.append(f"KEY {key}")
    for scheme in stream.punctuations:
        assert scheme.when is not None
        closed: set[tuple[Any, ...]] = set()
        for row, closes in zip(rows, _holds(scheme.when.show(), rows), strict=True):
            value = tuple(row[name] for name in scheme.columns)
            if value in closed:
                broken.append(f"PUNCTUATED BY {scheme.columns}")
                break
            if closes:
                closed.add(value)
    times = [_instant(stream, row) for row in rows]
    for order in stream.ordered:
        values = [tuple(row[name] for name in order.columns) for row in rows]
        if any(
            values[later] < values[place] and _beyond(order.within, place, later, times)
            for place, later in combinations(range(len(rows)), 2)
        ):
            broken.append(f"ORDERED BY {order.columns}")
    for cluster in stream.clustered:
        last: dict[tuple[Any, ...], int] = {}
        for place, row in enumerate(rows):
            value = tuple(row[name] for name in cluster.columns)
            before = last.get(value, place)
            between = place - 1 if isinstance(cluster.within, WithinRows) else place
            if before < place and _beyond(cluster.within, before, between, times):
                broken.append(f"CLUSTERED BY {cluster.columns}")
                break
            last[value] = place
    broken += [check.show() for check in stream.checks if False in _holds(check.show(), rows)]
    return broken


def _beyond(within: Adherence, place: int, later: int, times: Sequence[int]) -> bool:
    """Whether a row comes more rows, or more time, after another than it may be off by."""
    match within:
        case WithinRows(rows):
            return later - place > rows
        case WithinTime(length):
            return times[later] - times[place] > length
        case Auto():
            return False


def _instant(stream: StreamDef, row: Row) -> int:
    """The event time of a row in microseconds."""
    assert stream.time is not None
    return int((row[stream.time] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))


def overdue(proof: Proof) -> bool:
    """Whether a row refers to one that has not come, although so many others have, or so much time has passed."""
    for child in proof.streams:
        for each in child.references:
            streams = {stream.name: stream for stream in proof.streams}
            if each.parent not in streams or isinstance(each.within, Auto):
                continue
            for place, (name, row) in enumerate(proof.arrivals):
                if name != child.name:
                    continue
                wanted = tuple(row[column] for column in each.columns)
                before = [r for n, r in proof.arrivals[:place] if n == each.parent]
                after = [r for n, r in proof.arrivals[place:] if n == each.parent]
                if isinstance(each.within, WithinRows):
                    soon = after[: each.within.rows]
                    past = len(after) > each.within.rows
                else:
                    due = _instant(child, row) + each.within.length
                    soon = [r for r in after if _instant(streams[each.parent], r) <= due]
                    past = any(_instant(streams[n], r) > due for n, r in proof.arrivals)
                come = [tuple(r[c] for c in each.parent_columns) for r in (*before, *soon)]
                if past and wanted not in come:
                    return True
    return False


def _holds(condition: str, rows: Sequence[Row]) -> list[bool | None]:
    """What DuckDB says of a condition, row by row."""
    frame = pl.DataFrame(rows, infer_schema_length=None).with_row_index("_at")
    with duckdb.connect() as connection:
        connection.register("rows", frame.to_arrow())
        found = connection.execute(f"SELECT {condition} FROM rows ORDER BY _at").fetchall()
    return [value for (value,) in found]
