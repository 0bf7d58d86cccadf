"""Punctuations: columns with a value after which no row with the same values in others comes any more.

```
orderid     7   8   7   9   8   7
final           ×           ×   ×      nobody's order comes again after ×, except that 8 does: no punctuation
```
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from headgate.profile.constraint import Flag

MOST_VALUES = 8
"""A column with more values says something else than that its row is the last."""

MOST_FLAGS = 64
"""So many values are tried; those of BOOLEAN columns come first."""

LEAST_SHARE = 0.5
"""Where fewer values are closed, most of what waits for a closing would stay."""

LEAST_CLOSED = 5
"""So many values must have been closed that had a row before, or it may be chance."""

_PLACE = "_place"


@dataclass(frozen=True)
class Closing:
    """A flag that closes values, and the share of the values that it has closed."""

    flag: Flag
    share: float


def find_flags(rows: pl.DataFrame, columns: Sequence[str]) -> list[Flag]:
    """Each value of the columns that have few."""
    found = [flag for name in columns for flag in _flags(rows, name)]
    return sorted(found, key=lambda flag: not isinstance(flag.value, bool))[:MOST_FLAGS]


def _flags(rows: pl.DataFrame, name: str) -> Iterator[Flag]:
    dtype = rows.schema[name]
    if not (dtype == pl.Boolean() or dtype == pl.String() or dtype.is_integer()):
        return
    values = rows[name].drop_nulls().unique().sort()
    if 2 <= len(values) <= MOST_VALUES or (dtype == pl.Boolean() and len(values)):
        for value in values.to_list():
            yield Flag(name, value)


def find_closings(rows: pl.DataFrame, columns: Sequence[str], flags: Sequence[Flag]) -> list[Closing]:
    """The flags that close values of the columns, those first that close most."""
    usable = [flag for flag in flags if flag.column not in columns]
    if not usable or rows.is_empty():
        return []
    used = dict.fromkeys([*columns, *(flag.column for flag in usable)])
    placed = rows.select(*used, pl.int_range(rows.height, dtype=pl.Int64).alias(_PLACE))
    place = pl.col(_PLACE)
    groups = (
        placed.drop_nulls(list(columns))
        .group_by(columns)
        .agg(
            place.min().alias("_first"),
            place.max().alias("_last"),
            *(
                place.filter(pl.col(flag.column) == pl.lit(flag.value)).min().alias(f"_{number}")
                for number, flag in enumerate(usable)
            ),
        )
    )
    found = []
    for number, flag in enumerate(usable):
        closed = groups[f"_{number}"]
        broken = (closed < groups["_last"]).any()
        several = ((closed == groups["_last"]) & (groups["_first"] < closed)).sum()
        share = closed.count() / groups.height if groups.height else 0.0
        if not broken and several >= LEAST_CLOSED and share >= LEAST_SHARE:
            found.append(Closing(flag, share))
    return sorted(found, key=lambda each: -each.share)
