"""Reorder buffer: rows that have arrived and that the clock has not passed yet, in pieces, in order of arrival.

```
clock           ──────────┤
piece 1   x xx x x         ready, whole
piece 2        x  x x|x x  cut in two
piece 3               x xx waits, untouched
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from headgate.model.batch import BORN


@dataclass(frozen=True, eq=False)
class _Piece:
    frame: pl.DataFrame
    first: int
    last: int
    parts: dict[int, tuple[pl.DataFrame, _Piece]] = field(default_factory=dict, repr=False)
    """How it was cut last: the buffers of queries that run together share pieces, and cut them alike."""

    @staticmethod
    def of(frame: pl.DataFrame) -> _Piece:
        low, high = frame[BORN].min(), frame[BORN].max()
        assert isinstance(low, int)
        assert isinstance(high, int)
        return _Piece(frame, low, high)

    def cut(self, upto: int) -> tuple[pl.DataFrame, _Piece]:
        """The rows up to an instant within the piece, and the others."""
        if upto not in self.parts:
            self.parts.clear()
            within = pl.col(BORN) <= upto
            self.parts[upto] = (self.frame.filter(within), _Piece.of(self.frame.filter(~within)))
        return self.parts[upto]


@dataclass(frozen=True, eq=False)
class ReorderBuffer:
    """An immutable buffer of rows with `_born`, by number of arrival and how often the piece was cut."""

    pieces: Mapping[tuple[int, int], _Piece]
    next: int = 0

    @staticmethod
    def empty() -> ReorderBuffer:
        return ReorderBuffer({})

    @property
    def rows(self) -> int:
        return sum(piece.frame.height for piece in self.pieces.values())

    @property
    def nbytes(self) -> int:
        return sum(int(piece.frame.estimated_size()) for piece in self.pieces.values())

    def chunks(self) -> Mapping[str, pl.DataFrame]:
        """The pieces by name; a name is used once."""
        return {f"{number}.{cuts}": piece.frame for (number, cuts), piece in self.pieces.items()}

    @staticmethod
    def restored(chunks: Mapping[str, pl.DataFrame], following: int) -> ReorderBuffer:
        """The buffer whose chunks these are; `following` was its next number."""
        pieces: dict[tuple[int, int], _Piece] = {}
        for name, frame in chunks.items():
            number, _, cuts = name.partition(".")
            pieces[int(number), int(cuts)] = _Piece.of(frame)
        return ReorderBuffer(dict(sorted(pieces.items(), key=lambda each: each[0])), following)

    def adding(self, frame: pl.DataFrame) -> ReorderBuffer:
        """The buffer with rows that have arrived."""
        if frame.is_empty():
            return self
        return ReorderBuffer({**self.pieces, (self.next, 0): _Piece.of(frame)}, self.next + 1)

    def ready(self, upto: int) -> int:
        """How many rows wait up to an instant."""
        return sum(
            piece.frame.height if piece.last <= upto else int((piece.frame[BORN] <= upto).sum())
            for piece in self.pieces.values()
            if piece.first <= upto
        )

    def take(self, upto: int) -> tuple[ReorderBuffer, pl.DataFrame | None]:
        """The buffer without the rows up to an instant, and those, sorted by time and then by arrival."""
        ready: list[pl.DataFrame] = []
        kept: dict[tuple[int, int], _Piece] = {}
        for (number, cuts), piece in self.pieces.items():
            if piece.first > upto:
                kept[number, cuts] = piece
            elif piece.last <= upto:
                ready.append(piece.frame)
            else:
                due, kept[number, cuts + 1] = piece.cut(upto)
                ready.append(due)
        if not ready:
            return self, None
        frame = ready[0] if len(ready) == 1 else pl.concat(ready)
        if not frame[BORN].is_sorted():
            frame = frame.sort(BORN, maintain_order=True)
        return ReorderBuffer(kept, self.next), frame
