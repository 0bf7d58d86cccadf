"""Table join: stream rows meet a non-retroactive table as it is when they arrive (Windows, section 3.3.1).

```
table row k=1       [5 ============ 12)   deleted at 12
stream row k=1  at 3   no partner, also not when the table row comes at 5
                at 5   partner: an update at the same instant counts as made
                at 9   partner; the result lives as long as the stream row, whatever becomes of the table
                at 12  no partner
```

Only stream rows trigger results and none of them is stored, so the result has the update pattern of the stream side.
Such a row must live as announced: what its ending takes back could not be known. A static table, retroactive or not,
is asked in the same way: it gives the same answer to a row and to its ending, so there rows may end early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl

from headgate.kernels.join.arrivals import arrive
from headgate.kernels.keys import Mask, has_null
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.index import Positions
from headgate.kernels.state.store import Layout, Match, Probes, Store, rows_at, rows_where
from headgate.model.batch import BORN, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import Clock

Kind = Literal["inner", "semi", "anti"]

_PROBE = "_probe"


@dataclass(frozen=True, eq=False)
class TableJoin:
    """A stream (first input) against a non-retroactive table (second input), which arrives as signed lifetimes.

    `keys` pairs columns of the two; `residual` is a condition over both. `kind` says what a stream row becomes:
    "inner" one row per partner, "semi" itself if it has a partner (EXISTS), "anti" itself if it has none. `static`
    says that all rows of the table have been there since before all time. With `null_equal`, NULL keys match.
    """

    stream: Mapping[str, pl.DataType]
    table: Mapping[str, pl.DataType]
    keys: tuple[tuple[str, str], ...]
    residual: pl.Expr | None = None
    kind: Kind = "inner"
    static: bool = False
    null_equal: bool = False

    def __post_init__(self) -> None:
        if both := sorted(set(self.stream) & set(self.table)):
            raise ValueError(f"column names occur on both sides: {both}")

    def initial(self) -> Endings:
        return Endings.empty(self._layout, tuple(self.table))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> Endings:
        return self.initial().restored(chunks)

    def advance(self, state: Endings, inputs: Sequence[Batch], clock: Clock) -> tuple[Endings, Batch]:
        stream, table = (batch.frame for batch in inputs)
        if not self.static and stream.filter(pl.col(SIGN) < 0).height:
            raise ValueError("a stream row was taken back, but it was not remembered what it had met")
        changes = rows_where(table, ~self._keyless(table, self._right))
        arrivals = arrive(state, changes, self._layout, clock, None)
        output = Batch(self._joined(stream, arrivals.new_stores))
        assert isinstance(arrivals.new, Endings)
        # A step of no length lets nothing die, and must not write chunks under names that are taken.
        return arrivals.new.expire(clock.upto) if clock.upto > clock.after else arrivals.new, output

    def _joined(self, frame: pl.DataFrame, stores: Sequence[Store]) -> pl.DataFrame:
        possible = np.flatnonzero(~self._keyless(frame, self._left))
        probing = rows_at(frame, possible)
        born = probing[BORN].to_numpy()
        # A probe lives for the instant of its birth.
        probe, pairs = self._partners(Probes(probing, self._left, born, born + 1), stores)
        if self.kind == "inner":
            pairs = rows_at(pairs, np.argsort(probe, kind="stable"))
            return pairs.select(*self.stream, *self.table, *LIFETIME_COLUMNS)
        met = np.zeros(frame.height, dtype=np.bool_)
        met[possible[probe]] = True
        return rows_where(frame, met if self.kind == "semi" else ~met)

    def _keyless(self, frame: pl.DataFrame, keys: Sequence[str]) -> Mask:
        """Which rows match nothing because a key is NULL."""
        return np.zeros(frame.height, dtype=np.bool_) if self.null_equal else has_null(frame, keys)

    def _partners(self, probes: Probes, stores: Sequence[Store]) -> tuple[Positions, pl.DataFrame]:
        """For each pair that meets all conditions: the number of the probing row, and both rows side by side."""
        empty = pl.DataFrame(schema={**probes.frame.schema, **self.table})
        numbers, pairs = [np.empty(0, dtype=np.int64)], [empty]
        for store in stores:
            for match in store.probe(0, probes):
                number, pair = self._kept(match)
                numbers.append(number)
                pairs.append(pair.select(empty.columns))
        return np.concatenate(numbers), pl.concat(pairs)

    def _kept(self, match: Match) -> tuple[Positions, pl.DataFrame]:
        pair = match.left.hstack(match.right.select(list(self.table)))
        if self.residual is None:
            return match.probe, pair
        numbered = pair.with_columns(pl.Series(_PROBE, match.probe)).filter(self.residual)
        return numbered[_PROBE].to_numpy(), numbered.drop(_PROBE)

    @cached_property
    def _layout(self) -> Layout:
        return Layout(self.table, (self._right,))

    @cached_property
    def _left(self) -> tuple[str, ...]:
        return tuple(left for left, _ in self.keys)

    @cached_property
    def _right(self) -> tuple[str, ...]:
        return tuple(right for _, right in self.keys)
