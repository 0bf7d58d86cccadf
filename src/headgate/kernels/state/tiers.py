"""Tiers: when to merge the newest runs, so that there are few runs and each row is rarely copied.

Runs stand in order of age. Four of about one size become one of the next size, so n rows that came in batches
of b lie in about 1.5 log₄(n/b) runs and each row is copied about log₄(n/b) times.

```
160 40 40 10 10 10    and 10 more:   160 40 40 40
160 40 40 40 10 10 10 and 10 more:   160 160
```
"""

from __future__ import annotations

from collections.abc import Sequence

_FAN = 4


def newest_to_merge(sizes: Sequence[int]) -> int:
    """How many of the newest runs should become one (1: none), given all sizes from old to new."""
    count, total = 1, sizes[-1]
    while joining := _joining(sizes[: len(sizes) - count], _tier(total)):
        total += sum(sizes[len(sizes) - count - joining : len(sizes) - count])
        count += joining
    return count


def _joining(older: Sequence[int], tier: int) -> int:
    """How many of the next older runs join a run of this tier.

    Smaller ones do at once, so that sizes fall from old to new; its peers do when there are enough of them.
    """
    peers = smaller = 0
    for seen, size in enumerate(reversed(older), start=1):
        if _tier(size) > tier:
            break
        peers += _tier(size) == tier
        if peers == 0:
            smaller = seen
        if peers + 1 == _FAN:
            return seen
    return smaller


def _tier(size: int) -> int:
    """The power of four that a size has reached."""
    return (size.bit_length() - 1) // 2
