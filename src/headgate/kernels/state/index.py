"""HashIndex: where in a run of rows each key hash occurs, as one sorted array and a directory over it.

An entry is a 64-bit number: the upper bits of the row's key hash, then the row's position in the run. One sort
of plain numbers orders both, merging needs no hash again, and equal keys stay in the order of their rows.

```
hash of row 0   9f3a…                entries   1c07…|2   9f3a…|0   9f3a…|1
hash of row 1   9f3a…        →       directory, by the leading bits: where each bucket of entries starts
hash of row 2   1c07…
```

Hashes spread evenly, so a directory with about as many buckets as entries finds a key with two reads, however
large the run is; a binary search would miss the cache at every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from headgate.kernels.keys import Hashes, Mask

Positions = npt.NDArray[np.int64]

# Suspects looked at together: bounds the memory of a probe that finds very many of them.
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class HashIndex:
    """The positions of all rows of a run, ordered by the hash of one key."""

    entries: Hashes
    width: int
    """How many low bits of an entry hold the position."""

    @staticmethod
    def of(hashes: Hashes) -> HashIndex:
        """The index of a run whose rows have these key hashes."""
        width = _width(len(hashes))
        return HashIndex(np.sort(_packed(hashes, np.arange(len(hashes), dtype=np.uint64), width)), width)

    @staticmethod
    def merged(parts: Sequence[HashIndex], keeps: Sequence[Mask | None]) -> HashIndex:
        """The index of the runs laid end to end, without the rows that their `keeps` leave out (None: all stay)."""
        kept = [part._kept(keep) for part, keep in zip(parts, keeps, strict=True)]
        height = sum(len(entries) for entries, _ in kept)
        width = max([_width(height), *(part.width for part in parts)])
        moved = []
        offset = np.uint64(0)
        for entries, positions in kept:
            moved.append(_packed(entries, positions + offset, width))
            offset += np.uint64(len(entries))
        # The stable sort finds the sorted parts and merges them, which is twice as fast as sorting anew.
        return HashIndex(moved[0] if len(moved) == 1 else np.sort(np.concatenate(moved), kind="stable"), width)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries and of the directory, built or not."""
        return self.entries.nbytes + 4 * ((1 << self._directory_bits) + 1)

    def find(self, hashes: Hashes) -> Iterator[tuple[Positions, Positions]]:
        """Pairs (number of the probe, position of a row) wherever the hashes agree, in blocks.

        Only the upper bits are compared: the caller checks the keys themselves.
        """
        starts = self._directory
        bucket = (hashes >> self._shift).view(np.int64)
        first = starts.take(bucket).astype(np.int64)
        counts = starts.take(bucket + 1) - first
        upto = np.cumsum(counts)
        total = int(upto[-1]) if len(upto) else 0
        cuts = np.searchsorted(upto, np.arange(_BLOCK, total, _BLOCK)).tolist()
        for low, high in zip([0, *cuts], [*cuts, len(hashes)], strict=True):
            if low < high:
                yield self._agreeing(hashes[low:high], first[low:high], counts[low:high], low)

    def span(self, hashes: Hashes) -> tuple[Positions, Positions]:
        """For each hash, the half-open range of entries that agree with it."""
        low = _low_bits(self.width)
        return self._first_at_least(hashes & ~low), self._first_at_least(hashes | low, past_equal=True)

    def positions(self, entry: Positions) -> Positions:
        """The rows that these entries stand for."""
        return (self.entries.take(entry) & _low_bits(self.width)).view(np.int64)

    def _kept(self, keep: Mask | None) -> tuple[Hashes, Hashes]:
        positions = self.entries & _low_bits(self.width)
        if keep is None:
            return self.entries, positions
        stays = keep.take(positions.view(np.int64))
        renumbered = np.cumsum(keep, dtype=np.uint64) - np.uint64(1)
        return self.entries[stays], renumbered.take(positions[stays].view(np.int64))

    def _agreeing(
        self, hashes: Hashes, first: Positions, counts: Positions, offset: int
    ) -> tuple[Positions, Positions]:
        probe = np.repeat(np.arange(len(hashes), dtype=np.int64), counts)
        # Entry numbers count up within each probe's bucket.
        start = first.copy()
        start[1:] -= np.cumsum(counts[:-1])
        entries = self.entries.take(start.take(probe) + np.arange(len(probe)))
        agree = np.flatnonzero(((entries ^ hashes.take(probe)) >> np.uint64(self.width)) == 0)
        positions = (entries.take(agree) & _low_bits(self.width)).view(np.int64)
        return probe.take(agree) + offset, positions

    def _first_at_least(self, targets: Hashes, *, past_equal: bool = False) -> Positions:
        """All binary searches side by side, each within its own bucket."""
        starts = self._directory
        bucket = (targets >> self._shift).view(np.int64)
        low, high = starts.take(bucket).astype(np.int64), starts.take(bucket + 1).astype(np.int64)
        widest = int((high - low).max(initial=0))
        for _ in range(widest.bit_length()):
            middle = (low + high) >> 1
            entry = self.entries.take(middle, mode="clip")
            before = ((entry <= targets) if past_equal else (entry < targets)) & (low < high)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        return low

    @property
    def _directory_bits(self) -> int:
        return max(1, len(self.entries).bit_length() - 1)

    @property
    def _shift(self) -> np.uint64:
        return np.uint64(64 - self._directory_bits)

    @cached_property
    def _directory(self) -> npt.NDArray[np.uint32]:
        """For each value of the leading bits, the first entry that has it; one more at the end."""
        buckets = 1 << self._directory_bits
        sizes = np.bincount((self.entries >> self._shift).view(np.int64), minlength=buckets)
        starts = np.zeros(buckets + 1, dtype=np.uint32)
        np.cumsum(sizes, out=starts[1:])
        return starts


def _width(height: int) -> int:
    return max(1, (height - 1).bit_length())


def _low_bits(width: int) -> np.uint64:
    return np.uint64((1 << width) - 1)


def _packed(hashes: Hashes, positions: Hashes, width: int) -> Hashes:
    return (hashes & ~_low_bits(width)) | positions
