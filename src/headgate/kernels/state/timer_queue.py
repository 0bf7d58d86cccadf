"""TimerQueue: rows that wait for an instant, in a few runs sorted by it.

```
runs, oldest first    [ 3 5 5 9 ...... ] [ 4 8 8 12 ] [ 7 9 ]
clock at 5              past | waiting     past| wait   waiting
due in (5, 8]           none               8 8          7        -> 7 8 8
```

A step takes what is due from each run by binary search and adds one run; a run whose rows are all past is dropped.

A counted queue adds up: rows that are equal but for their counts become one when runs are merged, and vanish when
the counts cancel. That is how an ending meets the death that it takes back. Where all equal rows become one, runs are
in the narrowest integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl

from headgate.kernels.kernel import State
from headgate.kernels.state.composite import States
from headgate.kernels.state.index import HashIndex
from headgate.kernels.state.sorted_runs import Run, SortedRuns
from headgate.kernels.state.store import rows_at
from headgate.model.time import NEVER, Clock

AT = "_at"
COUNT = "_count"

# Rows that may lie about although they cancel, whatever the size of the queue.
_SLACK = 1024


@dataclass(frozen=True, eq=False)
class TimerQueue(SortedRuns[Run]):
    """Rows with the columns of `schema` and `_at`.

    If counted, `counter` names the column that says how many rows a row stands for; any other column beside those of
    the schema is an integer that is added up too, 0 where it is absent. With `summed`, equal rows become one whenever
    they meet, not only where they may cancel.
    """

    schema: Mapping[str, pl.DataType]
    counter: str | None = None
    summed: bool = False
    live: int | None = 0
    """If counted, the sum of the counts that wait; not known until the clock is."""
    settled: int = 0
    """How many rows there were when all had last been merged."""

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> TimerQueue:
        return replace(super().restored(chunks), live=None)

    def waiting(self, after: int) -> list[pl.DataFrame]:
        """All rows with instants later than `after`, in pieces, the oldest first."""
        return self._pieces(after, NEVER)

    def advance(self, frame: pl.DataFrame, clock: Clock) -> tuple[TimerQueue, pl.DataFrame]:
        """The queue at the end of the step with the rows of `frame` too, and the rows due in the step.

        Those due at one instant come in the order in which they were added; instants come in no order.
        """
        ours = frame[self._nothing().columns]
        if clock.upto == clock.after:
            # A step of no length has nothing to say, and must not write chunks under names that are taken.
            return self, ours
        is_soon = ours[AT] <= clock.upto
        soon, later = (ours.filter(is_soon), ours.filter(~is_soon)) if is_soon.any() else (ours.clear(), ours)
        queue, due = self.due(clock.after, clock.upto)
        return queue.add(later, clock.upto), pl.concat([due, soon])

    def due(self, after: int, upto: int) -> tuple[TimerQueue, pl.DataFrame]:
        """The queue without runs that are past at `upto`, and the rows due in (after, upto]."""
        due = self._joined(self._pieces(after, upto))
        live = sum(map(self._size, self.waiting(after))) if self.live is None else self.live
        runs = tuple(run for run in self.runs if run.numbers(AT)[-1] > upto)
        return replace(self, runs=runs, live=live - self._size(due)), due

    def add(self, frame: pl.DataFrame, now: int) -> TimerQueue:
        """The queue after a step that ends at `now`, with rows that are due later; once a step, after `due`."""
        live = (self.live or 0) + self._size(frame)
        runs = self._tidied(self.runs, now)
        if self.summed:
            frame = self._netted(by_instant(frame))
        if frame.height:
            runs = self._tiered((*runs, self._written(frame, now)), now, now)
        if not runs:
            return replace(self, runs=(), live=0, settled=0)
        queue = replace(self, runs=runs, live=live)
        if self.counter is not None:
            waiting = queue.rows - sum(int(queue._dead(run, now)) for run in runs)
            # Rows that cancel lie in different runs.
            if waiting > 2 * max(abs(live), self.settled) + _SLACK or (live == 0 and waiting > self.settled):
                whole = replace(queue, runs=self._merged(runs, now, now))
                return replace(whole, settled=whole.rows)
        return queue

    @property
    def _order(self) -> str:
        return AT

    def _run(self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]) -> Run:
        return Run(since, built, self._narrow(frame) if self.summed else frame, indexes)

    def _dead(self, run: Run, now: int) -> float:
        return float(np.searchsorted(run.numbers(AT), now, side="right"))

    def _merged(self, runs: Sequence[Run], now: int, dead: int) -> tuple[Run, ...]:
        frames = replace(self, runs=tuple(runs))._pieces(dead, NEVER)
        frame = self._joined(frames)
        if self._meet(frames):
            frame = self._netted(frame)
        return (self._run(runs[0].since, now, by_instant(frame).rechunk(), ()),) if frame.height else ()

    def _meet(self, frames: Sequence[pl.DataFrame]) -> bool:
        """Whether rows of frames that are in order may be about the same."""
        if self.counter is None:
            return False
        if self.summed:
            return any(two[AT][0] <= one[AT][-1] for one, two in pairwise(frames))
        return any((each[self.counter] < 0).any() for each in frames)

    def _pieces(self, after: int, upto: int) -> list[pl.DataFrame]:
        """What each run that has any has of rows with instants in (after, upto]."""
        pieces = []
        for run in self.runs:
            low, high = np.searchsorted(run.numbers(AT), (after, upto), side="right").tolist()
            if low < high:
                piece = run.frame.slice(low, high - low)
                wide = (pl.col(name).cast(self.schema.get(name, pl.Int64())) for name in piece.columns)
                pieces.append(piece.select(wide) if self.summed else piece)
        return pieces

    def _joined(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The rows of frames that may lack columns of numbers."""
        if len({tuple(frame.columns) for frame in frames}) < 2:
            return pl.concat(frames or [self._nothing()])
        sums = pl.exclude(*self.schema, AT)
        return pl.concat(frames, how="diagonal").with_columns(sums.fill_null(0))

    def _netted(self, frame: pl.DataFrame) -> pl.DataFrame:
        at = frame[AT].to_numpy()
        if np.all(at[1:] > at[:-1]):
            return frame
        return netted(frame, [name for name in frame.columns if name != AT and name not in self.schema])

    def _narrow(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The same rows in the narrowest integers, without the sums that are zero throughout."""
        columns = []
        for column in frame.get_columns():
            if column.name == AT or column.dtype != pl.Int64:
                columns.append(column)
            elif column.name in (*self.schema, self.counter) or column.min() != 0 or column.max() != 0:
                columns.append(column.shrink_dtype())
        return pl.DataFrame(columns)

    def _size(self, frame: pl.DataFrame) -> int:
        return 0 if self.counter is None else int(frame[self.counter].sum())

    def _nothing(self) -> pl.DataFrame:
        numbers = (AT,) if self.counter is None else (AT, self.counter)
        return pl.DataFrame(schema={**self.schema, **dict.fromkeys(numbers, pl.Int64())})


def timer_queues(state: State) -> dict[str, TimerQueue]:
    """The parts of a state that consists of timer queues."""
    assert isinstance(state, States)
    return dict(state.named)


def by_instant(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in order of their instants, those of one instant as they stood."""
    at = frame[AT].to_numpy()
    if not np.any(at[1:] < at[:-1]):
        return frame
    # NumPy's stable sort makes use of the ordered stretches of which most frames consist.
    return rows_at(frame, np.argsort(at, kind="stable"))


def netted(frame: pl.DataFrame, counts: Sequence[str]) -> pl.DataFrame:
    """One row for all that are equal but for their counts, with the sums; none where all are 0."""
    keys = [name for name in frame.columns if name not in counts]
    summed = frame.group_by(keys, maintain_order=True).agg(pl.col(counts).sum())
    return summed.filter(pl.any_horizontal(pl.col(counts) != 0)).select(frame.columns)
