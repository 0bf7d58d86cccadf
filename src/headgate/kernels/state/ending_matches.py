"""Ending matches: which stored row each ending takes back.

An ending names a payload and the death that was announced. Any live row with both will do, for the contents
of the input are the same; the oldest is taken, as a row window does. The index keeps equal rows together in
order of birth, so what has been taken of them is at the front:

```
entries of one payload, oldest first     x x x x x . . . . .        x taken before   . alive
three endings take                                 ^ ^ ^            found by binary search over "taken"
```

Two payloads may share the hash bits of the index. Then the front is mixed and this short way may find a
younger row, or none; what it finds is checked, and what it misses is looked up the long way: every entry is
compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.keys import Hashes, Mask, key_hash, keys_equal
from headgate.kernels.state.index import Positions
from headgate.kernels.state.lifetime_run import LifetimeRun
from headgate.kernels.state.store import rows_at, rows_where

_NUMBER = "_number"
_NOWHERE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class EndingMatch:
    """In one run: the endings, by number, and the rows that they take back, with their positions."""

    run: LifetimeRun
    ending: Positions
    position: Positions
    rows: pl.DataFrame

    def only(self, keep: Mask) -> EndingMatch:
        return EndingMatch(self.run, self.ending[keep], self.position[keep], rows_where(self.rows, keep))


def match_endings(
    runs: Sequence[LifetimeRun], key: int, columns: Sequence[str], endings: pl.DataFrame
) -> list[EndingMatch]:
    """What the endings, in order of time, take back, the oldest rows first; an ending may find nothing.

    `columns` say what a row is; they are those of key number `key`.
    """
    hashes = key_hash(endings, columns)
    matches, doubtful = _short_way(runs, key, columns, endings, hashes)
    if not doubtful.any():
        return matches
    sure = [each.only(~doubtful.take(each.ending)) for each in matches]
    return sure + _long_way(runs, key, columns, endings, hashes, np.flatnonzero(doubtful))


def _short_way(
    runs: Sequence[LifetimeRun], key: int, columns: Sequence[str], endings: pl.DataFrame, hashes: Hashes
) -> tuple[list[EndingMatch], Mask]:
    """Matches by hash alone, and the endings whose matches may be wrong or missing."""
    order = np.argsort(hashes, kind="stable")
    unique, first, wanted = np.unique(hashes.take(order), return_index=True, return_counts=True)
    given = np.zeros(len(unique), dtype=np.int64)
    seen = np.zeros(len(unique), dtype=np.int64)
    wrong = np.zeros(len(unique), dtype=np.bool_)
    matches = []
    for run in runs:
        unmet = np.flatnonzero(given < wanted)
        low, high = run.indexes[key].span(unique.take(unmet))
        seen[unmet] += high - low
        low = _first_alive(run, key, low, high)
        takes = np.minimum(wanted.take(unmet) - given.take(unmet), high - low)
        group, entry, rank = _ranges(unmet, low, takes)
        if len(group) == 0:
            continue
        ending = order.take(first.take(group) + given.take(group) + rank)
        position = run.indexes[key].positions(entry)
        found = EndingMatch(run, ending, position, rows_at(run.frame, position))
        wrong[group[~_are_copies(found, columns, endings)]] = True
        given[unmet] += takes
        matches.append(found)
    doubtful = np.zeros(len(hashes), dtype=np.bool_)
    doubtful[order] = np.repeat(wrong | ((given < wanted) & (seen > given)), wanted)
    return matches, doubtful


def _long_way(
    runs: Sequence[LifetimeRun],
    key: int,
    columns: Sequence[str],
    endings: pl.DataFrame,
    hashes: Hashes,
    numbers: Positions,
) -> list[EndingMatch]:
    """Matches of the endings with these numbers, by comparing every entry that their hash suggests."""
    groups = (
        rows_at(endings, numbers)
        .with_columns(pl.Series(_NUMBER, numbers))
        .group_by(columns, maintain_order=True)
        .agg(pl.col(_NUMBER))
    )
    wanted = groups[_NUMBER].list.len().to_numpy().astype(np.int64)
    members = groups[_NUMBER].explode().to_numpy()
    first = np.cumsum(wanted) - wanted
    chosen = members.take(first)
    given = np.zeros(len(wanted), dtype=np.int64)
    matches = []
    for run in runs:
        pairs = [*run.indexes[key].find(hashes.take(chosen))]
        group = np.concatenate([_NOWHERE, *(pair[0] for pair in pairs)])
        position = np.concatenate([_NOWHERE, *(pair[1] for pair in pairs)])
        suspected = EndingMatch(run, chosen.take(group), position, rows_at(run.frame, position))
        copies = _are_copies(suspected, columns, endings)
        group = group[copies]
        rank = np.arange(len(group)) - np.searchsorted(group, group)
        takes = given.take(group) + rank < wanted.take(group)
        found, group, rank = suspected.only(copies).only(takes), group[takes], rank[takes]
        ending = members.take(first.take(group) + given.take(group) + rank)
        matches.append(EndingMatch(run, ending, found.position, found.rows))
        np.add.at(given, group, 1)
    return matches


def _are_copies(found: EndingMatch, columns: Sequence[str], endings: pl.DataFrame) -> Mask:
    """Whether each row is alive and is what its ending says."""
    ours = rows_at(endings, found.ending)
    equal = keys_equal(ours, found.rows, columns, columns, null_equal=True)
    return equal & found.run.is_in(found.position)


def _first_alive(run: LifetimeRun, key: int, low: Positions, high: Positions) -> Positions:
    """The first entry of each range that was not taken before, if those that were stand at the front."""
    if run.removed is None:
        return low
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        inside = low < high
        taken = inside & run.removed.has(run.indexes[key].positions(np.where(inside, middle, 0)))
        low, high = np.where(taken, middle + 1, low), np.where(taken, high, middle)
    return low


def _ranges(group: Positions, low: Positions, count: Positions) -> tuple[Positions, Positions, Positions]:
    """Ranges of `count` entries from `low` spelled out: the group, entry and rank in the range of each."""
    which = np.repeat(np.arange(len(group)), count)
    rank = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return group.take(which), low.take(which) + rank, rank
