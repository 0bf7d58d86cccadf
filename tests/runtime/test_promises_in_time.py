"""Rows that break a constraint whose k is a time, and the exact instant at which they do."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.oracle.values import Change
from tests.spark.shards import Cluster, stage_of

from headgate.kernels.punctuation.clusters_in_time import ClusterInTimePunctuator
from headgate.kernels.punctuation.order_in_time import OrderInTimePunctuator
from headgate.model.adherence import WithinTime
from headgate.model.batch import BORN, DIES, SIGN, Batch
from headgate.model.time import NEVER, SECOND, Clock
from headgate.runtime.promise_checker import PromiseChecker
from headgate.safety.promise import Promise, PromiseKind

Rows = list[tuple[int, int | None]]
"""An instant and a value each, in order of time."""

timed_rows = st.lists(st.tuples(st.integers(0, 30), st.none() | st.integers(0, 5)), min_size=1).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)


def frame_of(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={BORN: pl.Int64(), "a": pl.Int64()}, orient="row")


def within(kind: PromiseKind, length: int) -> Promise:
    return Promise("s", ("a",), None, kind, WithinTime(length))


def broken(promise: Promise, rows: Rows, *, step: int) -> list[int]:
    """The numbers of the rows that break the promise when they come in steps."""
    kept = PromiseChecker([promise])
    frame = frame_of(rows).with_row_index("number")
    return [
        number for piece in frame.iter_slices(step) for number in kept.split(piece)[1]["number"].to_list()
    ]


@given(timed_rows, st.integers(1, 5), st.integers(0, 9))
@example([(0, 5), (3, 4), (4, 4)], 1, 3)
def test_a_row_out_of_order_is_one_that_is_less_than_a_row_too_long_ago(
    rows: Rows, step: int, length: int
) -> None:
    """Exactly the time after a greater one it is still in order."""
    expected = [
        place
        for place, (at, value) in enumerate(rows)
        if value is not None
        and any(other is not None and other > value and at - before > length for before, other in rows)
    ]
    assert broken(within(PromiseKind.ORDER, length), rows, step=step) == expected


@given(timed_rows, st.integers(1, 5), st.integers(0, 9))
@example([(0, 5), (3, 5), (7, 5)], 1, 3)
def test_a_row_comes_back_if_its_value_was_left_too_long_ago(rows: Rows, step: int, length: int) -> None:
    """A value that was left for good stays so, whatever comes with it."""
    expected, last, gone = [], dict[int, int](), set[int]()
    for place, (at, value) in enumerate(rows):
        if value is None:
            continue
        if value in gone or at - last.get(value, at) > length:
            gone.add(value)
            expected.append(place)
        last[value] = at
    assert broken(within(PromiseKind.CLUSTER, length), rows, step=step) == expected


@pytest.mark.parametrize("kind", [PromiseKind.ORDER, PromiseKind.CLUSTER])
def test_what_is_remembered_is_what_came_within_the_time(kind: PromiseKind) -> None:
    checker = PromiseChecker([within(kind, 9)], memory=7)
    for start in range(0, 300, 30):
        numbers = range(start, start + 30)
        assert checker.split(frame_of([(number, number) for number in numbers]))[1].is_empty()
    state = checker.states[0]
    assert state.open is not None
    assert state.open.height + (0 if state.closed is None else state.closed.rows) <= 10 + 2 * 7


@pytest.mark.parametrize("kind", [PromiseKind.ORDER, PromiseKind.CLUSTER])
@given(rows=timed_rows, cuts=st.sets(st.integers(0, 30)), length=st.integers(0, 9))
def test_what_is_closed_is_what_would_be_broken(
    kind: PromiseKind, rows: Rows, cuts: set[int], length: int
) -> None:
    """The checker and the punctuator draw the line at one place: of rows that come next, what is closed is broken."""
    kernel = (
        OrderInTimePunctuator("a", pl.Int64(), length)
        if kind is PromiseKind.ORDER
        else ClusterInTimePunctuator({"a": pl.Int64()}, length)
    )
    promise = within(kind, length)
    checker, state, closed = PromiseChecker([promise]), kernel.initial(), set[int]()
    for after, upto in pairwise(sorted({-1, 31, *cuts})):
        kept, _ = checker.split(frame_of([row for row in rows if after < row[0] <= upto]))
        signed = kept.with_columns(
            pl.lit(NEVER, dtype=pl.Int64).alias(DIES), pl.lit(1, dtype=pl.Int8).alias(SIGN)
        )
        state, said = kernel.advance(state, [Batch(signed)], Clock(after, upto, 0))
        for value in said.frame["a"]:
            closed |= set(range(value)) if kind is PromiseKind.ORDER else {value}
        for value in range(6):
            known = [replace(each) for each in checker.states]
            following = PromiseChecker([promise], states=known).split(frame_of([(upto + 1, value)]))[1]
            assert (following.height == 1) == (value in closed)


def instants(*seconds: float) -> pa.Array:
    return pa.array([round(each * SECOND) for each in seconds], pa.timestamp("us", "UTC"))


DECLARED = "CREATE STREAM s (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts {};\nCREATE QUERY q AS {};"


@pytest.mark.parametrize("shards", [1, 4])
def test_a_row_that_comes_back_to_a_cluster_is_late_on_each_number_of_shards(shards: int) -> None:
    """Rows with one value are on one shard, and how long ago the last one was is the same there."""
    text = DECLARED.format("CLUSTERED BY (a) WITHIN 2 SECONDS", "SELECT a, SUM(b) AS b FROM s GROUP BY a")
    cluster = Cluster(stage_of(text, "q", {}, shards=shards))
    assert cluster.stage.shards == shards
    rows = {
        "ts": instants(1, 3, 3.5, 5.500001, 6),
        "a": [7, 7, 8, 8, 7],
        "b": [1, 2, 4, 8, 16],
    }
    cluster.batch({"s": [pa.table(rows)]})
    cluster.end()
    assert cluster.late == {"s": 2}
    assert [change for change in cluster.changes() if change.op == "+"] == [
        Change(1 * SECOND, "+", (7, 1)),
        Change(3 * SECOND, "+", (7, 3)),
        Change(3_500_000, "+", (8, 4)),
    ]


@pytest.mark.parametrize("shards", [1, 4])
def test_a_row_out_of_order_is_late_where_a_greater_one_came_to_its_shard(shards: int) -> None:
    """Each shard watches over its own rows; what breaks the order only beside rows of others closes nothing there."""
    text = DECLARED.format(
        "ORDERED BY (a) WITHIN 2 SECONDS", "SELECT a, b, COUNT(*) AS n FROM s GROUP BY a, b"
    )
    cluster = Cluster(stage_of(text, "q", {}, shards=shards))
    assert cluster.stage.shards == shards
    values = [*range(40), 0, 39]
    rows = {"ts": instants(*range(40), 42, 42), "a": values, "b": values}
    cluster.batch({"s": [pa.table(rows)]})
    cluster.end()
    assert cluster.late == {"s": 1}
    assert [change.row for change in cluster.changes() if change.op == "+"][-1] == (39, 39, 2)
