"""Bag: the values of one argument in each group with their multiplicities, now and in the deaths announced.

What DISTINCT, MEDIAN, QUANTILE and TOP need, and MIN and MAX where lifetimes may be taken back. A step turns
the changes into *histories*: for each (group, value) that changes, its multiplicity from point to point.

```
points of the group   p0    p1    p2    p3    p4         first = p0, end = p5
(group, value)        ──2── ──3── ──── ──0── ────         history: 2 up to p1, 3 up to p3, 0 up to the end
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from headgate.kernels.aggregate.coding import code_type, order_keys, searchable, taken
from headgate.kernels.aggregate.points import Points, pair_key
from headgate.kernels.aggregate.tally import COUNT, GROUP, VALUE, Entries, Tally
from headgate.kernels.kernel import State
from headgate.kernels.state.composite import Composite, of_part
from headgate.kernels.state.sorted_runs import Ints
from headgate.kernels.state.timer_queue import AT, TimerQueue

_TALLY, _PENDING = "tally", "pending"


@dataclass(frozen=True, eq=False)
class Changes:
    """Changes of multiplicity in a step: at a point, by how much, of which code."""

    point: Ints
    value: pl.Series
    count: Ints

    @staticmethod
    def concat(pieces: Sequence[Changes]) -> Changes:
        return Changes(
            np.concatenate([piece.point for piece in pieces]),
            pl.concat([piece.value for piece in pieces]),
            np.concatenate([piece.count for piece in pieces]),
        )


@dataclass(frozen=True, eq=False)
class Histories:
    """The multiplicities, in a step, of the (group, value) pairs that change in it.

    `pairs` holds each pair once with its multiplicity before the step, its group as the step numbers groups.
    The changes are sorted by pair, then by point; no two of a pair lie at one point.
    """

    points: Points
    pairs: Entries
    pair: Ints
    point: Ints
    change: Ints
    after: Ints
    """The multiplicity from the point of the change on."""

    def spans(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Each multiplicity while it lasts: pair, first point, point after the last one, multiplicity."""
        starts, ends = self.points.first[self.pairs.group], self.points.first[self.pairs.group + 1]
        pairs = np.arange(self.pairs.size)
        until = np.empty_like(self.point)
        until[:-1] = self.point[1:]
        until[np.searchsorted(self.pair, pairs, side="right") - 1] = ends
        pair = np.concatenate([pairs, self.pair])
        low = np.concatenate([starts, self.point])
        high = np.concatenate([self.point[np.searchsorted(self.pair, pairs)], until])
        count = np.concatenate([self.pairs.count, self.after])
        keep = (low < high) & (count > 0)
        return pair[keep], low[keep], high[keep], count[keep]


@dataclass(frozen=True, eq=False)
class Bag(Composite):
    """Multiplicities of the values, given as codes, of one argument in all groups."""

    dtype: pl.DataType
    tally: Tally
    pending: TimerQueue
    """Announced changes: group, value and by how much the multiplicity changes."""

    @staticmethod
    def empty(dtype: pl.DataType) -> Bag:
        """No values of a type."""
        pair = {GROUP: pl.Int64(), VALUE: code_type(dtype)}
        return Bag(dtype, Tally(), TimerQueue(pair, COUNT, summed=True))

    @property
    def _parts(self) -> dict[str, State]:
        return {_TALLY: self.tally, _PENDING: self.pending}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Bag:
        """The bag like this empty one whose chunks these are."""
        tally = self.tally.restored(of_part(chunks, _TALLY))
        return replace(self, tally=tally, pending=self.pending.restored(of_part(chunks, _PENDING)))

    def due(self, after: int, upto: int) -> tuple[Bag, pl.DataFrame]:
        """The bag without the announced changes in (after, upto], and these: at, group, value, count."""
        pending, due = self.pending.due(after, upto)
        return replace(self, pending=pending), due

    def announce(self, at: Ints, group: Ints, value: pl.Series, count: Ints, upto: int) -> Bag:
        """The bag that knows of changes after `upto`."""
        rows = pl.DataFrame({GROUP: group, VALUE: value, AT: at, COUNT: count})
        return replace(self, pending=self.pending.add(rows, upto))

    def histories(self, changes: Changes, points: Points, groups: Ints) -> Histories:
        """The histories of all pairs that change; `groups` are the numbers of the step's groups."""
        pair, point, change, pairs = _by_pair(changes, points)
        before = self.tally.counts(groups[pairs.group], pairs.codes)
        total = np.cumsum(change)
        first = np.searchsorted(pair, np.arange(pairs.size))
        offset = before - (total[first] - change[first]) if first.size else before
        known = Entries(pairs.group, pairs.codes, before)
        return Histories(points, known, pair, point, change, total + offset[pair])

    def advance(self, histories: Histories, groups: Ints, upto: int) -> Bag:
        """The bag after a step that had these histories."""
        pairs = histories.pairs
        sums = np.zeros(pairs.size, dtype=np.int64)
        np.add.at(sums, histories.pair, histories.change)
        changes = Entries(groups[pairs.group], pairs.codes, sums)
        return replace(self, tally=self.tally.add(changes, upto))

    def held(self, groups: Ints) -> Entries:
        """All that the step's groups hold, numbered as the step numbers them; costs as much as that is."""
        none = np.empty(0, dtype=np.int64)
        nothing = Entries(none, searchable(pl.Series(VALUE, [], dtype=code_type(self.dtype))), none)
        held = self.tally.of_groups(groups, nothing)
        return Entries(np.searchsorted(groups, held.group), held.codes, held.count)


def _by_pair(changes: Changes, points: Points) -> tuple[Ints, Ints, Ints, Entries]:
    """Changes sorted by pair and point and added up, as columns (pair, point, change), and the pairs."""
    group = points.group[changes.point]
    rank = order_keys(changes.value, largest=False)
    key = pair_key(pair_key(group, rank), changes.point)
    order = np.argsort(key)
    ordered = key[order]
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    change = np.add.reduceat(changes.count[order], starts) if starts.size else changes.count
    kept = order[starts[change != 0]]
    change = change[change != 0]
    point, group, rank = changes.point[kept], group[kept], rank[kept]
    fresh = np.ones(kept.size, dtype=np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (rank[1:] != rank[:-1])
    heads = kept[fresh]
    codes = taken(searchable(changes.value), heads)
    pairs = Entries(group[fresh], codes, np.zeros(heads.size, dtype=np.int64))
    return np.cumsum(fresh) - 1, point, change, pairs
