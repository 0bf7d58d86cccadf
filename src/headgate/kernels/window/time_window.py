"""Window: from a stream to a relation, by giving each row its death.

```
time               0    5    10   15   20   25
row at 7                 *
[RANGE 10]               [=========)               [7, 17)
[RANGE 10 SLIDE 5]            [=========)          [10, 20): contents change at ticks only
[NOW]                    [)                        [7, 8)
[ROWS 2]                 [==========)              two later rows came, at 11 and 18: announced for ever, ended at 18
```

With `announce="endings"` every expiry is sent as an ending at its instant instead of being announced at birth: the
negative tuples of Windows, section 2.3.2, kept to be measured against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl

from headgate.kernels.kernel import State
from headgate.kernels.state.composite import States
from headgate.kernels.state.timer_queue import AT, TimerQueue, by_instant, timer_queues
from headgate.kernels.window.row_window import PartitionedRowWindow, RowWindow
from headgate.kernels.window.ticks import next_tick
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock

Announce = Literal["deaths", "endings"]


@dataclass(frozen=True)
class Range:
    """[RANGE length] or [RANGE length SLIDE slide], in microseconds."""

    length: int
    slide: int | None = None

    def __post_init__(self) -> None:
        if self.length <= 0 or (self.slide is not None and self.slide <= 0):
            raise ValueError("the length and the slide of a window are positive")


@dataclass(frozen=True)
class Rows:
    """[ROWS n], of the whole stream or per value of the partition columns."""

    count: int
    partition: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.count <= 0:
            raise ValueError("a window holds at least one row")


@dataclass(frozen=True)
class Now:
    """[NOW]: a row lives for one instant."""


@dataclass(frozen=True)
class Unbounded:
    """[UNBOUNDED]: a row lives for ever."""


WindowSpec = Range | Rows | Now | Unbounded


@dataclass(frozen=True)
class Window:
    """The window `spec` over a stream: rows `[ts, NEVER)` of sign +1 in order of birth, equals by arrival."""

    spec: WindowSpec
    schema: Mapping[str, pl.DataType]
    announce: Announce = "deaths"

    @cached_property
    def _kernel(self) -> TimeWindow | RowWindow | PartitionedRowWindow:
        match self.spec:
            case Rows(count, ()):
                return RowWindow(count, self.schema, self.announce == "endings")
            case Rows(count, partition):
                return PartitionedRowWindow(count, partition, self.schema, self.announce == "endings")
            case spec:
                return TimeWindow(spec, self.schema, self.announce == "endings")

    def initial(self) -> State:
        return self._kernel.initial()

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> State:
        return self._kernel.restore(chunks)

    def advance(self, state: State, inputs: Sequence[Batch], clock: Clock) -> tuple[State, Batch]:
        return self._kernel.advance(state, inputs, clock)


@dataclass(frozen=True)
class TimeWindow:
    """Windows whose deaths follow from the row's time alone."""

    spec: Range | Now | Unbounded
    schema: Mapping[str, pl.DataType]
    endings: bool

    def initial(self) -> States[TimerQueue]:
        # Births wait for their tick; deaths wait only where they are sent as endings.
        return States(
            {"births": TimerQueue({**self.schema, DIES: pl.Int64()}), "deaths": TimerQueue(self.schema)}
        )

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> States[TimerQueue]:
        return self.initial().restored(chunks)

    def advance(
        self, state: State, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[States[TimerQueue], Batch]:
        [batch] = inputs
        parts = timer_queues(state)
        births, deaths = parts["births"], parts["deaths"]
        ticks = isinstance(self.spec, Range) and self.spec.slide is not None
        if batch.frame.is_empty() and not ticks and not self.endings:
            return States({"births": births, "deaths": deaths}), Batch.empty(self.schema)
        frame = self._lifetimes(batch.frame)
        if ticks:
            births, due = births.advance(frame.rename({BORN: AT}), clock)
            frame = by_instant(due).rename({AT: BORN})
        output = frame.select(*self.schema, BORN, DIES, pl.lit(1, dtype=pl.Int8).alias(SIGN))
        if self.endings:
            deaths, output = self._with_endings(deaths, output, clock)
        return States({"births": births, "deaths": deaths}), Batch(output)

    def _lifetimes(self, frame: pl.DataFrame) -> pl.DataFrame:
        born = pl.col(BORN)
        match self.spec:
            case Unbounded():
                return frame
            case Now():
                return frame.with_columns((born + 1).alias(DIES))
            case Range(length, slide):
                dies = _later(born, length)
                if slide is None:
                    return frame.with_columns(dies.alias(DIES))
                ticks = frame.with_columns(
                    next_tick(born, slide).alias(BORN), next_tick(dies, slide).alias(DIES)
                )
                return ticks.filter(born < pl.col(DIES))

    def _with_endings(
        self, deaths: TimerQueue, output: pl.DataFrame, clock: Clock
    ) -> tuple[TimerQueue, pl.DataFrame]:
        mortal = output.filter(pl.col(DIES) < NEVER).rename({DIES: AT})
        deaths, due = deaths.advance(mortal, clock)
        due = by_instant(due)
        never = pl.lit(NEVER, dtype=pl.Int64).alias(DIES)
        ended = due.select(*self.schema, pl.col(AT).alias(BORN), never, pl.lit(-1, dtype=pl.Int8).alias(SIGN))
        return deaths, pl.concat([output.with_columns(never), ended.select(output.columns)])


def _later(instant: pl.Expr, length: int) -> pl.Expr:
    """An instant moved on, or NEVER if time ends before."""
    return pl.when(instant > NEVER - length).then(NEVER).otherwise(instant + length)
