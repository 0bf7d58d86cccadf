"""Settled: the rows of an aggregate whose groups are closed, each once, some time after it has become final.

```
group 7    ──3──┬──5──┬──────────        its row may still change
                      7 is closed        (7, 5) is final: it is said here, and forgotten
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.distinct.closing_distinct import CLOSED, VALUES, few
from headgate.kernels.distinct.multiplicity import group
from headgate.kernels.state.closed_values import ClosedValues, closed_by_all, not_by_all
from headgate.kernels.state.store import prefixed, rows_at, under
from headgate.kernels.state.table import Table
from headgate.model.batch import BORN, SIGN, Batch
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class SettledState:
    """The rows of groups that are not closed, what each input has closed, and what came since the last sweep."""

    rows_: Table
    closed_values: tuple[ClosedValues, ...]
    since: int = 0
    kept: int = 0

    @property
    def rows(self) -> int:
        return self.rows_.rows + sum(each.rows for each in self.closed_values)

    @property
    def nbytes(self) -> int:
        return self.rows_.nbytes + sum(each.nbytes for each in self.closed_values)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        chunks = self.rows_.chunks(VALUES)
        for number, each in enumerate(self.closed_values):
            chunks |= prefixed(each.chunks(), f"{CLOSED}{number}/")
        return chunks


@dataclass(frozen=True)
class Settled:
    """Rows of groups with `keys`, none announced with a death, and inputs that close values of some of the keys."""

    schema: Mapping[str, pl.DataType]
    keys: tuple[str, ...]
    closed: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> SettledState:
        schema = {key: self.schema[key] for key in self.closed}
        closed_values = tuple(ClosedValues.nothing(schema, below=each) for each in self.below)
        return SettledState(Table(self.schema, self.keys), closed_values)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> SettledState:
        empty = self.initial()
        return SettledState(
            empty.rows_.restore(chunks, VALUES),
            tuple(e.restored(under(chunks, f"{CLOSED}{n}/")) for n, e in enumerate(empty.closed_values)),
        )

    def advance(
        self, state: SettledState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[SettledState, Batch]:
        """The rows that are found to be final in the step; they were there before."""
        nothing = Batch.empty(self.schema)
        if clock.upto <= clock.after:
            return state, nothing
        frame = inputs[0].frame
        table, _ = state.rows_.expire(clock.after, clock.upto)
        # Of a group, what ends at an instant comes before what begins there: the last row says how it stands.
        groups = group(frame, self.keys, frame.get_column(BORN).to_numpy())
        last = groups.order[np.roll(groups.first, -1)]
        rows = rows_at(frame, last)
        ended = rows.get_column(SIGN).to_numpy() < 0
        table = table.put(rows, table.find(rows, self.keys), gone=ended)
        closed = [batch.frame for batch in inputs[1:]]
        closed_values = tuple(
            each.observe(said, clock) for each, said in zip(state.closed_values, closed, strict=True)
        )
        since = state.since + sum(said.height for said in closed)
        if any(self.below):
            # One value closes many, so what there is to forget follows the rows.
            since += frame.height
        after = SettledState(table, closed_values, since, state.kept)
        return self._swept(after, clock) if since >= max(few(), state.kept) else (after, nothing)

    def _swept(self, state: SettledState, clock: Clock) -> tuple[SettledState, Batch]:
        rows = state.rows_.live_rows()
        final = closed_by_all(state.closed_values, rows, self.closed)
        closed_values = not_by_all(state.closed_values, clock)
        table = state.rows_
        if final.any():
            table = table.only(rows.filter(~final), clock.upto)
        kept = table.live + sum(each.rows for each in closed_values)
        said = Batch.of(rows.filter(final), born=pl.lit(clock.upto))
        return replace(state, rows_=table, closed_values=closed_values, since=0, kept=kept), said
