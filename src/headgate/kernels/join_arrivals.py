"""Arrivals: what one clock step brings to one input of a join, and the store before and after it.

An ending is matched with the row that it takes back. That row lives on through this step as a *ghost*, whose lifetime is
the one it turned out to have; the stores no longer contain it.

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

import numpy as np
import polars as pl

from headgate.kernels.keys import has_null, keys_equal
from headgate.kernels.state.endings import Endings
from headgate.kernels.state.runs import Runs
from headgate.kernels.state.store import ENDS, Layout, Store
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class Arrivals:
    """One input in one step. Frames have the payload, `_born`, `_dies` and `_ends`."""

    old: Store
    """The rows born before the step, without those that ended in it."""
    new: Store
    """The rows born up to the end of the step, without those that ended in it."""
    births: pl.DataFrame
    """The rows born in the step, whether they ended in it or not; those with no lifetime left are not here."""
    ghosts: pl.DataFrame
    """The rows that ended in the step, whenever they were born."""
    layout: Layout
    clock: Clock

    @cached_property
    def old_stores(self) -> tuple[Store, ...]:
        """Where to look for the rows born before the step."""
        return (self.old, *self._found(self.ghosts.filter(pl.col(BORN) <= self.clock.after)))

    @cached_property
    def new_stores(self) -> tuple[Store, ...]:
        """Where to look for the rows born up to the end of the step."""
        return (self.new, *self._found(self.ghosts))

    def _found(self, ghosts: pl.DataFrame) -> tuple[Store, ...]:
        return () if ghosts.is_empty() else (Runs(self.layout).insert(ghosts, self.clock),)


def arrive(
    store: Store, batch: Batch, layout: Layout, clock: Clock, numbered: str | None
) -> Arrivals:
    """What `batch` does to `store`. If `numbered` names a column, each row born gets a number of its own in it."""
    payload = [name for name in layout.schema if name != numbered]
    born = batch.frame.filter(pl.col(SIGN) > 0).select(*payload, BORN, DIES)
    if numbered is not None and isinstance(store, Endings):
        first = store.highest(numbered) + 1
        born = born.with_columns(pl.int_range(first, first + born.height, dtype=pl.Int64).alias(numbered))
    born = born.select(*layout.schema, BORN, DIES)
    nothing = pl.DataFrame(schema={**born.schema, ENDS: pl.Int64()})
    if born.height == batch.height:
        births = born.with_columns(pl.col(DIES).alias(ENDS))
        return Arrivals(store, store.insert(born, clock), births, nothing, layout, clock)
    if not isinstance(store, Endings):
        raise ValueError("a row was taken back on an input whose rows were promised to live as announced")
    endings = batch.frame.filter(pl.col(SIGN) < 0).select(*payload, BORN, DIES)
    before = store.end(endings, clock)
    if before.rest.is_empty():
        births = born.with_columns(pl.col(DIES).alias(ENDS))
        return Arrivals(before.store, before.store.insert(born, clock), births, before.rows, layout, clock)
    within = Endings(store.layout).insert(born, clock).end(before.rest, clock)
    if within.rest.height:
        example = within.rest.row(0, named=True)
        raise ValueError(f"{within.rest.height} endings of rows that were never announced, as {example}")
    live = within.store.live()
    lived = within.rows.filter(pl.col(BORN) < pl.col(ENDS))
    births = pl.concat([live.with_columns(pl.col(DIES).alias(ENDS)), lived])
    ghosts = pl.concat([before.rows, lived])
    return Arrivals(before.store, before.store.insert(live, clock), births, ghosts, layout, clock)


def can_match(frame: pl.DataFrame, compared: Sequence[str], alike: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """The rows that equalities do not rule out by themselves: no NULL, and columns alike that must be."""
    if frame.is_empty():
        return frame
    keep = ~has_null(frame, compared)
    if alike:
        left, right = zip(*alike, strict=True)
        keep &= keys_equal(frame, frame, left, right, null_equal=False)
    return frame if bool(np.all(keep)) else frame.filter(pl.Series(keep))
