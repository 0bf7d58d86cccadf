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

from headgate.kernels.agenda import AT, COUNT, Agenda
from headgate.kernels.emit import Emission, EmitOverTime, losses
from headgate.kernels.netchange import NetChange, copies
from headgate.kernels.state.store import Instants
from headgate.kernels.ticks import next_tick
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import BEGINNING, Clock, tick_at_or_after

# Rows written out together: bounds the memory of many ticks over a large answer.
_BLOCK = 1 << 20


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

    def _initial(self) -> dict[str, Agenda]:
        return {"contents": self._net.initial(), "died": Agenda(self.schema)}

    def _emit(self, parts: Mapping[str, Agenda], frame: pl.DataFrame, clock: Clock, start: int) -> Emission:
        before, died = parts["contents"], parts["died"]
        blocks = [self._nothing()]
        if self.slide is None:
            contents, changes = self._net.advance(before, frame, clock)
            instants = changes[AT].unique().sort().to_numpy()
        else:
            first = tick_at_or_after(max(clock.after + 1, start), self.slide)
            instants = np.arange(first, clock.upto + 1, self.slide, dtype=np.int64)
            if self.restoring:
                contents, changes = self._net.advance(before, frame, clock)
                died, missed = died.advance(self._missed(changes), clock)
                blocks.append(missed)
            else:
                contents, _ = self._net.follow(before, frame, clock)
        if len(instants):
            blocks.extend(self._answers(before, frame, instants, clock))
        return {"contents": contents, "died": died}, pl.concat(blocks)

    def _missed(self, changes: pl.DataFrame) -> pl.DataFrame:
        """What died, to be reported at the tick after it.

        A row that dies right after a tick was last alive at that tick, and was reported there.
        """
        assert self.slide is not None
        lost = copies(losses(changes)).filter((pl.col(AT) - 1) % self.slide != 0)
        return lost.with_columns(next_tick(pl.col(AT), self.slide).alias(AT))

    def _answers(
        self, before: Agenda, frame: pl.DataFrame, instants: Instants, clock: Clock
    ) -> Iterator[pl.DataFrame]:
        """The contents at each instant: every row at all instants within its lifetime."""
        sign = pl.col(SIGN).cast(pl.Int64).alias(COUNT)
        old = [
            piece.select(*self.schema, pl.lit(BEGINNING).alias(BORN), pl.col(AT).alias(DIES), COUNT)
            for piece in before.waiting(clock.after)
        ]
        rows = pl.concat([*old, frame.select(*self.schema, BORN, DIES, sign)])
        first = np.searchsorted(instants, rows[BORN].to_numpy(), side="left")
        last = np.searchsorted(instants, rows[DIES].to_numpy(), side="left")
        gains = np.bincount(first, minlength=len(instants) + 1) - np.bincount(
            last, minlength=len(instants) + 1
        )
        alive = np.cumsum(gains)[:-1]
        for low, high in _blocks(alive):
            here = np.flatnonzero((first < high) & (last > low))
            start, stop = np.maximum(first[here], low), np.minimum(last[here], high)
            times = stop - start
            row = np.repeat(here, times)
            place = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times) + np.repeat(start, times)
            block = rows[row].select(*self.schema, pl.Series(AT, instants[place]), COUNT)
            yield copies(self._summed(block))

    def _summed(self, block: pl.DataFrame) -> pl.DataFrame:
        if block.filter(pl.col(COUNT) < 0).is_empty():
            return block
        summed = block.group_by(*self.schema, AT, maintain_order=True).agg(pl.col(COUNT).sum())
        return summed.filter(pl.col(COUNT) > 0)


def _blocks(alive: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[tuple[int, int]]:
    """Ranges of instants that have up to a block of rows together, and at least one instant."""
    total = np.cumsum(alive)
    low = 0
    while low < len(alive):
        written = total[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(total, written + _BLOCK, side="right")))
        yield low, high
        low = high
