"""ClosingDifference: EXCEPT ALL over rows that never die that forgets a value once both sides have closed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.distinct.closing_distinct import CLOSED, VALUES, few, swept
from headgate.kernels.distinct.difference import Difference
from headgate.kernels.state.closed_values import ClosedValues
from headgate.kernels.state.store import prefixed, under
from headgate.kernels.state.table import Tables
from headgate.model.batch import Batch
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class ClosingDifferenceState:
    """The counts of the values, what has been closed, and what came since the last sweep."""

    values: Tables
    closed_values: tuple[ClosedValues, ...]
    since: int = 0
    kept: int = 0

    @property
    def rows(self) -> int:
        return self.values.rows + sum(each.rows for each in self.closed_values)

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + sum(each.nbytes for each in self.closed_values)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        chunks = prefixed(self.values.chunks(), VALUES)
        for number, each in enumerate(self.closed_values):
            chunks |= prefixed(each.chunks(), f"{CLOSED}{number}/")
        return chunks


@dataclass(frozen=True)
class ClosingDifference:
    """`difference`, and inputs that close values of `keys`, some of its columns; those `below`, all lesser ones."""

    difference: Difference
    keys: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> ClosingDifferenceState:
        schema = {key: self.difference.schema[key] for key in self.keys}
        closed_values = tuple(ClosedValues.nothing(schema, below=each) for each in self.below)
        return ClosingDifferenceState(self.difference.initial(), closed_values)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingDifferenceState:
        closed_values = enumerate(self.initial().closed_values)
        return ClosingDifferenceState(
            self.difference.restore(under(chunks, VALUES)),
            tuple(each.restored(under(chunks, f"{CLOSED}{number}/")) for number, each in closed_values),
        )

    def advance(
        self, state: ClosingDifferenceState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingDifferenceState, Batch]:
        """What EXCEPT ALL says in the step; copies of a value that is forgotten stay in the answer."""
        values, said = self.difference.advance(state.values, inputs[:2], clock)
        if clock.upto <= clock.after:
            return ClosingDifferenceState(values, state.closed_values, state.since, state.kept), said
        closed = [batch.frame for batch in inputs[2:]]
        closed_values = tuple(
            each.observe(frame, clock) for each, frame in zip(state.closed_values, closed, strict=True)
        )
        since = state.since + sum(frame.height for frame in closed)
        if any(self.below):
            # One value closes many, so what there is to forget follows the rows.
            since += inputs[0].height + inputs[1].height
        if since < max(few(), state.kept):
            return ClosingDifferenceState(values, closed_values, since, state.kept), said
        values, closed_values, kept = swept(values, closed_values, self.keys, clock)
        return ClosingDifferenceState(values, closed_values, 0, kept), said
