"""ClusterPunctuator: says which values of a stream are closed because too many rows with others have come since.

```
within 2      a  a  b  c  d  b       a is closed at d: three rows with other values since its last one
position      0  1  2  3  4  5
```

Of the values that are not closed yet it remembers where each came last; there are at most within + 1 of them (k-Mon
document, section 5). A row with NULL counts as one with another value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import NEVER, Clock

_POSITION, _NEXT, _CLOSED = "_position", "_next", "_closed"


@dataclass(frozen=True, eq=False)
class ClusterPunctuatorState:
    """The open values with the position of their last row, and how many rows have come; one chunk."""

    open: pl.DataFrame
    seen: int = 0
    built: int = 0

    @property
    def rows(self) -> int:
        return self.open.height

    @property
    def nbytes(self) -> int:
        return int(self.open.estimated_size())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {} if not self.seen else {f"{self.built}.{self.seen}": self.open}


@dataclass(frozen=True)
class ClusterPunctuator:
    """Rows with the columns of `schema` in, closed values of them out; at most `within` others lie between equals."""

    schema: Mapping[str, pl.DataType]
    within: int

    def initial(self) -> ClusterPunctuatorState:
        return ClusterPunctuatorState(pl.DataFrame(schema={**self.schema, _POSITION: pl.Int64()}))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClusterPunctuatorState:
        for name, frame in chunks.items():
            built, _, seen = name.rpartition(".")
            return ClusterPunctuatorState(frame, int(seen), int(built))
        return self.initial()

    def advance(
        self, state: ClusterPunctuatorState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClusterPunctuatorState, Batch]:
        """The values that rows of the step close, each at the instant of the row that closes it."""
        (batch,) = inputs
        if not batch.height:
            return state, Batch.empty(self.schema)
        columns = list(self.schema)
        born = batch.frame[BORN]
        new = batch.frame.select(columns).with_columns(
            pl.int_range(state.seen, state.seen + batch.height, dtype=pl.Int64).alias(_POSITION)
        )
        seen = state.seen + batch.height
        found = closing_positions(pl.concat([state.open, new.drop_nulls()]), columns, self.within, seen)
        said = found.filter(pl.col(_CLOSED).is_not_null())
        at = born.gather(said[_CLOSED] - state.seen)
        rows = said.select(columns).with_columns(
            at.alias(BORN), pl.lit(NEVER, dtype=pl.Int64).alias(DIES), pl.lit(1, dtype=pl.Int8).alias(SIGN)
        )
        left = found.filter(pl.col(_CLOSED).is_null()).select(*columns, _POSITION)
        after = ClusterPunctuatorState(left.rechunk(), seen, clock.upto)
        return after, Batch(rows.sort(BORN, maintain_order=True).select(*columns, *LIFETIME_COLUMNS))


def closing_positions(rows: pl.DataFrame, columns: list[str], within: int, seen: int) -> pl.DataFrame:
    """For each value its last position and, in `_closed`, the first position that closed it, if one did.

    They come in the order of their last positions; `seen` is how many rows have come.
    """
    after = pl.col(_POSITION) + within + 1
    # Equal values side by side: a window over each of very many values would take seconds.
    ordered = rows.sort([*columns, _POSITION])
    same = pl.all_horizontal(pl.col(name) == pl.col(name).shift(-1) for name in columns)
    gap = (~same.fill_null(False) | (pl.col(_POSITION).shift(-1) > after)) & (after < seen)
    marked = ordered.with_columns(pl.when(gap).then(after).alias(_CLOSED))
    last = marked.group_by(columns).agg(pl.col(_POSITION).max(), pl.col(_CLOSED).min())
    return last.sort(_POSITION)
