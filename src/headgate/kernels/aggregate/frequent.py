"""Frequent: the k most frequent values of each group at each point, by halving time.

Of the values whose counts do not change over a stretch of points, only the first k can be among the first k
of all. So a stretch needs as candidates only the values that change in it and the first k of the others:

```
[p0 .............. p7]      candidates: values that change in p0..p7, and the best k others
[p0 ... p3][p4 ... p7]      each half keeps what changes in it, and the best k of the rest
...                         at a single point, the first k are the answer
```

Each level of halving sorts at most as many candidates as there are changes, and k for each stretch. Reading
what a group holds costs as much as it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from headgate.kernels.aggregate.bag import Histories
from headgate.kernels.aggregate.coding import as_series, decode, taken
from headgate.kernels.aggregate.points import pair_key
from headgate.kernels.aggregate.tally import Entries, Union, union

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ITEM, COUNT = "item", "count"


@dataclass(frozen=True, eq=False)
class _Level:
    """Stretches of points, candidates in them, and the changes of these candidates.

    Three tables in one: per stretch [low, high); per candidate its stretch, its place in the order of values
    and its count just before the stretch; per change the candidate that owns it, its point and by how much.
    """

    low: Ints
    high: Ints
    stretch: Ints
    value: Ints
    count: Ints
    owner: Ints
    point: Ints
    change: Ints

    def only(self, candidates: Mask) -> _Level:
        """The level with some of the candidates, their changes and their stretches."""
        used = np.zeros(self.low.size, dtype=np.bool_)
        used[self.stretch[candidates]] = True
        changes = candidates[self.owner]
        return _Level(
            self.low[used],
            self.high[used],
            (np.cumsum(used) - 1)[self.stretch[candidates]],
            self.value[candidates],
            self.count[candidates],
            (np.cumsum(candidates) - 1)[self.owner[changes]],
            self.point[changes],
            self.change[changes],
        )

    def narrowed(self, k: int) -> _Level:
        """The level with the candidates that change, and the first k of the others in each stretch."""
        needed = np.zeros(self.stretch.size, dtype=np.bool_)
        needed[self.owner] = True
        needed[
            _first(k, np.flatnonzero(~needed & (self.count > 0)), self.stretch, self.count, self.value)
        ] = True
        return self.only(needed)

    def halved(self, k: int) -> _Level:
        """The level with both halves of each stretch, all of which have two points at least."""
        middle = (self.low + self.high) >> 1
        early = self.point < middle[self.stretch[self.owner]]
        left = self._half(self.low, middle, self.count, early).narrowed(k)
        later = self.count.copy()
        np.add.at(later, self.owner[early], self.change[early])
        right = self._half(middle, self.high, later, ~early).narrowed(k)
        return _Level(
            np.concatenate([left.low, right.low]),
            np.concatenate([left.high, right.high]),
            np.concatenate([left.stretch, right.stretch + left.low.size]),
            np.concatenate([left.value, right.value]),
            np.concatenate([left.count, right.count]),
            np.concatenate([left.owner, right.owner + left.value.size]),
            np.concatenate([left.point, right.point]),
            np.concatenate([left.change, right.change]),
        )

    def _half(self, low: Ints, high: Ints, count: Ints, changes: Mask) -> _Level:
        return _Level(
            low,
            high,
            self.stretch,
            self.value,
            count,
            self.owner[changes],
            self.point[changes],
            self.change[changes],
        )


def most_frequent(held: Entries, histories: Histories, k: int, dtype: pl.DataType) -> pl.Series:
    """At each point, a list of the k most frequent values with their counts, ties by value; NULL for none.

    `held` is what the groups of the step hold before it.
    """
    points, pairs = histories.points, histories.pairs
    known = union(held, pairs)
    count = np.zeros(known.size, dtype=np.int64)
    count[known.left] = held.count
    level = _Level(
        points.first[:-1],
        points.first[1:],
        known.group,
        np.arange(known.size),
        count,
        known.right[histories.pair],
        histories.point,
        histories.change,
    ).narrowed(k)
    found = []
    while level.value.size:
        single = (level.high - level.low == 1)[level.stretch]
        found.append(_settled(level.only(single)))
        level = level.only(~single).halved(k)
    return _lists(found, known, points.size, k, dtype)


def result_type(item: pl.DataType) -> pl.DataType:
    """The type of a list of frequent values."""
    return pl.List(pl.Struct({ITEM: item, COUNT: pl.Int64()}))


def _first(k: int, index: Ints, major: Ints, count: Ints, value: Ints) -> Ints:
    """Of the rows in `index`, the first k for each `major`: most frequent first, then the smaller value."""
    major, count, value = major[index], count[index], value[index]
    order = np.argsort(pair_key(pair_key(major, -count), value))
    ordered, place = major[order], np.arange(order.size)
    start = place.copy()
    start[1:][ordered[1:] == ordered[:-1]] = 0
    return index[order[place - np.maximum.accumulate(start) < k]]


def _settled(level: _Level) -> tuple[Ints, Ints, Ints]:
    """Point, value and count of the candidates of stretches of one point."""
    count = level.count.copy()
    np.add.at(count, level.owner, level.change)
    return level.low[level.stretch], level.value, count


def _lists(
    found: list[tuple[Ints, Ints, Ints]], known: Union, size: int, k: int, dtype: pl.DataType
) -> pl.Series:
    none: Ints = np.empty(0, dtype=np.int64)
    point, value, count = (
        (np.concatenate([none, *column]) for column in zip(*found, strict=True))
        if found
        else (
            none,
            none,
            none,
        )
    )
    best = _first(k, np.flatnonzero(count > 0), point, count, value)
    point, value, count = point[best], value[best], count[best]
    offsets = np.searchsorted(point, np.arange(size + 1))
    items = decode(as_series(taken(known.codes, value)), dtype)
    entries = pl.DataFrame({ITEM: items, COUNT: count}).to_struct("")
    lists = pa.LargeListArray.from_arrays(
        pa.array(offsets), entries.to_arrow(), mask=pa.array(offsets[1:] == offsets[:-1])
    )
    series = pl.from_arrow(lists)
    assert isinstance(series, pl.Series)
    return series.cast(result_type(dtype))
