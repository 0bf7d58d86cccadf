"""Condense: rows of a group that live and die together as one, with what they add up to and their extremes.

```
rows of a group   3 [====)   5 [====)   4 [==)       with SLIDE, lifetimes begin and end at ticks
condensed         2 rows, sum 8, least 3 [====)   1 row, sum 4, least 4 [==)
```

It remembers nothing, so shards that have parts of a group each condense theirs, and one that has all of it merges
them: sums are digits (`digits`), so the result is the one that all rows together have, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.aggregate import ledger
from headgate.kernels.aggregate.kernel import Aggregate
from headgate.kernels.aggregate.ledger import ROWS, Columns, Measure
from headgate.kernels.keys import with_plain_zeros
from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import LIFETIME_COLUMNS, Batch
from headgate.model.time import Clock


def is_mergeable(aggregate: Aggregate) -> bool:
    """Whether parts of a group can be condensed apart: not if single values have to be known.

    An ending takes one row back, and what the others' extreme is then, only the rows know.
    """
    return all(
        call.function.traits.mergeable
        and not call.of_distinct
        and not (call.function.is_extreme and aggregate.endings)
        for call in aggregate.calls
    )


def _part(name: str) -> str:
    return f"+{name}"


def extreme_column(argument: str, *, largest: bool) -> str:
    """The column with the smallest, or largest, value of an argument."""
    return f"+{'largest' if largest else 'least'} {argument}"


@dataclass(frozen=True)
class Condense(Stateless):
    """The input of an aggregate, condensed."""

    aggregate: Aggregate

    @cached_property
    def output_schema(self) -> dict[str, pl.DataType]:
        """The payload: keys, what is added up, extremes."""
        of = self.aggregate
        schema: dict[str, pl.DataType] = {key: of.schema[key] for key in of.keys}
        schema[_part(ROWS)] = pl.Int64()
        for measure in _measures(of):
            schema |= {_part(name): dtype for name, dtype in measure.schema().items()}
        return schema | {extreme_column(a, largest=which): of.types[a] for a, which in of.in_frontiers}

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        return state, self._condensed(batch.frame) if batch.height else Batch.empty(self.output_schema)

    def _condensed(self, frame: pl.DataFrame) -> Batch:
        of = self.aggregate
        found, sums = added_up(of, frame)
        packed = ledger.packed(sums, _measures(of), found.height)
        whole = found.with_columns(series.alias(_part(name)) for name, series in packed.items())
        return Batch(whole.select(*self.output_schema, *LIFETIME_COLUMNS))


def added_up(aggregate: Aggregate, frame: pl.DataFrame) -> tuple[pl.DataFrame, Columns]:
    """A row for each group and lifetime, with the extremes of its rows, and what these add up to in the ledger."""
    columns = aggregate.parts(frame)
    keys = [with_plain_zeros(key, aggregate.schema[key]) for key in aggregate.keys]
    extremes = [
        aggregate.values(frame, argument, largest=largest).alias(extreme_column(argument, largest=largest))
        for argument, largest in aggregate.in_frontiers
    ]
    parts = [pl.Series(_part(name), values) for name, values in columns.items()]
    rows = frame.select(*keys, *LIFETIME_COLUMNS).with_columns(*parts, *extremes)
    # The fewer columns to group by, the faster; rows of one pane have one lifetime.
    constant = [name for name in LIFETIME_COLUMNS if frame[name].min() == frame[name].max()]
    by = [*aggregate.keys, *(name for name in LIFETIME_COLUMNS if name not in constant)]
    found = rows.group_by(by or constant, maintain_order=True).agg(
        *(pl.col(name).first() for name in constant if by),
        *(pl.col(part.name).sum() for part in parts),
        *(
            _best(extreme_column(argument, largest=largest), aggregate.types[argument], largest=largest)
            for argument, largest in aggregate.in_frontiers
        ),
    )
    sums = {name: found[_part(name)].to_numpy() for name in columns}
    return found.drop(part.name for part in parts), sums


def _best(name: str, dtype: pl.DataType, *, largest: bool) -> pl.Expr:
    """The extreme of a column; NaN is larger than any number."""
    if dtype.is_nested():
        return pl.col(name).drop_nulls().sort(descending=largest).first()
    if largest:
        return pl.col(name).nan_max() if dtype.is_float() else pl.col(name).max()
    return pl.col(name).min()


@dataclass(frozen=True)
class MergingAggregate(Aggregate):
    """An aggregate whose input comes condensed; `schema` is still that of the rows behind it."""

    def parts(self, frame: pl.DataFrame) -> Columns:
        measures = _measures(self)
        names = [ROWS, *(name for measure in measures for name in measure.schema())]
        table = frame.select(pl.col(_part(name)).alias(name) for name in names)
        zero = np.zeros(table.height, dtype=np.int64)
        return {ROWS: zero, **ledger.unpacked(table, measures, np.arange(table.height), table.height)}

    def values(self, frame: pl.DataFrame, argument: str, *, largest: bool) -> pl.Series:
        return frame[extreme_column(argument, largest=largest)]


def merging(aggregate: Aggregate) -> MergingAggregate:
    """The same aggregate over condensed rows."""
    of = aggregate
    return MergingAggregate(of.schema, of.keys, of.calls, of.slide, of.append, of.endings)


def _measures(aggregate: Aggregate) -> tuple[Measure, ...]:
    return tuple(aggregate.measures.values())
