"""Frontier: rows that can still be the extreme of their group, where announced deaths are never taken back.

A row is out if another row of the group is at least as extreme and dies no earlier. What is left of a group,
in the order of death, is ever less extreme: the first one alive is the extreme.

```
MIN    value                      death →
         3   ●─────┐               alive until the first death: 3
         5         └───●───┐       then 5, then 8
         8                 └──●    (7, dying before 5 does, is out)
```

Runs are sorted by group and death; a row may stand although a row of another run beats it. A step reads, for
each group it touches and each run, the rows that die in the step and one more. A run is merged into the one
before it when the rows that came since have become half as many as that one holds, so a row that is out goes
after as many arrivals as there are rows at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.aggregate.coding import order_keys
from headgate.kernels.aggregate.points import dense, pair_key
from headgate.kernels.aggregate.sorted_pairs import ranges, seek
from headgate.kernels.state.index import HashIndex
from headgate.kernels.state.sorted_runs import Ints, Run, SortedRuns

GROUP, DIES, VALUE = "group", "dies", "value"


@dataclass(frozen=True, eq=False)
class FrontierRun(Run):
    """Rows sorted by group and death, each less extreme than the one before in its group."""

    arrivals: int = 0
    """How many rows came to make it; the oldest run counts only what it holds."""

    @cached_property
    def group(self) -> Ints:
        return self.numbers(GROUP)

    @cached_property
    def dies(self) -> Ints:
        return self.numbers(DIES)

    @cached_property
    def last_death(self) -> int:
        return int(self.dies.max())

    @cached_property
    def median_death(self) -> int:
        return int(np.partition(self.dies, self.dies.size // 2)[self.dies.size // 2])


@dataclass(frozen=True, eq=False)
class Frontier(SortedRuns[FrontierRun]):
    """The rows that can still be the smallest, or the largest, of their group; values are codes."""

    largest: bool

    def within(self, groups: Ints, after: int, upto: int) -> tuple[Ints, pl.DataFrame]:
        """The rows that are the extreme of their run and group at some instant in (after, upto].

        Returned with the number of the group among `groups`, which are ascending.
        """
        owners, rows = [], []
        for run in self.runs:
            low = seek(run.group, run.dies, groups, np.full(groups.size, after + 1))
            high = seek(run.group, run.dies, groups, np.full(groups.size, upto + 1))
            end = np.searchsorted(run.group, groups, side="right")
            index, owner = ranges(low, np.minimum(high + 1, end))
            owners.append(owner)
            rows.append(run.frame[index])
        if not rows:
            return np.empty(0, dtype=np.int64), pl.DataFrame()
        return np.concatenate(owners), pl.concat(rows)

    def advance(self, rows: pl.DataFrame, upto: int) -> Frontier:
        """The frontier at `upto`, with new rows (group, dies, value), all of which die after it."""
        kept = [run for run in self.runs if run.last_death > upto]
        # What is mostly dead is written anew, together with what is new.
        stale = [run for run in kept if run.median_death <= upto]
        runs = [run for run in kept if run.median_death > upto]
        if rows.height:
            stale.append(self._run(upto, upto, rows, ()))
        if stale:
            runs.append(self._joined(stale, upto, not runs))
        while len(runs) > 1 and runs[-2].arrivals <= 2 * runs[-1].arrivals:
            newer, older = runs.pop(), runs.pop()
            runs.append(self._joined([older, newer], upto, not runs))
        return replace(self, runs=tuple(run for run in runs if run.height))

    def without(self, groups: Ints, upto: int) -> Frontier:
        """The frontier but for some groups, written anew in the step that ends at `upto`."""
        left = [run.frame.filter(~pl.Series(np.isin(run.group, groups))) for run in self.runs]
        runs = [self._run(upto, upto, frame, ()) for frame in left if frame.height]
        return replace(self, runs=(self._joined(runs, upto, oldest=True),) if runs else ())

    def _run(
        self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]
    ) -> FrontierRun:
        return FrontierRun(since, built, frame, indexes, arrivals=frame.height)

    def _joined(self, runs: Sequence[FrontierRun], upto: int, oldest: bool) -> FrontierRun:
        """The newest run, with the rows of several that are alive and that no other of them beats."""
        frame = pl.concat([run.frame for run in runs]).filter(pl.col(DIES) > upto)
        keys = order_keys(frame[VALUE], self.largest)
        frontier = frame[undominated(frame[GROUP].to_numpy(), frame[DIES].to_numpy(), keys)].rechunk()
        joined = self._run(upto, upto, frontier, ())
        return joined if oldest else replace(joined, arrivals=sum(run.arrivals for run in runs))


def undominated(group: Ints, dies: Ints, key: Ints) -> Ints:
    """The rows that no other row of the group beats with as small a key and as late a death.

    They are sorted by group and death.
    """
    if not group.size:
        return group
    group, rank = dense(group), dense(key)
    # Latest death first, then the smallest key: a row is in if its key is below all before it in the group.
    order = np.argsort(pair_key(pair_key(group, ~dies), rank))
    # Groups descend, so that what came before in another group is never the lesser.
    level = (int(group.max()) - group[order]) * group.size + rank[order]
    least = np.minimum.accumulate(level)
    kept = np.ones(order.size, dtype=np.bool_)
    kept[1:] = level[1:] < least[:-1]
    chosen = order[kept]
    return chosen[np.argsort(pair_key(group[chosen], dies[chosen]))]
