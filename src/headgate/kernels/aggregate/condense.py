"""Condense: rows of a group that live and die together as one, with what they add up to and their extremes.

```
rows of a group   3 [====)   5 [====)   4 [==)       with SLIDE, lifetimes begin and end at ticks
condensed         2 rows, sum 8, least 3 [====)   1 row, sum 4, least 4 [==)
```

It remembers nothing, so shards that have parts of a group each condense theirs, and one that has all of it merges
them: sums are digits (`digits`), so the result is the one that all rows together have, to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.aggregate import ledger
from headgate.kernels.aggregate.call import Function
from headgate.kernels.aggregate.kernel import Aggregate
from headgate.kernels.aggregate.ledger import ROWS, Columns, Measure
from headgate.kernels.aggregate.step import Step
from headgate.kernels.stateless import EmptyState, Stateless
from headgate.model.batch import LIFETIME_COLUMNS, Batch
from headgate.model.time import Clock

_MERGEABLE = (Function.COUNT, Function.SUM, Function.AVG, Function.MIN, Function.MAX)
_EXTREMES = (Function.MIN, Function.MAX)


def is_mergeable(aggregate: Aggregate) -> bool:
    """Whether parts of a group can be condensed apart: not if single values have to be known.

    An ending takes one row back, and what the others' extreme is then, only the rows know.
    """
    return all(
        call.function in _MERGEABLE
        and not call.of_distinct
        and not (call.function in _EXTREMES and (aggregate.endings or _is_nested(aggregate, call.argument)))
        for call in aggregate.calls
    )


def _is_nested(aggregate: Aggregate, argument: str | None) -> bool:
    return argument is not None and aggregate.schema[argument].is_nested()


def _part(name: str) -> str:
    return f"+{name}"


def _extreme(argument: str, *, largest: bool) -> str:
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
        return schema | {_extreme(a, largest=which): of.schema[a] for a, which in of.in_frontiers}

    def advance(self, state: EmptyState, inputs: Sequence[Batch], clock: Clock) -> tuple[EmptyState, Batch]:
        [batch] = inputs
        return state, self._condensed(batch.frame) if batch.height else Batch.empty(self.output_schema)

    def _condensed(self, frame: pl.DataFrame) -> Batch:
        of = self.aggregate
        columns: Columns = {ROWS: np.ones(frame.height, dtype=np.int64)}
        for measure in _measures(of):
            columns |= measure.of_rows(frame[measure.argument])
        by = [*of.keys, *LIFETIME_COLUMNS]
        keys = [
            (pl.col(key) + 0.0 if of.schema[key].is_float() else pl.col(key)).alias(key) for key in of.keys
        ]
        extremes = [
            frame[argument].alias(_extreme(argument, largest=largest))
            for argument, largest in of.in_frontiers
        ]
        parts = [pl.Series(_part(name), values) for name, values in columns.items()]
        rows = frame.select(*keys, *LIFETIME_COLUMNS).with_columns(*parts, *extremes)
        found = rows.group_by(by, maintain_order=True).agg(
            *(pl.col(part.name).sum() for part in parts),
            *(
                _best(_extreme(argument, largest=largest), of.schema[argument], largest=largest)
                for argument, largest in of.in_frontiers
            ),
        )
        sums = {name: found[_part(name)].to_numpy() for name in columns}
        packed = ledger.packed(sums, _measures(of), found.height)
        whole = found.with_columns(series.alias(_part(name)) for name, series in packed.items())
        return Batch(whole.select(*self.output_schema, *LIFETIME_COLUMNS))


def _best(name: str, dtype: pl.DataType, *, largest: bool) -> pl.Expr:
    """The extreme of a column; NaN is larger than any number."""
    if largest:
        return pl.col(name).nan_max() if dtype.is_float() else pl.col(name).max()
    return pl.col(name).min()


@dataclass(frozen=True)
class MergingAggregate(Aggregate):
    """An aggregate whose input comes condensed; `schema` is still that of the rows behind it."""

    def _added(self, step: Step) -> Columns:
        measures = _measures(self)
        names = [ROWS, *(name for measure in measures for name in measure.schema())]
        table = step.frame.select(pl.col(_part(name)).alias(name) for name in names)
        zero = np.zeros(table.height, dtype=np.int64)
        parts = {ROWS: zero, **ledger.unpacked(table, measures, np.arange(table.height), table.height)}
        return {name: part * step.sign for name, part in parts.items()}

    def _values(self, frame: pl.DataFrame, argument: str, *, largest: bool) -> pl.Series:
        return frame[_extreme(argument, largest=largest)]


def merging(aggregate: Aggregate) -> MergingAggregate:
    """The same aggregate over condensed rows."""
    fields: Mapping[str, object] = {
        name: getattr(aggregate, name) for name in ("schema", "keys", "calls", "slide", "append", "endings")
    }
    return MergingAggregate(**fields)  # type: ignore[arg-type]


def _measures(aggregate: Aggregate) -> tuple[Measure, ...]:
    return Measure.of(aggregate.calls, aggregate.schema)
