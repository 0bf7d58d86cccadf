"""Difference: EXCEPT ALL. Of each value as many copies as the left side has more than the right side.

```
left         2    3        3        1
right        0    2        5        0
output       2    1        0        1
said            -1 copy  -1 copy  +1 copy       each announced without a death
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.distinct.multiplicity import Multiplicity
from headgate.kernels.state.store import rows_at
from headgate.kernels.state.table import Tables, columns_of
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock


@dataclass(frozen=True)
class Difference:
    """Bag difference of two inputs with the columns of `schema`: NULL equals NULL and NaN equals NaN."""

    schema: Mapping[str, pl.DataType]

    @property
    def _counting(self) -> Multiplicity:
        return Multiplicity(self.schema, inputs=2)

    def initial(self) -> Tables:
        return self._counting.initial()

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> Tables:
        return self.initial().restored(chunks)

    def advance(self, state: Tables, inputs: Sequence[Batch], clock: Clock) -> tuple[Tables, Batch]:
        """Copies that appear and disappear as the counts of the two sides change."""
        state, changes = self._counting.advance(state, [batch.frame for batch in inputs], clock)
        before, after = (
            np.maximum(counts[:, 0] - counts[:, 1], 0) for counts in (changes.before, changes.after)
        )
        copies = np.abs(after - before)
        codes, instants = np.repeat(changes.codes, copies), np.repeat(changes.instants, copies)
        lifetimes = [
            pl.Series(BORN, instants),
            pl.Series(DIES, np.full(instants.size, NEVER)),
            pl.Series(SIGN, np.repeat(np.sign(after - before), copies).astype(np.int8)),
        ]
        return state, Batch(rows_at(columns_of(changes.values, [*self.schema]), codes).hstack(lifetimes))
