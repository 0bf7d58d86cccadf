"""ClosingDifference: EXCEPT ALL over rows that never die that forgets a value once both sides have closed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.distinct.closing_distinct import swept
from headgate.kernels.distinct.difference import Difference
from headgate.kernels.state.closings import Closings, ClosingState
from headgate.kernels.state.table import Tables
from headgate.model.batch import Batch
from headgate.model.time import Clock


@dataclass(frozen=True)
class ClosingDifference:
    """`difference`, and inputs that close values of `keys`, some of its columns; those `below`, all lesser ones."""

    difference: Difference
    keys: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> ClosingState[Tables]:
        schema = {key: self.difference.schema[key] for key in self.keys}
        return ClosingState(self.difference.initial(), Closings.nothing(schema, self.below))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingState[Tables]:
        return self.initial().restored(self.difference.restore, chunks)

    def advance(
        self, state: ClosingState[Tables], inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingState[Tables], Batch]:
        """What EXCEPT ALL says in the step; copies of a value that is forgotten stay in the answer."""
        values, said = self.difference.advance(state.values, inputs[:2], clock)
        after = state.observed(values, inputs[:2], inputs[2:], clock)
        return (self._swept(after, clock) if after.due(clock) else after), said

    def _swept(self, state: ClosingState[Tables], clock: Clock) -> ClosingState[Tables]:
        return ClosingState(*swept(state.values, state.closings, self.keys, clock))
