"""Ended: which rows of a run have been taken back, as bits to ask and as a log to write down.

Bits answer quickly; copying them costs an eighth of a byte per row. What a checkpoint writes are the log's
pieces, so that it pays for the new endings and not for the run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from headgate.kernels.keys import Mask
from headgate.kernels.state.index import Positions
from headgate.kernels.state.tiers import newest_to_merge


@dataclass(frozen=True, eq=False)
class Piece:
    """Some positions of the log, up to the end of a clock step."""

    step: int
    positions: npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Ended:
    """A set of positions in a run of `height` rows."""

    height: int
    bits: npt.NDArray[np.uint8]
    log: tuple[Piece, ...] = ()

    @staticmethod
    def none(height: int) -> Ended:
        return Ended(height, np.zeros((height + 7) // 8, dtype=np.uint8))

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

    def adding(self, positions: Positions, step: int) -> Ended:
        """The set with these positions too, which were not in it; the log gains a piece of this step."""
        if len(positions) == 0:
            return self
        bits = self.bits.copy()
        np.bitwise_or.at(bits, positions >> 3, np.left_shift(1, positions & 7).astype(np.uint8))
        sizes = [*(len(piece.positions) for piece in self.log), len(positions)]
        keep = len(sizes) - newest_to_merge(sizes)
        merged = [*(piece.positions for piece in self.log[keep:]), positions.astype(np.uint32)]
        return replace(self, bits=bits, log=(*self.log[:keep], Piece(step, np.concatenate(merged))))

    def remembering(self, pieces: tuple[Piece, ...]) -> Ended:
        """The set that a log stands for."""
        bits = self.bits.copy()
        for piece in pieces:
            at = piece.positions
            np.bitwise_or.at(bits, at >> 3, np.left_shift(1, at & 7).astype(np.uint8))
        return replace(self, bits=bits, log=tuple(sorted(pieces, key=lambda piece: piece.step)))
