"""AggregateState: what an aggregate remembers between clock steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.aggregate.bag import Bag
from headgate.kernels.aggregate.frontier import Frontier
from headgate.kernels.aggregate.groups import Groups
from headgate.kernels.aggregate.pending import Pending

Ints = npt.NDArray[np.int64]

_GROUPS, _PENDING = "groups.", "pending."


@dataclass(frozen=True, eq=False)
class AggregateState:
    """The groups, what is pending for them, and what single calls need besides: bags and frontiers."""

    groups: Groups
    pending: Pending
    bags: Mapping[str, Bag]
    frontiers: Mapping[tuple[str, bool], Frontier]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self._parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._parts)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        chunks = self.groups.chunks(_GROUPS) | self.pending.chunks(_PENDING)
        for number, bag in enumerate(self.bags.values()):
            chunks |= bag.chunks(f"bag{number}.")
        for number, front in enumerate(self.frontiers.values()):
            chunks |= front.chunks(f"frontier{number}.")
        return chunks

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> AggregateState:
        """The state like this empty one whose chunks these are."""
        return AggregateState(
            self.groups.restore(chunks, _GROUPS),
            self.pending.restore(chunks, _PENDING),
            {
                argument: bag.restore(chunks, f"bag{number}.")
                for number, (argument, bag) in enumerate(self.bags.items())
            },
            {
                which: front.restore(chunks, f"frontier{number}.")
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

    @property
    def _parts(self) -> tuple[Groups | Pending | Bag | Frontier, ...]:
        return (self.groups, self.pending, *self.bags.values(), *self.frontiers.values())
