"""ClosedValues: the values that a stream has closed, as far as anything still needs them.

New ones are put away step by step; a sweep now and then writes those that are needed anew, each once. Of a stream
that closes all values below one, that one is all there is to remember.

NULL is never closed. Who reads closings must not keep it: a join has no use for it, and rows that would bring it to a
DISTINCT or a group are late before they come this far.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any

import polars as pl

from headgate.kernels.state.sorted_runs import Runs
from headgate.model.batch import BORN
from headgate.model.time import Clock


@dataclass(frozen=True, eq=False)
class ClosedValues(Runs):
    """Closed values: the columns of `schema`, of which `_born` is the last."""

    below: bool = False
    """Whether all lesser values are closed, of the one column that there is, and the value itself is not."""

    @staticmethod
    def nothing(schema: Mapping[str, pl.DataType], *, below: bool) -> ClosedValues:
        """Nothing closed, of values with the columns of `schema`."""
        return ClosedValues({**schema, BORN: pl.Int64()}, below)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.schema if name != BORN)

    @property
    def frame(self) -> pl.DataFrame:
        """All closed values, each once, in the order in which they were closed."""
        return super().frame.unique(subset=list(self.columns), keep="first", maintain_order=True)

    def observe(self, frame: pl.DataFrame, clock: Clock) -> ClosedValues:
        """Also the values that were closed in the step; NULL closes nothing."""
        if frame.is_empty():
            return self
        if self.below:
            return self._rising(frame, clock)
        return self.adding(frame.select(*self.columns, BORN).drop_nulls(), clock.upto)

    def _rising(self, frame: pl.DataFrame, clock: Clock) -> ClosedValues:
        """With the greatest value of all, where that one closes what is less."""
        (column,) = self.columns
        values = pl.concat([super().frame.get_column(column), frame.get_column(column)])
        greatest = values.max()
        if greatest is None or (self.runs and greatest == values[0]):
            return self
        row = {column: [greatest], BORN: [frame.get_column(BORN).max()]}
        return self.only(pl.DataFrame(row, schema=self.schema), clock.upto)

    def closes(self, rows: pl.DataFrame, columns: Sequence[str]) -> pl.Series:
        """For each row whether its `columns` are closed; NULL is not."""
        if not self.below:
            return listed(rows, columns, self.frame, self.columns)
        return self.passed(rows.get_column(columns[0]))

    @property
    def value(self) -> Any:
        """The value below which all are closed, if there is one."""
        return self.runs[0].frame.get_column(self.columns[0])[0] if self.runs else None

    def passed(self, values: pl.Series) -> pl.Series:
        """Which values are less than the one below which all are closed."""
        if not self.runs:
            return pl.Series([False]).new_from_index(0, len(values))
        lesser: pl.Series = values < self.value
        return lesser.fill_null(False) if lesser.null_count() else lesser


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
        else each.only(each.frame.filter(~closed_by_all(closed_values, each.frame, each.columns)), clock.upto)
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
