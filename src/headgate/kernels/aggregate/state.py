"""AggregateState: what an aggregate remembers between clock steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from headgate.kernels.aggregate.bag import Bag
from headgate.kernels.aggregate.frontier import Frontier
from headgate.kernels.aggregate.groups import Groups
from headgate.kernels.kernel import State
from headgate.kernels.state.composite import Composite, of_part
from headgate.kernels.state.sorted_runs import Ints
from headgate.kernels.state.timer_queue import TimerQueue

_GROUPS, _PENDING = "groups", "pending"


@dataclass(frozen=True, eq=False)
class AggregateState(Composite):
    """The groups, what is pending for them, and what single calls need besides: bags and frontiers."""

    groups: Groups
    pending: TimerQueue
    bags: Mapping[str, Bag]
    frontiers: Mapping[tuple[str, bool], Frontier]

    @property
    def _parts(self) -> dict[str, State]:
        bags = {f"bag{number}": bag for number, bag in enumerate(self.bags.values())}
        frontiers = {f"frontier{number}": front for number, front in enumerate(self.frontiers.values())}
        return {_GROUPS: self.groups, _PENDING: self.pending, **bags, **frontiers}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> AggregateState:
        """The state like this empty one whose chunks these are."""
        return AggregateState(
            self.groups.restored(of_part(chunks, _GROUPS)),
            self.pending.restored(of_part(chunks, _PENDING)),
            {
                argument: bag.restored(of_part(chunks, f"bag{number}"))
                for number, (argument, bag) in enumerate(self.bags.items())
            },
            {
                which: front.restored(of_part(chunks, f"frontier{number}"))
                for number, (which, front) in enumerate(self.frontiers.items())
            },
        )

    def without(self, gone: Ints, upto: int) -> AggregateState:
        """The state without the groups of these numbers, written anew in the step that ends at `upto`.

        Nothing may be pending for them.
        """
        return AggregateState(
            self.groups.without(gone, upto),
            self.pending,
            {
                argument: replace(bag, tally=bag.tally.without(gone, upto))
                for argument, bag in self.bags.items()
            },
            {which: front.without(gone, upto) for which, front in self.frontiers.items()},
        )
