"""BucketJoin: a join that remembers, of the rows of each bucket, one and how many there are.

```
S   (11) (11) (12)      bucket 11: one row, 2      bucket 12: one row, 1
T   a new (11)          two results: the row that stands for bucket 11, twice
```

For rows that never die and whose bucket is all that a result depends on (Memory document, section 7). With `summed`,
an input adds columns up in each bucket too, and a result is one row with a count and sums instead of many rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from headgate.kernels.join.probe_plan import EqualityClass, ProbePlan, plan_probes
from headgate.kernels.state.composite import States
from headgate.kernels.state.sorted_runs import Runs
from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.time import BEGINNING, NEVER, Clock

COUNT = "_count"
TOTAL = pl.Decimal(38, 0)
"""The type of sums, which may be too large for a BIGINT on the way; beyond this one Polars raises."""


def sum_column(name: str) -> str:
    """The column with the sum of an argument."""
    return f"_sum.{name}"


def filled_column(name: str) -> str:
    """The column with how many values of an argument are not NULL."""
    return f"_filled.{name}"


@dataclass(frozen=True, eq=False)
class BucketInput:
    """One input: its columns, what its rows must satisfy, the cells of its buckets, and what is added up in them."""

    schema: Mapping[str, pl.DataType]
    condition: pl.Expr | None
    cells: tuple[pl.Expr, ...]
    summed: Mapping[str, pl.Expr]

    @property
    def cell_names(self) -> list[str]:
        return [f"_cell{number}" for number in range(len(self.cells))]

    @property
    def measures(self) -> list[str]:
        return [each for name in self.summed for each in (sum_column(name), filled_column(name))]

    def empty(self) -> Runs:
        """No buckets."""
        numbers = dict.fromkeys((*self.cell_names, COUNT), pl.Int64())
        return Runs({**self.schema, **numbers, **dict.fromkeys(self.measures, TOTAL)})

    def located(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows that can matter, each with its bucket, the count 1 and its own sums."""
        rows = frame if self.condition is None else frame.filter(self.condition)
        cells = [
            cell.cast(pl.Int64).alias(name) for cell, name in zip(self.cells, self.cell_names, strict=True)
        ]
        sums = [
            (name_of(name), value)
            for name, expression in self.summed.items()
            for name_of, value in (
                (sum_column, expression.cast(TOTAL).fill_null(0)),
                (filled_column, expression.is_not_null().cast(pl.Int64).cast(TOTAL)),
            )
        ]
        return rows.with_columns(
            *cells, pl.lit(1, dtype=pl.Int64).alias(COUNT), *(value.alias(name) for name, value in sums)
        ).select(*self.schema, BORN, *self.cell_names, COUNT, *self.measures)

    def counted(self, kept: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
        """The buckets with more rows in them."""
        both = pl.concat([kept, rows.select(kept.columns)])
        added = [pl.col(name).sum() for name in (COUNT, *self.measures)]
        first = [pl.col(name).first() for name in self.schema]
        if not self.cells:
            return both.select(*first, *added).select(kept.columns)
        return both.group_by(self.cell_names, maintain_order=True).agg(*first, *added).select(kept.columns)


@dataclass(frozen=True, eq=False)
class BucketJoin:
    """The join of `inputs` on `equalities` and a `residual`; `summing` says one row with `_count` for many.

    Where columns of one input have to be equal, its condition says so: the rows of a bucket are not told apart here.
    """

    inputs: tuple[BucketInput, ...]
    equalities: tuple[EqualityClass, ...]
    residual: pl.Expr | None
    order: tuple[int, ...]
    summing: bool = False

    @cached_property
    def _plan(self) -> ProbePlan:
        return plan_probes(len(self.inputs), self.equalities, self.order)

    @cached_property
    def output_schema(self) -> dict[str, pl.DataType]:
        schema = {name: dtype for each in self.inputs for name, dtype in each.schema.items()}
        if self.summing:
            measures = [name for each in self.inputs for name in each.measures]
            schema |= dict.fromkeys((COUNT, *measures), TOTAL)
        return schema

    def initial(self) -> States[Runs]:
        return States({str(number): each.empty() for number, each in enumerate(self.inputs)})

    def restore(self, chunks: Mapping[str, pl.DataFrame]) -> States[Runs]:
        return self.initial().restored(chunks)

    def advance(
        self, state: States[Runs], inputs: Sequence[Batch], clock: Clock
    ) -> tuple[States[Runs], Batch]:
        """The results of the rows born in the step, with one another and with all before."""
        new = [each.located(batch.frame) for each, batch in zip(self.inputs, inputs, strict=True)]
        before = pl.lit(BEGINNING, dtype=pl.Int64).alias(BORN)
        old = [
            buckets.frame.with_columns(before).select(rows.columns)
            for buckets, rows in zip(state.named.values(), new, strict=True)
        ]
        found = []
        for origin, rows in enumerate(new):
            if rows.height:
                # Those before it as they are after the step, those after it as they were before: each once.
                others = [pl.concat([frame, new[n]]) if n < origin else frame for n, frame in enumerate(old)]
                found.append(self._results(origin, rows, others))
        after = dict(state.named)
        for (name, buckets), each, rows in zip(state.named.items(), self.inputs, new, strict=True):
            if rows.height:
                after[name] = buckets.only(each.counted(buckets.frame, rows), clock.upto)
        pieces = [piece for piece in found if piece.height]
        return States(after), self._batch(pl.concat(pieces)) if pieces else Batch.empty(self.output_schema)

    def _results(self, origin: int, rows: pl.DataFrame, others: Sequence[pl.DataFrame]) -> pl.DataFrame:
        found = self._named(origin, rows)
        for step in self._plan.paths[origin]:
            if found.is_empty():
                break
            partner = self._named(step.input, others[step.input])
            keys = self._plan.keys[step.input][step.key]
            if keys:
                found = found.join(
                    partner, left_on=list(step.columns), right_on=list(keys), how="inner", coalesce=False
                )
            else:
                found = found.join(partner, how="cross")
        missing = [number for number in range(len(self.inputs)) if _births(number) not in found.columns]
        if missing:
            return pl.DataFrame(schema={COUNT: pl.Int64(), **self.output_schema, BORN: pl.Int64()})
        if self.residual is not None:
            found = found.filter(self.residual)
        return self._weighed(found)

    def _named(self, number: int, frame: pl.DataFrame) -> pl.DataFrame:
        """An input's rows with birth and count under names of their own."""
        each = self.inputs[number]
        return frame.select(
            *each.schema,
            *each.measures,
            pl.col(BORN).alias(_births(number)),
            pl.col(COUNT).alias(_counts(number)),
        )

    def _weighed(self, found: pl.DataFrame) -> pl.DataFrame:
        numbers = range(len(self.inputs))
        counts = [pl.col(_counts(number)) for number in numbers]
        if self.summing:
            counts = [count.cast(TOTAL) for count in counts]
        product = _product(counts)
        sums = []
        for number, each in enumerate(self.inputs):
            rest = [count for other, count in enumerate(counts) if other != number]
            sums += [_product([pl.col(name), *rest]).alias(name) for name in each.measures]
        born = pl.max_horizontal([pl.col(_births(number)) for number in numbers]).alias(BORN)
        plain = [name for each in self.inputs for name in each.schema]
        return found.select(*plain, *(sums if self.summing else ()), product.alias(COUNT), born)

    def _batch(self, found: pl.DataFrame) -> Batch:
        if not self.summing:
            found = found[np.repeat(np.arange(found.height), found[COUNT].to_numpy())]
        said = found.sort(BORN, maintain_order=True).with_columns(
            pl.lit(NEVER, dtype=pl.Int64).alias(DIES), pl.lit(1, dtype=pl.Int8).alias(SIGN)
        )
        return Batch(said.select(*self.output_schema, *LIFETIME_COLUMNS))


def _births(number: int) -> str:
    return f"_born.{number}"


def _counts(number: int) -> str:
    return f"_count.{number}"


def _product(factors: Sequence[pl.Expr]) -> pl.Expr:
    first, *rest = factors
    for factor in rest:
        first = first * factor
    return first
