"""MonitoredAgePunctuator: how old a row is whose partner has come, if partners are as little late as of late.

```
referring        a     b   c
stream              b    x   a  b     a: its partner is the third row of the stream after it, b: the second
```

A row's partner is late by as many rows of the stream as come after the row, the partner included; rows of the same
instant do not count: which came first is not known. So it is remembered how many rows of the stream had come when a
row came that refers to it, until its partner comes, or so many rows that this would be seen no more. Rows that are
young enough for the k in use wait for their partners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.punctuation.monitor import Monitor, MonitorState, Numbers, Watch, chosen, said
from headgate.model.batch import BORN, Batch
from headgate.model.time import Clock

_EACH = 64
"""Where the last so many rows came is remembered, and of those before where one in so many did."""

_POSITION, _COUNT, _SAMPLED, _AT = "_position", "_count", "_sampled", "_at"
_MARKS, _WAITING = "marks", "waiting"
_MARK_SCHEMA = {_POSITION: pl.Int64(), BORN: pl.Int64()}


@dataclass(frozen=True)
class MonitoredAgePunctuator(Monitor):
    """Rows of the stream with `columns` in, and rows with `referring` that refer to them.

    Out, once a step while a k is in use: the instant such that k rows of the stream have followed all born before it.
    """

    column: str
    columns: Mapping[str, pl.DataType]
    referring: tuple[str, ...]

    def initial(self) -> MonitorState:
        waiting = {**self.columns, _COUNT: pl.Int64(), _SAMPLED: pl.Boolean()}
        return MonitorState(
            {_MARKS: pl.DataFrame(schema=_MARK_SCHEMA), _WAITING: pl.DataFrame(schema=waiting)}
        )

    def advance(
        self, state: MonitorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[MonitorState, Batch]:
        """The instant; or that nothing is sure any more of what was said."""
        batch, referring = inputs
        before = state.watch
        watch = replace(before, referred=before.referred + referring.height)
        parts = dict(state.parts)
        if referring.height:
            parts[_WAITING] = self._referred(state, batch.frame, referring.frame)
        if batch.height:
            watch, waiting = self._watched(watch, batch.frame, parts[_WAITING])
            new = batch.frame.select(
                pl.int_range(before.arrived, watch.arrived, dtype=pl.Int64).alias(_POSITION), BORN
            )
            marks = pl.concat([parts[_MARKS], new])
            parts |= {_WAITING: waiting, _MARKS: self._thinned(marks, watch.arrived, watch.k)}
        if batch.height or referring.height:
            state = MonitorState(parts, watch, clock.upto)
        broken = before.k is not None and watch.violations > before.violations
        instant = self._instant(state, clock) if batch.height or watch.k == 0 else None
        if clock.upto <= clock.after or (instant is None and not broken):
            return state, Batch.empty({self.column: pl.Int64()})
        values = [] if instant is None else [instant]
        frame = pl.DataFrame({self.column: values}, schema={self.column: pl.Int64()})
        return state, said(frame, clock.upto, anew=broken)

    def _referred(self, state: MonitorState, rows: pl.DataFrame, referring: pl.DataFrame) -> pl.DataFrame:
        """What waits with new rows: how many of the stream have come before each, or at its instant."""
        begun = state.watch.referred
        places = np.arange(begun, begun + referring.height, dtype=np.int64)
        counts = rows.get_column(BORN).search_sorted(referring.get_column(BORN), side="right")
        new = referring.select(
            pl.col(mine).cast(dtype).alias(name)
            for mine, (name, dtype) in zip(self.referring, self.columns.items(), strict=True)
        ).with_columns(
            (counts.cast(pl.Int64) + state.watch.arrived).alias(_COUNT),
            pl.Series(_SAMPLED, chosen(places, self.options.sampled)),
        )
        return pl.concat([state.parts[_WAITING], new.drop_nulls().unique(maintain_order=True)])

    def _watched(
        self, before: Watch, rows: pl.DataFrame, waiting: pl.DataFrame
    ) -> tuple[Watch, pl.DataFrame]:
        """What is known after rows of the stream, and which referring rows still wait."""
        names = list(self.columns)
        keys = rows.select(
            *names, pl.int_range(before.arrived, before.arrived + rows.height, dtype=pl.Int64).alias(_AT)
        ).drop_nulls()
        pairs = waiting.join(keys, on=names, how="inner").sort(_AT)
        met = pairs.filter(pl.col(_COUNT) <= pl.col(_AT))
        at, counts = met[_AT].to_numpy(), met[_COUNT].to_numpy()
        sampled = met[_SAMPLED].to_numpy()

        def distances(first: int, last: int, floors: Numbers) -> Numbers:
            here = slice(*np.searchsorted(at, [first, last]))
            places, since = at[here] - first, at[here] + 1 - counts[here]
            known = (counts[here] >= floors[places]) | (sampled[here] & (since <= self.options.limit))
            found = np.zeros(last - first, dtype=np.int64)
            np.maximum.at(found, places[known], since[known])
            return found

        born = rows.get_column(BORN)
        watch = before.followed(self.options, rows.height, distances, lambda row: int(born[row]), ahead=1)
        oldest = watch.arrived + 1 - self.options.limit
        known = (pl.col(_COUNT) >= watch.floor) | (pl.col(_SAMPLED) & (pl.col(_COUNT) >= oldest))
        left = waiting.filter(known).join(keys, on=names, how="anti")
        return watch, left.rechunk()

    def _thinned(self, marks: pl.DataFrame, arrived: int, k: int | None) -> pl.DataFrame:
        """The marks of a stream of which so many rows have come that may still be asked for."""
        oldest = arrived - (self.options.limit if k is None else k)
        passed = marks.get_column(_POSITION).search_sorted(oldest, side="right")
        wanted = (pl.col(_POSITION) % _EACH == 0) | (pl.col(_POSITION) >= arrived - _EACH)
        return marks.slice(max(0, passed - 1)).filter(wanted).rechunk()

    def _instant(self, state: MonitorState, clock: Clock) -> int | None:
        """The instant such that k rows of the stream have come after all that was born before it."""
        k = state.watch.k
        if k is None:
            return None
        if k == 0:
            return clock.upto + 1
        marks = state.parts[_MARKS]
        passed = marks.get_column(_POSITION).search_sorted(state.watch.arrived - k, side="right")
        return int(marks.get_column(BORN)[passed - 1]) if passed else None
