"""RecentValues: values in the order in which they came, found by their hash; the oldest are forgotten.

```
oldest [ 16,384 ][ 16,384 ][ 16,384 ][ 9,000 ][ 800 ] newest
        goes when the others are as many as are to be remembered
```

A step costs what comes in it, however many values there are. At most half as many again are held as are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from headgate.kernels.keys import Mask, key_hash, keys_agree
from headgate.kernels.state.index import HashIndex
from headgate.kernels.state.sorted_runs import Run, SortedRuns

# Runs of this part of all that is remembered are left as they are, to be forgotten one by one.
_PARTS = 4


@dataclass(frozen=True, eq=False)
class RecentValues(SortedRuns[Run]):
    """Values with the columns of `schema`, of which the last `most` are remembered."""

    schema: Mapping[str, pl.DataType]
    most: int

    def has(self, rows: pl.DataFrame) -> Mask:
        """Which rows have values that are remembered in the columns of the schema."""
        found = np.zeros(rows.height, dtype=np.bool_)
        names = tuple(self.schema)
        hashes = key_hash(rows, names)
        for run in self.runs:
            for asked, position in run.indexes[0].find(hashes):
                equal = keys_agree((rows, names, asked), (run.frame, names, position))
                found[asked[equal]] = True
        return found

    def adding(self, values: pl.DataFrame, step: int) -> Self:
        """Also these values, none of which is there, in a step with a number of its own."""
        if values.is_empty():
            return self
        runs = (*self.runs, self._written(values.tail(self.most), step))
        whole = next((n for n, run in enumerate(runs) if run.height * _PARTS < self.most), len(runs))
        runs = (*runs[:whole], *self._tiered(runs[whole:], step, step)) if whole < len(runs) else runs
        while len(runs) > 1 and sum(run.height for run in runs[1:]) >= self.most:
            runs = runs[1:]
        return replace(self, runs=runs)

    @property
    def _keys(self) -> tuple[tuple[str, ...], ...]:
        return (tuple(self.schema),)

    def _run(self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]) -> Run:
        return Run(since, built, frame, indexes)
