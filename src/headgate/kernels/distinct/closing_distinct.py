"""ClosingDistinct: DISTINCT over rows that never die that forgets a value once every input below has closed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from headgate.kernels.distinct.distinct import Distinct, DistinctState
from headgate.kernels.state.closed_values import closed_by_all
from headgate.kernels.state.closings import Closings, ClosingState
from headgate.kernels.state.composite import States
from headgate.kernels.state.table import Tables
from headgate.model.batch import Batch
from headgate.model.time import Clock


@dataclass(frozen=True)
class ClosingDistinct:
    """`distinct`, and inputs that close values of `keys`, some of its columns; those `below`, all lesser ones."""

    distinct: Distinct
    keys: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> ClosingState[DistinctState]:
        schema = {key: self.distinct.schema[key] for key in self.keys}
        return ClosingState(self.distinct.initial(), Closings.nothing(schema, self.below))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingState[DistinctState]:
        return self.initial().restored(self.distinct.restore, chunks)

    def advance(
        self, state: ClosingState[DistinctState], inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingState[DistinctState], Batch]:
        """What DISTINCT says in the step; a value that is forgotten stays in the answer."""
        values, said = self.distinct.advance(state.values, inputs[:1], clock)
        after = state.observed(values, inputs[:1], inputs[1:], clock)
        return (self._swept(after, clock) if after.due(clock) else after), said

    def _swept(self, state: ClosingState[DistinctState], clock: Clock) -> ClosingState[DistinctState]:
        tables, closings = swept(state.values.tables, state.closings, self.keys, clock)
        return ClosingState(replace(state.values, tables=tables), closings)


def swept(tables: Tables, closings: Closings, keys: Sequence[str], clock: Clock) -> tuple[Tables, Closings]:
    """Tables without the rows whose keys all have closed, and the closings without these."""
    parts = dict(tables.named)
    for name, table in parts.items():
        rows = table.live_rows()
        gone = closed_by_all(closings.closed_values, rows, keys)
        if gone.any():
            parts[name] = table.only(rows.filter(~gone), clock.upto)
    return States(parts), closings.swept(sum(table.live for table in parts.values()), clock)
