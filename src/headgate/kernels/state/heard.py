"""Heard: the values that a stream has closed, as far as anything still needs them.

New ones are put away step by step; a sweep now and then writes those that are needed anew, each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import polars as pl

from headgate.model.batch import BORN
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class Heard:
    """Closed values: columns of `schema` and `_born`, in pieces by the step that put them away."""

    schema: Mapping[str, pl.DataType]
    pieces: Mapping[int, pl.DataFrame]

    @staticmethod
    def nothing(schema: Mapping[str, pl.DataType]) -> Heard:
        return Heard(schema, {})

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.schema)

    @property
    def rows(self) -> int:
        return sum(piece.height for piece in self.pieces.values())

    @property
    def nbytes(self) -> int:
        return sum(int(piece.estimated_size()) for piece in self.pieces.values())

    @property
    def frame(self) -> pl.DataFrame:
        """All closed values, each once, in the order in which they were heard."""
        if not self.pieces:
            return pl.DataFrame(schema={**self.schema, BORN: pl.Int64()})
        whole = pl.concat(list(self.pieces.values()))
        return whole.unique(subset=list(self.columns), keep="first", maintain_order=True)

    def chunks(self) -> dict[str, pl.DataFrame]:
        return {str(built): piece for built, piece in self.pieces.items()}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> Heard:
        """The values like these whose `chunks()` these are."""
        return replace(self, pieces={int(name): chunks[name] for name in sorted(chunks, key=int)})

    def hear(self, frame: pl.DataFrame, clock: Clock) -> Heard:
        """Also the values that were closed in the step; NULL closes nothing."""
        new = frame.select(*self.columns, BORN).drop_nulls()
        return self if new.is_empty() else replace(self, pieces={**self.pieces, clock.upto: new})

    def only(self, frame: pl.DataFrame, clock: Clock) -> Heard:
        """These values alone, written anew in this step."""
        kept = frame.select(*self.columns, BORN)
        return replace(self, pieces={} if kept.is_empty() else {clock.upto: kept.rechunk()})


def closed_by_all(heard: Sequence[Heard], clock: Clock) -> tuple[pl.DataFrame, tuple[Heard, ...]]:
    """The values that every one of them has closed, and each of them without these; all have the same columns."""
    frames = [each.frame for each in heard]
    columns = heard[0].columns
    shared = reduce(lambda one, two: one.filter(listed(one, columns, two, columns)), frames)
    left = tuple(
        each.only(frame.filter(~listed(frame, columns, shared, columns)), clock)
        for each, frame in zip(heard, frames, strict=True)
    )
    return shared, left


def listed(
    rows: pl.DataFrame, columns: Sequence[str], among: pl.DataFrame, others: Sequence[str]
) -> pl.Series:
    """For each row whether its `columns` are the `others` of a row of `among`; NULL is not."""
    left = [f"_{place}" for place in range(len(columns))]
    mine = rows.select(pl.col(name).alias(new) for name, new in zip(columns, left, strict=True))
    theirs = among.select(pl.col(name).alias(new) for name, new in zip(others, left, strict=True))
    found = mine.with_row_index("_at").join(theirs.unique(), on=left, how="semi")["_at"]
    mask = pl.Series([False]).new_from_index(0, rows.height)
    return mask.scatter(found, True) if found.len() else mask
