"""Project: new payload columns computed from the old ones, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.kernels.expressions import evaluate
from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import LIFETIME_COLUMNS, Batch
from headgate.model.scalar import Scalar
from headgate.model.time import Clock


@dataclass(frozen=True)
class Project(Stateless):
    """Gives each row the columns in `outputs`; its lifetime and sign stay."""

    outputs: tuple[tuple[str, Scalar], ...]

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        return state, Batch(evaluate(batch.frame, dict(self.outputs), keep=LIFETIME_COLUMNS))
