"""LazyRows: output rows that are made when they are read, so that a long answer is never in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class LazyRows:
    """How many rows there are, and the rows, one frame after the other; they can be taken once."""

    height: int
    frames: Iterator[pl.DataFrame]

    @staticmethod
    def of(frame: pl.DataFrame) -> LazyRows:
        """The rows of one frame."""
        return LazyRows(frame.height, iter((frame,)))

    def map(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> LazyRows:
        """The same rows, each frame changed in a way that leaves their number alone."""
        return LazyRows(self.height, map(change, self.frames))

    def whole(self) -> pl.DataFrame:
        """All rows in one frame."""
        return pl.concat(self.frames)
