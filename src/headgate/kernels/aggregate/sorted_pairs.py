"""Sorted pairs: searching and merging columns that are sorted by group, then by a second column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headgate.kernels.aggregate.coding import Codes, less, taken

Ints = npt.NDArray[np.int64]


def seek(groups: Ints, codes: Codes, group: Ints, code: Codes) -> Ints:
    """For each pair (group, code), how many of the sorted pairs (groups, codes) lie before it.

    A binary search for all at once: as many passes as the largest group has binary digits.
    """
    low, high = bounds(groups, group)
    last = max(0, groups.size - 1)
    width = int((high - low).max(initial=0))
    while width:
        middle = (low + high) >> 1
        before = (low < high) & less(taken(codes, np.minimum(middle, last)), code)
        low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        width >>= 1
    return low


def bounds(groups: Ints, group: Ints) -> tuple[Ints, Ints]:
    """For each group, where it begins and ends in a sorted column; cheap if equal ones stand side by side."""
    new = np.ones(group.size, dtype=np.bool_)
    new[1:] = group[1:] != group[:-1]
    heads = group[new]
    which = np.cumsum(new) - 1
    return tuple(np.searchsorted(groups, heads, side=side)[which] for side in ("left", "right"))


def ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """All positions from `low` to just before `high`, range by range, and the number of the range of each."""
    length = np.maximum(high - low, 0)
    owner = np.repeat(np.arange(low.size), length)
    offset = np.cumsum(length) - length
    return low[owner] + np.arange(owner.size) - offset[owner], owner
