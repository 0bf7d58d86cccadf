"""Removed: which rows of a run have been taken out, as bits to ask and as a log to write down.

Bits answer quickly; copying them costs an eighth of a byte per row. What a checkpoint writes are the log's
pieces, so that it pays for the new removals and not for the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.keys import Mask
from headgate.kernels.state.index import Positions
from headgate.kernels.state.tiers import newest_to_merge

POSITION = "position"


@dataclass(frozen=True, eq=False)
class Piece:
    """Some positions of the log, up to the end of a clock step."""

    step: int
    positions: npt.NDArray[np.uint32]

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The positions as a chunk."""
        return pl.DataFrame({POSITION: self.positions})


@dataclass(frozen=True, eq=False)
class Removed:
    """A set of positions in a run of `height` rows."""

    height: int
    bits: npt.NDArray[np.uint8]
    log: tuple[Piece, ...] = ()

    @staticmethod
    def none(height: int) -> Removed:
        return Removed(height, np.zeros((height + 7) // 8, dtype=np.uint8))

    @property
    def count(self) -> int:
        return sum(len(piece.positions) for piece in self.log)

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + 4 * self.count

    def has(self, positions: Positions) -> Mask:
        """Which of these positions are in the set."""
        return ((self.bits.take(positions >> 3) >> (positions & 7).astype(np.uint8)) & 1).astype(np.bool_)

    def mask(self) -> Mask:
        """Membership of every position."""
        return np.unpackbits(self.bits, count=self.height, bitorder="little").view(np.bool_)

    def adding(self, positions: Positions, step: int) -> Removed:
        """The set with these positions too, which were not in it; the log gains a piece of this step."""
        if len(positions) == 0:
            return self
        sizes = [*(len(piece.positions) for piece in self.log), len(positions)]
        keep = len(sizes) - newest_to_merge(sizes)
        merged = [*(piece.positions for piece in self.log[keep:]), positions.astype(np.uint32)]
        return replace(
            self, bits=self._bits_with(positions), log=(*self.log[:keep], Piece(step, np.concatenate(merged)))
        )

    def remembering(self, log: tuple[Piece, ...]) -> Removed:
        """The set that a log stands for."""
        positions = np.concatenate([np.empty(0, np.int64), *(piece.positions for piece in log)])
        ordered = sorted(log, key=lambda piece: piece.step)
        return replace(self, bits=self._bits_with(positions), log=tuple(ordered))

    def _bits_with(self, positions: Positions) -> npt.NDArray[np.uint8]:
        bits = self.bits.copy()
        np.bitwise_or.at(bits, positions >> 3, np.left_shift(1, positions & 7).astype(np.uint8))
        return bits
