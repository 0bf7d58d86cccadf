"""Groups over panes: at every instant the aggregate of what is there, with nothing remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.aggregate_reference import Row, batch_of, contents, expected, rows_of
from tests.kernels.test_aggregate_random import KEYS, VALUES, calls_over, fewer

from headgate.kernels.aggregate import Aggregate, AggregateCall, Function, PaneAggregate, by_panes
from headgate.kernels.aggregate.condense import Condense, merging
from headgate.kernels.stateless import EmptyState
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import Clock

PANES = 5


@st.composite
def in_panes(
    draw: st.DrawFn, values: st.SearchStrategy[Any], keys: st.SearchStrategy[Any], length: int
) -> list[Row]:
    drawn = st.tuples(st.integers(1, PANES), keys, st.none() | values)
    rows = draw(st.lists(drawn, max_size=16))
    return [
        Row((key, value), at * length, (at + 1) * length)
        for at, key, value in sorted(rows, key=lambda row: row[0])
    ]


def run(kernel: PaneAggregate, rows: Sequence[Row], cuts: Sequence[int], until: int) -> list[Row]:
    said, after = [], -1
    for upto in sorted({*cuts, until}):
        batch = batch_of(kernel.aggregate.schema, [row for row in rows if after < row.born <= upto])
        clock = Clock(after, upto, 0)
        state, output = kernel.advance(kernel.initial(), [batch], clock)
        output.check(clock)
        assert not state.chunks()
        said += rows_of(output)
        after = upto
    return said


@pytest.mark.parametrize("dtype", VALUES, ids=str)
@fewer
@given(st.data())
def test_at_every_instant_the_aggregate_of_the_pane(dtype: pl.DataType, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(list(KEYS)))
    length = data.draw(st.sampled_from([1, 3]))
    schema = {"k": key, "x": dtype}
    calls = [
        call for call in calls_over(dtype, key) if by_panes(Aggregate(schema, ("k",), (call,))) is not None
    ]
    chosen = data.draw(st.lists(st.sampled_from(calls), min_size=1, max_size=4, unique=True))
    kernel = by_panes(Aggregate(schema, ("k",), tuple(chosen)))
    assert kernel is not None
    rows = data.draw(in_panes(VALUES[dtype], KEYS[key], length))
    until = (PANES + 2) * length
    said = run(kernel, rows, data.draw(st.lists(st.integers(0, until - 1), max_size=4)), until)
    for instant in range(until):
        assert contents(said, instant) == expected(kernel.aggregate, rows, instant)


def test_parts_of_panes_make_the_same_rows() -> None:
    schema = {"k": pl.Int64(), "x": pl.Float64()}
    calls = (AggregateCall(Function.AVG, "x", "mean"), AggregateCall(Function.MAX, "x", "most"))
    kernel = by_panes(Aggregate(schema, ("k",), calls))
    assert kernel is not None
    batch = batch_of(
        schema, [Row((each % 3, each / 10), 5 * (each // 50), 5 * (each // 50) + 5) for each in range(150)]
    )
    clock = Clock(-1, 50, 0)
    parts = [
        Condense(kernel.aggregate).advance(EmptyState(), [Batch(batch.frame[part::2])], clock)[1]
        for part in range(2)
    ]
    together = Batch(Batch.concat(parts).frame.sort(BORN, maintain_order=True))
    _, merged = PaneAggregate(merging(kernel.aggregate)).advance(EmptyState(), [together], clock)
    _, whole = kernel.advance(EmptyState(), [batch], clock)
    assert sorted(rows_of(merged), key=str) == sorted(rows_of(whole), key=str)


def test_what_needs_single_values_or_a_row_over_nothing_is_left_to_others() -> None:
    schema = {"k": pl.Int64(), "x": pl.Int64()}
    count = AggregateCall(Function.COUNT, None, "n")
    assert by_panes(Aggregate(schema, (), (count,))) is None
    assert by_panes(Aggregate(schema, ("k",), (count,), append=True)) is None
    assert by_panes(Aggregate(schema, ("k",), (AggregateCall(Function.MEDIAN, "x", "middle"),))) is None
    assert by_panes(Aggregate(schema, ("k",), (count, AggregateCall(Function.MIN, "x", "least")))) is not None


def test_rows_of_a_pane_need_not_come_together() -> None:
    schema = {"k": pl.Int64()}
    kernel = by_panes(Aggregate(schema, ("k",), (AggregateCall(Function.COUNT, None, "n"),)))
    assert kernel is not None
    many = 20_000
    born = pl.concat([pl.repeat(at, many, dtype=pl.Int64, eager=True) for at in (5, 10, 5, 10)])
    frame = pl.DataFrame(
        {"k": pl.repeat(1, 4 * many, dtype=pl.Int64, eager=True), BORN: born, DIES: born + 5}
    )
    batch = Batch(frame.with_columns(pl.lit(1, pl.Int8).alias(SIGN)))
    _, said = kernel.advance(EmptyState(), [batch], Clock(0, 50, 0))
    assert rows_of(said) == [Row((1, 2 * many), 5, 10), Row((1, 2 * many), 10, 15)]
