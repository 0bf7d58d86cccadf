"""KeptPromises: tells rows that break a promise of their stream from those that keep it.

```
PUNCTUATED BY (item) WHEN closing        rows in order of time, then of arrival

item 7            kept
item 7  closing   kept, and closes 7
item 8            kept
item 7            broken: it comes after the row that closed 7
```

A broken row goes to the late output and is counted; no query sees it. Promises are kept in mind for as long as
`memory` others have not come: without a limit, watching over a promise would cost the memory that it saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from headgate.kernels.expressions import compile_scalar
from headgate.model.scalar import Scalar
from headgate.safety.promise import Promise

MEMORY = 65_536

_AT, _CLOSES, _FIRST = "_at", "_closes", "_first"


@dataclass
class PromiseState:
    """The values that a promise has closed, the oldest first."""

    closed: pl.DataFrame | None = None


@dataclass
class KeptPromises:
    """The promises and CHECKs of one stream that running queries rely on."""

    promises: Sequence[Promise]
    checks: Sequence[Scalar] = ()
    memory: int = MEMORY
    states: list[PromiseState] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.states = self.states or [PromiseState() for _ in self.promises]

    def sift(self, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The next rows of the stream, in order, as those that keep all promises and those that break one."""
        if rows.is_empty() or not (self.promises or self.checks):
            return rows, rows.clear()
        broken = pl.Series([False]).new_from_index(0, rows.height)
        for check in self.checks:
            broken |= ~rows.select(compile_scalar(check).fill_null(True).alias(_CLOSES)).to_series()
        for promise, state in zip(self.promises, self.states, strict=True):
            broken |= self._breaks(promise, state, rows)
        return (rows.filter(~broken), rows.filter(broken)) if broken.any() else (rows, rows.clear())

    def _breaks(self, promise: Promise, state: PromiseState, rows: pl.DataFrame) -> pl.Series:
        """Which rows come after one that closed their values; what they close themselves is heard too."""
        columns = list(promise.columns)
        closes = pl.lit(True) if promise.when is None else compile_scalar(promise.when).fill_null(False)
        frame = rows.select(*columns, closes.alias(_CLOSES)).with_row_index(_AT)
        closing = frame.filter(pl.col(_CLOSES)).drop_nulls(columns)
        first = closing.group_by(columns, maintain_order=True).agg(pl.col(_AT).first().alias(_FIRST))
        late = frame.join(first, on=columns, how="inner").filter(pl.col(_AT) > pl.col(_FIRST))[_AT]
        if state.closed is not None:
            late = late.append(frame.join(state.closed, on=columns, how="semi")[_AT])
        if first.height:
            new = first.select(columns)
            seen = new if state.closed is None else pl.concat([state.closed, new])
            state.closed = seen.unique(keep="first", maintain_order=True).tail(self.memory)
        mask = pl.Series([False]).new_from_index(0, rows.height)
        return mask.scatter(late, True) if late.len() else mask
