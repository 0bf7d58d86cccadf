"""Settled: the rows of an aggregate whose groups are closed, each once, some time after it has become final.

```
group 7    ──3──┬──5──┬──────────        its row may still change
                      7 is closed        (7, 5) is final: it is said here, and forgotten
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.distinct.multiplicity import group
from headgate.kernels.state.closed_values import closed_by_all
from headgate.kernels.state.closings import Closings, ClosingState
from headgate.kernels.state.composite import States
from headgate.kernels.state.store import rows_at
from headgate.kernels.state.table import Table, Tables
from headgate.model.batch import BORN, SIGN, Batch
from headgate.model.time import Clock

_ROWS = "rows"


@dataclass(frozen=True)
class Settled:
    """Rows of groups with `keys`, none announced with a death, and inputs that close values of some of the keys."""

    schema: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    closed: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> ClosingState[Tables]:
        schema = {key: self.schema[key] for key in self.closed}
        return ClosingState(
            States({_ROWS: Table(self.schema, self.keys)}), Closings.nothing(schema, self.below)
        )

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingState[Tables]:
        empty = self.initial()
        return empty.restored(empty.values.restored, chunks)

    def advance(
        self, state: ClosingState[Tables], inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingState[Tables], Batch]:
        """The rows that are found to be final in the step; they were there before."""
        nothing = Batch.empty(self.schema)
        if clock.upto <= clock.after:
            return state, nothing
        frame = inputs[0].frame
        table, _ = state.values.named[_ROWS].expire(clock.after, clock.upto)
        # Of a group, what ends at an instant comes before what begins there: the last row says how it stands.
        groups = group(frame, self.keys, frame.get_column(BORN).to_numpy())
        last = groups.order[np.roll(groups.first, -1)]
        rows = rows_at(frame, last)
        ended = rows.get_column(SIGN).to_numpy() < 0
        table = table.put(rows, table.find(rows, self.keys), gone=ended)
        after = state.observed(States({_ROWS: table}), inputs[:1], inputs[1:], clock)
        return self._swept(after, clock) if after.due(clock) else (after, nothing)

    def _swept(self, state: ClosingState[Tables], clock: Clock) -> tuple[ClosingState[Tables], Batch]:
        table = state.values.named[_ROWS]
        rows = table.live_rows()
        final = closed_by_all(state.closings.closed_values, rows, self.closed)
        if final.any():
            table = table.only(rows.filter(~final), clock.upto)
        said = Batch.of(rows.filter(final), born=pl.lit(clock.upto))
        return ClosingState(States({_ROWS: table}), state.closings.swept(table.live, clock)), said
