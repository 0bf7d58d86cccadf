"""AgePunctuator: says which rows of others are old enough that a stream's last rows have all come after them.

```
within 2      rows at   1    4    6    9
                              rows before 4 at 6, before 6 at 9: two rows of the stream are younger
```

A row that refers to this stream within that many rows has by then met its partner, or never will (k-Mon document,
section 4.2). Rows of the same instant do not count: which came first is not known.

Of many rows it marks only one in so many, and then waits for a few more rows than it must: what it remembers does
not grow with the number of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import NEVER, Clock

MARKS = 64
"""About so many marks say where a number of last rows begins; a number that is no larger is exact."""

_POSITION = "_position"


@dataclass(frozen=True, eq=False)
class AgePunctuatorState:
    """The births of marked rows and their positions, in order, and how many rows have come; one chunk."""

    marks: pl.DataFrame
    seen: int = 0
    built: int = 0

    @property
    def rows(self) -> int:
        return self.marks.height

    @property
    def nbytes(self) -> int:
        return int(self.marks.estimated_size())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {f"{self.built}.{self.seen}": self.marks} if self.seen else {}


@dataclass(frozen=True)
class AgePunctuator:
    """Rows in; out, once a step, the instant such that `within` of these have followed all rows born before it."""

    column: str
    within: int

    def initial(self) -> AgePunctuatorState:
        return AgePunctuatorState(pl.DataFrame(schema={_POSITION: pl.Int64(), BORN: pl.Int64()}))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> AgePunctuatorState:
        for name, frame in chunks.items():
            built, _, seen = name.rpartition(".")
            return AgePunctuatorState(frame, int(seen), int(built))
        return self.initial()

    def advance(
        self, state: AgePunctuatorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[AgePunctuatorState, Batch]:
        """The instant; without any slack, all that has come by the end of the step."""
        (batch,) = inputs
        if self.within == 0:
            return state, self._said(clock, clock.upto + 1, clock.upto)
        if not batch.height:
            return state, Batch.empty({self.column: pl.Int64()})
        seen = state.seen + batch.height
        apart = -(-self.within // MARKS)
        new = batch.frame.select(
            pl.int_range(state.seen, seen, dtype=pl.Int64).alias(_POSITION), BORN
        ).filter(pl.col(_POSITION) % apart == 0)
        marks = pl.concat([state.marks, new])
        # Of the marks that so many rows have come since, the last one included, only the newest says anything.
        passed = marks[_POSITION].search_sorted(seen - self.within, side="right")
        marks = marks.slice(max(0, passed - 1)).rechunk()
        after = AgePunctuatorState(marks, seen, clock.upto)
        if not passed:
            return after, Batch.empty({self.column: pl.Int64()})
        return after, self._said(clock, marks[BORN][0], batch.frame[BORN][-1])

    def _said(self, clock: Clock, instant: int, at: int) -> Batch:
        if clock.upto <= clock.after:
            return Batch.empty({self.column: pl.Int64()})
        row = {self.column: [instant], BORN: [at], DIES: [NEVER]}
        frame = pl.DataFrame(row, schema={name: pl.Int64() for name in row})
        signed = frame.with_columns(pl.lit(1, dtype=pl.Int8).alias(SIGN))
        return Batch(signed.select(self.column, *LIFETIME_COLUMNS))
