"""Merging in order: blocks whose rows reach into the time of later blocks become one ordered stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from headgate.lab.generators.draw import ROWS_PER_BLOCK, Ints

Columns: TypeAlias = dict[str, npt.NDArray[Any]]
"""Columns of equal length by name."""

# With more, blocks would be smaller while much is alive, and a merge would see more and shorter pieces.
_BLOCKS_ALIVE = 32


def in_order(blocks: Iterable[tuple[Columns, int]], *, by: str) -> Iterator[tuple[Columns, int]]:
    """Takes blocks of rows in any order and gives the same rows in the order of an integer column.

    Each block comes with a floor that no row of a later block is below. Rows below it can leave; the others
    wait, sorted, and are cut off piece by piece. What leaves comes with the floor that let it go. Rows that
    tie leave in the order in which they came.

    ```
    block 0   ======|---.--                leaves with block 0
    block 1         |===+======|-----      leaves with block 1, together with --- of block 0
    ```
    """
    waiting: list[Columns] = []
    for block, floor in blocks:
        leaving, waiting = _split([*waiting, _ordered(block, by)], floor, by)
        yield _merged(leaving, by), floor
    while waiting:
        # A block's worth of rows at a time, or the end of a run.
        share = ROWS_PER_BLOCK // len(waiting)
        floor = 1 + min(int(run[by][min(share, run[by].size - 1)]) for run in waiting)
        leaving, waiting = _split(waiting, floor, by)
        yield _merged(leaving, by), floor


def things_per_block(rows_per_thing: float, alive: float) -> int:
    """How many things (items, cars) to make at a time if each has rows spread over a life.

    Enough for a block of rows, and not so few that the rows of very many blocks are waiting together.
    """
    return max(1, int(ROWS_PER_BLOCK / rows_per_thing), int(alive / _BLOCKS_ALIVE))


def stable_order(keys: Ints) -> Ints:
    """The places of the keys in ascending order, equal keys in their given order.

    Key and place packed into one integer sort several times faster than a stable argsort of the keys.
    """
    if keys.size == 0:
        return np.empty(0, np.int64)
    lowest, place_bits = int(keys.min()), int(keys.size).bit_length()
    if (int(keys.max()) - lowest).bit_length() + place_bits > 63:
        return np.argsort(keys, kind="stable").astype(np.int64)
    packed = (keys - lowest << place_bits) | np.arange(keys.size)
    packed.sort()
    return np.asarray(packed & ((1 << place_bits) - 1))


def _split(runs: list[Columns], floor: int, by: str) -> tuple[list[Columns], list[Columns]]:
    """The rows of sorted runs below the floor, and the others."""
    cuts = [int(np.searchsorted(run[by], floor)) for run in runs]
    below = [_rows(run, 0, cut) for run, cut in zip(runs, cuts, strict=True)]
    above = [
        _released(_rows(run, cut, None)) for run, cut in zip(runs, cuts, strict=True) if cut < run[by].size
    ]
    return below, above


def _merged(runs: list[Columns], by: str) -> Columns:
    return _ordered({name: np.concatenate([run[name] for run in runs]) for name in runs[0]}, by)


def _ordered(rows: Columns, by: str) -> Columns:
    order = stable_order(rows[by])
    return {name: column[order] for name, column in rows.items()}


def _rows(run: Columns, begin: int, end: int | None) -> Columns:
    return {name: column[begin:end] for name, column in run.items()}


def _released(run: Columns) -> Columns:
    """The run itself, or a copy once it is a small part of the memory that it holds on to."""
    return {
        name: column.copy() if column.base is not None and 2 * column.size < column.base.size else column
        for name, column in run.items()
    }
