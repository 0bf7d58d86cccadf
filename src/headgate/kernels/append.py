"""Append: rows whose deaths and endings no longer count, because they come from internal windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock


@dataclass(frozen=True)
class Append(Stateless):
    """Keeps births and makes them last for ever (Windows, section 3.3.2)."""

    schema: Mapping[str, pl.DataType]

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        births = batch.frame.filter(pl.col(SIGN) > 0)
        return state, Batch(births.with_columns(pl.lit(NEVER, dtype=pl.Int64).alias(DIES)))
