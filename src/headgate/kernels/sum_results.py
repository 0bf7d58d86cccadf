"""SumResults: COUNT, SUM and AVG as they are asked for, from counts and sums that were added up before a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.aggregates import Accumulator
from headgate.model.batch import LIFETIME_COLUMNS, Batch
from headgate.model.time import Clock


@dataclass(frozen=True)
class SumCall:
    """One result, COUNT, SUM or AVG: the columns with the sum and with how many values there were."""

    accumulator: Accumulator
    output: str
    dtype: pl.DataType
    total: str
    filled: str

    def expression(self) -> pl.Expr:
        filled = pl.col(self.filled).fill_null(0)
        total = pl.col(self.total)
        match self.accumulator:
            case Accumulator.COUNT:
                value = filled
            case Accumulator.SUM:
                value = pl.when(filled > 0).then(total)
            case Accumulator.MEAN:
                value = pl.when(filled > 0).then(total.cast(pl.Float64) / filled.cast(pl.Float64))
            case other:
                raise ValueError(f"{other.name} does not follow from a count and a sum")
        return value.cast(self.dtype).alias(self.output)


@dataclass(frozen=True)
class SumResults(Stateless):
    """Keys as they are, then the calls."""

    keys: tuple[str, ...]
    calls: tuple[SumCall, ...]

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        return state, Batch(
            batch.frame.select(*self.keys, *(call.expression() for call in self.calls), *LIFETIME_COLUMNS)
        )
