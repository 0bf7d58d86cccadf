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
from headgate.kernels.state.store import prefixed, under
from headgate.model.aggregates import Kind
from headgate.model.batch import Batch
from headgate.model.time import Clock

_GROUPS, _FINAL = "groups/", "final."


@dataclass(frozen=True, eq=False)
class Extremes:
    """The final values that are remembered of one argument, by group, written in the step that ends at `built`."""

    frame: pl.DataFrame
    built: int = 0


@dataclass(frozen=True, eq=False)
class SettlingState:
    """What the aggregate remembers, and which of its values are final, by argument."""

    groups: AggregateState
    final: Mapping[str, Extremes]

    @property
    def rows(self) -> int:
        return self.groups.rows + sum(each.frame.height for each in self.final.values())

    @property
    def nbytes(self) -> int:
        return self.groups.nbytes + sum(int(each.frame.estimated_size()) for each in self.final.values())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        chunks = prefixed(self.groups.chunks(), _GROUPS)
        for number, each in enumerate(self.final.values()):
            if each.frame.height:
                chunks[f"{_FINAL}{number}.{each.built}"] = each.frame
        return chunks


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
        final = {name: Extremes(_no_values(bag)) for name, bag in groups.bags.items() if name in extremes}
        return SettlingState(groups, final)

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> SettlingState:
        final = dict(self.initial().final)
        names = list(final)
        for name, frame in chunks.items():
            if name.startswith(_FINAL):
                number, built = name.removeprefix(_FINAL).split(".")
                final[names[int(number)]] = Extremes(frame, int(built))
        return SettlingState(self.aggregate.restore(under(chunks, _GROUPS)), final)

    def advance(
        self, state: SettlingState, inputs: Sequence[Batch], clock: Clock
    ) -> tuple[SettlingState, Batch]:
        """What the aggregate says in the step; that rows are final changes nothing about it."""
        groups, said = self.aggregate.advance(state.groups, inputs[:1], clock)
        frame = inputs[1].frame
        if frame.is_empty() or clock.upto <= clock.after:
            return SettlingState(groups, state.final), said
        known = groups.groups.identify(self.aggregate.keys_of(frame))
        number = known.number[known.code]
        bags, final = dict(groups.bags), dict(state.final)
        for name, known_final in state.final.items():
            values = Arguments.of(self.aggregate.read(frame, name))
            new = pl.DataFrame({GROUP: number[values.row], VALUE: values.value})
            bags[name], final[name] = self._settled(
                name, bags[name], pl.concat([known_final.frame, new]), clock
            )
        return SettlingState(replace(groups, bags=bags), final), said

    def _settled(self, name: str, bag: Bag, final: pl.DataFrame, clock: Clock) -> tuple[Bag, Extremes]:
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
        extremes = Extremes(ordered.filter(pl.Series(stays)), clock.upto)
        whole = bag.tally.whole()
        if others.is_empty() or whole is None:
            return bag, extremes
        taken_back = Entries.of(others.with_columns(-pl.col(COUNT).cast(pl.Int64)))
        return replace(bag, tally=Tally.of(merged([whole, taken_back]), clock.upto)), extremes


def _no_values(bag: Bag) -> pl.DataFrame:
    return pl.DataFrame(schema={GROUP: pl.Int64(), VALUE: code_type(bag.dtype)})
