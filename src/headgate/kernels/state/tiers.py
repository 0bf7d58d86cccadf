"""Tiers: when to merge the newest runs, so that there are few runs and each row is rarely copied.

Runs stand in order of age. Four of about one size become one of the next size, so n rows that came in batches of
b lie in about 1.5 log₄(n/b) runs and each row is copied about log₄(n/b) times.

```
160 40 40 10 10 10    and 10 more:   160 40 40 40
160 40 40 40 10 10 10 and 10 more:   160 160
```
"""

from __future__ import annotations

from collections.abc import Sequence

_FAN = 4


def newest_to_merge(sizes: Sequence[int], limit: int | None = None) -> int:
    """How many of the newest runs should become one (1: none), given all sizes from the oldest to the newest.

    No merge makes a run of more than `limit` rows.
    """
    count, total = 1, sizes[-1]
    while True:
        older = sizes[: len(sizes) - count]
        joining = _joining(older, _tier(total))
        gained = sum(older[len(older) - joining :])
        if joining == 0 or (limit is not None and total + gained > limit):
            return count
        count, total = count + joining, total + gained


def _joining(older: Sequence[int], tier: int) -> int:
    """How many of the next older runs join a run of this tier: the smaller ones, and its peers once they suffice."""
    seen = peers = smaller = 0
    for size in reversed(older):
        if _tier(size) > tier:
            break
        seen += 1
        peers += _tier(size) == tier
        if peers == 0:
            smaller = seen
        if peers + 1 == _FAN:
            return seen
    return smaller


def _tier(size: int) -> int:
    """The power of four that a size has reached."""
    return (size.bit_length() - 1) // 2
