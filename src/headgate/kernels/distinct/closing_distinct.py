"""ClosingDistinct: DISTINCT over rows that never die that forgets a value once every input below has closed it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from headgate.kernels.distinct.distinct import Distinct, DistinctState
from headgate.kernels.state.closed_values import ClosedValues, closed_by_all, not_by_all
from headgate.kernels.state.store import prefixed, under
from headgate.kernels.state.table import Tables
from headgate.model.batch import Batch
from headgate.model.time import Clock

# Values and closings that are not worth a sweep.
_FEW = 128

VALUES, CLOSED = "values/", "closed."


@dataclass(frozen=True, eq=False)
class ClosingDistinctState:
    """The values, what each input has closed, and what came since the last sweep."""

    values: DistinctState
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
class ClosingDistinct:
    """`distinct`, and inputs that close values of `keys`, some of its columns; those `below`, all lesser ones."""

    distinct: Distinct
    keys: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> ClosingDistinctState:
        schema = {key: self.distinct.schema[key] for key in self.keys}
        return ClosingDistinctState(
            self.distinct.initial(), tuple(ClosedValues.nothing(schema, below=each) for each in self.below)
        )

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingDistinctState:
        closed_values = enumerate(self.initial().closed_values)
        return ClosingDistinctState(
            self.distinct.restore(under(chunks, VALUES)),
            tuple(each.restored(under(chunks, f"{CLOSED}{number}/")) for number, each in closed_values),
        )

    def advance(
        self, state: ClosingDistinctState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingDistinctState, Batch]:
        """What DISTINCT says in the step; a value that is forgotten stays in the answer."""
        values, said = self.distinct.advance(state.values, inputs[:1], clock)
        if clock.upto <= clock.after:
            return replace(state, values=values), said
        closed = [batch.frame for batch in inputs[1:]]
        closed_values = tuple(
            each.observe(frame, clock) for each, frame in zip(state.closed_values, closed, strict=True)
        )
        since = state.since + sum(frame.height for frame in closed)
        if any(self.below):
            # One value closes many, so what there is to forget follows the rows.
            since += inputs[0].height
        after = ClosingDistinctState(values, closed_values, since, state.kept)
        return (self._swept(after, clock) if since >= max(_FEW, state.kept) else after), said

    def _swept(self, state: ClosingDistinctState, clock: Clock) -> ClosingDistinctState:
        tables, closed_values, kept = swept(state.values.tables, state.closed_values, self.keys, clock)
        return ClosingDistinctState(DistinctState(tables, state.values.input), closed_values, 0, kept)


def few() -> int:
    """How many values and closings are not worth a sweep."""
    return _FEW


def swept(
    tables: Tables, closed_values: Sequence[ClosedValues], keys: Sequence[str], clock: Clock
) -> tuple[Tables, tuple[ClosedValues, ...], int]:
    """Tables without the rows whose keys all have closed, the closings without these, and how much is left."""
    left = not_by_all(closed_values, clock)
    parts = dict(tables.parts)
    for name, table in parts.items():
        rows = table.live_rows()
        gone = closed_by_all(closed_values, rows, keys)
        if gone.any():
            parts[name] = table.only(rows.filter(~gone), clock.upto)
    live = sum(table.live for table in parts.values())
    return Tables(parts), left, live + sum(each.rows for each in left)
