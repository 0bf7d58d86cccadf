"""Random columns: arrival times, skewed choices, words; all drawn for a whole block at once."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

ROWS_PER_BLOCK = 1 << 18


def generator(seed: int, purpose: str, block: int) -> np.random.Generator:
    """Random numbers for one purpose in one block, independent of those for any other.

    Two streams that must agree on something, such as an item's price, draw it for the same purpose.
    """
    key = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(purpose.encode()), block))
    return np.random.Generator(np.random.SFC64(key))


def blocks(count: int, per_block: int) -> Iterator[tuple[int, int, int]]:
    """Cuts `count` things into (block, first thing, number of things)."""
    for block, first in enumerate(range(0, count, per_block)):
        yield block, first, min(per_block, count - first)


def arrivals(rng: np.random.Generator, count: int, start: int, end: int) -> Ints:
    """The instants of `count` independent arrivals in [start, end), in order.

    The sorted places of n uniform points are distributed as the partial sums of n + 1 exponential gaps over
    their total, so nothing needs sorting.
    """
    sums = np.cumsum(rng.standard_exponential(count + 1))
    # The last place may round up to 1.
    instants: Ints = start + (sums[:-1] * ((end - start) / sums[-1])).astype(np.int64)
    return np.minimum(instants, max(start, end - 1))


def zipf(count: int, skew: float) -> Floats:
    """The weights of `count` ranks under Zipf's law, 1 / rank ** skew; a skew of 0 makes them equal."""
    return np.asarray(np.arange(1, count + 1, dtype=np.float64) ** -skew)


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice among 0, 1, … with probabilities proportional to `weights`."""

    weights: Floats

    def __post_init__(self) -> None:
        if self.weights.size == 0 or (self.weights < 0).any() or not 0 < self.weights.sum() < np.inf:
            raise ValueError("weights are finite, none is negative and at least one is positive")

    @cached_property
    def _upper(self) -> Floats:
        """Cumulated probabilities: choice i owns [upper[i - 1], upper[i])."""
        upper = np.cumsum(self.weights) / self.weights.sum()
        # Rounding must not leave a gap below 1 behind the last choice that can be made.
        upper[np.flatnonzero(self.weights)[-1] :] = 1.0
        return np.asarray(upper)

    @cached_property
    def _guide(self) -> Ints:
        """For each of equal slices of [0, 1), the choice that owns its left end."""
        slices = 4 * self.weights.size
        return np.searchsorted(self._upper, np.arange(slices) / slices, side="right").astype(np.int64)

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """`count` independent choices.

        A binary search for each draw is slow. The guide starts the search a few steps before its end at most,
        and most draws need no step.
        """
        uniform = rng.random(count)
        chosen = self._guide[(uniform * self._guide.size).astype(np.int64)]
        behind = np.flatnonzero(self._upper[chosen] <= uniform)
        while behind.size:
            chosen[behind] += 1
            behind = behind[self._upper[chosen[behind]] <= uniform[behind]]
        return chosen


def words(vocabulary: pa.Array, index: Ints) -> pa.Array:
    """The words at the given places of a vocabulary, as a plain string column."""
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), vocabulary).cast(pa.string())


def addresses(prefix: int, count: int) -> pa.Array:
    """`count` different IP addresses of the network prefix.0.0.0/8, without visible order."""
    # An odd factor permutes the numbers below a power of two.
    numbers = np.arange(1, count + 1) * 7_368_787 % (1 << 24)
    return pa.array([f"{prefix}.{n >> 16}.{n >> 8 & 255}.{n & 255}" for n in numbers.tolist()], pa.string())
