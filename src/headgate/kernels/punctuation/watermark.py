"""WatermarkPunctuator: below which value of a time column no row comes any more, because the clock has passed it.

```
lag 1 hour, clock at 11:30      no row comes whose instant is before 10:30:00.000001
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import polars as pl

from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import NEVER, Clock

_BITS = {pl.Int8: 8, pl.Int16: 16, pl.Int32: 32, pl.Date: 32}


@dataclass(frozen=True)
class WatermarkPunctuator(Stateless):
    """Out, once a step, the value of `column` below which nothing comes any more.

    A value v of the column is the instant `scale` × v, in microseconds; a row appears at most `lag` after it.
    """

    column: str
    dtype: pl.DataType
    scale: Fraction
    lag: int

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        schema = {self.column: self.dtype}
        if clock.upto <= clock.after:
            return state, Batch.empty(schema)
        most = 2 ** (_BITS.get(type(self.dtype), 64) - 1) - 1
        least = ceil((clock.upto + 1 - self.lag) / self.scale)
        value = pl.Series(self.column, [max(-most, min(most, least))], dtype=pl.Int64)
        # A date is a number of days in 32 bits.
        if isinstance(self.dtype, pl.Date):
            value = value.cast(pl.Int32)
        frame = pl.DataFrame([value.cast(self.dtype)]).with_columns(
            pl.lit(clock.upto, dtype=pl.Int64).alias(BORN),
            pl.lit(NEVER, dtype=pl.Int64).alias(DIES),
            pl.lit(1, dtype=pl.Int8).alias(SIGN),
        )
        return state, Batch(frame.select(self.column, *LIFETIME_COLUMNS))
