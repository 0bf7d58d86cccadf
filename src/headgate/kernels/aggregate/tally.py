"""Tally: how often each value occurs in each group, as immutable runs sorted by group and value.

```
runs, oldest first    [ 80,000 entries ] [ 9,000 ] [ 1,200 ]    a count is the sum of the runs' counts
add a batch           one more run, nothing is looked up; like-sized runs become one and entries of 0 leave
```

The entries of a group lie together in each run, in the order of the values. So a count costs a binary search
a run, the values of a group a slice a run, and the smallest or largest the first or last entries of each.
Taking back leaves an entry of -1 until runs meet; when such are a quarter of all, everything is merged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.aggregate.coding import Codes, as_series, joined, same, searchable, taken
from headgate.kernels.aggregate.sorted_pairs import bounds, ranges, seek
from headgate.kernels.keys import Mask
from headgate.kernels.state.index import HashIndex
from headgate.kernels.state.sorted_runs import Ints, Run, SortedRuns

GROUP, VALUE, COUNT = "group", "value", "count"

# Taken-back entries may be this share of all.
_GARBAGE = 4

# How many entries at the end of a group are looked at first; then four times as many, and so on.
_FEW = 4


@dataclass(frozen=True, eq=False)
class Entries:
    """Counts of (group, value), sorted by both, no pair twice. Values are codes."""

    group: Ints
    codes: Codes
    count: Ints

    @property
    def size(self) -> int:
        return self.group.size

    @property
    def value(self) -> pl.Series:
        return as_series(self.codes)

    @property
    def frame(self) -> pl.DataFrame:
        return pl.DataFrame({GROUP: self.group, VALUE: self.value, COUNT: self.count})

    @staticmethod
    def of(frame: pl.DataFrame) -> Entries:
        return Entries(frame[GROUP].to_numpy(), searchable(frame[VALUE]), frame[COUNT].to_numpy())

    def take(self, index: Ints | Mask) -> Entries:
        chosen: Ints = (
            np.flatnonzero(index) if index.dtype == np.bool_ else index.astype(np.int64, copy=False)
        )
        return Entries(self.group[chosen], taken(self.codes, chosen), self.count[chosen])

    def find(self, group: Ints, code: Codes) -> tuple[Ints, Mask]:
        """For each pair, where it is or would be, and whether it is there."""
        at = seek(self.group, self.codes, group, code)
        found = at < self.size
        kept = np.flatnonzero(found)
        near = at[kept]
        found[kept] = (self.group[near] == group[kept]) & same(taken(self.codes, near), taken(code, kept))
        return at, found


@dataclass(frozen=True, eq=False)
class EntryRun(Run):
    """Entries that were put away together."""

    @cached_property
    def entries(self) -> Entries:
        return Entries.of(self.frame)

    @cached_property
    def total(self) -> int:
        return int(self.entries.count.sum())

    @cached_property
    def negative(self) -> int:
        return int((self.entries.count < 0).sum())


@dataclass(frozen=True, eq=False)
class Tally(SortedRuns[EntryRun]):
    """Counts by group and value."""

    @cached_property
    def total(self) -> int:
        """The sum of all counts."""
        return sum(run.total for run in self.runs)

    def counts(self, group: Ints, code: Codes) -> Ints:
        """The counts of some pairs."""
        counts = np.zeros(group.size, dtype=np.int64)
        for run in self.runs:
            at, found = run.entries.find(group, code)
            counts[found] += run.entries.count[at[found]]
        return counts

    def of_groups(self, groups: Ints, nothing: Entries) -> Entries:
        """All entries of some groups, in ascending order; `nothing` is an empty piece of the right type.

        Costs as much as these groups hold.
        """
        pieces = []
        for run in self.runs:
            low, high = bounds(run.entries.group, groups)
            pieces.append(run.entries.take(ranges(low, high)[0]))
        return merged(pieces) if pieces else nothing

    def extremes(self, groups: Ints, besides: Entries, largest: bool) -> Entries:
        """For each group that has one, its smallest (or largest) value with a count that is not in `besides`.

        Costs a few entries for each group and each run, more only where many values at the end are in
        `besides` or have been taken back.
        """
        answers = [besides.take(np.empty(0, dtype=np.int64))]
        few = _FEW
        while groups.size:
            near, complete = self._near(groups, few, largest, besides)
            near = near.take(~besides.find(near.group, near.codes)[1])
            ends = np.flatnonzero(_ends(near.group, largest))
            answers.append(near.take(ends))
            answered = np.isin(groups, near.group[ends])
            groups = groups[~answered & ~complete]
            few *= 4
        return merged(answers)

    def add(self, changes: Entries, built: int) -> Tally:
        """The tally with changes of counts, at most once a step; it ends at `built`."""
        changes = changes.take(changes.count != 0)
        if not changes.size:
            return self
        runs = (*self.runs, self._run(built, built, changes.frame, ()))
        if not sum(run.total for run in runs):
            return Tally()
        if sum(run.negative for run in runs) * _GARBAGE > sum(run.height for run in runs):
            return Tally(runs=self._merged(runs, built, built))
        return Tally(runs=self._tiered(runs, built, built))

    def whole(self) -> Entries | None:
        """All entries in one piece; None if there are none."""
        return merged([run.entries for run in self.runs]) if self.runs else None

    @staticmethod
    def of(entries: Entries, built: int) -> Tally:
        """The tally of these entries alone, written in the step that ends at `built`."""
        return Tally().add(entries, built)

    def without(self, groups: Ints, built: int) -> Tally:
        """The tally but for some groups, written anew in the step that ends at `built`."""
        whole = self.whole()
        return self if whole is None else Tally.of(whole.take(~np.isin(whole.group, groups)), built)

    def _run(self, since: int, built: int, frame: pl.DataFrame, indexes: tuple[HashIndex, ...]) -> EntryRun:
        return EntryRun(since, built, frame, indexes)

    def _merged(self, runs: Sequence[EntryRun], now: int, dead: int) -> tuple[EntryRun, ...]:
        entries = merged([run.entries for run in runs])
        return (self._run(runs[0].since, now, entries.frame, ()),) if entries.size else ()

    def _near(self, groups: Ints, few: int, largest: bool, kind: Entries) -> tuple[Entries, Mask]:
        """The entries at one end of each group that are sure to be whole, and which groups they are all of.

        An entry is whole if no run holds more of its value than was read: it lies no farther from the end
        than the last entry read of every run that was not read up.
        """
        complete = np.ones(groups.size, dtype=np.bool_)
        pieces = [kind.take(np.empty(0, dtype=np.int64))]
        limits = []
        for run in self.runs:
            low, high = bounds(run.entries.group, groups)
            cut = high - low > few
            if largest:
                low = np.maximum(low, high - few)
                edge = low[cut]
            else:
                high = np.minimum(high, low + few)
                edge = high[cut] - 1
            complete &= ~cut
            pieces.append(run.entries.take(ranges(low, high)[0]))
            limits.append((groups[cut], taken(run.entries.codes, edge)))
        near = merged(pieces)
        whole = np.ones(near.size, dtype=np.bool_)
        for group, code in limits:
            at, found = near.find(group, code)
            if largest:
                start = np.searchsorted(near.group, group, side="left")
                outside = ranges(start, at)[0]
            else:
                # The value at the limit itself was read.
                outside = ranges(at + found, np.searchsorted(near.group, group, side="right"))[0]
            whole[outside] = False
        return near.take(whole & (near.count > 0)), complete


def merged(pieces: Sequence[Entries]) -> Entries:
    """One piece with the sums of several; pairs with the sum 0 are left out."""
    by_size = sorted(pieces, key=lambda piece: piece.size)
    while len(by_size) > 1:
        one, two, *rest = by_size
        by_size = sorted([_pair_merged(two, one), *rest], key=lambda piece: piece.size)
    (whole,) = by_size
    return whole


def _pair_merged(large: Entries, small: Entries) -> Entries:
    if not small.size:
        return large
    both = union(large, small)
    count = np.zeros(both.size, dtype=np.int64)
    count[both.left] = large.count
    count[both.right] += small.count
    whole = Entries(both.group, both.codes, count)
    return whole if count.all() else whole.take(count != 0)


@dataclass(frozen=True, eq=False)
class Union:
    """The pairs (group, value) of two sorted pieces in one order, and the places of each piece's pairs."""

    group: Ints
    codes: Codes
    left: Ints
    right: Ints

    @property
    def size(self) -> int:
        return self.group.size


def union(left: Entries, right: Entries) -> Union:
    """The pairs of two pieces together; costs a search for each pair on the right."""
    at, found = left.find(right.group, right.codes)
    new = np.flatnonzero(~found)
    # How many new pairs come before each pair on the left.
    ahead = np.cumsum(np.bincount(at[new], minlength=left.size + 1))
    left_place = np.arange(left.size) + ahead[: left.size]
    right_place = np.empty(right.size, dtype=np.int64)
    right_place[found] = left_place[at[found]]
    right_place[new] = at[new] + np.arange(new.size)
    order = np.empty(left.size + new.size, dtype=np.int64)
    order[left_place] = np.arange(left.size)
    order[right_place[new]] = left.size + np.arange(new.size)
    group = np.concatenate([left.group, right.group[new]])[order]
    return Union(group, taken(joined([left.codes, taken(right.codes, new)]), order), left_place, right_place)


def _ends(group: Ints, largest: bool) -> Mask:
    """The first, or last, row of each group in a sorted column."""
    change = np.ones(group.size, dtype=np.bool_)
    if largest:
        change[:-1] = group[1:] != group[:-1]
    else:
        change[1:] = group[1:] != group[:-1]
    return change
