"""Scan: one plain list in order of birth, scanned from end to end whenever something may have died.

This is the DIRECT strategy that the calendar and the fifo are measured against (Windows, section 3.5): every
step costs as much as the state is large. For experiments only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import polars as pl

from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class Scan(LifetimeRuns):
    """A single run, written anew by every insertion and every expiry."""

    def insert(self, frame: pl.DataFrame, clock: Clock) -> Self:
        if frame.is_empty():
            return self
        runs = (*self.runs, self._written(frame, clock.upto))
        return replace(self, runs=self._merged(runs, clock.upto, clock.after))

    def expire(self, upto: int) -> Self:
        return replace(self, runs=self._merged(self.runs, upto, upto)) if self.runs else self
