"""RSTREAM: the whole answer, at each tick or at each instant at which it changes.

```
contents    a  [1 ========= 8)
            b        [4 ==========...
SLIDE 5     at 5: a, b    at 10: b
no SLIDE    at 1: a       at 4: a, b      at 8: b
RESTORE 5   at 5: a, b    at 10: a, b     also what died since the tick before
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.emit.emit import Emission, EmitOverTime, losses
from headgate.kernels.emit.instants import Moments, Numbered, Ticks
from headgate.kernels.emit.lazy_rows import LazyRows
from headgate.kernels.emit.net_change import NetChange, copies
from headgate.kernels.emit.presence_spans import PresenceSpans, presence_spans
from headgate.kernels.state.store import rows_at
from headgate.kernels.state.timer_queue import AT, COUNT, TimerQueue, by_instant
from headgate.kernels.window.ticks import next_tick
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import Clock

BLOCK = 1 << 20
"""Rows written out together: bounds the memory of many ticks over a large answer."""


@dataclass(frozen=True)
class Rstream(EmitOverTime):
    """RSTREAM: what is there, at the ticks of `slide` or, without one, whenever it changes.

    With `restore`, a tick also reports what was alive at any instant since the tick before it.
    """

    slide: int | None = None
    restoring: bool = False

    def __post_init__(self) -> None:
        if self.restoring and self.slide is None:
            raise ValueError("RSTREAM RESTORE needs a SLIDE: without ticks nothing is ever missed")

    @cached_property
    def _net(self) -> NetChange:
        return NetChange(self.schema, immortal=True)

    def _initial(self) -> dict[str, TimerQueue]:
        return {"contents": self._net.initial(), "died": TimerQueue(self.schema)}

    def _emit(
        self, parts: Mapping[str, TimerQueue], frame: pl.DataFrame, clock: Clock, start: int
    ) -> Emission:
        before, died = parts["contents"], parts["died"]
        missed = self._nothing()
        instants: Numbered
        if self.slide is None:
            contents, changes = self._net.advance(before, frame, clock)
            instants = Moments(changes[AT].unique().sort().to_numpy())
        else:
            instants = Ticks(max(clock.after, start - 1), clock.upto, self.slide)
            if self.restoring:
                contents, changes = self._net.advance(before, frame, clock)
                died, missed = died.advance(self._missed(changes), clock)
            else:
                contents, _ = self._net.follow(before, frame, clock)
        after = {"contents": contents, "died": died}
        if not instants.count:
            return after, LazyRows.of(missed)
        rows = self._signed(before, frame, clock)
        found = presence_spans(
            rows,
            list(self.schema),
            instants.since(rows[BORN].to_numpy()),
            instants.since(rows[DIES].to_numpy()),
            rows[COUNT].to_numpy(),
        )
        return after, LazyRows(found.height + missed.height, self._answers(rows, found, instants, missed))

    def _missed(self, changes: pl.DataFrame) -> pl.DataFrame:
        """What died, to be reported at the tick after it.

        A row that dies right after a tick was last alive at that tick, and was reported there.
        """
        assert self.slide is not None
        lost = copies(losses(changes)).filter((pl.col(AT) - 1) % self.slide != 0)
        return lost.with_columns(next_tick(pl.col(AT), self.slide).alias(AT))

    def _signed(self, before: TimerQueue, frame: pl.DataFrame, clock: Clock) -> pl.DataFrame:
        """What was there before the step and what the step brings, with lifetimes and signed counts."""
        sign = pl.col(SIGN).cast(pl.Int64).alias(COUNT)
        before_it = pl.lit(clock.after, dtype=pl.Int64).alias(BORN)
        old = [
            piece.select(*self.schema, before_it, pl.col(AT).alias(DIES), COUNT)
            for piece in before.waiting(clock.after)
        ]
        return pl.concat([*old, frame.select(*self.schema, BORN, DIES, sign)])

    def _answers(
        self, rows: pl.DataFrame, found: PresenceSpans, instants: Numbered, missed: pl.DataFrame
    ) -> Iterator[pl.DataFrame]:
        """The contents at each instant, block by block, and what a tick reports besides."""
        missed = by_instant(missed)
        reported = instants.since(missed[AT].to_numpy())
        payload = rows.select(*self.schema)
        for low, high in found.ranges(instants.count, BLOCK):
            row, number = found.between(low, high)
            said = rows_at(payload, row).with_columns(pl.Series(AT, instants.at(number)))
            first, last = np.searchsorted(reported, (low, high))
            yield pl.concat([said, missed.slice(first, last - first)])
