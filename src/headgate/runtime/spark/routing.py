"""Routing: which shards of a stage get which rows of a feed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import polars as pl

from headgate.kernels.keys import key_hash
from headgate.runtime.stage import Stage


def routed(stage: Stage, feed: int, rows: pl.DataFrame) -> Iterator[tuple[list[int], pl.DataFrame]]:
    """Rows that go to the same shards, with these."""
    columns = stage.feeds[feed].columns
    if rows.is_empty():
        return
    offsets = [
        sum(places)
        for places in product(
            *(
                [0] if known else [place * stride for place in range(share)]
                for known, share, stride in zip(columns, stage.shares, stage.strides, strict=True)
            )
        )
    ]
    for base, part in _groups(stage, rows, columns):
        yield [base + offset for offset in offsets], part


def _groups(
    stage: Stage, rows: pl.DataFrame, columns: Sequence[Sequence[str]]
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Rows that go to the same shards, with the first of these."""
    place: npt.NDArray[np.int64] = np.zeros(rows.height, dtype=np.int64)
    for axis, (names, share) in enumerate(zip(columns, stage.shares, strict=True)):
        if names and share > 1:
            hashes = key_hash(rows, names)
            # The kernels use the low bits of such hashes; the shard comes from the high ones.
            place += ((hashes >> np.uint64(33)) % np.uint64(share)).astype(np.int64) * stage.strides[axis]
    bases = np.flatnonzero(np.bincount(place))
    if len(bases) == 1:
        yield int(bases[0]), rows
        return
    for base in bases.tolist():
        yield base, rows.filter(pl.Series(place == base))
