"""Emit: from a relation back to a stream, at the end of a query or inside one.

```
contents            before t  {a, a, b}     at t  {a, c}
ISTREAM at t        c                       what is there and was not
DSTREAM at t        a, b                    what was there and is not
RSTREAM at t        a, c                    what is there
change log at t     -a, -b, +c
```

Rows come by time; at one time deaths before births; and then in the order of their columns, so that the output does
not depend on how the input was cut into steps. Where arrival order means something, because the input is a
stream that was only filtered and projected, `arrival=True` keeps it.

Before the first row of the query there is no answer: whatever is alive at its start is born then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.emit.lazy_rows import LazyRows
from headgate.kernels.emit.net_change import NetChange, copies
from headgate.kernels.kernel import State
from headgate.kernels.state.composite import States
from headgate.kernels.state.store import rows_at
from headgate.kernels.state.timer_queue import AT, COUNT, TimerQueue, by_instant, timer_queues
from headgate.kernels.window.ticks import next_tick
from headgate.model.batch import BORN, DIES, LIFETIME_SCHEMA, Batch
from headgate.model.time import NEVER, Clock, tick_at_or_after

TIME = "_time"
OP = "_op"
BIRTH, DEATH = "+", "-"


@dataclass(frozen=True)
class Emit(ABC):
    """A relation-to-stream operator over signed lifetimes with the payload columns of `schema`."""

    schema: Mapping[str, pl.DataType]
    arrival: bool = False
    ticking: int | None = field(default=None, kw_only=True)
    """The SLIDE of all windows below: there is no answer before the first tick, not even from what has no window."""

    def start_of(self, clock: Clock) -> int | None:
        """The first instant that has an answer; None if that is not known, or lies after the step."""
        if clock.start is None:
            return None
        start = clock.start if self.ticking is None else tick_at_or_after(clock.start, self.ticking)
        return start if start <= clock.upto else None

    @abstractmethod
    def initial(self) -> States[State]:
        """The state before the first row."""

    @abstractmethod
    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> States[State]:
        """The state whose chunks these are."""

    @abstractmethod
    def emit(self, state: State, batch: Batch, clock: Clock) -> tuple[States[State], LazyRows]:
        """The state after the step and its output for the outside: payload, `_time`, and `_op` for a change log."""

    def advance(self, state: State, inputs: Sequence[Batch], clock: Clock) -> tuple[States[State], Batch]:
        """The state after the step and its output as a stream inside the plan: rows that live from `_time` on."""
        parts, batches = self.stream(state, inputs, clock)
        return parts, Batch.concat(batches)

    def stream(
        self, state: State, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[States[State], Iterator[Batch]]:
        """The same, the output in batches that come by time and are made when they are asked for."""
        [batch] = inputs
        parts, rows = self.emit(state, batch, clock)
        return parts, (Batch(Batch.of(each, born=pl.col(TIME)).frame.drop(TIME)) for each in rows.frames)


@dataclass(frozen=True)
class EmitOverTime(Emit):
    """Operators whose state is a few timer queues, and that have nothing to say before the query's first row."""

    @abstractmethod
    def _initial(self) -> dict[str, TimerQueue]:
        """What the operator remembers, before the first row."""

    @abstractmethod
    def _emit(
        self, parts: Mapping[str, TimerQueue], frame: pl.DataFrame, clock: Clock, start: int
    ) -> Emission:
        """The parts after the step and its rows: payload, `_at`, and `_op` for a change log.

        Frames come by time; within one, rows come in any order.
        """

    def initial(self) -> States[TimerQueue]:
        early = TimerQueue({**self.schema, **LIFETIME_SCHEMA})
        return States({"early": early, **self._initial()})

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> States[TimerQueue]:
        return self.initial().restored(chunks)

    def emit(self, state: State, batch: Batch, clock: Clock) -> tuple[States[TimerQueue], LazyRows]:
        parts = timer_queues(state)
        early = parts.pop("early")
        start = self.start_of(clock)
        if start is None:
            held = batch.frame.with_columns(pl.lit(NEVER, dtype=pl.Int64).alias(AT))
            early, _ = early.advance(held, clock)
            return States({"early": early, **parts}), LazyRows.of(self._shown(self._nothing()))
        frame = self._since_start(early, batch.frame, start)
        after, rows = self._emit(parts, frame, clock, start)
        shown = rows.map(lambda piece: self._shown(self._ordered(piece)))
        return States({"early": TimerQueue(early.schema), **after}), shown

    def _since_start(self, early: TimerQueue, frame: pl.DataFrame, start: int) -> pl.DataFrame:
        """The rows of the step and those held back, as if the world had begun at `start`."""
        if early.rows:
            frame = pl.concat([*(piece.select(frame.columns) for piece in early.waiting(start)), frame])
        born = pl.col(BORN)
        if not (frame[BORN].to_numpy() < start).any():
            return frame
        return frame.with_columns(pl.max_horizontal(born, pl.lit(start)).alias(BORN)).filter(
            born < pl.col(DIES)
        )

    @property
    def _columns(self) -> Mapping[str, pl.DataType]:
        return {**self.schema, AT: pl.Int64()}

    def _nothing(self) -> pl.DataFrame:
        return pl.DataFrame(schema=self._columns)

    def _ordered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows by time, deaths before births, and then by their columns."""
        rows = by_instant(rows)
        by = [*([OP] if OP in rows.columns else []), *(() if self.arrival else self.schema)]
        at = rows[AT].to_numpy()
        same = at[1:] == at[:-1]
        if not by or not same.any():
            return rows
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        # "-" is the larger character of the two.
        descending = [False, *(name == OP for name in by)]
        sorting = pl.arg_sort_by([AT, *by], descending=descending, maintain_order=True)
        places = np.arange(rows.height)
        places[tied] = tied[rows_at(rows, tied).select(sorting).to_series().to_numpy()]
        return rows_at(rows, places)

    def _shown(self, rows: pl.DataFrame) -> pl.DataFrame:
        return rows.select(pl.col(name).alias(TIME if name == AT else name) for name in self._columns)


def spans(batches: Iterator[Batch], clock: Clock) -> Iterator[tuple[Clock, Batch]]:
    """A clock step cut after each of the batches that a stream says in it, but for empty ones; the last has the rest.

    ```
    step      (0 ------------------------------- 90]
    batches     births 5 … 30    births 35 … 60
    spans     (0 ----------- 30] (30 ----------- 90]
    ```
    """
    held, after = next(batches), clock.after
    for batch in batches:
        if not held.height:
            held = batch
        elif batch.height:
            last = held.frame[BORN].max()
            assert isinstance(last, int)
            yield Clock(after, last, clock.start), held
            held, after = batch, last
    yield Clock(after, clock.upto, clock.start), held


Emission = tuple[Mapping[str, TimerQueue], LazyRows]


@dataclass(frozen=True)
class _Changes(EmitOverTime):
    """Operators that say what changed."""

    @cached_property
    def _net(self) -> NetChange:
        return NetChange(self.schema)

    def _initial(self) -> dict[str, TimerQueue]:
        return {"deaths": self._net.initial()}


@dataclass(frozen=True)
class Istream(_Changes):
    """ISTREAM: what is born. With `restore`, the input is followed at every instant and births are reported at
    the next tick of that slide, those already dead again included (Windows, section 3.3.4)."""

    restore_slide: int | None = None

    def _initial(self) -> dict[str, TimerQueue]:
        return {**super()._initial(), "births": TimerQueue(self.schema)}

    def _emit(
        self, parts: Mapping[str, TimerQueue], frame: pl.DataFrame, clock: Clock, start: int
    ) -> Emission:
        deaths, changes = self._net.advance(parts["deaths"], frame, clock)
        born, waiting = copies(changes.filter(pl.col(COUNT) > 0)), parts["births"]
        if self.restore_slide is not None:
            waiting, born = waiting.advance(
                born.with_columns(next_tick(pl.col(AT), self.restore_slide).alias(AT)), clock
            )
        return {"deaths": deaths, "births": waiting}, LazyRows.of(born)


@dataclass(frozen=True)
class Dstream(_Changes):
    """DSTREAM: what dies."""

    def _emit(
        self, parts: Mapping[str, TimerQueue], frame: pl.DataFrame, clock: Clock, start: int
    ) -> Emission:
        deaths, changes = self._net.advance(parts["deaths"], frame, clock)
        return {"deaths": deaths}, LazyRows.of(copies(losses(changes)))


@dataclass(frozen=True)
class ChangeLog(_Changes):
    """The relation itself, as births and deaths with `_op` "+" and "-"."""

    @property
    def _columns(self) -> Mapping[str, pl.DataType]:
        return {**super()._columns, OP: pl.String()}

    def stream(
        self, state: State, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[States[State], Iterator[Batch]]:
        raise TypeError("a change log is not a stream")

    def _emit(
        self, parts: Mapping[str, TimerQueue], frame: pl.DataFrame, clock: Clock, start: int
    ) -> Emission:
        deaths, changes = self._net.advance(parts["deaths"], frame, clock)
        born = copies(changes.filter(pl.col(COUNT) > 0)).with_columns(pl.lit(BIRTH).alias(OP))
        died = copies(losses(changes)).with_columns(pl.lit(DEATH).alias(OP))
        return {"deaths": deaths}, LazyRows.of(pl.concat([died, born]))


def losses(changes: pl.DataFrame) -> pl.DataFrame:
    """What was lost, with how many copies."""
    return changes.filter(pl.col(COUNT) < 0).with_columns(-pl.col(COUNT))
