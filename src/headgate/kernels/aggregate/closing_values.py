"""ClosingValues: an aggregate whose COUNT(DISTINCT …) forgets a value once every input below has closed it.

```
COUNT(DISTINCT x)    x: 7  8  7  9      values 7, 8, 9 are remembered so that none is counted twice
                     7 is closed        it is counted and does not come again: only 8 and 9 are remembered
```

The count stays: it is in the group's sums. So it is with SUM and AVG of DISTINCT values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.aggregate.bag import Bag
from headgate.kernels.aggregate.coding import decode
from headgate.kernels.aggregate.groups import NUMBER, Groups
from headgate.kernels.aggregate.kernel import Aggregate, key_column
from headgate.kernels.aggregate.state import AggregateState
from headgate.kernels.aggregate.tally import Tally
from headgate.kernels.state.closed_values import ClosedValues, closed_by_all, not_by_all
from headgate.kernels.state.closings import Closings, ClosingState, after_sweep
from headgate.model.batch import Batch
from headgate.model.time import Clock

_VALUE = "_value"


@dataclass(frozen=True)
class ClosedArgument:
    """An argument, and the columns whose values are closed, it and keys; each closing says whether it is `below`."""

    argument: str
    columns: tuple[str, ...]
    below: tuple[bool, ...]


@dataclass(frozen=True)
class ClosingValues:
    """`aggregate` over rows that never die, followed by the inputs that close values of each argument in turn."""

    aggregate: Aggregate
    arguments: tuple[ClosedArgument, ...]

    def __post_init__(self) -> None:
        missing = {each.argument for each in self.arguments} - self.aggregate.initial().bags.keys()
        if missing:
            raise ValueError(f"values of {sorted(missing)} are not remembered")

    def initial(self) -> ClosingState[AggregateState]:
        closed_values = tuple(closed for each in self.arguments for closed in self._nothing_closed(each))
        return ClosingState(self.aggregate.initial(), Closings(closed_values))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingState[AggregateState]:
        return self.initial().restored(self.aggregate.restore, chunks)

    def advance(
        self, state: ClosingState[AggregateState], inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingState[AggregateState], Batch]:
        """What the aggregate says in the step; closings have no answer of their own."""
        values, said = self.aggregate.advance(state.values, inputs[:1], clock)
        after = state.observed(values, inputs[:1], inputs[1:], clock)
        return (self._swept(after, clock) if after.due(clock) else after), said

    def _nothing_closed(self, each: ClosedArgument) -> tuple[ClosedValues, ...]:
        schema = {name: self.aggregate.schema[name] for name in each.columns}
        return Closings.nothing(schema, each.below).closed_values

    def _swept(self, state: ClosingState[AggregateState], clock: Clock) -> ClosingState[AggregateState]:
        """The state without the values that all inputs have closed, and without these closings."""
        bags = dict(state.values.bags)
        left: list[ClosedValues] = []
        at = 0
        for each in self.arguments:
            closed_values = state.closings.closed_values[at : at + len(each.below)]
            at += len(each.below)
            bag = bags[each.argument]
            bags[each.argument] = self._without(bag, each, state.values.groups, closed_values, clock)
            left += not_by_all(closed_values, clock)
        kept = sum(bag.rows for bag in bags.values())
        return ClosingState(replace(state.values, bags=bags), after_sweep(tuple(left), kept))

    def _without(
        self,
        bag: Bag,
        each: ClosedArgument,
        groups: Groups,
        closed_values: Sequence[ClosedValues],
        clock: Clock,
    ) -> Bag:
        entries = bag.tally.whole()
        if entries is None:
            return bag
        value = decode(entries.value, bag.dtype)
        rows = pl.DataFrame({NUMBER: entries.group}).with_columns(value.alias(_VALUE))
        columns = []
        for name in each.columns:
            if name == each.argument:
                columns.append(_VALUE)
            else:
                columns.append(key_column(self.aggregate.keys.index(name)))
        if columns != [_VALUE]:
            rows = rows.join(groups.directory.live_rows(), on=NUMBER, how="left", maintain_order="left")
        gone = closed_by_all(closed_values, rows, columns).to_numpy()
        if not gone.any():
            return bag
        return replace(bag, tally=Tally.of(entries.take(np.flatnonzero(~gone)), clock.upto))
