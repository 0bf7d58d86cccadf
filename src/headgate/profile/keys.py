"""Keys: smallest sets of columns of which no two rows of a stream have the same values, and no row has none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod

import polars as pl

ENOUGH = 50
"""Of fewer rows it means nothing that no two are alike."""

MOST_TOGETHER = 3
MOST_TRIED = 8
"""Of more columns than these, no sets are tried."""

CHANCE = 3.0
"""Several columns are a key only where so many equal rows were to be expected of independent ones."""


def find_keys(
    rows: pl.DataFrame, single: Sequence[str], sets: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """The columns of `single` that are keys, then smallest keys among those of `sets`; none contains another.

    Up to three columns of all sets are tried together, and each set as it is.
    """
    if rows.height < ENOUGH:
        return []
    found: list[tuple[str, ...]] = [
        (name,) for name in single if _is_filled(rows, name) and rows[name].n_unique() == rows.height
    ]
    used = dict.fromkeys(name for columns in sets for name in columns)
    left = [name for name in used if (name,) not in found and _is_filled(rows, name)]
    values = {name: rows[name].n_unique() for name in left}
    sizes = range(2, MOST_TOGETHER + 1) if len(left) <= MOST_TRIED else ()
    tried = [columns for size in sizes for columns in combinations(left, size)]
    tried += [columns for columns in sets if len(columns) > 1 and set(columns) <= set(left)]
    for columns in tried:
        # Only then are there enough values at all, and not so many that rows hardly ever agree by chance.
        if (
            not any(set(known) <= set(columns) for known in found)
            and rows.height <= prod(values[name] for name in columns)
            and any(
                2 * CHANCE * prod(values[name] for name in some) <= rows.height**2
                for some in combinations(columns, 2)
            )
            and _are_unique(rows, columns)
        ):
            found.append(columns)
    return found


def _is_filled(rows: pl.DataFrame, name: str) -> bool:
    return rows[name].null_count() == 0


def _are_unique(rows: pl.DataFrame, columns: Sequence[str]) -> bool:
    return bool(rows.select(pl.struct(columns).n_unique()).item() == rows.height)
