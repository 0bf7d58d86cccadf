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
from headgate.kernels.state.closed_values import ClosedValues, closed_by_all, not_by_all
from headgate.kernels.state.store import prefixed, under
from headgate.model.batch import Batch
from headgate.model.time import Clock

# Groups and closings that are not worth a sweep.
_FEW = 128

_GROUPS, _CLOSED = "groups/", "closed."


@dataclass(frozen=True, eq=False)
class ClosingState:
    """The groups, the values that each input has closed, and what came since the last sweep."""

    groups: AggregateState
    heard: tuple[ClosedValues, ...]
    since: int = 0
    kept: int = 0

    @property
    def rows(self) -> int:
        return self.groups.rows + sum(each.rows for each in self.heard)

    @property
    def nbytes(self) -> int:
        return self.groups.nbytes + sum(each.nbytes for each in self.heard)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        chunks = prefixed(self.groups.chunks(), _GROUPS)
        for number, each in enumerate(self.heard):
            chunks |= prefixed(each.chunks(), f"{_CLOSED}{number}/")
        return chunks


def restored_closings(
    aggregate: Aggregate, heard: Sequence[ClosedValues], chunks: Mapping[str, pl.DataFrame]
) -> ClosingState:
    """The state whose `chunks()` these are; `heard` has heard nothing."""
    return ClosingState(
        aggregate.restore(under(chunks, _GROUPS)),
        tuple(each.restored(under(chunks, f"{_CLOSED}{number}/")) for number, each in enumerate(heard)),
    )


def few() -> int:
    """How many groups and closings are not worth a sweep."""
    return _FEW


@dataclass(frozen=True)
class ClosingAggregate:
    """`aggregate` over rows that never die, and inputs that close values of `keys`, some of its keys.

    `below` says for each of these whether it closes all lesser values.
    """

    aggregate: Aggregate
    keys: tuple[str, ...]
    below: tuple[bool, ...]

    def initial(self) -> ClosingState:
        schema = {key: self.aggregate.schema[key] for key in self.keys}
        heard = tuple(ClosedValues.nothing(schema, below=each) for each in self.below)
        return ClosingState(self.aggregate.initial(), heard)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> ClosingState:
        return restored_closings(self.aggregate, self.initial().heard, chunks)

    def advance(
        self, state: ClosingState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[ClosingState, Batch]:
        """What the aggregate says in the step; closings have no answer of their own."""
        groups, said = self.aggregate.advance(state.groups, inputs[:1], clock)
        if clock.upto <= clock.after:
            return ClosingState(groups, state.heard, state.since, state.kept), said
        closed = [batch.frame for batch in inputs[1:]]
        heard = tuple(each.observe(frame, clock) for each, frame in zip(state.heard, closed, strict=True))
        since = state.since + sum(frame.height for frame in closed)
        if any(self.below):
            # One value closes many, so what there is to forget follows the rows.
            since += inputs[0].height
        after = ClosingState(groups, heard, since, state.kept)
        return (self._swept(after, clock) if since >= max(_FEW, state.kept) else after), said

    def _swept(self, state: ClosingState, clock: Clock) -> ClosingState:
        """The state without the groups that all inputs have closed, and without these closings."""
        directory = state.groups.groups.directory.live_rows()
        columns = [key_column(self.aggregate.keys.index(key)) for key in self.keys]
        gone = directory.filter(closed_by_all(state.heard, directory, columns))[NUMBER].to_numpy()
        left = not_by_all(state.heard, clock)
        groups = state.groups.without(gone, clock.upto) if gone.size else state.groups
        kept = groups.groups.directory.live + sum(each.rows for each in left)
        return ClosingState(groups, left, 0, kept)
