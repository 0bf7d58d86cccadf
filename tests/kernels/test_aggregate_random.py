"""At every instant the output of an aggregate is the aggregate of the contents, for random streams."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.aggregate_reference import Row, contents, expected, run

from headgate.kernels.aggregate import Aggregate, AggregateCall, Function
from headgate.model.time import NEVER

LAST = 14
"""The last birth."""
END = 24
"""By then, what dies is dead."""

UTC = dt.UTC
VALUES: dict[pl.DataType, st.SearchStrategy[Any]] = {
    pl.Int64(): st.sampled_from([0, 1, 2, 3, -5, 2**40]) | st.integers(-(2**56), 2**56),
    pl.Int16(): st.integers(-3, 3),
    pl.Float64(): st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1e16, -1e16, math.inf, -math.inf, math.nan])
    | st.floats(-1e300, 1e300),
    pl.Float32(): st.sampled_from([0.5, -1.25, math.nan, math.inf]) | st.floats(width=32, allow_nan=False),
    pl.Decimal(9, 2): st.decimals(-1_000_000, 1_000_000, places=2)
    | st.sampled_from([Decimal("0.01"), Decimal(0)]),
    pl.Decimal(38, 6): st.decimals(-(10**24), 10**24, places=6) | st.sampled_from([Decimal(1), Decimal(-1)]),
    pl.String(): st.sampled_from(["", "a", "b", "ab", "é", "zz"]),
    pl.Boolean(): st.booleans(),
    pl.Date(): st.sampled_from([dt.date(1960, 2, 29), dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
    pl.Datetime("us", "UTC"): st.sampled_from(
        [dt.datetime(1950, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1, 0, 0, 0, 1, UTC)]
    ),
}
KEYS: dict[pl.DataType, st.SearchStrategy[Any]] = {
    pl.Int64(): st.sampled_from([None, 1, 2]),
    pl.Float64(): st.sampled_from([None, 0.0, -0.0, math.nan]),
    pl.String(): st.sampled_from([None, "", "a"]),
}

cuts = st.lists(st.integers(0, END), max_size=6)


def rows(
    values: st.SearchStrategy[Any], keys: st.SearchStrategy[Any], *, endings: bool
) -> st.SearchStrategy[list[Row]]:
    """Announced lifetimes of (key, value), some of them taken back before they end."""

    @st.composite
    def lifetimes(draw: st.DrawFn) -> list[Row]:
        drawn = []
        few = draw(st.lists(values, min_size=1, max_size=5))
        for _ in range(draw(st.integers(0, 16))):
            payload = draw(keys), draw(st.none() | st.sampled_from(few) | values)
            born = draw(st.integers(0, LAST))
            dies = draw(st.just(NEVER) | st.integers(born + 1, born + 9))
            drawn.append(Row(payload, born, dies))
            if endings and min(dies, END) > born + 1 and draw(st.booleans()):
                drawn.append(Row(payload, draw(st.integers(born + 1, min(dies, END) - 1)), dies, -1))
        return drawn

    return lifetimes()


def calls_over(dtype: pl.DataType, key: pl.DataType) -> list[AggregateCall]:
    """Every call that the types of a value and a key allow."""
    found = [
        AggregateCall(Function.COUNT, None, "rows"),
        AggregateCall(Function.COUNT, "x", "count"),
        AggregateCall(Function.COUNT, "x", "count_distinct", distinct=True),
        AggregateCall(Function.MIN, "x", "min"),
        AggregateCall(Function.MAX, "x", "max", distinct=True),
        AggregateCall(Function.TOP, "x", "top", parameter=2),
        AggregateCall(Function.ANY_VALUE, "x", "any_value"),
        AggregateCall(Function.MIN_BY, "x", "min_by", second="k"),
        AggregateCall(Function.MAX_BY, "k", "max_by", second="x"),
        AggregateCall(Function.LAST, "x", "last", second="k"),
        AggregateCall(Function.COLLECT_LIST, "x", "list", second="k"),
        AggregateCall(Function.COLLECT_SET, "x", "set"),
        AggregateCall(Function.APPROX_COUNT_DISTINCT, "x", "about"),
    ]
    if dtype == pl.Boolean():
        found += [AggregateCall(Function.BOOL_AND, "x", "all"), AggregateCall(Function.BOOL_OR, "x", "some")]
    if dtype.is_integer() or dtype.is_float():
        found.append(AggregateCall(Function.APPROX_PERCENTILE, "x", "rank", parameter=0.7))
    if dtype.is_numeric():
        found += [
            AggregateCall(Function.SUM, "x", "sum"),
            AggregateCall(Function.AVG, "x", "avg"),
            AggregateCall(Function.SUM, "x", "sum_distinct", distinct=True),
            AggregateCall(Function.AVG, "x", "avg_distinct", distinct=True),
            AggregateCall(Function.MEDIAN, "x", "median"),
            AggregateCall(Function.QUANTILE, "x", "quantile", parameter=0.3),
            AggregateCall(Function.VAR_POP, "x", "var_pop"),
            AggregateCall(Function.VAR_SAMP, "x", "var_samp"),
            AggregateCall(Function.STDDEV_POP, "x", "stddev_pop"),
            AggregateCall(Function.STDDEV_SAMP, "x", "stddev_samp"),
            AggregateCall(Function.CORR, "x", "alike", second="x"),
        ]
    if dtype.is_numeric() and key.is_numeric():
        found += [
            AggregateCall(Function.COVAR_POP, "x", "covar_pop", second="k"),
            AggregateCall(Function.COVAR_SAMP, "k", "covar_samp", second="x"),
            AggregateCall(Function.CORR, "x", "corr", second="k"),
        ]
    return found


@st.composite
def cases(draw: st.DrawFn, dtype: pl.DataType, *, keyed: bool | None = None) -> tuple[Aggregate, list[Row]]:
    """A kernel with some calls over a value of the type, and rows for it."""
    endings = draw(st.booleans())
    key = draw(st.sampled_from(list(KEYS)))
    calls = draw(st.lists(st.sampled_from(calls_over(dtype, key)), min_size=1, max_size=4, unique=True))
    keys = ("k",) if (draw(st.booleans()) if keyed is None else keyed) else ()
    kernel = Aggregate({"k": key, "x": dtype}, keys, tuple(calls), slide=None, append=False, endings=endings)
    return kernel, draw(rows(VALUES[dtype], KEYS[key], endings=endings))


def in_order(said: Sequence[Row]) -> list[Row]:
    return sorted(said, key=lambda row: (row.born, row.sign, repr(row.payload)))


fewer = settings(max_examples=max(10, settings().max_examples // 5))


@pytest.mark.parametrize("dtype", VALUES, ids=str)
@fewer
@given(st.data())
def test_the_output_at_every_instant_is_the_aggregate_of_the_contents(
    dtype: pl.DataType, data: st.DataObject
) -> None:
    kernel, given_rows = data.draw(cases(dtype))
    said, _ = run(
        kernel,
        given_rows,
        cuts=data.draw(cuts),
        until=END,
        epoch=data.draw(st.integers(0, END)),
        restoring=data.draw(st.booleans()),
    )
    for instant in range(END + 1):
        assert contents(said, instant) == expected(kernel, given_rows, instant), f"at {instant}"


@pytest.mark.parametrize("dtype", [pl.Float64(), pl.Int64(), pl.String()], ids=str)
@fewer
@given(st.data())
def test_no_split_into_steps_changes_a_single_row(dtype: pl.DataType, data: st.DataObject) -> None:
    kernel, given_rows = data.draw(cases(dtype))
    at_once, _ = run(kernel, given_rows, until=END)
    in_steps, _ = run(kernel, given_rows, cuts=data.draw(cuts), until=END)
    restored, _ = run(kernel, given_rows, cuts=range(0, END, 4), until=END, restoring=True)
    assert in_order(in_steps) == in_order(at_once)
    assert in_order(restored) == in_order(at_once)


@fewer
@given(cases(pl.Int64()))
def test_a_value_that_stays_is_not_ended_and_announced_again(case: tuple[Aggregate, list[Row]]) -> None:
    kernel, given_rows = case
    said, _ = run(kernel, given_rows, cuts=range(0, END, 5), until=END)
    changes = [(row.born, row.payload) for row in said]
    assert len(set(changes)) == len(changes)


@fewer
@given(cases(pl.Float64()), cuts)
def test_append_announces_what_is_announced_and_ends_nothing(
    case: tuple[Aggregate, list[Row]], stops: list[int]
) -> None:
    kernel, given_rows = case
    appending = Aggregate(
        kernel.schema, kernel.keys, kernel.calls, slide=None, append=True, endings=kernel.endings
    )
    said, _ = run(kernel, given_rows, until=END)
    appended, _ = run(appending, given_rows, cuts=stops, until=END)
    assert in_order(appended) == in_order([row for row in said if row.sign == 1])


@pytest.mark.parametrize("dtype", [pl.Float64(), pl.String()], ids=str)
@fewer
@given(st.data())
def test_when_everything_has_died_nothing_is_kept(dtype: pl.DataType, data: st.DataObject) -> None:
    kernel, given_rows = data.draw(cases(dtype))
    mortal = [row for row in given_rows if row.dies < NEVER]
    _, state = run(kernel, mortal, cuts=data.draw(cuts), until=END)
    # The one group without keys stays; its table may hold a row twice.
    assert state.rows <= (0 if kernel.keys else 2)


@fewer
@given(cases(pl.Int64(), keyed=False), st.integers(0, 12), st.integers(1, 9), cuts)
def test_without_keys_there_is_a_row_from_the_first_tick_on(
    case: tuple[Aggregate, list[Row]], start: int, slide: int, stops: list[int]
) -> None:
    kernel, given_rows = case
    sliding = Aggregate(kernel.schema, (), kernel.calls, slide=slide, append=False, endings=kernel.endings)
    said, _ = run(sliding, given_rows, cuts=stops, until=END, start=start)
    opens = -(-start // slide) * slide
    for instant in range(END + 1):
        assert contents(said, instant) == expected(sliding, given_rows, instant, opens), f"at {instant}"
