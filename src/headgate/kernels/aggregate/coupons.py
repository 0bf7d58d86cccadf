"""Coupons: about how many different values there are, from how many cells of a sketch their hashes fall into.

```
hash of a value    … 0 1 0 0 0 | 0 1 1 0 1 0 … 1 1 1      the last twelve bits choose one of 4096 rows of cells,
                         └─r─┘         row                the zeros before them the r-th cell of it, with chance 2**-r
```

A cell that has been hit says that some value was there; how many different values it takes to hit that many cells is
known, and is the answer. It depends on the values alone, not on their order, nor on how they were split and merged;
and because a bag counts how often each cell is hit, values that leave are taken back. There are 4096 · 53 cells,
of which n values hit about 4096 · log2(n / 4096): the state is bounded whatever comes. The relative standard error is
0.69 / sqrt(4096), which is 1.1 %; few values are counted exactly, unless two fall into one cell.

Probabilistic counting with the estimator that takes the number of coupons alone (K. J. Lang, Back to the future: an
even more nearly optimal cardinality estimation algorithm, 2017).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

ROW_BITS = 12
_ROWS = 1 << ROW_BITS
_CELLS = 64 - ROW_BITS + 1
_SEED = 0x9E3779B97F4A7C15
_HALVINGS = 100
_MOST = 2.0**62


def coupons(codes: pl.Series) -> pl.Series:
    """The cell of each code; of NULL, any."""
    if codes.dtype == pl.Int64:
        words = codes.fill_null(0).to_numpy().view(np.uint64)
    else:
        words = codes.hash(_SEED).to_numpy()
    mixed = _mixed(words)
    row = mixed & np.uint64(_ROWS - 1)
    rest = mixed >> np.uint64(ROW_BITS)
    lowest = rest & (~rest + np.uint64(1))
    # The number of a power of two's digits is its place; nothing but zeros counts as one place more.
    place = np.where(rest == 0, _CELLS, np.frexp(lowest.astype(np.float64))[1])
    return pl.Series(row.astype(np.int64) * 64 + place.astype(np.int64))


def estimate(hit: Ints) -> Ints:
    """About how many different values it takes to hit so many cells."""
    different, which = np.unique(hit, return_inverse=True)
    low, high = np.zeros(different.size), np.full(different.size, _MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        above = _expected(middle) > different
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(np.rint(high).astype(np.int64)[which])


def _expected(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """How many cells so many values hit on average."""
    place = np.arange(1, _CELLS + 1)
    chance = np.exp2(-np.minimum(place, _CELLS - 1).astype(np.float64)) / _ROWS
    return np.asarray((-np.expm1(values[:, None] * np.log1p(-chance))).sum(axis=1) * _ROWS)


def _mixed(words: Words) -> Words:
    """The words with every bit depending on every other (the finisher of splitmix64)."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(_SEED)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
