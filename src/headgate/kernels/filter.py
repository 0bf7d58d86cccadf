"""Filter: the rows on which a predicate is TRUE, births and endings alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.kernels.expressions import keep_rows
from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import Batch
from headgate.model.scalar import Scalar
from headgate.model.time import Clock


@dataclass(frozen=True)
class Filter(Stateless):
    """Keeps a row, with its lifetime and sign, where the predicate is TRUE; FALSE and NULL drop it."""

    predicate: Scalar

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        return state, Batch(keep_rows(batch.frame, self.predicate))
