"""Extremes: the least value that covers each point, for all groups and instants of a step at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

NONE = np.iinfo(np.int64).max
"""The key at points that nothing covers. A real key may be as large: ask elsewhere whether there is one."""


def least_cover(low: Ints, high: Ints, key: Ints, size: int) -> Ints:
    """For each point below `size`, the least key of the spans [low, high), none of them empty, that cover it.

    A sparse table filled backwards. A span is covered by two of the same power of two in length; from the
    longest power down, a span of 2**k hands its key to its two halves. As many passes as the longest span has
    binary digits.

    ```
    [low                 high)
    [------- 2**k -------)             level k     key goes to both
         [------- 2**k -------)
    [- 2**(k-1) -)[- 2**(k-1) -)       level k-1   and from each to its halves
    ```
    """
    least = np.full(size, NONE, dtype=np.int64)
    if not low.size:
        return least
    level = np.frexp((high - low).astype(np.float64))[1] - 1
    order = np.argsort(level, kind="stable")
    cuts = np.searchsorted(level[order], np.arange(int(level.max()) + 2))
    for k in reversed(range(int(level.max()) + 1)):
        here = order[cuts[k] : cuts[k + 1]]
        np.minimum.at(least, low[here], key[here])
        np.minimum.at(least, high[here] - (1 << k), key[here])
        if k:
            half = 1 << (k - 1)
            # The keys of this level are read before they are overwritten by those of the next one.
            least[half:] = np.minimum(least[half:], least[: size - half])
    return least
