"""Claims: which stored row each ending takes back.

An ending names a payload and the death that was announced. Any live row with both will do; the oldest is taken, as in a
row window. The index keeps equal rows together in order of birth, so what has been taken of them is at the front:

```
entries of one payload, oldest first     x x x x x . . . . .        x taken before   . alive
three endings take                                 ^ ^ ^            found by binary search over "taken"
```

Two payloads may share the hash bits of the index; then the front is mixed, the short way may miss, and those payloads are
looked up the long way: every entry is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from headgate.kernels.keys import Hashes, Mask, key_hash, keys_equal
from headgate.kernels.state.index import Positions
from headgate.kernels.state.run import Run
from headgate.model.batch import BORN

_NUMBER = "_number"
_NOWHERE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Claim:
    """In one run: the endings, by number, and the positions of the rows that they take back."""

    run: Run
    ending: Positions
    position: Positions


def claim(runs: Sequence[Run], key: int, columns: Sequence[str], endings: pl.DataFrame) -> list[Claim]:
    """For each run, in order, what the endings (in order of time) take from it; key `key` indexes row identity.

    An ending that finds no row is in none of the claims.
    """
    hashes = key_hash(endings, columns)
    claims, doubtful = _short_way(runs, key, columns, endings, hashes)
    if not doubtful.any():
        return claims
    other = _long_way(runs, key, columns, endings, hashes, np.flatnonzero(doubtful))
    joined = []
    for short, long in zip(claims, other, strict=True):
        sure = ~doubtful.take(short.ending)
        ending = np.concatenate([short.ending[sure], long.ending])
        joined.append(Claim(short.run, ending, np.concatenate([short.position[sure], long.position])))
    return joined


def _short_way(
    runs: Sequence[Run], key: int, columns: Sequence[str], endings: pl.DataFrame, hashes: Hashes
) -> tuple[list[Claim], Mask]:
    """Claims by hash alone, and the endings whose claims may be wrong or missing."""
    order = np.argsort(hashes, kind="stable")
    unique, first, wanted = np.unique(hashes.take(order), return_index=True, return_counts=True)
    given = np.zeros(len(unique), dtype=np.int64)
    seen = np.zeros(len(unique), dtype=np.int64)
    wrong = np.zeros(len(unique), dtype=np.bool_)
    claims = []
    for run in runs:
        open_ = np.flatnonzero(given < wanted)
        low, high = run.indexes[key].span(unique.take(open_))
        seen[open_] += high - low
        low = _first_alive(run, key, low, high)
        group, entry, rank = _ranges(open_, low, np.minimum(wanted.take(open_) - given.take(open_), high - low))
        ending = order.take(first.take(group) + given.take(group) + rank)
        position = run.indexes[key].positions(entry)
        wrong[group[~_is_copy(run, position, columns, endings, ending)]] = True
        np.add.at(given, group, 1)
        claims.append(Claim(run, ending, position))
    doubtful = np.zeros(len(hashes), dtype=np.bool_)
    doubtful[order] = np.repeat(wrong | ((given < wanted) & (seen > given)), wanted)
    return claims, doubtful


def _long_way(
    runs: Sequence[Run],
    key: int,
    columns: Sequence[str],
    endings: pl.DataFrame,
    hashes: Hashes,
    numbers: Positions,
) -> list[Claim]:
    """Claims of the endings with these numbers, by comparing every entry that their hash suggests."""
    groups = (
        endings[pl.Series(numbers.astype(np.uint32))]
        .with_columns(pl.Series(_NUMBER, numbers))
        .group_by(columns, maintain_order=True)
        .agg(pl.col(_NUMBER))
    )
    wanted = groups[_NUMBER].list.len().to_numpy().astype(np.int64)
    members = groups[_NUMBER].explode().to_numpy()
    first = np.cumsum(wanted) - wanted
    chosen = members.take(first)
    given = np.zeros(len(wanted), dtype=np.int64)
    claims = []
    for run in runs:
        pairs = [*_copies(run, key, columns, endings, chosen, hashes)]
        group = np.concatenate([_NOWHERE, *(pair[0] for pair in pairs)])
        position = np.concatenate([_NOWHERE, *(pair[1] for pair in pairs)])
        rank = np.arange(len(group)) - np.searchsorted(group, group)
        take = given.take(group) + rank < wanted.take(group)
        group, position, rank = group[take], position[take], rank[take]
        claims.append(Claim(run, members.take(first.take(group) + given.take(group) + rank), position))
        np.add.at(given, group, 1)
    return claims


def _copies(
    run: Run, key: int, columns: Sequence[str], endings: pl.DataFrame, chosen: Positions, hashes: Hashes
) -> Iterator[tuple[Positions, Positions]]:
    """Pairs (index into `chosen`, position of a live copy), ordered by both."""
    for group, position in run.indexes[key].find(hashes.take(chosen)):
        copy = _is_copy(run, position, columns, endings, chosen.take(group))
        yield group[copy], position[copy]


def _is_copy(
    run: Run, position: Positions, columns: Sequence[str], endings: pl.DataFrame, ending: Positions
) -> Mask:
    """Whether each position holds a live row that is what the ending says."""
    theirs = run.frame.select(columns)[pl.Series(position.astype(np.uint32))]
    ours = endings.select(columns)[pl.Series(ending.astype(np.uint32))]
    return keys_equal(ours, theirs, columns, columns, null_equal=True) & ~run.ended.has(position)


def _first_alive(run: Run, key: int, low: Positions, high: Positions) -> Positions:
    """The first entry of each range that was not taken before, if those that were stand at the front."""
    if run.ended.count == 0:
        return low
    index, end = run.indexes[key], high
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = np.minimum((low + high) >> 1, run.height - 1)
        taken = run.ended.has(index.positions(middle)) & (low < high)
        low, high = np.where(taken, middle + 1, low), np.where(taken, high, middle)
    return np.minimum(low, end)


def _ranges(group: Positions, low: Positions, count: Positions) -> tuple[Positions, Positions, Positions]:
    """The ranges of `count` entries from `low` spelled out: group, entry and rank within the range of each."""
    which = np.repeat(np.arange(len(group)), count)
    rank = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return group.take(which), low.take(which) + rank, rank
