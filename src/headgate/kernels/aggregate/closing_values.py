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
from headgate.kernels.aggregate.closing import ClosingState, few, restored_closings
from headgate.kernels.aggregate.coding import decode
from headgate.kernels.aggregate.groups import NUMBER, Groups
from headgate.kernels.aggregate.kernel import Aggregate, key_column
from headgate.kernels.aggregate.tally import Tally
from headgate.kernels.state.closed_values import ClosedValues, closed_by_all, not_by_all
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

    def initial(self) -> ClosingState:
        return ClosingState(
            self.aggregate.initial(), tuple(h for each in self.arguments for h in self._heard(each))
        )

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingState:
        return restored_closings(self.aggregate, self.initial().heard, chunks)

    def advance(
        self, state: ClosingState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingState, Batch]:
        """What the aggregate says in the step; closings have no answer of their own."""
        groups, said = self.aggregate.advance(state.groups, inputs[:1], clock)
        if clock.upto <= clock.after:
            return replace(state, groups=groups), said
        closed = [batch.frame for batch in inputs[1:]]
        heard = tuple(each.observe(frame, clock) for each, frame in zip(state.heard, closed, strict=True))
        since = state.since + sum(frame.height for frame in closed)
        if any(below for each in self.arguments for below in each.below):
            # One value closes many, so what there is to forget follows the rows.
            since += inputs[0].height
        after = ClosingState(groups, heard, since, state.kept)
        return (self._swept(after, clock) if since >= max(few(), state.kept) else after), said

    def _heard(self, each: ClosedArgument) -> tuple[ClosedValues, ...]:
        schema = {name: self.aggregate.schema[name] for name in each.columns}
        return tuple(ClosedValues.nothing(schema, below=below) for below in each.below)

    def _swept(self, state: ClosingState, clock: Clock) -> ClosingState:
        """The state without the values that all inputs have closed, and without these closings."""
        bags = dict(state.groups.bags)
        left: list[ClosedValues] = []
        at = 0
        for each in self.arguments:
            heard = state.heard[at : at + len(each.below)]
            at += len(each.below)
            bags[each.argument] = self._without(bags[each.argument], each, state.groups.groups, heard, clock)
            left += not_by_all(heard, clock)
        kept = sum(bag.rows for bag in bags.values()) + sum(each.rows for each in left)
        return ClosingState(replace(state.groups, bags=bags), tuple(left), 0, kept)

    def _without(
        self, bag: Bag, each: ClosedArgument, groups: Groups, heard: Sequence[ClosedValues], clock: Clock
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
        gone = closed_by_all(heard, rows, columns).to_numpy()
        if not gone.any():
            return bag
        return replace(bag, tally=Tally.of(entries.take(np.flatnonzero(~gone)), clock.upto))
