"""TimerQueue: rows that wait for an instant, in a few runs sorted by it.

```
runs, oldest first    [ 3 5 5 9 ...... ] [ 4 8 8 12 ] [ 7 9 ]
clock at 5              past | waiting     past| wait   waiting
due in (5, 8]           none               8 8          7        -> 7 8 8
```

A step takes what is due from each run by binary search and adds one run; runs of like size become one, and a run
whose rows are all past is dropped. A run is named after the instant of the step that built it, so no name recurs.

A counted queue adds up: rows that are equal but for their counts become one when runs are merged, and vanish when
the counts cancel. That is how an ending meets the death that it takes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.kernel import State
from headgate.kernels.state.composite import CompositeState
from headgate.kernels.state.store import Instants, rows_at
from headgate.kernels.state.tiers import newest_to_merge
from headgate.model.time import NEVER, Clock

AT = "_at"
COUNT = "_count"

# Rows that may lie about needlessly, whatever the size of the queue.
_SLACK = 1024


@dataclass(frozen=True, eq=False)
class _Run:
    """Rows sorted by their instant."""

    built: int
    frame: pl.DataFrame

    @cached_property
    def at(self) -> Instants:
        return self.frame[AT].to_numpy()

    @cached_property
    def nbytes(self) -> int:
        return int(self.frame.estimated_size())

    def past(self, instant: int) -> int:
        """How many rows have had their instant."""
        return int(np.searchsorted(self.at, instant, side="right"))

    def between(self, after: int, upto: int) -> pl.DataFrame:
        first = self.past(after)
        return self.frame.slice(first, self.past(upto) - first)


@dataclass(frozen=True, eq=False)
class TimerQueue:
    """Rows with the columns of `schema` and `_at`; with `_count` too if counted."""

    schema: Mapping[str, pl.DataType]
    counted: bool = False
    runs: tuple[_Run, ...] = ()
    live: int | None = 0
    """The waiting rows, if counted the sum of their counts; not known until the clock is."""
    settled: int = 0
    """How many rows there were when all had last been merged."""

    @cached_property
    def columns(self) -> Mapping[str, pl.DataType]:
        extra = {AT: pl.Int64(), COUNT: pl.Int64()} if self.counted else {AT: pl.Int64()}
        return {**self.schema, **extra}

    @property
    def rows(self) -> int:
        return sum(run.frame.height for run in self.runs)

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {str(run.built): run.frame for run in self.runs}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> TimerQueue:
        """The queue like this empty one whose chunks these are."""
        runs = tuple(_Run(int(name), chunks[name]) for name in sorted(chunks, key=int))
        return replace(self, runs=runs, live=None)

    def waiting(self, after: int) -> list[pl.DataFrame]:
        """All rows with instants later than `after`, in pieces, the oldest first."""
        return [run.between(after, NEVER) for run in self.runs]

    def advance(self, frame: pl.DataFrame, clock: Clock) -> tuple[TimerQueue, pl.DataFrame]:
        """The queue at the end of the step with the rows of `frame` too, and the rows due in the step.

        Those due at one instant come in the order in which they were added; instants come in no order.
        """
        ours = frame.select(list(self.columns))
        if clock.upto == clock.after:
            # A step of no length has nothing to say, and must not write chunks under names that are taken.
            return self, ours
        soon = ours.filter(pl.col(AT) <= clock.upto)
        later = ours if soon.is_empty() else ours.filter(pl.col(AT) > clock.upto)
        pieces = [run.between(clock.after, clock.upto) for run in self.runs]
        live = self.live
        if live is None:
            live = sum(self._size(piece) for piece in self.waiting(clock.after))
        live -= sum(self._size(piece) for piece in pieces)
        due = pl.concat([*(piece for piece in pieces if piece.height), soon])
        return self._with(later, clock.upto, live + self._size(later)), due

    def _with(self, frame: pl.DataFrame, now: int, live: int) -> TimerQueue:
        runs = tuple(run for run in self.runs if run.at[-1] > now)
        if frame.height:
            runs = (*runs, _Run(now, by_instant(frame).rechunk()))
        if not runs:
            return replace(self, runs=(), live=0, settled=0)
        return replace(self, runs=runs, live=live)._tidied(now, live)

    def _tidied(self, now: int, live: int) -> TimerQueue:
        """The same rows in few runs, with few that have passed or cancel each other."""
        past = sum(run.past(now) for run in self.runs)
        waiting = self.rows - past
        idle = past > waiting + _SLACK
        if self.counted:
            needless = waiting > 2 * max(live, self.settled) + _SLACK
            idle = idle or needless or (live == 0 and waiting > self.settled)
        if idle:
            whole = self._merged(self.runs, now)
            return replace(self, runs=whole, settled=sum(run.frame.height for run in whole))
        count = newest_to_merge([run.frame.height for run in self.runs])
        if count == 1 or self.runs[-1].built != now:
            return self
        return replace(self, runs=(*self.runs[:-count], *self._merged(self.runs[-count:], now)))

    def _merged(self, runs: tuple[_Run, ...], now: int) -> tuple[_Run, ...]:
        frame = pl.concat([run.between(now, NEVER) for run in runs])
        if self.counted and frame[COUNT].min() != frame[COUNT].max():
            frame = netted(frame)
        if frame.is_empty():
            return ()
        return (_Run(now, by_instant(frame).rechunk()),)

    def _size(self, frame: pl.DataFrame) -> int:
        return int(frame[COUNT].sum()) if self.counted else frame.height


def timer_queues(state: State) -> dict[str, TimerQueue]:
    """The parts of a state that consists of timer queues."""
    assert isinstance(state, CompositeState)
    parts: dict[str, TimerQueue] = {}
    for name, part in state.named.items():
        assert isinstance(part, TimerQueue)
        parts[name] = part
    return parts


def by_instant(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in order of their instants, those of one instant as they stood."""
    at = frame[AT].to_numpy()
    if not np.any(at[1:] < at[:-1]):
        return frame
    # NumPy's stable sort makes use of the ordered stretches of which most frames consist.
    return rows_at(frame, np.argsort(at, kind="stable"))


def netted(frame: pl.DataFrame) -> pl.DataFrame:
    """One row for all that are equal but for `_count`, with the sum; none where that is 0."""
    keys = [name for name in frame.columns if name != COUNT]
    summed = frame.group_by(keys, maintain_order=True).agg(pl.col(COUNT).sum())
    return summed.filter(pl.col(COUNT) != 0).select(frame.columns)
