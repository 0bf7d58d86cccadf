"""Batch: the rows of one edge for one step of the clock, as signed lifetimes.

A batch row says: *this payload lives, `_sign` times, from `_born` (inclusive) to `_dies` (exclusive)*.
The multiplicity of a payload at instant t is the sum of the signs of the rows with born <= t < dies.

```
time      0    5    10   15   20
row       [=========)                   +1 [0, 10)    death known at birth (WKS, WK)
row       [=================...         +1 [0, NEVER) death not known (STR)
ending              [-------...         -1 [10, NEVER) the ending that arrives at 10
together  [=========)
```

An ending is thus a row with sign -1 that takes back the rest of a lifetime that was announced. Filters,
projections, unions and joins work on signed lifetimes without asking which row an ending belongs to.

The batch of a clock step (after, upto] holds exactly the rows with after < born <= upto.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from headgate.model.time import NEVER, Clock

BORN, DIES, SIGN = "_born", "_dies", "_sign"
LIFETIME_COLUMNS = (BORN, DIES, SIGN)
LIFETIME_SCHEMA: Mapping[str, pl.DataType] = {BORN: pl.Int64(), DIES: pl.Int64(), SIGN: pl.Int8()}


@dataclass(frozen=True)
class Batch:
    """Signed lifetimes of one edge for one clock step; columns: payload, then `_born, _dies, _sign`."""

    frame: pl.DataFrame

    @property
    def payload(self) -> list[str]:
        """Names of the columns that are data rather than lifetime."""
        return [name for name in self.frame.columns if name not in LIFETIME_COLUMNS]

    @property
    def height(self) -> int:
        return self.frame.height

    @staticmethod
    def empty(schema: Mapping[str, pl.DataType]) -> Batch:
        """A batch with no rows and the given payload columns."""
        return Batch(pl.DataFrame(schema={**schema, **LIFETIME_SCHEMA}))

    @staticmethod
    def of(frame: pl.DataFrame, *, born: pl.Expr, dies: pl.Expr | None = None, sign: int = 1) -> Batch:
        """A batch from payload columns and expressions for birth and death (NEVER if none)."""
        death = pl.lit(NEVER, dtype=pl.Int64) if dies is None else dies.cast(pl.Int64)
        return Batch(
            frame.with_columns(
                born.cast(pl.Int64).alias(BORN), death.alias(DIES), pl.lit(sign, dtype=pl.Int8).alias(SIGN)
            )
        )

    @staticmethod
    def concat(batches: Iterable[Batch]) -> Batch:
        """All rows of several batches with the same columns, in order."""
        return Batch(pl.concat([b.frame for b in batches], how="vertical"))

    def check(self, clock: Clock) -> None:
        """Raises AssertionError unless the rows keep the promises of a batch; for tests."""
        frame = self.frame
        missing = [c for c in LIFETIME_COLUMNS if c not in frame.columns]
        assert not missing, f"batch without {missing}"
        for name, dtype in LIFETIME_SCHEMA.items():
            assert frame[name].dtype == dtype, f"{name} is {frame[name].dtype}"
            assert frame[name].null_count() == 0, f"{name} has nulls"
        assert frame.filter(pl.col(DIES) <= pl.col(BORN)).is_empty(), "a row dies before it is born"
        outside = frame.filter((pl.col(BORN) <= clock.after) | (pl.col(BORN) > clock.upto))
        assert outside.is_empty(), f"births outside ({clock.after}, {clock.upto}]: {outside}"
        assert frame.filter(~pl.col(SIGN).is_in([1, -1])).is_empty(), "a sign is +1 or -1"
