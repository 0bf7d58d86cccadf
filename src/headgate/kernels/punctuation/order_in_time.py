"""OrderInTimePunctuator: below which value no row of a stream comes any more, as rows are in order up to a time.

```
within 10     ts      1   4   9  12        clock at 13: the next row comes at 14 or later, more than 10 after 1
              value   3   5   9   8        and not after 4: nothing less than 3 comes. Clock at 14: than 5
```

A row is never less than one that came more than the time before it. So when the clock is at u, the greatest value of
rows before u + 1 - time is what no row is less than any more. Of younger rows those are remembered that are greater
than all before them: no others will ever be the greatest. The clock alone moves this on; rows need not come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock


@dataclass(frozen=True, eq=False)
class OrderInTimePunctuatorState:
    """The values that are greater than all before them, with `_born`, from the last settled one on; one chunk."""

    records: pl.DataFrame
    built: int = 0

    @property
    def rows(self) -> int:
        return self.records.height

    @property
    def nbytes(self) -> int:
        return int(self.records.estimated_size())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {} if self.records.is_empty() else {str(self.built): self.records}


@dataclass(frozen=True)
class OrderInTimePunctuator:
    """Values of `column` in; out, whenever it has risen, the one below which nothing comes any more."""

    column: str
    dtype: pl.DataType
    length: int

    def initial(self) -> OrderInTimePunctuatorState:
        return OrderInTimePunctuatorState(pl.DataFrame(schema={self.column: self.dtype, BORN: pl.Int64()}))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> OrderInTimePunctuatorState:
        for name, frame in chunks.items():
            return OrderInTimePunctuatorState(frame, int(name))
        return self.initial()

    def advance(
        self, state: OrderInTimePunctuatorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[OrderInTimePunctuatorState, Batch]:
        """The value below which nothing comes any more, at the end of the step; nothing if it is as before."""
        (batch,) = inputs
        nothing = Batch.empty({self.column: self.dtype})
        before, _ = settle_before(state.records, clock.after + 1 - self.length)
        records = state.records
        if batch.height:
            new = rising(pl.concat([records.tail(1), batch.frame.select(self.column, BORN)]), self.column)
            records = pl.concat([records.head(-1), new]).rechunk()
        settled, kept = settle_before(records, clock.upto + 1 - self.length)
        if records is not state.records or kept.height < records.height:
            state = OrderInTimePunctuatorState(kept.rechunk(), clock.upto)
        if settled is None or (before is not None and before.equals(settled)):
            return state, nothing
        rows = settled.select(
            self.column,
            pl.lit(clock.upto, dtype=pl.Int64).alias(BORN),
            pl.lit(NEVER, dtype=pl.Int64).alias(DIES),
            pl.lit(1, dtype=pl.Int8).alias(SIGN),
        )
        return state, Batch(rows.select(self.column, *LIFETIME_COLUMNS))


def rising(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Of rows in order of time those that are greater than all before them; NULL is not."""
    known = rows.drop_nulls(column)
    before = pl.col(column).cum_max().shift()
    return known.filter(before.is_null() | (pl.col(column) > before))


def settle_before(rows: pl.DataFrame, instant: int) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """The greatest value of rising `rows` before an instant, if there is one, and what is to be remembered."""
    passed = rows[BORN].search_sorted(max(BEGINNING, instant), side="left")
    settled = rows.slice(passed - 1, 1) if passed else None
    return settled, rows.slice(max(0, passed - 1))
