"""Arrival: rows of a stream in the order in which they come, with their instants, told apart into on time and late.

```
slack 3       row      instant    clock before it    clock after it
              a        10         -                  7
              b         8         7                  7             on time: 8 is not before 7
              c        20         7                  17
              d        15         17                 17            late
```
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import time_ns

import numpy as np
import polars as pl

from headgate.model.batch import BORN
from headgate.model.errors import DataError, DeclarationError
from headgate.model.time import BEGINNING
from headgate.plan.catalog import StreamDef


@dataclass(frozen=True)
class Admitted:
    """A chunk's rows on time and its late rows, both with their instant as `_born`, and the clock behind the chunk.

    Rows keep the order of their arrival.
    """

    rows: pl.DataFrame
    late: pl.DataFrame
    clock: int
    late_by: pl.Series = field(default_factory=lambda: pl.Series(dtype=pl.Int64))
    """By how many microseconds the late rows are."""


@dataclass
class ArrivalState:
    """The largest instant of a stream so far, None before its first row, and how many rows have come."""

    latest: int | None = None
    rows: int = 0


class Arrival:
    """The clock of a stream: the largest instant seen so far, less the declared slack.

    A row is late if its instant lies before the clock as it was just before the row came.
    """

    def __init__(self, stream: StreamDef, state: ArrivalState | None = None) -> None:
        if stream.time is None:
            raise DeclarationError(
                f"stream {stream.name} has no event time",
                remedy=f"add TIMESTAMP BY column to CREATE STREAM {stream.name}",
            )
        self._name, self._time, self._slack = stream.name, stream.time, stream.slack
        self.state = state or ArrivalState()

    @property
    def clock(self) -> int:
        """No row with a smaller instant is on time any more."""
        latest = self.state.latest
        return BEGINNING if latest is None else max(BEGINNING, latest - self._slack)

    def timed(self, chunk: pl.DataFrame) -> pl.DataFrame:
        """Rows of the stream with their instants as `_born`; DataError if one of them has none."""
        timed = chunk.with_columns(pl.col(self._time).dt.epoch("us").alias(BORN))
        if timed[BORN].null_count():
            row = self.state.rows + int(timed[BORN].is_null().arg_true()[0]) + 1
            raise DataError(
                f"stream {self._name}, row {row}: the event time {self._time} is NULL",
                remedy="leave such rows out",
            )
        return timed

    def admit(self, chunk: pl.DataFrame) -> Admitted:
        """Takes the next rows of the stream; DataError if one of them has no time."""
        timed = self.timed(chunk)
        if timed.is_empty():
            return Admitted(timed, timed, self.clock)
        instants = timed[BORN]
        earlier = int(instants[0]) if self.state.latest is None else self.state.latest
        latest = np.maximum.accumulate(np.concatenate([[earlier], instants.to_numpy()]))
        behind = pl.Series(latest[:-1]) - instants
        late = behind > self._slack
        self.state.latest = int(latest[-1])
        self.state.rows += timed.height
        if not late.any():
            return Admitted(timed, timed.clear(), self.clock)
        return Admitted(timed.filter(~late), timed.filter(late), self.clock, behind.filter(late))


def without_future(
    rows: pl.DataFrame, stream: StreamDef, limit: int | None, now: pl.Series | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows that are not too far ahead of the wall clock, and those that are; `now`: the clock for each row."""
    if limit is None:
        return rows, rows.clear()
    assert stream.time is not None
    clock = time_ns() // 1_000 if now is None else now.dt.epoch("us")
    ahead = (rows[stream.time].dt.epoch("us") > clock + limit).fill_null(value=False)
    return rows.filter(~ahead), rows.filter(ahead)
