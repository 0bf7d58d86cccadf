"""OrderPunctuator: below which value no row of a stream comes any more, because its rows are in order up to a few.

```
within 2      3  5  4  9  7  6
              nothing less than 3 comes after 4, than 5 after 9 and 7 and 6: the greatest that two rows have followed
```

It remembers the last `within` values, in which order may still change, and the greatest before them (k-Mon document,
section 6.2). Of many it remembers the greatest of each few that followed each other, and then waits for a few more
rows than it must: what it remembers does not grow with the number of rows. A row with NULL counts, but says nothing
of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import NEVER, Clock

BLOCKS = 64
"""About so many greatest values are remembered; a number of rows that is no larger is exact."""

_BEFORE, _BLOCK = "_before", "_block"


@dataclass(frozen=True, eq=False)
class OrderPunctuatorState:
    """The greatest of each block of the last values, after the greatest of all before (block -1); one chunk."""

    values: pl.DataFrame
    seen: int = 0
    built: int = 0

    @property
    def rows(self) -> int:
        return self.values.height

    @property
    def nbytes(self) -> int:
        return int(self.values.estimated_size())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {f"{self.built}.{self.seen}": self.values} if self.seen else {}


@dataclass(frozen=True)
class OrderPunctuator:
    """Values of `column` in; out, once a step, the one below which nothing comes any more."""

    column: str
    dtype: pl.DataType
    within: int

    def initial(self) -> OrderPunctuatorState:
        return OrderPunctuatorState(pl.DataFrame(schema={_BLOCK: pl.Int64(), self.column: self.dtype}))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> OrderPunctuatorState:
        for name, frame in chunks.items():
            built, _, seen = name.rpartition(".")
            return OrderPunctuatorState(frame, int(seen), int(built))
        return self.initial()

    def advance(
        self, state: OrderPunctuatorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[OrderPunctuatorState, Batch]:
        """The value below which nothing comes any more, at the instant of the step's last row."""
        (batch,) = inputs
        schema = {self.column: self.dtype}
        if not batch.height:
            return state, Batch.empty(schema)
        seen, apart = state.seen + batch.height, max(1, -(-self.within // BLOCKS))
        block = pl.int_range(state.seen, seen, dtype=pl.Int64) // apart
        new = batch.frame.select(block.alias(_BLOCK), self.column)
        greatest = pl.concat([state.values, new]).group_by(_BLOCK).agg(pl.col(self.column).max()).sort(_BLOCK)
        # Blocks whose last row has been followed by so many.
        whole = (pl.col(_BLOCK) + 1) * apart <= seen - self.within
        settled = greatest.filter(whole).select(
            pl.lit(-1, dtype=pl.Int64).alias(_BLOCK), pl.col(self.column).max()
        )
        settled = settled.drop_nulls()
        values = pl.concat([settled, greatest.filter(~whole)]).rechunk()
        after = OrderPunctuatorState(values, seen, clock.upto)
        if settled.is_empty():
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
