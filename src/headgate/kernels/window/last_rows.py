"""LastRows: the last n rows of a stream, in a few chunks.

```
chunks, oldest first   [ . . . x x x ] [ x x x ] [ x x ]        x: the last n rows
push 4 rows            the first four x leave, oldest first
```

What has left at the front is not written down: it is what exceeds n.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from headgate.kernels.state.tiers import newest_to_merge


@dataclass(frozen=True, eq=False)
class LastRows:
    """Up to `length` rows of a stream in order of arrival."""

    schema: Mapping[str, pl.DataType]
    length: int
    pieces: tuple[tuple[int, pl.DataFrame], ...] = ()

    @property
    def rows(self) -> int:
        return sum(frame.height for _, frame in self.pieces)

    @property
    def nbytes(self) -> int:
        return sum(int(frame.estimated_size()) for _, frame in self.pieces)

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        return {str(built): frame for built, frame in self.pieces}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> LastRows:
        """The tail like this empty one whose chunks these are."""
        return replace(self, pieces=tuple((int(name), chunks[name]) for name in sorted(chunks, key=int)))

    def push(self, frame: pl.DataFrame, now: int) -> tuple[LastRows, pl.DataFrame]:
        """The tail after the rows of `frame`, and the rows of the old one that they push out, oldest first.

        `now` names the chunk that is built: at most one push has it.
        """
        if frame.is_empty():
            return self, pl.DataFrame(schema=self.schema)
        gone = max(0, self.rows - self.length)
        live = self.rows - gone
        leaving = min(live, max(0, live + frame.height - self.length))
        pushed = self._slice(gone, leaving)
        pieces = (*self._after(gone + leaving), (now, frame.tail(self.length).rechunk()))
        return replace(self, pieces=self._merged(pieces, now)), pushed

    def _slice(self, start: int, count: int) -> pl.DataFrame:
        found = [pl.DataFrame(schema=self.schema)]
        for _, frame in self.pieces:
            if count > 0 and start < frame.height:
                found.append(frame.slice(start, count))
                count -= found[-1].height
            start = max(0, start - frame.height)
        return pl.concat(found)

    def _after(self, start: int) -> tuple[tuple[int, pl.DataFrame], ...]:
        """The pieces without those that lie wholly before row `start`."""
        kept = []
        for piece in self.pieces:
            height = piece[1].height
            if start < height:
                kept.append(piece)
            start = max(0, start - height)
        return tuple(kept)

    def _merged(
        self, pieces: tuple[tuple[int, pl.DataFrame], ...], now: int
    ) -> tuple[tuple[int, pl.DataFrame], ...]:
        count = newest_to_merge([frame.height for _, frame in pieces])
        if count == 1:
            return pieces
        # Rows that have left at the front are not copied.
        together = pl.concat([frame for _, frame in pieces[-count:]]).tail(self.length).rechunk()
        return (*pieces[:-count], (now, together))
