"""AgePunctuator: says which rows of others are old enough that a stream's last rows have all come after them.

```
within 2      rows at   1    4    6    9
                              rows before 4 at 6, before 6 at 9: two rows of the stream are younger
```

A row that refers to this stream within that many rows has by then met its partner, or never will (k-Mon document,
section 4.2). Rows of the same instant do not count: which came first is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import NEVER, Clock


@dataclass(frozen=True, eq=False)
class AgePunctuatorState:
    """The births of the last rows, in order; one chunk."""

    births: pl.DataFrame
    built: int = 0

    @property
    def rows(self) -> int:
        return self.births.height

    @property
    def nbytes(self) -> int:
        return int(self.births.estimated_size())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {} if self.births.is_empty() else {str(self.built): self.births}


@dataclass(frozen=True)
class AgePunctuator:
    """Rows in; out, once a step, the instant such that `within` of these have followed all rows born before it."""

    column: str
    within: int

    def initial(self) -> AgePunctuatorState:
        return AgePunctuatorState(pl.DataFrame(schema={BORN: pl.Int64()}))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> AgePunctuatorState:
        for name, frame in chunks.items():
            return AgePunctuatorState(frame, int(name))
        return self.initial()

    def advance(
        self, state: AgePunctuatorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[AgePunctuatorState, Batch]:
        """The instant; without any slack, all that has come by the end of the step."""
        (batch,) = inputs
        if self.within == 0:
            instant: int | None = clock.upto + 1
            after, at = state, clock.upto
        else:
            births = pl.concat([state.births, batch.frame.select(BORN)]).tail(self.within).rechunk()
            instant = births[BORN][0] if births.height == self.within and batch.height else None
            after = AgePunctuatorState(births, clock.upto) if batch.height else state
            at = births[BORN][-1] if births.height else clock.upto
        if instant is None or clock.upto <= clock.after:
            return after, Batch.empty({self.column: pl.Int64()})
        row = {self.column: [instant], BORN: [at], DIES: [NEVER]}
        frame = pl.DataFrame(row, schema={name: pl.Int64() for name in row})
        signed = frame.with_columns(pl.lit(1, dtype=pl.Int8).alias(SIGN))
        return after, Batch(signed.select(self.column, *LIFETIME_COLUMNS))
