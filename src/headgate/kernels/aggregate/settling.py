"""SettlingAggregate: MIN and MAX over rows that may end, of which some are known to be final.

```
MAX of      3   8   5   9        8 and 5 are final, 3 and 9 may still end
remembered  3   8       9        of the final ones the largest: no other can be the answer again
```

A final row stays in the answer for ever, so of those that are final only the extreme ones matter. COUNT, SUM and AVG
are added up as rows come, and need none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.aggregate.bag import Bag
from headgate.kernels.aggregate.coding import code_type
from headgate.kernels.aggregate.kernel import Aggregate
from headgate.kernels.aggregate.state import AggregateState
from headgate.kernels.aggregate.step import Arguments
from headgate.kernels.aggregate.tally import COUNT, GROUP, VALUE, Entries, Tally, merged
from headgate.kernels.kernel import State
from headgate.kernels.state.composite import Composite, of_part
from headgate.kernels.state.sorted_runs import Runs
from headgate.model.aggregates import Kind
from headgate.model.batch import Batch
from headgate.model.time import Clock

_GROUPS = "groups"


@dataclass(frozen=True, eq=False)
class SettlingState(Composite):
    """What the aggregate remembers, and by argument which of its values are final, by group."""

    groups: AggregateState
    final: Mapping[str, Runs]

    @property
    def _parts(self) -> dict[str, State]:
        return {_GROUPS: self.groups, **{str(number): e for number, e in enumerate(self.final.values())}}


@dataclass(frozen=True)
class SettlingAggregate:
    """`aggregate` over rows that may end but are never announced with a death, and an input of its final rows.

    A final row has come before, on the first input, and does not end.
    """

    aggregate: Aggregate

    def __post_init__(self) -> None:
        for call in self.aggregate.calls:
            if call.of_distinct or call.function.traits.kind is Kind.HOLISTIC:
                raise ValueError(f"{call.function} needs every value, final or not")

    def initial(self) -> SettlingState:
        groups = self.aggregate.initial()
        extremes = {call.reads for call in self.aggregate.calls if call.function.is_extreme}
        # What a sketch counts stays: its cells are few.
        final = {
            name: Runs({GROUP: pl.Int64(), VALUE: code_type(bag.dtype)})
            for name, bag in groups.bags.items()
            if name in extremes
        }
        return SettlingState(groups, final)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> SettlingState:
        final = {
            name: nothing.restored(of_part(chunks, str(number)))
            for number, (name, nothing) in enumerate(self.initial().final.items())
        }
        return SettlingState(self.aggregate.restore(of_part(chunks, _GROUPS)), final)

    def advance(
        self, state: SettlingState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[SettlingState, Batch]:
        """What the aggregate says in the step; that rows are final changes nothing about it."""
        groups, said = self.aggregate.advance(state.groups, inputs[:1], clock)
        frame = inputs[1].frame
        if frame.is_empty():
            return SettlingState(groups, state.final), said
        known = groups.groups.identify(self.aggregate.keys_of(frame))
        number = known.number[known.code]
        bags, final = dict(groups.bags), dict(state.final)
        for name, known_final in state.final.items():
            values = Arguments.of(self.aggregate.read(frame, name))
            new = pl.DataFrame({GROUP: number[values.row], VALUE: values.value})
            bags[name], extremes = self._settled(name, bags[name], pl.concat([known_final.frame, new]), clock)
            final[name] = known_final.only(extremes, clock.upto)
        return SettlingState(replace(groups, bags=bags), final), said

    def _settled(self, name: str, bag: Bag, final: pl.DataFrame, clock: Clock) -> tuple[Bag, pl.DataFrame]:
        """The bag without final values that are not extreme, and those that are."""
        ordered = final.sort(GROUP, VALUE)
        groups = ordered[GROUP].to_numpy()
        first = np.ones(groups.size, dtype=np.bool_)
        first[1:] = groups[1:] != groups[:-1]
        calls = [call for call in self.aggregate.calls if call.reads == name and call.function.is_extreme]
        stays = np.zeros(groups.size, dtype=np.bool_)
        if any(not call.function.is_largest for call in calls):
            stays |= first
        if any(call.function.is_largest for call in calls):
            stays |= np.roll(first, -1)
        others = ordered.filter(~pl.Series(stays)).group_by(GROUP, VALUE, maintain_order=True).len(COUNT)
        extremes = ordered.filter(pl.Series(stays))
        whole = bag.tally.whole()
        if others.is_empty() or whole is None:
            return bag, extremes
        taken_back = Entries.of(others.with_columns(-pl.col(COUNT).cast(pl.Int64)))
        return replace(bag, tally=Tally.of(merged([whole, taken_back]), clock.upto)), extremes
