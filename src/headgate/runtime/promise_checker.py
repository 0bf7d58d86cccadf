"""Promise checker: tells rows that break a promise of their stream from those that keep it.

```
PUNCTUATED BY (item) WHEN closing        rows in order of time, then of arrival

item 7            kept
item 7  closing   kept, and closes 7
item 8            kept
item 7            broken: it comes after the row that closed 7
```

A broken row goes to the late output and is counted; no query that relies on the promise sees it. Promises are kept in
mind for as long as `memory` others have not come: without a limit, watching over a promise would cost the memory that
it saves.

Each shard checks the rows that it gets. One that comes too many rows late for its stream may be in time among those
of its shard, which then has not forgotten what it needs, and takes it in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

import polars as pl

from headgate.kernels.expressions import compile_scalar
from headgate.kernels.punctuation.clusters import closing_positions
from headgate.kernels.punctuation.order import settle
from headgate.kernels.punctuation.order_in_time import rising, settle_before
from headgate.kernels.state.store import prefixed, under
from headgate.model.adherence import Auto, WithinRows, WithinTime
from headgate.model.batch import BORN
from headgate.runtime.recent_values import RecentValues
from headgate.safety.promise import Promise, PromiseKind

MEMORY = 65_536

_AT, _CLOSES, _FIRST, _POSITION = "_at", "_closes", "_first", "_position"


@dataclass
class PromiseState:
    """What is remembered of a promise: the values that it has closed, and what is still open.

    Open are, of a clustered stream, the values that may come again; of an ordered one, what others will be less than.
    """

    closed: RecentValues | None = None
    open: pl.DataFrame | None = None
    version: int = 0
    """How often it has changed."""

    def has_closed(self, rows: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
        """Which rows have values that were closed before."""
        if self.closed is None or not self.closed.runs:
            return pl.Series([False]).new_from_index(0, rows.height)
        return pl.Series(self.closed.has(rows.select(columns)))

    def close(self, values: pl.DataFrame, memory: int) -> None:
        """Remembers values, none of which is closed yet."""
        known = RecentValues(values.schema, memory) if self.closed is None else self.closed
        self.closed = known.adding(values, self.version)

    def chunks(self) -> dict[str, pl.DataFrame]:
        """Everything by name; a name is never used for anything else again."""
        chunks = {} if self.closed is None else prefixed(self.closed.chunks(), "closed/")
        return chunks if self.open is None else {**chunks, f"open/{self.version}": self.open}

    @staticmethod
    def restored(chunks: Mapping[str, pl.DataFrame], version: int, memory: int = MEMORY) -> PromiseState:
        """The state that had these chunks."""
        runs = under(chunks, "closed/")
        state = PromiseState(open=chunks.get(f"open/{version}"), version=version)
        if runs:
            state.closed = RecentValues(next(iter(runs.values())).schema, memory).restored(runs)
        return state


@dataclass
class PromiseChecker:
    """The promises of one stream that a running query relies on."""

    promises: Sequence[Promise]
    memory: int = MEMORY
    states: list[PromiseState] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = self.states or [PromiseState() for _ in self.promises]

    def split(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The next rows of the stream, in order, as those that keep all promises and those that break one."""
        if rows.is_empty() or not self.promises:
            return rows, rows.clear()
        broken = pl.Series([False]).new_from_index(0, rows.height)
        for promise, state in zip(self.promises, self.states, strict=True):
            state.version += 1
            match promise.kind:
                case PromiseKind.CHECK:
                    broken |= _fails(promise, rows)
                case PromiseKind.REFERENCE:
                    # It is about rows of another stream: what comes too late there cannot be told here.
                    pass
                case PromiseKind.ORDER:
                    broken |= _disordered(promise, state, rows)
                case PromiseKind.CLUSTER:
                    broken |= self._scattered(promise, state, rows)
                case PromiseKind.KEY | PromiseKind.PUNCTUATION:
                    broken |= self._breaks(promise, state, rows)
                case _:
                    assert_never(promise.kind)
        return (rows.filter(~broken), rows.filter(broken)) if broken.any() else (rows, rows.clear())

    def _breaks(self, promise: Promise, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
        """Which rows come after one that closed their values; what they close themselves is remembered."""
        columns = list(promise.columns)
        before = state.has_closed(rows, columns)
        if promise.when is None:
            # Every row closes its values, so all but the first with them come too late.
            whole = ~rows.select(pl.any_horizontal(pl.col(columns).is_null())).to_series()
            first = rows.select(pl.struct(columns).is_first_distinct()).to_series()
            state.close(rows.filter(whole & first & ~before).select(columns), self.memory)
            return before | (whole & ~first)
        frame = rows.select(*columns, compile_scalar(promise.when).fill_null(False).alias(_CLOSES))
        closing = frame.with_row_index(_AT).filter(pl.col(_CLOSES) & ~before).drop_nulls(columns)
        if closing.is_empty():
            return before
        first_at = closing.group_by(columns, maintain_order=True).agg(pl.col(_AT).first().alias(_FIRST))
        state.close(first_at.select(columns), self.memory)
        late = frame.with_row_index(_AT).join(first_at, on=columns, how="inner")
        return before.scatter(late.filter(pl.col(_AT) > pl.col(_FIRST))[_AT], True)

    def _scattered(self, promise: Promise, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
        """Which rows come back to a value that was left too many rows, or too long, ago."""
        match promise.within:
            case WithinRows(count):
                return self._scattered_by_rows(promise, count, state, rows)
            case WithinTime(length):
                return self._scattered_in_time(promise, length, state, rows)
            case Auto() | None:
                raise AssertionError(f"{promise} says not up to what")

    def _scattered_by_rows(
        self, promise: Promise, within: int, state: PromiseState, rows: pl.DataFrame
    ) -> pl.Series:
        """Which rows come when too many rows with other values have come since the last with theirs."""
        columns = list(promise.columns)
        old = state.open
        if old is None:
            old = rows.select(columns).clear().with_columns(pl.lit(None, dtype=pl.Int64).alias(_POSITION))
        first = old[_POSITION].max()
        start = first + 1 if isinstance(first, int) else 0
        new = rows.select(columns).with_columns(
            pl.int_range(start, start + rows.height, dtype=pl.Int64).alias(_POSITION)
        )
        # A row with NULL is a row with another value; the last one of all is remembered to count on.
        present = pl.concat([old, new]).drop_nulls()
        found = closing_positions(present, columns, within, start + rows.height)
        late = new.join(found, on=columns, how="left").filter(pl.col(_POSITION) > pl.col("_closed"))
        broken = state.has_closed(rows, columns).scatter(late[_POSITION] - start, True)
        left = found.filter(pl.col("_closed").is_not_null()).select(columns)
        state.close(left.filter(~state.has_closed(left, columns)), self.memory)
        marker = new.tail(1)
        marker = marker.with_columns(pl.lit(None).cast(marker.schema[name]).alias(name) for name in columns)
        stay = found.filter(pl.col("_closed").is_null()).select(*columns, _POSITION)
        state.open = pl.concat([stay, marker])
        return broken

    def _scattered_in_time(
        self, promise: Promise, length: int, state: PromiseState, rows: pl.DataFrame
    ) -> pl.Series:
        """Which rows come when too much time has passed since the last with their values.

        Values that may still come have had a row within that time; they are remembered, and as many closed ones.
        """
        columns = list(promise.columns)
        new = rows.select(*columns, BORN).with_row_index(_AT)
        present = new.drop(_AT).drop_nulls(columns)
        open_ = present.clear() if state.open is None else state.open
        asked = pl.concat([open_.join(present, on=columns, how="semi"), present])
        left = _left_at(asked, columns, length)
        late = new.join(left, on=columns, how="inner").filter(pl.col(BORN) > pl.col(_FIRST))
        broken = state.has_closed(rows, columns).scatter(late[_AT], True)
        last = present.group_by(columns, maintain_order=True).agg(pl.col(BORN).max())
        every = pl.concat([open_.join(last, on=columns, how="anti"), last])
        # At the instant of the newest row more may come, which are in time for what closes then.
        newest = int(rows[BORN][-1])
        latest = every.with_columns((pl.col(BORN) < newest - length).alias(_CLOSES))
        reopened = latest.join(left, on=columns, how="semi").with_columns(pl.lit(True).alias(_CLOSES))
        latest = pl.concat([latest.join(left, on=columns, how="anti"), reopened])
        closed = latest.filter(_CLOSES).select(columns)
        state.close(closed.filter(~state.has_closed(closed, columns)), self.memory)
        state.open = latest.filter(~pl.col(_CLOSES)).drop(_CLOSES)
        return broken


def _left_at(rows: pl.DataFrame, columns: list[str], length: int) -> pl.DataFrame:
    """The values that come back after more than a time, and the first instant up to which each might have."""
    ordered = rows.sort([*columns, BORN])
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift() for name in columns)
    due = pl.col(BORN).shift() + length
    back = ordered.with_columns(due.alias(_FIRST)).filter(same & (pl.col(BORN) > due))
    return back.group_by(columns).agg(pl.col(_FIRST).min())


def _disordered(promise: Promise, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
    """Which rows are less than one that came more than so many rows, or so much time, before."""
    match promise.within:
        case WithinRows(count):
            return _disordered_by_rows(promise, count, state, rows)
        case WithinTime(length):
            return _disordered_in_time(promise, length, state, rows)
        case Auto() | None:
            raise AssertionError(f"{promise} says not up to what")


def _disordered_by_rows(promise: Promise, within: int, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
    """Which rows are less than one that came more than so many rows before."""
    (column,) = promise.columns
    new = rows.select(column, pl.lit(False).alias("_before"))
    every = new if state.open is None else pl.concat([state.open, new])
    state.open = settle(every, column, within)
    values = every.get_column(column)
    # The greatest of earlier rows, if it is there, is the first, and all the others have come long enough after it.
    earlier = int(every.get_column("_before")[0])
    least = values.cum_max().forward_fill()
    passed = least.shift(within + 1) if not earlier else _passed(least, within)
    return (values < passed).cast(pl.Boolean).fill_null(False).tail(rows.height)


def _passed(greatest: pl.Series, within: int) -> pl.Series:
    """By row, the greatest of those that came more than so many rows before; of all of them the first did."""
    followed = greatest.slice(1).shift(within + 1)
    return pl.concat([greatest.head(1), followed.fill_null(greatest[0])])


def _disordered_in_time(promise: Promise, length: int, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
    """Which rows are less than one that came more than so much time before."""
    (column,) = promise.columns
    new = rows.select(column, BORN)
    records = rising(new if state.open is None else pl.concat([state.open, new]), column)
    newest = int(rows[BORN][-1])
    _, state.open = settle_before(records, newest - length)
    passed = records[BORN].search_sorted(rows[BORN] - length, side="left").cast(pl.Int64) - 1
    # Before the first record nothing has passed.
    greatest = records[column].gather(passed.set(passed < 0, None))
    return (rows[column] < greatest).fill_null(False)


def _fails(promise: Promise, rows: pl.DataFrame) -> pl.Series:
    """Which rows fail a CHECK; NULL does not."""
    assert promise.when is not None
    return ~rows.select(compile_scalar(promise.when).fill_null(True).alias(_CLOSES)).to_series()
