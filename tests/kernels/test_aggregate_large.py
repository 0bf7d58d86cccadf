"""Aggregates over thousands of rows and many steps, compared at some instants with DuckDB and Polars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import polars as pl
import pytest

from headgate.kernels.aggregate import Aggregate, AggregateCall, Function
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, Clock

ROWS = 6_000
SPAN = 3_000
STEPS = 24

SQL = {
    "n": "count(*)",
    "count": "count(x)",
    "count_distinct": "count(DISTINCT x)",
    "sum": "sum(x)",
    "sum_distinct": "sum(DISTINCT x)",
    "avg": "avg(x)",
    "min": "min(x)",
    "max": "max(x)",
    "median": "median(x)",
    "quantile": "quantile_cont(x, 0.9)",
}
CALLS = (
    AggregateCall(Function.COUNT, None, "n"),
    AggregateCall(Function.COUNT, "x", "count"),
    AggregateCall(Function.COUNT, "x", "count_distinct", distinct=True),
    AggregateCall(Function.SUM, "x", "sum"),
    AggregateCall(Function.SUM, "x", "sum_distinct", distinct=True),
    AggregateCall(Function.AVG, "x", "avg"),
    AggregateCall(Function.MIN, "x", "min"),
    AggregateCall(Function.MAX, "x", "max"),
    AggregateCall(Function.MEDIAN, "x", "median"),
    AggregateCall(Function.QUANTILE, "x", "quantile", parameter=0.9),
)
TOP = AggregateCall(Function.TOP, "x", "top", parameter=3)


@dataclass(frozen=True)
class Life:
    """Rows with the instant at which they really end, and the signed lifetimes that say so."""

    truth: pl.DataFrame
    signed: pl.DataFrame

    def alive(self, instant: int) -> pl.DataFrame:
        return self.truth.filter((pl.col(BORN) <= instant) & (pl.col("ends") > instant)).select("k", "x")


def life(values: str, *, endings: bool, constant: bool = False, seed: int = 0) -> Life:
    """A few groups, one of which has half of the rows; deaths at random, some announced too late or never."""
    random = np.random.default_rng(seed)
    born = np.sort(random.integers(0, SPAN, ROWS))
    dies = born + (400 if constant else random.integers(1, 1_200, ROWS))
    ends = dies.copy()
    if endings:
        early = random.random(ROWS) < 0.4
        ends[early] = (
            born[early] + 1 + (random.random(early.sum()) * (dies - born - 1)[early]).astype(np.int64)
        )
        dies = np.where(early & (random.random(ROWS) < 0.5), NEVER, dies)
    key = np.where(random.random(ROWS) < 0.5, 0, random.integers(1, 30, ROWS))
    match values:
        case "few":
            x = pl.Series(random.integers(-20, 20, ROWS))
        case "rising":
            x = pl.Series(np.arange(ROWS))
        case _:
            x = pl.Series(random.normal(0, 1e6, ROWS))
    x = pl.select(pl.when(pl.Series(random.random(ROWS) < 0.95)).then(x)).to_series()
    truth = pl.DataFrame({"k": key, "x": x, BORN: born, DIES: dies, "ends": ends})
    rows = truth.select("k", "x", BORN, DIES, pl.lit(1, pl.Int8).alias(SIGN))
    back = truth.filter(pl.col("ends") < pl.col(DIES)).select(
        "k", "x", pl.col("ends").alias(BORN), DIES, pl.lit(-1, pl.Int8).alias(SIGN)
    )
    return Life(truth, pl.concat([rows, back]))


def answers(kernel: Aggregate, rows: Life) -> Iterator[tuple[int, pl.DataFrame]]:
    """The output's contents after each step: the last word on each group, if it is not an ending."""
    state, after, said = kernel.initial(), -1, []
    for upto in np.linspace(50, SPAN + 1_300, STEPS).astype(int).tolist():
        batch = Batch(rows.signed.filter((pl.col(BORN) > after) & (pl.col(BORN) <= upto)))
        state, output = kernel.advance(state, [batch], Clock(after, upto, 0))
        said.append(output.frame)
        after = upto
        last = pl.concat(said).group_by(kernel.keys, maintain_order=True).last()
        yield upto, last.filter(pl.col(SIGN) == 1).select(kernel.output_schema.keys()).sort(kernel.keys)
    assert state.rows == 0


@pytest.mark.parametrize("endings", [False, True], ids=["announced", "ended"])
@pytest.mark.parametrize("values", ["few", "rising", "doubles"])
def test_numbers_agree_with_duckdb(values: str, endings: bool) -> None:
    rows = life(values, endings=endings)
    schema = {"k": pl.Int64(), "x": rows.truth.schema["x"]}
    kernel = Aggregate(schema, ("k",), CALLS, slide=None, append=False, endings=endings)
    select = ", ".join(f"{sql} AS {name}" for name, sql in SQL.items())
    for instant, answer in answers(kernel, rows):
        alive = rows.alive(instant).to_arrow()
        with duckdb.connect() as connection:
            connection.register("alive", alive)
            table = connection.sql(f"SELECT k, {select} FROM alive GROUP BY k ORDER BY k").arrow()
        reference = pl.DataFrame(table).cast(dict(answer.schema))
        assert answer.height == reference.height
        for name in answer.columns:
            ours, theirs = answer[name], reference[name]
            if answer.schema[name] == pl.Float64:
                assert ours.is_null().equals(theirs.is_null()), (instant, name)
                gap = (ours - theirs).abs().max() or 0.0
                assert gap <= 1e-12 * max(1.0, float(theirs.abs().max() or 0.0)), (instant, name)
            else:
                assert ours.equals(theirs), (instant, name)


@pytest.mark.parametrize("endings", [False, True], ids=["announced", "ended"])
def test_frequent_values_agree_with_polars(endings: bool) -> None:
    rows = life("few", endings=endings, seed=1)
    kernel = Aggregate(
        {"k": pl.Int64(), "x": pl.Int64()}, ("k",), (TOP,), slide=None, append=False, endings=endings
    )
    for instant, answer in answers(kernel, rows):
        counts = rows.alive(instant).filter(pl.col("x").is_not_null()).group_by("k", "x").len("count")
        best = (
            counts.sort("k", "count", "x", descending=[False, True, False])
            .group_by("k", maintain_order=True)
            .head(3)
        )
        reference = best.group_by("k", maintain_order=True).agg(
            pl.struct(pl.col("x").alias("item"), pl.col("count").cast(pl.Int64)).alias("top")
        )
        assert answer.filter(pl.col("top").is_not_null()).equals(reference.sort("k")), instant


def test_strings_agree_with_polars() -> None:
    rows = life("few", endings=True, seed=2)
    names = pl.col("x").cast(pl.String)
    spelled = Life(rows.truth.with_columns(names), rows.signed.with_columns(names))
    calls = (
        AggregateCall(Function.MIN, "x", "min"),
        AggregateCall(Function.MAX, "x", "max"),
        AggregateCall(Function.COUNT, "x", "count_distinct", distinct=True),
    )
    kernel = Aggregate({"k": pl.Int64(), "x": pl.String()}, ("k",), calls, slide=None, append=False)
    for instant, answer in answers(kernel, spelled):
        reference = (
            spelled.alive(instant)
            .group_by("k")
            .agg(
                pl.col("x").min().alias("min"),
                pl.col("x").max().alias("max"),
                pl.col("x").drop_nulls().n_unique().cast(pl.Int64).alias("count_distinct"),
            )
        )
        assert answer.equals(reference.sort("k")), instant
