"""OrderPunctuator: below which value no row of a stream comes any more, because its rows are in order up to a few.

```
within 2      3  5  4  9  7  6
              nothing less than 3 comes after 4, than 5 after 9 and 7 and 6: the greatest that two rows have followed
```

It remembers the last `within` values, in which order may still change, and the greatest before them (k-Mon document,
section 6.2). A row with NULL counts, but says nothing of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import NEVER, Clock

_BEFORE = "_before"


@dataclass(frozen=True, eq=False)
class OrderPunctuatorState:
    """The last values in order of arrival, after the greatest of all before them (`_before`); one chunk."""

    values: pl.DataFrame
    built: int = 0

    @property
    def rows(self) -> int:
        return self.values.height

    @property
    def nbytes(self) -> int:
        return int(self.values.estimated_size())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {} if self.values.is_empty() else {str(self.built): self.values}


@dataclass(frozen=True)
class OrderPunctuator:
    """Values of `column` in; out, once a step, the one below which nothing comes any more."""

    column: str
    dtype: pl.DataType
    within: int

    def initial(self) -> OrderPunctuatorState:
        return OrderPunctuatorState(pl.DataFrame(schema={self.column: self.dtype, _BEFORE: pl.Boolean()}))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> OrderPunctuatorState:
        for name, frame in chunks.items():
            return OrderPunctuatorState(frame, int(name))
        return self.initial()

    def advance(
        self, state: OrderPunctuatorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[OrderPunctuatorState, Batch]:
        """The value below which nothing comes any more, at the instant of the step's last row."""
        (batch,) = inputs
        schema = {self.column: self.dtype}
        if not batch.height:
            return state, Batch.empty(schema)
        new = batch.frame.select(self.column, pl.lit(False).alias(_BEFORE))
        settled, values = settle(pl.concat([state.values, new]), self.column, self.within)
        after = OrderPunctuatorState(values, clock.upto)
        if settled is None:
            return after, Batch.empty(schema)
        rows = settled.select(
            self.column,
            pl.lit(batch.frame[BORN].max(), dtype=pl.Int64).alias(BORN),
            pl.lit(NEVER, dtype=pl.Int64).alias(DIES),
            pl.lit(1, dtype=pl.Int8).alias(SIGN),
        )
        return after, Batch(rows.select(self.column, *LIFETIME_COLUMNS))


def settle(values: pl.DataFrame, column: str, within: int) -> tuple[pl.DataFrame | None, pl.DataFrame]:
    """The greatest value that `within` others have followed, if there is one, and what is to be remembered.

    `values` are in order of arrival; the first may have `_before`, and is then the greatest of earlier ones.
    """
    arrived = values.filter(~pl.col(_BEFORE))
    older = pl.concat([values.filter(_BEFORE), arrived.head(max(0, arrived.height - within))])
    greatest = older.filter(pl.col(column).is_not_null()).sort(column).tail(1)
    kept = pl.concat([greatest.with_columns(pl.lit(True).alias(_BEFORE)), arrived.tail(within)]).rechunk()
    return (None if greatest.is_empty() else greatest), kept
