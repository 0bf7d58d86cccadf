"""Kernels that keep little: representatives, counted buckets, and what closes clustered values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.kernels.distinct.representatives import Bucket, Representatives, Side
from headgate.kernels.join.bucket_join import COUNT, BucketInput, BucketJoin, filled_column, sum_column
from headgate.kernels.kernel import Kernel
from headgate.kernels.punctuation.clusters import ClusterPunctuator
from headgate.model.batch import BORN, SIGN, Batch
from headgate.model.time import Clock

Rows = Sequence[tuple[Any, ...]]


def batch(rows: Rows, names: Sequence[str]) -> Batch:
    """Rows as (instant, values…)."""
    schema = {BORN: pl.Int64(), **dict.fromkeys(names, pl.Int64())}
    frame = pl.DataFrame(list(rows), schema=schema, orient="row")
    return Batch.of(frame.select(*names, BORN), born=pl.col(BORN))


def said(
    kernel: Kernel[Any], inputs: Sequence[tuple[Rows, Sequence[str]]], step: int
) -> list[tuple[Any, ...]]:
    """All that a kernel says, in clock steps of a length, its state written down and read again after each."""
    last = max((row[0] for rows, _ in inputs for row in rows), default=0)
    state, found = kernel.initial(), []
    for after in range(-1, last + 1, step):
        clock = Clock(after, after + step, 0)
        pieces = [
            batch([row for row in rows if after < row[0] <= after + step], names) for rows, names in inputs
        ]
        state, output = kernel.advance(state, pieces, clock)
        output.check(clock)
        state = kernel.restore(state.chunks())
        found += output.frame.sort(BORN, maintain_order=True).select(BORN, SIGN, *output.payload).rows()
    return sorted(found, key=lambda row: [(value is None, value or 0) for value in row])


def least_b(bucket: Bucket) -> tuple[Side, ...]:
    return (Side("least", ("code.b",)),)


LEAST = Representatives(
    {"a": pl.Int64(), "b": pl.Int64()},
    pl.col("a") < 20,
    {"code.a": pl.col("a"), "code.b": pl.col("b")},
    (pl.col("code.a"),),
    least_b,
)


@pytest.mark.parametrize("step", [1, 2, 9])
def test_a_better_row_takes_over(step: int) -> None:
    rows = [(1, 11, 7), (2, 11, 9), (3, 12, 3), (4, 11, 5), (5, 21, 1), (6, 11, None)]
    expected = [(1, 1, 11, 7), (3, 1, 12, 3), (4, -1, 11, 7), (4, 1, 11, 5)]
    assert said(LEAST, [(rows, "ab")], step) == sorted(expected)


def test_only_the_last_of_several_at_one_instant_lives() -> None:
    assert said(LEAST, [([(1, 11, 9), (1, 11, 7), (1, 11, 8)], "ab")], 5) == [(1, 1, 11, 7)]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(11, 12), st.integers(0, 5))), st.integers(1, 11))
def test_what_is_alive_is_the_least_of_each(rows: list[tuple[int, int, int]], step: int) -> None:
    rows.sort(key=lambda row: row[0])
    alive: dict[tuple[Any, ...], int] = {}
    for _, sign, *row in said(LEAST, [(rows, "ab")], step):
        alive[tuple(row)] = alive.get(tuple(row), 0) + sign
    least = {a: min(b for _, other, b in rows if other == a) for _, a, _ in rows}
    assert {row for row, count in alive.items() if count} == set(least.items())
    assert all(count in (0, 1) for count in alive.values())


def counted(*, summing: bool) -> BucketJoin:
    schema = {"a": pl.Int64(), "b": pl.Int64()}
    left = BucketInput(schema, None, (pl.col("a"),), {"b": pl.col("b")} if summing else {})
    right = BucketInput({"d": pl.Int64()}, None, (pl.col("d"),), {})
    return BucketJoin((left, right), (((0, "a"), (1, "d")),), None, (0, 1), summing)


LEFT, RIGHT = [(1, 11, 5), (2, 11, 6), (3, 12, 7), (6, 11, None)], [(4, 11), (5, 13), (6, 11)]


@pytest.mark.parametrize("step", [1, 3, 9])
def test_a_row_meets_a_bucket_as_often_as_it_counts(step: int) -> None:
    found = said(counted(summing=False), [(LEFT, "ab"), (RIGHT, "d")], step)
    assert [(born, a, d) for born, _, a, _, d in found] == [(4, 11, 11)] * 2 + [(6, 11, 11)] * 4


@pytest.mark.parametrize("step", [1, 3, 9])
def test_sums_are_taken_before_the_join(step: int) -> None:
    names = ("a", "b", "d", COUNT, sum_column("b"), filled_column("b"))
    kernel = counted(summing=True)
    assert tuple(kernel.output_schema) == names
    found = said(kernel, [(LEFT, "ab"), (RIGHT, "d")], step)
    # (5 + 6) met once at 4; at 6 the new right row meets all three and the old one meets the new left row.
    assert sum(row[-3] for row in found) == 6
    assert sum(row[-2] for row in found) == 22
    assert sum(row[-1] for row in found) == 4


@pytest.mark.parametrize("step", [1, 2, 9])
def test_a_value_is_closed_when_too_many_others_have_come(step: int) -> None:
    rows = [(1, 7), (2, 7), (3, 8), (4, 9), (5, None), (6, 8)]
    assert said(ClusterPunctuator({"a": pl.Int64()}, 2), [(rows, "a")], step) == [(5, 1, 7)]


def test_only_what_is_open_is_remembered() -> None:
    kernel = ClusterPunctuator({"a": pl.Int64()}, 3)
    state, _ = kernel.advance(kernel.initial(), [batch([(n, n) for n in range(50)], "a")], Clock(-1, 99, 0))
    assert state.rows == 4
