"""Windows by count: a row dies when the n-th later row is born, of the stream or of its partition.

Which row pushes out which is a matter of numbers. Number the rows of a partition as they come; row q pushes out row
q - n. So n slots per partition hold all that matters, and row q finds the row it pushes out in slot q mod n:

```
n = 3      row      0   1   2   3   4   5   6
           slot     0   1   2   0   1   2   0
           pushes   -   -   -   0   1   2   3
```

A row whose end lies in the step of its birth is announced with its death and never enters the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.distinct.multiplicity import group, starts
from headgate.kernels.kernel import State
from headgate.kernels.keys import Mask
from headgate.kernels.state.composite import States
from headgate.kernels.state.sorted_runs import Ints
from headgate.kernels.state.store import rows_at, rows_where
from headgate.kernels.state.table import Table, Tables
from headgate.kernels.window.last_rows import LastRows
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock

_ARRIVED = "_arrived"
_SLOT = "_slot"


@dataclass(frozen=True)
class RowWindow:
    """The last `count` rows of a stream."""

    count: int
    schema: Mapping[str, pl.DataType]
    endings: bool

    def initial(self) -> LastRows:
        return LastRows(self.schema, self.count)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> LastRows:
        return self.initial().restored(chunks)

    def advance(self, state: State, inputs: Sequence[Batch], clock: Clock) -> tuple[LastRows, Batch]:
        [batch] = inputs
        assert isinstance(state, LastRows)
        # A join inside the plan hands its births over in the order in which it found them.
        frame = _by_birth(batch.frame)
        born = frame[BORN].to_numpy()
        dies = np.full(len(born), NEVER)
        dies[: -self.count] = born[self.count :]
        held = min(state.rows, self.count)
        tail, pushed = state.push(frame.select(list(self.schema)), clock.upto)
        # The first row that pushes one out is the one that comes when the window is full.
        first = self.count - held
        ended = born[first : first + pushed.height]
        return tail, _announced(frame, dies, pushed, ended, explicit=self.endings)


@dataclass(frozen=True)
class PartitionedRowWindow:
    """The last `count` rows of each partition."""

    count: int
    partition: tuple[str, ...]
    schema: Mapping[str, pl.DataType]
    endings: bool

    def initial(self) -> Tables:
        keys = {name: self.schema[name] for name in self.partition}
        arrived = Table({**keys, _ARRIVED: pl.Int64()}, self.partition)
        slots = Table({**self.schema, _SLOT: pl.Int64()}, (*self.partition, _SLOT))
        return States({"arrived": arrived, "slots": slots})

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> Tables:
        return self.initial().restored(chunks)

    def advance(self, state: State, inputs: Sequence[Batch], clock: Clock) -> tuple[Tables, Batch]:
        [batch] = inputs
        assert isinstance(state, States)
        arrived, _ = state.named["arrived"].expire(clock.after, clock.upto)
        slots, _ = state.named["slots"].expire(clock.after, clock.upto)
        groups = group(batch.frame, self.partition, batch.frame[BORN].to_numpy())
        frame = rows_at(batch.frame, groups.order)
        born = frame[BORN].to_numpy()
        rank, size = _ranks(groups.codes)
        partitions = rows_where(frame, starts(groups.codes)).select(self.partition)
        at = arrived.find(partitions, self.partition)
        [before] = arrived.numbers(at, [_ARRIVED], 0)
        frame = frame.with_columns(pl.Series(_SLOT, (before[groups.codes] + rank) % self.count))
        dies = np.full(len(born), NEVER)
        pushed_inside = np.flatnonzero(rank + self.count < size)
        dies[pushed_inside] = born[pushed_inside + self.count]
        deaths = np.empty_like(dies)
        deaths[groups.order] = dies
        total = before + size[starts(groups.codes)]
        arrived = arrived.put(partitions.with_columns(pl.Series(_ARRIVED, total)), at)
        slots, pushed, ended = self._turn(slots, frame, rank < self.count, rank + self.count >= size)
        output = _announced(batch.frame, deaths, pushed, ended, explicit=self.endings)
        return States({"arrived": arrived, "slots": slots}), output

    def _turn(
        self, slots: Table, frame: pl.DataFrame, first: Mask, last: Mask
    ) -> tuple[Table, pl.DataFrame, Ints]:
        """The slots after the step; the rows that the first rows of each partition push out, and when."""
        columns = (*self.partition, _SLOT)
        pushing, staying = rows_where(frame, first), rows_where(frame, last)
        at = slots.find(pushing, columns)
        found = at >= 0
        pushed = slots.take(at[found]).select(list(self.schema))
        ended = pushing[BORN].to_numpy()[found]
        # Where a partition gets more than n rows, those that stay are not those that push.
        behind = at if np.array_equal(first, last) else slots.find(staying, columns)
        return slots.put(staying, behind), pushed, ended


def _by_birth(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows in order of birth, those born together as they stood."""
    born = frame[BORN].to_numpy()
    return frame.sort(BORN, maintain_order=True) if np.any(born[1:] < born[:-1]) else frame


def _ranks(codes: Ints) -> tuple[Ints, Ints]:
    """For rows whose partitions lie side by side: the number of each in its partition, and the partition's size."""
    opens = np.flatnonzero(starts(codes))
    sizes = np.diff(np.append(opens, codes.size))
    return np.arange(codes.size) - np.repeat(opens, sizes), np.repeat(sizes, sizes)


def _announced(
    frame: pl.DataFrame, dies: Ints, pushed: pl.DataFrame, ended: Ints, *, explicit: bool
) -> Batch:
    """The births of `frame` with the deaths known by now, and the endings of the rows that were pushed out.

    If explicit, a death known by now is sent as an ending as well.
    """
    births = frame.with_columns(pl.Series(DIES, dies)).filter(pl.col(BORN) < pl.col(DIES))
    pushed = pushed.with_columns(pl.Series(BORN, ended, dtype=pl.Int64))
    if explicit:
        inside = births.filter(pl.col(DIES) < NEVER).with_columns(pl.col(DIES).alias(BORN))
        pushed = pl.concat([pushed, inside.select(pushed.columns)])
        births = births.with_columns(pl.lit(NEVER, dtype=pl.Int64).alias(DIES))
    payload = [name for name in pushed.columns if name != BORN]
    columns = [*payload, BORN, DIES, SIGN]
    endings = pushed.with_columns(
        pl.lit(NEVER, dtype=pl.Int64).alias(DIES), pl.lit(-1, dtype=pl.Int8).alias(SIGN)
    )
    return Batch(pl.concat([births.select(columns), endings.select(columns)]))
