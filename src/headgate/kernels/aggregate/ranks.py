"""Ranks: the value at a given rank in each group at each point, for all points at once.

Items are weights on values: what a group holds before the step, then the changes in time order. What stands
in the group at a point is a prefix of its items; the value of rank k in a prefix is found by descending, for
all points at once, through the binary digits of the values' places in their order (a wavelet matrix with
weights):

```
digit 2   items of values 0..3 | items of values 4..7       weight of the left part in my prefix > k: go left
digit 1   0..1 | 2..3          | 4..5 | 6..7                else take it off k and go right
digit 0   0|1  | 2|3           | 4|5  | 6|7                 after the last digit, the value is known
```

Reading a group's values costs as much as the group holds. But a change moves a rank by one at most, so only
values near the rank before the step can be an answer; the rest is one number, and the descent costs as the
changes do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.aggregate.bag import Histories
from headgate.kernels.aggregate.coding import as_series, decode
from headgate.kernels.aggregate.points import Points
from headgate.kernels.aggregate.tally import Entries, Union, union

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# How many times as far as there are changes values are kept: once because the number of rows changes, once
# because the rows before a value do, and once more because changes of values left out are still counted.
_REACH = 4

_BITS: dict[pl.DataType, int] = {pl.Int8(): 7, pl.Int16(): 15, pl.Int32(): 31, pl.Int64(): 63}


def quantile(held: Entries, histories: Histories, count: Ints, share: float, dtype: pl.DataType) -> pl.Series:
    """At each point, the `share` quantile of the `count` values there; NULL if there are none.

    Between two values it lies in proportion, as in Spark's `percentile`. `held` is what the step's groups
    hold before it.
    """
    place = np.maximum(count - 1, 0) * share
    below = np.floor(place).astype(np.int64)
    above = np.ceil(place).astype(np.int64)
    low, high = _values(held, histories, share, np.stack([below, above]), dtype)
    with np.errstate(invalid="ignore"):
        between = (above - place) * low + (place - below) * high
    result = np.where((above == below) | (low == high), low, between)
    return pl.select(pl.when(pl.Series(count > 0)).then(pl.Series(result))).to_series()


def at_rank(held: Entries, histories: Histories, count: Ints, share: float, dtype: pl.DataType) -> pl.Series:
    """At each point, the first of the `count` values such that a `share` of them is not above it; NULL for none."""
    rank = np.maximum(np.ceil(count * share).astype(np.int64) - 1, 0)
    (found,) = _values(held, histories, share, rank[None, :], dtype)
    return pl.select(pl.when(pl.Series(count > 0)).then(pl.Series(found))).to_series()


def rounded_to(numbers: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Doubles as the nearest values of a type of numbers, within what it can hold."""
    if dtype.is_float():
        return numbers
    if isinstance(dtype, pl.Decimal):
        # The largest value; where doubles are too far apart for its digits, one that is less.
        above = float(10 ** (dtype.precision - dtype.scale))
        largest = min((10**dtype.precision - 1) / 10**dtype.scale, np.nextafter(above, 0))
        return numbers.clip(-largest, largest).cast(dtype)
    # A double below 2**63 is at most 2**63 - 1024, and so fits.
    above = 2.0 ** _BITS[dtype]
    return numbers.round().clip(-above, above - 1 if above < 2**53 else np.nextafter(above, 0)).cast(dtype)


def _values(held: Entries, histories: Histories, share: float, ranks: Ints, dtype: pl.DataType) -> Floats:
    """For rows of ranks at the points, all of them near `share`, the values there; anything where there are none."""
    points = histories.points
    nearby, left_out = _near(held, histories, share, points)
    # All values that have an item, by group, and where each group's begin.
    values = union(nearby, histories.pairs)
    first = np.searchsorted(values.group, np.arange(points.first.size))
    position = _descend(nearby, histories, values, first, ranks - left_out[points.group])
    # Where a group has no values at a point, the descent may end anywhere; the count says so.
    numbers = (
        decode(as_series(values.codes), dtype).cast(pl.Float64).to_numpy() if values.size else np.zeros(1)
    )
    return np.asarray(numbers[np.clip(first[points.group] + position, 0, numbers.size - 1)])


def _near(held: Entries, histories: Histories, share: float, points: Points) -> tuple[Entries, Ints]:
    """The entries near the rank, and per group the rows before them that were left out."""
    groups = points.first.size - 1
    before = np.cumsum(held.count) - held.count
    start = np.searchsorted(held.group, np.arange(groups + 1))
    ends = np.append(before, held.count.sum())[start]
    total = np.diff(ends)
    moves = np.zeros(groups, dtype=np.int64)
    np.add.at(moves, points.group[histories.point], np.abs(histories.change))
    middle = np.maximum(total - 1, 0) * share
    reach = _REACH * (moves + 1)
    low, high = (middle - reach)[held.group], (middle + reach)[held.group]
    rank = before - ends[:-1][held.group]
    left = rank + held.count <= low
    left_out = np.zeros(groups, dtype=np.int64)
    np.add.at(left_out, held.group[left], held.count[left])
    return held.take(~left & (rank <= high)), left_out


def _descend(nearby: Entries, histories: Histories, values: Union, first: Ints, ranks: Ints) -> Ints:
    """For rows of ranks at the points, the position of the value among those of the group."""
    points = histories.points
    # Items, group by group: what is held, then the changes by point.
    order = np.argsort(histories.point, kind="stable")
    held_by = np.searchsorted(nearby.group, np.arange(first.size))
    changed_by = np.searchsorted(histories.point[order], points.first)
    group = np.concatenate([nearby.group, points.group[histories.point[order]]])
    item = np.argsort(group, kind="stable")
    place = np.concatenate([values.left, values.right[histories.pair[order]]])
    place = (place - first[group])[item]
    weight = np.concatenate([nearby.count, histories.change[order]])[item]
    # The prefix of a point: from its group's first item to its last change up to the point.
    low = (held_by + changed_by)[points.group]
    high = held_by[points.group + 1] + np.searchsorted(
        histories.point[order], np.arange(points.size), side="right"
    )
    low, high = np.broadcast_to(low, ranks.shape), np.broadcast_to(high, ranks.shape)
    answer = np.zeros(ranks.shape, dtype=np.int64)
    for digit in reversed(range(int(place.max(initial=0)).bit_length())):
        right = (place >> digit) & 1 == 1
        lefts = np.concatenate([[0], np.cumsum(~right)])
        weights = np.concatenate([[0], np.cumsum(np.where(right, 0, weight))])
        left = weights[high] - weights[low]
        goes_right = ranks >= left
        ranks = np.where(goes_right, ranks - left, ranks)
        answer |= goes_right.astype(np.int64) << digit
        low, high = (np.where(goes_right, lefts[-1] + end - lefts[end], lefts[end]) for end in (low, high))
        parted = np.concatenate([np.flatnonzero(~right), np.flatnonzero(right)])
        place, weight = place[parted], weight[parted]
    return answer
