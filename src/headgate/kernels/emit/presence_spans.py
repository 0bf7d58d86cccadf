"""PresenceSpans: how many copies of a row are there during which numbered instants, all endings taken into account.

```
rows       +a [0, end)   +b [2, end)   -a [3, end)   +a [5, end)
spans       a [0, 3)      b [2, end)    a [5, end)
```

A lifetime that is announced without its end and taken back later reaches over all instants that are left, twice;
what is there between the two is short. So the work of saying what is there follows what is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.state.index import Positions
from headgate.kernels.state.store import rows_at

_ROW = "_row"
_COUNTABLE = 2.0**62


@dataclass(frozen=True)
class PresenceSpans:
    """Row `row[n]` of a frame is there `count[n]` times at the instants with numbers in [`first[n]`, `last[n]`)."""

    row: Positions
    first: Positions
    last: Positions
    count: Positions

    @property
    def height(self) -> int:
        """How many rows there are at all instants together; about, where they are too many to be written."""
        lengths = self.last - self.first
        about = float(np.dot(lengths.astype(np.float64), self.count.astype(np.float64)))
        return int(np.dot(lengths, self.count)) if about < _COUNTABLE else int(about)

    def between(self, low: int, high: int) -> tuple[Positions, Positions]:
        """Each copy at each instant with a number in [low, high): its row, and the instant's number."""
        here = np.flatnonzero((self.first < high) & (self.last > low))
        start, stop = np.maximum(self.first[here], low), np.minimum(self.last[here], high)
        times = stop - start
        each = np.repeat(here, times)
        number = np.arange(len(each)) - np.repeat(np.cumsum(times) - times, times) + np.repeat(start, times)
        counts = self.count[each]
        return np.repeat(self.row[each], counts), np.repeat(number, counts)

    def ranges(self, instants: int, block: int) -> Iterator[tuple[int, int]]:
        """Consecutive ranges of instants that have up to a block of rows together, or are one instant."""
        places = np.concatenate([self.first, self.last])
        gains = np.concatenate([self.count, -self.count])
        order = np.argsort(places, kind="stable")
        places, alive = places[order], np.cumsum(gains[order])
        # Where contents change, how many rows are said before it: exact enough to cut by.
        lengths = np.diff(places, append=instants).astype(np.float64)
        said = np.concatenate([[0.0], np.cumsum(lengths * alive)])
        low = 0
        while low < instants:
            at = int(np.searchsorted(places, low, side="right")) - 1
            written = said[at] + (low - places[at]) * alive[at] if at >= 0 else 0.0
            last = int(np.searchsorted(said, written + block, side="right")) - 1
            high = instants
            if last < len(places):
                high = int(places[last] + (written + block - said[last]) // max(alive[last], 1))
            high = min(instants, max(low + 1, high))
            yield low, high
            low = high


def presence_spans(
    frame: pl.DataFrame, keys: Sequence[str], first: Positions, last: Positions, count: Positions
) -> PresenceSpans:
    """The spans of signed rows: row n is there `count[n]` more times (fewer, if negative) in [first[n], last[n])."""
    seen = np.flatnonzero(first < last)
    first, last, count = first[seen], last[seen], count[seen]
    if np.all(count > 0):
        return PresenceSpans(seen, first, last, count)
    group, row = _grouped(rows_at(frame, seen), keys)
    at = np.concatenate([first, last])
    gain = np.concatenate([count, -count])
    order = np.lexsort((at, np.concatenate([group, group])))
    group, at, gain = np.concatenate([group, group])[order], at[order], gain[order]
    # At its last change a row is gone, since every lifetime has an end here; so sums run on from row to row.
    there = np.cumsum(gain)
    kept = np.flatnonzero((there > 0) & (np.diff(at, append=0) > 0) & (np.diff(group, append=-1) == 0))
    return PresenceSpans(seen[row[group[kept]]], at[kept], at[kept + 1], there[kept])


def _grouped(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[Positions, Positions]:
    """For each row the number of those that it equals, and for each such number one of the rows."""
    numbered = frame.select(*keys).with_row_index(_ROW)
    equal = numbered.group_by(*keys, maintain_order=True).agg(_ROW)[_ROW]
    lengths = equal.list.len().to_numpy().astype(np.int64)
    members = equal.explode().to_numpy().astype(np.int64)
    group = np.empty(frame.height, dtype=np.int64)
    group[members] = np.repeat(np.arange(len(lengths)), lengths)
    return group, members[np.cumsum(lengths) - lengths]
