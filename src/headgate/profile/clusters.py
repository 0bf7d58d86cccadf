"""Clusters: how many rows with other values lie between two rows of a stream that have the same.

```
values      a   a   b   c   a   b
others      0   0   0   0   2   2     since the last row with the value; 0 for the first
```

So the greatest is the smallest k with which CLUSTERED BY WITHIN k ROWS holds (k-Mon document, section 5). A value is
closed once k + 1 rows with others have come; where all values go on coming, none ever is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

_PLACE, _BEFORE = "_place", "_before"


def clustering_distances(rows: pl.DataFrame, columns: Sequence[str]) -> npt.NDArray[np.int64]:
    """The number of each row without NULL there; a row with NULL is one with another value."""
    placed = rows.select(columns).with_columns(pl.int_range(rows.height, dtype=pl.Int64).alias(_PLACE))
    known = placed.drop_nulls(list(columns))
    before = pl.col(_PLACE).shift(1).over(list(columns))
    others = known.select((pl.col(_PLACE) - before - 1).fill_null(0).alias(_BEFORE))[_BEFORE]
    return others.to_numpy()


def closed_share(rows: pl.DataFrame, columns: Sequence[str], within: int) -> float:
    """The share of the values that are closed at the end, if so many rows may lie between two."""
    placed = rows.select(columns).with_columns(pl.int_range(rows.height, dtype=pl.Int64).alias(_PLACE))
    last = placed.drop_nulls(list(columns)).group_by(columns).agg(pl.col(_PLACE).max())[_PLACE]
    return int((last < rows.height - within - 1).sum()) / len(last) if len(last) else 0.0
