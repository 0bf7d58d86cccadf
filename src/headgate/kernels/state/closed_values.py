"""ClosedValues: the values that a stream has closed, as far as anything still needs them.

New ones are put away step by step; a sweep now and then writes those that are needed anew, each once. Of a stream
that closes all values below one, that one is all there is to remember.

NULL is never closed. Who reads closings must not keep it: a join has no use for it, and rows that would bring it to a
DISTINCT or a group are late before they come this far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

import polars as pl

from headgate.model.batch import BORN
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class ClosedValues:
    """Closed values: columns of `schema` and `_born`, in pieces by the step that put them away."""

    schema: Mapping[str, pl.DataType]
    pieces: Mapping[int, pl.DataFrame]
    below: bool = False
    """Whether all lesser values are closed, of the one column that there is, and the value itself is not."""

    @staticmethod
    def nothing(schema: Mapping[str, pl.DataType], *, below: bool = False) -> ClosedValues:
        return ClosedValues(schema, {}, below)

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
        """All closed values, each once, in the order in which they were closed."""
        if not self.pieces:
            return pl.DataFrame(schema={**self.schema, BORN: pl.Int64()})
        whole = pl.concat(list(self.pieces.values()))
        return whole.unique(subset=list(self.columns), keep="first", maintain_order=True)

    def chunks(self) -> dict[str, pl.DataFrame]:
        return {str(built): piece for built, piece in self.pieces.items()}

    def restored(self, chunks: Mapping[str, pl.DataFrame]) -> ClosedValues:
        """The values like these whose `chunks()` these are."""
        return replace(self, pieces={int(name): chunks[name] for name in sorted(chunks, key=int)})

    def observe(self, frame: pl.DataFrame, clock: Clock) -> ClosedValues:
        """Also the values that were closed in the step; NULL closes nothing."""
        new = frame.select(*self.columns, BORN).drop_nulls()
        if new.is_empty():
            return self
        if self.below:
            greatest = pl.concat([*self.pieces.values(), new]).sort(self.columns[0]).tail(1)
            return replace(self, pieces={clock.upto: greatest.rechunk()})
        return replace(self, pieces={**self.pieces, clock.upto: new})

    def closes(self, rows: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
        """For each row whether its `columns` are closed; NULL is not."""
        if not self.below:
            return listed(rows, columns, self.frame, self.columns)
        if not self.pieces:
            return pl.Series([False]).new_from_index(0, rows.height)
        lesser: pl.Series = rows[columns[0]] < self.frame[self.columns[0]][0]
        return lesser.fill_null(False)

    def only(self, frame: pl.DataFrame, clock: Clock) -> ClosedValues:
        """These values alone, written anew in this step."""
        kept = frame.select(*self.columns, BORN)
        return replace(self, pieces={} if kept.is_empty() else {clock.upto: kept.rechunk()})


def closed_by_all(
    closed_values: Sequence[ClosedValues], rows: pl.DataFrame, columns: Sequence[str]
) -> pl.Series:
    """For each row whether every one of them has closed its `columns`."""
    return reduce(and_, (each.closes(rows, columns) for each in closed_values))


def not_by_all(closed_values: Sequence[ClosedValues], clock: Clock) -> tuple[ClosedValues, ...]:
    """What each has closed without the values that all have; all have the same columns."""
    return tuple(
        each
        if each.below
        else each.only(each.frame.filter(~closed_by_all(closed_values, each.frame, each.columns)), clock)
        for each in closed_values
    )


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
