"""Retain: how long rows that never die are kept by a reader that needs them no longer than that.

```
row       [========================== …      lives for ever
kept      [=========)                        no partner comes later: the state forgets it, its results stay
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import BORN, DIES, Batch
from headgate.model.time import NEVER, Clock


@dataclass(frozen=True)
class Retain(Stateless):
    """Puts the instant at which a row can be forgotten, `length` microseconds after its birth, in place of its death.

    The reader takes its input for an internal one, whose deaths are no deaths of results.
    """

    length: int

    def __post_init__(self) -> None:
        if self.length <= 0:
            raise ValueError("a row is kept at least for its own instant")

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        born = pl.col(BORN)
        forgotten = pl.when(born > NEVER - self.length).then(NEVER).otherwise(born + self.length)
        return state, Batch(batch.frame.with_columns(forgotten.alias(DIES)))
