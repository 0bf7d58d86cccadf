"""Pending: changes that are announced for later instants, kept until their instant comes.

```
lane 0   [page ≤ 8 k rows][page][page]...      pages of a lane follow one another in time
lane 1   [page][page]                          a batch that fits behind no lane opens a new one
```

Deaths of a sliding window come in time order: one lane, a page per batch, and a page that has passed is
dropped whole. Deaths in any order make lanes that overlap; when there are too many, the smallest become one.
A row is what changes (`AT` and the identity) and by how much (all other columns, integers). Rows about the
same thing are added up when they meet; what adds up to nothing is dropped. A column that is absent is zero.
An ending undoes an announced death; when half of all rows may undo one another, all lanes become one.

A page is named after the step that built it and its number in that step, so no name recurs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import polars as pl
from polars import selectors as cs

Ints = npt.NDArray[np.int64]

AT = "at"

_LANES = 8
_SLACK = 1 << 10
_PAGE = 1 << 16
_SMALL_PAGE = 1 << 13


@dataclass(frozen=True, eq=False)
class Page:
    """Rows in time order."""

    name: str
    frame: pl.DataFrame

    @cached_property
    def at(self) -> Ints:
        return self.frame[AT].to_numpy()

    @cached_property
    def nbytes(self) -> int:
        return int(self.frame.estimated_size())

    @cached_property
    def first(self) -> int:
        return int(self.at[0])

    @cached_property
    def last(self) -> int:
        return int(self.at[-1])

    def between(self, after: int, upto: int) -> pl.DataFrame:
        """The rows with instants in (after, upto]."""
        low, high = np.searchsorted(self.at, (after, upto), side="right")
        return self.frame.slice(low, high - low)


Lane = tuple[Page, ...]


@dataclass(frozen=True, eq=False)
class Pending:
    """Announced changes by instant; `identity` names the columns that with `AT` say what changes.

    `deaths` names the column whose sum, negated, is how many rows are still to die: `mortal` of them.
    """

    identity: tuple[str, ...]
    deaths: str
    lanes: tuple[Lane, ...] = ()
    mortal: int = 0

    @property
    def rows(self) -> int:
        return sum(page.frame.height for lane in self.lanes for page in lane)

    @property
    def nbytes(self) -> int:
        return sum(page.nbytes for lane in self.lanes for page in lane)

    def chunks(self, prefix: str) -> dict[str, pl.DataFrame]:
        """Every chunk by name; each name starts with `prefix`."""
        return {prefix + page.name: page.frame for lane in self.lanes for page in lane}

    def restore(self, chunks: Mapping[str, pl.DataFrame], prefix: str) -> Pending:
        """What was pending, in a value like this empty one, whose chunks with `prefix` these are."""
        pages = [
            Page(name.removeprefix(prefix), frame)
            for name, frame in chunks.items()
            if name.startswith(prefix)
        ]
        lanes: tuple[Lane, ...] = ()
        for page in sorted(pages, key=lambda page: page.first):
            lanes = _appended(lanes, _host(lanes, page.first), [page])
        # Of a page that has partly passed, the passed rows count too; that only delays a tidying up.
        return replace(self, lanes=lanes, mortal=self._mortal([page.frame for page in pages]))

    def due(self, after: int, upto: int) -> tuple[Pending, list[pl.DataFrame]]:
        """What is pending without what has passed at `upto`, and the changes in (after, upto]."""
        found: list[pl.DataFrame] = []
        lanes: list[Lane] = []
        for lane in self.lanes:
            passed = 0
            while passed < len(lane) and lane[passed].last <= upto:
                found.append(lane[passed].between(after, upto))
                passed += 1
            if passed < len(lane):
                found.append(lane[passed].between(after, upto))
                lanes.append(lane[passed:] if passed else lane)
        return replace(self, lanes=tuple(lanes), mortal=self.mortal - self._mortal(found)), [
            frame for frame in found if frame.height
        ]

    def add(self, rows: pl.DataFrame, upto: int) -> Pending:
        """What is pending with `rows` too, all of them after the step that ends at `upto`. Once a step."""
        if not rows.height:
            return self
        mortal = self.mortal + self._mortal([rows])
        pages = list(self._pages(self._summed(rows), f"{upto}."))
        if not pages:
            return replace(self, mortal=mortal)
        number, lanes = len(pages), self.lanes
        host = _host(lanes, pages[0].first)
        if host is not None:
            last = lanes[host][-1]
            if last.frame.height + pages[0].frame.height <= _SMALL_PAGE:
                # Small pages grow together, or a stream of small batches would leave a page for each.
                grown = _joined([last.between(upto, last.last), pages[0].frame])
                pages[0] = Page(pages[0].name, _narrow(grown, self.identity))
                lanes = (*lanes[:host], lanes[host][:-1], *lanes[host + 1 :])
        lanes = _appended(lanes, host, pages)
        held = sum(page.frame.height for lane in lanes for page in lane)
        if held > 2 * mortal + _SLACK:
            lanes = self._merged(lanes, len(lanes), upto, number)
        elif len(lanes) > _LANES:
            lanes = self._merged(lanes, _LANES // 2 + 1, upto, number)
        return replace(self, lanes=lanes, mortal=mortal)

    def _mortal(self, frames: Iterable[pl.DataFrame]) -> int:
        columns = (frame[self.deaths] for frame in frames if self.deaths in frame.columns)
        return -sum(int(column.cast(pl.Int64).sum()) for column in columns)

    def _merged(self, lanes: Sequence[Lane], count: int, upto: int, number: int) -> tuple[Lane, ...]:
        """The same rows with the `count` smallest lanes made one."""
        by_size = sorted(lanes, key=lambda lane: sum(page.frame.height for page in lane))
        small, large = by_size[:count], by_size[count:]
        rows = _joined([page.between(upto, page.last) for lane in small for page in lane])
        merged = tuple(self._pages(self._summed(rows), f"{upto}.", number))
        return (*large, merged) if merged else tuple(large)

    def _pages(self, rows: pl.DataFrame, prefix: str, number: int = 0) -> Iterable[Page]:
        for offset in range(0, rows.height, _PAGE):
            part = rows.slice(offset, _PAGE) if rows.height > _PAGE else rows
            yield Page(f"{prefix}{number}", _narrow(part, self.identity))
            number += 1

    def _summed(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows in time order, those about the same thing added up, without those that change nothing."""
        at = rows[AT].to_numpy()
        if np.any(at[1:] < at[:-1]):
            rows = rows[np.argsort(at, kind="stable")]
            at = rows[AT].to_numpy()
        if np.all(at[1:] > at[:-1]):
            return rows
        counts = [name for name in rows.columns if name != AT and name not in self.identity]
        # Narrow integers would be added up as such.
        wide = rows.with_columns(pl.col(name).cast(pl.Int64) for name in counts)
        summed = wide.group_by(AT, *self.identity, maintain_order=True).agg(
            pl.col(name).sum() for name in counts
        )
        return summed.filter(pl.any_horizontal(pl.col(name) != 0 for name in counts))


def _host(lanes: Sequence[Lane], instant: int) -> int | None:
    """The lane that ends last among those that end by the instant."""
    fitting = [number for number, lane in enumerate(lanes) if lane[-1].last <= instant]
    return max(fitting, key=lambda number: lanes[number][-1].last) if fitting else None


def _appended(lanes: Sequence[Lane], host: int | None, pages: Sequence[Page]) -> tuple[Lane, ...]:
    if host is None:
        return (*lanes, tuple(pages))
    return (*lanes[:host], (*lanes[host], *pages), *lanes[host + 1 :])


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of frames that may lack columns and differ in the width of their integers."""
    if all(frame.schema == frames[0].schema for frame in frames):
        return pl.concat(frames)
    # Only a count, which is an integer, can be absent.
    return pl.concat(frames, how="diagonal_relaxed").with_columns(cs.integer().fill_null(0))


def _narrow(frame: pl.DataFrame, identity: Sequence[str]) -> pl.DataFrame:
    """The same rows in the narrowest integers, without the counts that are zero throughout."""
    columns = []
    for column in frame.rechunk().get_columns():
        if column.name == AT or not column.dtype.is_integer():
            columns.append(column)
        elif column.name in identity or column.min() != 0 or column.max() != 0:
            columns.append(column.shrink_dtype())
    return pl.DataFrame(columns)
