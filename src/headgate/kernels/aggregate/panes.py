"""PaneAggregate: groups of rows whose lifetimes are panes, one after the other and all of one length.

```
rows       [=====)[=====)[=====)     a tumbling window (RANGE as long as SLIDE) or NOW
           [=====)       [=====)     a pane holds the rows that are born at its beginning, and no others
COUNT      [==2==)[==1==)[==2==)     so a group's row lives and dies with its pane
```

It remembers nothing, and announces its rows' deaths at their births.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl

from headgate.kernels.aggregate.call import AggregateCall
from headgate.kernels.aggregate.condense import added_up, extreme_column, is_mergeable
from headgate.kernels.aggregate.kernel import Aggregate
from headgate.kernels.aggregate.ledger import ROWS, Columns
from headgate.kernels.aggregate.readings import value_of
from headgate.kernels.aggregate.results import from_sums
from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.aggregates import Structure
from headgate.model.batch import BORN, LIFETIME_COLUMNS, Batch
from headgate.model.time import Clock

_LARGE = 1 << 13


def by_panes(aggregate: Aggregate) -> PaneAggregate | None:
    """The same aggregate over panes; None if it has to know single values, or has a row also over nothing."""
    if not aggregate.keys or aggregate.append:
        return None
    without_endings = replace(aggregate, endings=False)
    return PaneAggregate(without_endings) if is_mergeable(without_endings) else None


@dataclass(frozen=True)
class PaneAggregate(Stateless):
    """An aggregate whose input's lifetimes are panes."""

    aggregate: Aggregate

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        if not batch.height:
            return state, Batch.empty(self.aggregate.output_schema)
        return state, Batch.concat([self._grouped(part) for part in _parts(batch.frame)])

    def _grouped(self, frame: pl.DataFrame) -> Batch:
        schema = self.aggregate.output_schema
        found, sums = added_up(self.aggregate, frame)
        results = [
            self._result(call, found, sums).cast(schema[call.output]).alias(call.output)
            for call in self.aggregate.calls
        ]
        payload = [*found.select(self.aggregate.keys), *results]
        return Batch(pl.DataFrame([*payload, *found.select(LIFETIME_COLUMNS)]))

    def _result(self, call: AggregateCall, found: pl.DataFrame, sums: Columns) -> pl.Series:
        """The value of a call in every row."""
        if call.reads is None or call.argument is None:
            return pl.Series(sums[ROWS])
        if call.structure is Structure.EXTREME:
            extreme = found[extreme_column(call.reads, largest=call.function.is_largest)]
            return value_of(call, extreme, self.aggregate.schema[call.argument])
        measure = self.aggregate.measures[call.reads]
        count = sums[ROWS] - sums.get(measure.nulls, np.int64(0))
        result = from_sums(call, measure, sums, count)
        assert result is not None, "what is mergeable and no extreme follows from sums"
        return result


def _parts(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The rows of each pane where panes are large, or else all of them: rows of one pane are grouped faster.

    Panes whose rows do not lie together, because several shards or streams sent them, are not taken apart.
    """
    born = frame[BORN].to_numpy()
    start = np.flatnonzero(np.concatenate([[True], born[1:] != born[:-1]]))
    if frame.height < start.size * _LARGE or np.any(born[1:] < born[:-1]):
        start = start[:1]
    for low, high in pairwise([*start.tolist(), frame.height]):
        yield frame.slice(low, high - low)
