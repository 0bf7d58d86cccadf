"""Union: all rows of several inputs with the same columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import BORN, LIFETIME_COLUMNS, Batch
from headgate.model.time import Clock


@dataclass(frozen=True)
class Union(Stateless):
    """UNION ALL of `count` inputs, in order of birth; rows born together stand in the order of the inputs."""

    schema: Mapping[str, pl.DataType]
    count: int

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        if len(inputs) != self.count:
            raise ValueError(f"a union of {self.count} inputs got {len(inputs)}")
        columns = [*self.schema, *LIFETIME_COLUMNS]
        together = pl.concat([batch.frame.select(columns) for batch in inputs], rechunk=True)
        return state, Batch(together.sort(BORN, maintain_order=True))
