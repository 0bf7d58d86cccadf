"""Arrivals: what one clock step brings to one input of a join, and the store before and after it.

An ending is matched with the row that it takes back. That row lives on through this step as a *ghost*, whose
lifetime is the one it turned out to have; the stores no longer contain it.

```
time            after                 upto
old row     ────[=====================|=====  announced for ever
ending          |         [-----------|-----
ghost       ────[=========)           |
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from headgate.kernels.keys import has_null, keys_equal
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.lifetime_runs import LifetimeRuns
from headgate.kernels.state.store import ENDS, Layout, Store, rows_where
from headgate.model.batch import BORN, DIES, SIGN
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class Arrivals:
    """One input in one step. Frames have the payload, `_born`, `_dies` and `_ends`; `_born` < `_ends`."""

    old: Store
    """The rows born before the step, without those that ended in it."""
    new: Store
    """The rows born up to the end of the step, without those that ended in it."""
    births: pl.DataFrame
    """The rows born in the step, whether they ended in it or not."""
    ghosts: pl.DataFrame
    """The rows that ended in the step, whenever they were born."""
    layout: Layout
    clock: Clock
    apart: bool = False
    """Whether the rows born in the step are not in `new`: it is not decided yet which of them are stored."""

    @cached_property
    def payloads(self) -> pl.DataFrame:
        """The rows born in the step as they are stored."""
        return self.births[[*self.layout.schema, BORN, DIES]]

    @cached_property
    def old_stores(self) -> tuple[Store, ...]:
        """Where to look for the rows born before the step."""
        before = self.ghosts[BORN].to_numpy() <= self.clock.after
        if before.all():
            return (self.old, *self._ghosts)
        return (self.old, *self._indexed(rows_where(self.ghosts, before)))

    @cached_property
    def new_stores(self) -> tuple[Store, ...]:
        """Where to look for the rows born up to the end of the step."""
        return (self.new, *(self._indexed(self.births) if self.apart else self._ghosts))

    @cached_property
    def _ghosts(self) -> tuple[Store, ...]:
        return self._indexed(self.ghosts)

    def _indexed(self, ghosts: pl.DataFrame) -> tuple[Store, ...]:
        return () if ghosts.is_empty() else (LifetimeRuns(self.layout).insert(ghosts, self.clock),)


def arrive(store: Store, frame: pl.DataFrame, layout: Layout, clock: Clock, numbered: str | None) -> Arrivals:
    """What the signed rows of `frame` do to `store`.

    If `numbered` names a column, each row born gets a number of its own in it.
    """
    positive = frame[SIGN].to_numpy() > 0
    payload = [name for name in layout.schema if name != numbered]
    born = rows_where(frame, positive)[[*payload, BORN, DIES]]
    if numbered is not None and isinstance(store, Endings):
        first = store.highest(numbered) + 1
        numbers = pl.int_range(first, first + born.height, dtype=pl.Int64, eager=True).alias(numbered)
        born = born.insert_column(len(payload), numbers)
    if positive.all():
        births = _as_announced(born)
        return Arrivals(store, store.insert(born, clock), births, births.clear(), layout, clock)
    if not isinstance(store, Endings):
        raise ValueError("a row was taken back on an input whose rows were promised to live as announced")
    before = store.end(rows_where(frame, ~positive)[[*payload, BORN, DIES]], clock)
    if before.rest.is_empty():
        new = before.store.insert(born, clock)
        return Arrivals(before.store, new, _as_announced(born), before.rows, layout, clock)
    # What finds nothing among the old rows ends a row of this step.
    within = Endings(store.layout).insert(born, clock).end(before.rest, clock)
    if within.rest.height:
        example = within.rest.row(0, named=True)
        raise ValueError(f"{within.rest.height} endings of rows that were never announced, as {example}")
    live = within.store.live(clock.after)
    lived = within.rows.filter(pl.col(BORN) < pl.col(ENDS))
    births = pl.concat([_as_announced(live), lived], rechunk=True)
    ghosts = pl.concat([before.rows, lived], rechunk=True)
    return Arrivals(before.store, before.store.insert(live, clock), births, ghosts, layout, clock)


def come(store: Store, frame: pl.DataFrame, layout: Layout, clock: Clock) -> Arrivals:
    """What comes to an input that never ends a row, which leaves `store` as it is."""
    if (frame[SIGN].to_numpy() < 0).any():
        raise ValueError("a row was taken back on an input whose rows were promised to live as announced")
    births = _as_announced(frame[[*layout.schema, BORN, DIES]])
    return Arrivals(store, store, births, births.clear(), layout, clock, apart=True)


def can_match(frame: pl.DataFrame, compared: Sequence[str], alike: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """The rows that equalities do not rule out by themselves: no NULL, and columns alike that must be."""
    keep = ~has_null(frame, compared)
    for left, right in alike:
        keep &= keys_equal(frame, frame, [left], [right], null_equal=False)
    return rows_where(frame, keep)


def _as_announced(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.hstack([rows[DIES].alias(ENDS)])
