"""SumResults: COUNT, SUM and AVG as they are asked for, from counts and sums that were added up before a join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.aggregates import Accumulator
from headgate.model.batch import LIFETIME_COLUMNS, Batch
from headgate.model.errors import DataError
from headgate.model.time import Clock


@dataclass(frozen=True)
class SumCall:
    """One result, COUNT, SUM or AVG: the columns with the sum and with how many values there were."""

    accumulator: Accumulator
    text: str
    """As messages show it."""
    output: str
    dtype: pl.DataType
    total: str
    filled: str

    def expression(self) -> pl.Expr:
        """The result; NULL also where it does not fit its type."""
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
        return value.cast(self.dtype, strict=False).alias(self.output)

    def check(self, results: pl.DataFrame, sums: pl.DataFrame) -> None:
        """Raises if a result was lost because it does not fit its type."""
        if self.accumulator is Accumulator.MEAN:
            return
        given = sums[self.filled].fill_null(0) > 0
        if (results[self.output].is_null() & given).any():
            raise DataError(
                f"{self.text} overflowed: the result does not fit its type",
                remedy="cast the argument to DOUBLE or to a DECIMAL with more digits",
            )


@dataclass(frozen=True)
class SumResults(Stateless):
    """Keys as they are, then the calls."""

    keys: tuple[str, ...]
    calls: tuple[SumCall, ...]

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        frame = batch.frame
        results = frame.select(*self.keys, *(call.expression() for call in self.calls), *LIFETIME_COLUMNS)
        for call in self.calls:
            call.check(results, frame)
        return state, Batch(results)
