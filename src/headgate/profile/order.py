"""Order: by how many rows each row of a stream comes too late to be in order.

```
values      3   5   4   9   7   6
distance    0   0   1   0   1   2     rows since the earliest one that is greater, up to and with this one
```

So the greatest distance is the smallest k with which ORDERED BY WITHIN k ROWS holds: a row breaks it that is less
than one that came more than k rows before (k-Mon document, section 6).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl


def scrambling_distances(values: pl.Series) -> npt.NDArray[np.int64]:
    """The distance of each row with a value; a row without one counts as a row, but is never too late."""
    ranks: npt.NDArray[np.int64] = values.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
    greatest = np.maximum.accumulate(ranks) if len(ranks) else ranks
    first = np.minimum(np.searchsorted(greatest, ranks, side="right"), np.arange(len(ranks)))
    distances = np.arange(len(ranks), dtype=np.int64) - first
    return np.asarray(distances[values.is_not_null().to_numpy()], dtype=np.int64)
