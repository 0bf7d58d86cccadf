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

from headgate.model.batch import BORN, DIES, LIFETIME_SCHEMA, SIGN, Batch
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
        # Where the blocks end whose last row has been followed by so many.
        past = max(0, (seen - self.within) // apart)
        arrived = batch.frame.get_column(self.column)
        whole = max(0, past * apart - state.seen)
        old = state.values.get_column(_BLOCK).search_sorted(past, side="left")
        greatest = pl.concat([state.values.get_column(self.column).head(old), arrived.head(whole)]).max()
        block = pl.int_range(state.seen + min(whole, batch.height), seen, dtype=pl.Int64, eager=True) // apart
        rest = pl.DataFrame([block.alias(_BLOCK), arrived.slice(whole)])
        left = pl.concat([state.values.slice(old), rest])
        if block.n_unique() < left.height:
            left = left.group_by(_BLOCK).agg(pl.col(self.column).max()).sort(_BLOCK)
        schema_of = {_BLOCK: pl.Int64(), self.column: self.dtype}
        settled = pl.DataFrame({_BLOCK: [-1], self.column: [greatest]}, schema=schema_of).head(
            greatest is not None
        )
        after = OrderPunctuatorState(pl.concat([settled, left]).rechunk(), seen, clock.upto)
        if settled.is_empty():
            return after, Batch.empty(schema)
        said = {self.column: [greatest], BORN: [batch.frame[BORN].max()], DIES: [NEVER], SIGN: [1]}
        return after, Batch(pl.DataFrame(said, schema={**schema, **LIFETIME_SCHEMA}))


def settle(values: pl.DataFrame, column: str, within: int) -> pl.DataFrame:
    """What is to be remembered of values: the greatest that `within` others have followed, if any, and the last ones.

    `values` are in order of arrival; the first may have `_before`, and is then the greatest of earlier ones.
    """
    series = values.get_column(column)
    earlier = int(values.height > 0 and values.get_column(_BEFORE)[0])
    older = max(earlier, values.height - within)
    greatest = series.head(older).max()
    if greatest is None:
        return values.slice(older).rechunk()
    first = pl.DataFrame({column: [greatest], _BEFORE: [True]}, schema=values.schema)
    return pl.concat([first, values.slice(older)]).rechunk()
