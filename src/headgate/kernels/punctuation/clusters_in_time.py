"""ClusterInTimePunctuator: says which values of a stream are closed because they have not come for too long.

```
within 10     ts      1   4   6          a is closed at 14 and b at 16, whether or not anything else comes
              value   a   a   b
```

Between two consecutive rows with equal values at most the time passes. So when the clock is at u, no more rows come
with a value whose last row came at u - time or before. Of the others it is remembered when each came last. Rows that
come back to a closed value are late, and none of them comes here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock


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
        before = max(BEGINNING, clock.upto - self.length)
        due = bool((state.open[BORN] <= before).any())
        if new.is_empty() and not due:
            return state, Batch.empty(self.schema)
        latest = new.group_by(columns, maintain_order=True).agg(pl.col(BORN).max())
        found = pl.concat([state.open.join(latest, on=columns, how="anti"), latest])
        rows = found.filter(pl.col(BORN) <= before).select(
            *columns,
            pl.col(BORN) + self.length,
            pl.lit(NEVER, dtype=pl.Int64).alias(DIES),
            pl.lit(1, dtype=pl.Int8).alias(SIGN),
        )
        left = found.filter(pl.col(BORN) > before).rechunk()
        after = ClusterInTimePunctuatorState(left, clock.upto)
        return after, Batch(rows.sort(BORN, maintain_order=True).select(*columns, *LIFETIME_COLUMNS))
