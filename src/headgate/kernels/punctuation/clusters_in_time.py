"""ClusterInTimePunctuator: says which values of a stream are closed because they have not come for too long.

```
within 10     ts      1   4   6          a is closed at 14 and b at 16, whether or not anything else comes
              value   a   a   b
```

Between two consecutive rows with equal values at most the time passes. So when the clock is at u, no more rows come
with a value whose last row came at u - time or before. Of the others it is remembered when each came last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock

_CLOSED = "_closed"


@dataclass(frozen=True, eq=False)
class ClusterInTimePunctuatorState:
    """The open values with the birth of their last row; one chunk."""

    open: pl.DataFrame
    built: int = 0

    @property
    def rows(self) -> int:
        return self.open.height

    @property
    def nbytes(self) -> int:
        return int(self.open.estimated_size())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {} if self.open.is_empty() else {str(self.built): self.open}


@dataclass(frozen=True)
class ClusterInTimePunctuator:
    """Rows with the columns of `schema` in, closed values of them out; at most `length` passes between equals."""

    schema: Mapping[str, pl.DataType]
    length: int

    def initial(self) -> ClusterInTimePunctuatorState:
        return ClusterInTimePunctuatorState(pl.DataFrame(schema={**self.schema, BORN: pl.Int64()}))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClusterInTimePunctuatorState:
        for name, frame in chunks.items():
            return ClusterInTimePunctuatorState(frame, int(name))
        return self.initial()

    def advance(
        self, state: ClusterInTimePunctuatorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClusterInTimePunctuatorState, Batch]:
        """The values that are closed in the step, each at the instant at which it is."""
        (batch,) = inputs
        columns = list(self.schema)
        new = batch.frame.select(*columns, BORN).drop_nulls(columns)
        due = bool((state.open[BORN] <= max(BEGINNING, clock.upto - self.length)).any())
        if clock.upto <= clock.after or (new.is_empty() and not due):
            return state, Batch.empty(self.schema)
        found = closing_instants(pl.concat([state.open, new]), columns, self.length, clock.upto)
        rows = found.filter(pl.col(_CLOSED).is_not_null()).select(
            *columns,
            pl.col(_CLOSED).alias(BORN),
            pl.lit(NEVER, dtype=pl.Int64).alias(DIES),
            pl.lit(1, dtype=pl.Int8).alias(SIGN),
        )
        left = found.filter(pl.col(_CLOSED).is_null()).select(*columns, BORN)
        after = ClusterInTimePunctuatorState(left.rechunk(), clock.upto)
        return after, Batch(rows.sort(BORN, maintain_order=True).select(*columns, *LIFETIME_COLUMNS))


def closing_instants(rows: pl.DataFrame, columns: list[str], length: int, upto: int) -> pl.DataFrame:
    """For each value its last birth and, in `_closed`, the first instant up to `upto` that closed it, if one did.

    Each value's `rows` are in order of `_born`.
    """
    after = pl.col(BORN) + length
    following = pl.col(BORN).shift(-1).over(columns)
    gap = (following.is_null() | (following > after)) & (after <= upto)
    marked = rows.with_columns(pl.when(gap).then(after).alias(_CLOSED))
    return marked.group_by(columns, maintain_order=True).agg(pl.col(BORN).max(), pl.col(_CLOSED).min())
