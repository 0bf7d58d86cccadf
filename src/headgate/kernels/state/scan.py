"""Scan: one plain list in order of birth, scanned from end to end whenever something may have died.

This is the DIRECT strategy that the calendar and the fifo are measured against (Windows, section 3.5): every
step costs as much as the state is large. For experiments only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from headgate.kernels.state.run import Run
from headgate.kernels.state.runs import Runs
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class Scan(Runs):
    """A single run, written anew by every insertion and every expiry."""

    def insert(self, frame: pl.DataFrame, clock: Clock) -> Self:
        if frame.is_empty():
            return self
        arrived = Run.of(clock.upto, frame, self.layout.keys)
        return self._rewritten((*self.runs, arrived), clock.upto, clock.after)

    def expire(self, upto: int) -> Self:
        return self._rewritten(self.runs, upto, upto) if self.runs else self

    def _rewritten(self, runs: tuple[Run, ...], built: int, upto: int) -> Self:
        merged = Run.merged(runs, built, upto)
        return replace(self, runs=() if merged is None else (merged,))
