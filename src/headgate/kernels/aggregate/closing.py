"""ClosingAggregate: an aggregate that forgets a group once every input below has closed its key.

```
group k    ──1──┬──3──┬──7──┬ closed on bids ┬ closed on items: the last value stands, the group is forgotten
```

The last value is not ended: the answer keeps it, the state does not. As in a join's purge, a sweep comes when as many
closings have been heard as groups and closings were left by the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.kernels.aggregate.groups import NUMBER
from headgate.kernels.aggregate.kernel import Aggregate, key_column
from headgate.kernels.aggregate.state import AggregateState
from headgate.kernels.state.closed_values import closed_by_all
from headgate.kernels.state.closings import Closings, ClosingState
from headgate.model.batch import Batch
from headgate.model.time import Clock


@dataclass(frozen=True)
class ClosingAggregate:
    """`aggregate` over rows that never die, and inputs that close values of `keys`, some of its keys.

    `below` says for each of these whether it closes all lesser values.
    """

    aggregate: Aggregate
    keys: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> ClosingState[AggregateState]:
        schema = {key: self.aggregate.schema[key] for key in self.keys}
        return ClosingState(self.aggregate.initial(), Closings.nothing(schema, self.below))

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingState[AggregateState]:
        return self.initial().restored(self.aggregate.restore, chunks)

    def advance(
        self, state: ClosingState[AggregateState], inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingState[AggregateState], Batch]:
        """What the aggregate says in the step; closings have no answer of their own."""
        values, said = self.aggregate.advance(state.values, inputs[:1], clock)
        after = state.observed(values, inputs[:1], inputs[1:], clock)
        return (self._swept(after, clock) if after.due(clock) else after), said

    def _swept(self, state: ClosingState[AggregateState], clock: Clock) -> ClosingState[AggregateState]:
        """The state without the groups that all inputs have closed, and without these closings."""
        directory = state.values.groups.directory.live_rows()
        columns = [key_column(self.aggregate.keys.index(key)) for key in self.keys]
        closed = closed_by_all(state.closings.closed_values, directory, columns)
        gone = directory.filter(closed)[NUMBER].to_numpy()
        values = state.values.without(gone, clock.upto) if gone.size else state.values
        return ClosingState(values, state.closings.swept(values.groups.directory.live, clock))
