"""References: how many rows of another stream come after a row until the one comes to which it refers.

```
orders          1       2           3   4
shipments   1       1       4   3
distance    1       0       2   1         rows of orders, up to and with the partner; 0 if it was there already
```

So the greatest is the smallest k with which FOREIGN KEY WITHIN k ROWS holds (k-Mon document, section 4). What comes
at the same instant was there: which of the two came first is not known. A k in time is how much later the partner
came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.model.batch import BORN

_PARTNER, _CAME = "_partner", "_came"


@dataclass(frozen=True, eq=False)
class Joined:
    """The distances of the rows that have a partner, in rows and in microseconds, and how many rows ask for one."""

    distances: npt.NDArray[np.int64]
    delays: npt.NDArray[np.int64]
    asking: int

    @property
    def share(self) -> float:
        """Of the rows that ask, those that have their partner."""
        return len(self.distances) / self.asking if self.asking else 0.0


def join_distances(
    rows: pl.DataFrame, columns: Sequence[str], others: pl.DataFrame, keys: Sequence[str]
) -> Joined:
    """The distance of each row to the first of the others with these keys; both in order, with `_born`."""
    first = (
        others.select(keys)
        .with_columns(pl.int_range(others.height, dtype=pl.Int64).alias(_PARTNER), others[BORN].alias(_CAME))
        .drop_nulls(list(keys))
        .unique(subset=list(keys), keep="first")
    )
    asking = rows.select(*columns, BORN).drop_nulls(list(columns))
    found = asking.join(first, left_on=list(columns), right_on=list(keys), how="inner", maintain_order="left")
    there = np.searchsorted(others[BORN].to_numpy(), found[BORN].to_numpy(), side="right")
    distances = found[_PARTNER].to_numpy() + 1 - there
    delays = (found[_CAME] - found[BORN]).to_numpy()
    return Joined(np.maximum(distances, 0), np.maximum(delays, 0), asking.height)
