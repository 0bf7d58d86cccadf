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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

import polars as pl

from headgate.kernels.expressions import compile_scalar
from headgate.kernels.punctuation.clusters import closing_positions
from headgate.kernels.punctuation.order import settle
from headgate.safety.promise import Promise, PromiseKind

MEMORY = 65_536

_AT, _CLOSES, _FIRST, _POSITION = "_at", "_closes", "_first", "_position"


@dataclass
class PromiseState:
    """The values that a promise has closed, the oldest first; of a clustered stream also those that are open."""

    closed: pl.DataFrame | None = None


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
            match promise.kind:
                case PromiseKind.CHECK:
                    broken |= _fails(promise, rows)
                case PromiseKind.REFERENCE:
                    # It is about rows of another stream: what comes too late there cannot be told here.
                    pass
                case PromiseKind.ORDER:
                    broken |= _disordered(promise, state, rows)
                case PromiseKind.CLUSTER:
                    assert promise.within is not None
                    broken |= self._scattered(promise, promise.within, state, rows)
                case PromiseKind.KEY | PromiseKind.PUNCTUATION:
                    broken |= self._breaks(promise, state, rows)
                case _:
                    assert_never(promise.kind)
        return (rows.filter(~broken), rows.filter(broken)) if broken.any() else (rows, rows.clear())

    def _breaks(self, promise: Promise, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
        """Which rows come after one that closed their values; what they close themselves is remembered."""
        columns = list(promise.columns)
        closes = pl.lit(True) if promise.when is None else compile_scalar(promise.when).fill_null(False)
        frame = rows.select(*columns, closes.alias(_CLOSES)).with_row_index(_AT)
        closing = frame.filter(pl.col(_CLOSES)).drop_nulls(columns)
        first = closing.group_by(columns, maintain_order=True).agg(pl.col(_AT).first().alias(_FIRST))
        late = frame.join(first, on=columns, how="inner").filter(pl.col(_AT) > pl.col(_FIRST))[_AT]
        if state.closed is not None:
            late = late.append(frame.join(state.closed, on=columns, how="semi")[_AT])
        if first.height:
            new = first.select(columns)
            seen = new if state.closed is None else pl.concat([state.closed, new])
            state.closed = seen.unique(keep="first", maintain_order=True).tail(self.memory)
        mask = pl.Series([False]).new_from_index(0, rows.height)
        return mask.scatter(late, True) if late.len() else mask

    def _scattered(self, promise: Promise, within: int, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
        """Which rows come when too many rows with other values have come since the last with theirs."""
        columns = list(promise.columns)
        known = state.closed
        if known is None:
            known = (
                rows.select(columns)
                .clear()
                .with_columns(pl.lit(None, dtype=pl.Int64).alias(_POSITION), pl.lit(False).alias(_CLOSES))
            )
        first = known[_POSITION].max()
        start = first + 1 if isinstance(first, int) else 0
        new = rows.select(columns).with_columns(
            pl.int_range(start, start + rows.height, dtype=pl.Int64).alias(_POSITION)
        )
        old = known.filter(~pl.col(_CLOSES)).drop(_CLOSES)
        # A row with NULL is a row with another value; the last one of all is remembered to count on.
        present = pl.concat([old, new]).drop_nulls()
        found = closing_positions(present, columns, within, start + rows.height)
        late = new.join(found, on=columns, how="left").filter(pl.col(_POSITION) > pl.col("_closed"))
        gone = new.join(known.filter(_CLOSES), on=columns, how="semi")
        passed = pl.concat([late[_POSITION], gone[_POSITION]]) - start
        latest = found.select(*columns, _POSITION, pl.col("_closed").is_not_null().alias(_CLOSES))
        closed = pl.concat([known.filter(_CLOSES), latest.filter(_CLOSES)])
        closed = closed.unique(subset=columns, keep="first", maintain_order=True).tail(self.memory)
        marker = new.tail(1).with_columns(pl.lit(False).alias(_CLOSES))
        marker = marker.with_columns(pl.lit(None).cast(marker.schema[name]).alias(name) for name in columns)
        state.closed = pl.concat([closed, latest.filter(~pl.col(_CLOSES)), marker])
        mask = pl.Series([False]).new_from_index(0, rows.height)
        return mask.scatter(passed, True) if passed.len() else mask


def _disordered(promise: Promise, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
    """Which rows are less than one that came more than so many rows before."""
    assert promise.within is not None
    (column,) = promise.columns
    new = rows.select(column, pl.lit(False).alias("_before"))
    every = new if state.closed is None else pl.concat([state.closed, new])
    _, state.closed = settle(every, column, promise.within)
    before = every.filter("_before")[column]
    arrived = every.filter(~pl.col("_before"))[column]
    passed = arrived.cum_max().forward_fill().shift(promise.within + 1)
    if before.len():
        passed = pl.select(pl.max_horizontal(passed, pl.lit(before))).to_series()
    return (arrived < passed).fill_null(False).tail(rows.height)


def _fails(promise: Promise, rows: pl.DataFrame) -> pl.Series:
    """Which rows fail a CHECK; NULL does not."""
    assert promise.when is not None
    return ~rows.select(compile_scalar(promise.when).fill_null(True).alias(_CLOSES)).to_series()
