"""HashIndex: where in a run of rows each key hash occurs.

An entry is a 64-bit number: the upper bits of the row's key hash, then the row's position in the run. One
sort of plain numbers orders both, merging needs no hash again, and equal keys stay in the order of their
rows.

```
hash of row 0   9f3a…
hash of row 1   9f3a…     entries, sorted   1c07…|2   9f3a…|0   9f3a…|1
hash of row 2   1c07…
```

Hashes spread evenly, so their leading bits say where an entry must be. A filter of single bits turns most
hashes away that are not there, and a directory says where the few entries with the same leading bits start: a
handful of reads however large the run is, where a binary search would miss the cache at every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from headgate.kernels.keys import Hashes

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
    def merged(parts: Sequence[HashIndex], moves: Sequence[Positions | int]) -> HashIndex:
        """The index of a run that the rows of several have gone to.

        Of each part, `moves` has the new position of every row, -1 if it is left out, or by how much all move on.
        """
        moved = [part._moved(move) for part, move in zip(parts, moves, strict=True)]
        height = sum(len(entries) for entries, _ in moved)
        width = max([_width(height), *(part.width for part in parts)])
        packed = [_packed(entries, positions.view(np.uint64), width) for entries, positions in moved]
        if len(packed) == 1 and isinstance(moves[0], int):
            return HashIndex(packed[0], width)
        # The stable sort finds the sorted parts and merges them: twice as fast as sorting anew.
        return HashIndex(np.sort(np.concatenate(packed), kind="stable"), width)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries, the filter and the directory, built or not."""
        return self.entries.nbytes + (1 << self._filter_bits) // 8 + 4 * (1 << self._directory_bits)

    def find(self, hashes: Hashes) -> Iterator[tuple[Positions, Positions]]:
        """Pairs (number of the probe, position of a row) wherever the hashes agree, in blocks.

        Only the upper bits are compared: the caller checks the keys themselves.
        """
        maybe = self._perhaps_there(hashes)
        if len(maybe) == 0:
            return
        hashes = hashes.take(maybe)
        first, past = self._buckets(hashes)
        counts = past - first
        upto = np.cumsum(counts)
        cuts = np.searchsorted(upto, np.arange(_BLOCK, upto[-1], _BLOCK)).tolist()
        for low, high in zip([0, *cuts], [*cuts, len(hashes)], strict=True):
            if low < high:
                probe, position = self._agreeing(hashes[low:high], first[low:high], counts[low:high])
                yield maybe[low:high].take(probe), position

    def span(self, hashes: Hashes) -> tuple[Positions, Positions]:
        """For each hash, the half-open range of entries that agree with it."""
        first = hashes & ~_low_bits(self.width)
        beyond = (hashes | _low_bits(self.width)) + np.uint64(1)
        past = self._first_at_least(beyond)
        past[beyond == 0] = len(self.entries)
        return self._first_at_least(first), past

    def positions(self, entry: Positions) -> Positions:
        """The rows that these entries stand for."""
        return (self.entries.take(entry) & _low_bits(self.width)).view(np.int64)

    def _moved(self, move: Positions | int) -> tuple[Hashes, Positions]:
        """The entries that stay, and the positions that their rows will have."""
        positions = (self.entries & _low_bits(self.width)).view(np.int64)
        if isinstance(move, int):
            return self.entries, positions + move
        moved = move.take(positions)
        stays = moved >= 0
        return self.entries[stays], moved[stays]

    def _perhaps_there(self, hashes: Hashes) -> Positions:
        """The numbers of the hashes that the filter does not turn away."""
        bit = hashes >> np.uint64(64 - self._filter_bits)
        byte = self._filter.take((bit >> np.uint64(3)).view(np.int64))
        return np.flatnonzero((byte >> (bit.astype(np.uint8) & np.uint8(7))) & np.uint8(1))

    def _buckets(self, hashes: Hashes) -> tuple[Positions, Positions]:
        """For each hash, the half-open range of entries with the same leading bits."""
        bucket = (hashes >> np.uint64(64 - self._directory_bits)).view(np.int64)
        starts = self._directory
        return starts.take(bucket).astype(np.int64), starts.take(bucket + 1).astype(np.int64)

    def _agreeing(self, hashes: Hashes, first: Positions, counts: Positions) -> tuple[Positions, Positions]:
        """Pairs (number of the hash, position) among `counts` entries from `first` for each hash."""
        probe = np.repeat(np.arange(len(hashes), dtype=np.int64), counts)
        start = first.copy()
        start[1:] -= np.cumsum(counts[:-1])
        entries = self.entries.take(start.take(probe) + np.arange(len(probe)))
        agree = np.flatnonzero(((entries ^ hashes.take(probe)) >> np.uint64(self.width)) == 0)
        return probe.take(agree), (entries.take(agree) & _low_bits(self.width)).view(np.int64)

    def _first_at_least(self, targets: Hashes) -> Positions:
        """All binary searches side by side, each within its own bucket."""
        low, high = self._buckets(targets)
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            before = (self.entries.take(middle, mode="clip") < targets) & (low < high)
            low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
        return low

    @property
    def _directory_bits(self) -> int:
        """Two to four entries for each bucket."""
        return max(1, len(self.entries).bit_length() - 2)

    @property
    def _filter_bits(self) -> int:
        """Four to eight bits for each entry."""
        return len(self.entries).bit_length() + 2

    @cached_property
    def _directory(self) -> npt.NDArray[np.uint32]:
        """For each value of the leading bits, the first entry that has it; one more at the end."""
        buckets = 1 << self._directory_bits
        leading = (self.entries >> np.uint64(64 - self._directory_bits)).view(np.int64)
        starts = np.zeros(buckets + 1, dtype=np.uint32)
        np.cumsum(np.bincount(leading, minlength=buckets), out=starts[1:])
        return starts

    @cached_property
    def _filter(self) -> npt.NDArray[np.uint8]:
        """One bit for each value of the leading bits: whether any entry has it."""
        there = np.zeros(1 << self._filter_bits, dtype=np.bool_)
        there[(self.entries >> np.uint64(64 - self._filter_bits)).view(np.int64)] = True
        return np.packbits(there, bitorder="little")


def _width(height: int) -> int:
    return max(1, (height - 1).bit_length())


def _low_bits(width: int) -> np.uint64:
    return np.uint64((1 << width) - 1)


def _packed(hashes: Hashes, positions: Hashes, width: int) -> Hashes:
    return (hashes & ~_low_bits(width)) | positions
