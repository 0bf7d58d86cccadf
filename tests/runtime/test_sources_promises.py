"""Rows that break a promise of their stream: late, counted, and not seen by a query that relies on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from headgate.model import types
from headgate.model.adherence import WithinRows
from headgate.model.scalar import Scalar
from headgate.physical.compile import compile_query
from headgate.physical.program import Program
from headgate.runtime.local.engine import LocalRun
from headgate.runtime.promise_checker import PromiseChecker
from headgate.safety.promise import Promise, PromiseKind
from headgate.session import Session

LAST = Promise("s", ("a",), Scalar.column("last", types.BOOLEAN), PromiseKind.PUNCTUATION)
KEY = Promise("s", ("a", "b"), None, PromiseKind.KEY)


def broken(
    promise: Promise, rows: list[tuple[int | None, int, bool]], *, memory: int = 100, step: int = 2
) -> list[int]:
    """The numbers of the rows that break the promise, when they come in steps."""
    kept = PromiseChecker([promise], memory=memory)
    schema = {"a": pl.Int64(), "b": pl.Int64(), "last": pl.Boolean()}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_row_index("number")
    return [
        number for piece in frame.iter_slices(step) for number in kept.split(piece)[1]["number"].to_list()
    ]


def test_a_row_after_its_closing_row_is_broken() -> None:
    rows = [
        (7, 0, False),
        (7, 0, True),
        (8, 0, False),
        (7, 0, False),
        (7, 1, True),
        (8, 0, True),
        (8, 0, False),
    ]
    for step in (1, 2, 7):
        assert broken(LAST, rows, step=step) == [3, 4, 6]


def test_a_key_comes_once() -> None:
    assert broken(KEY, [(1, 1, False), (1, 2, False), (1, 1, False), (1, 2, True)]) == [2, 3]


def test_null_closes_nothing() -> None:
    assert broken(LAST, [(None, 0, True), (None, 0, False)]) == []


def test_old_promises_are_forgotten() -> None:
    rows = [(number, 0, True) for number in range(5)] + [(4, 0, False), (0, 0, False)]
    assert broken(LAST, rows, memory=3) == [5]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans())), st.integers(1, 5))
def test_broken_is_what_has_an_earlier_closing_row(rows: list[tuple[int, int, bool]], step: int) -> None:
    expected = [n for n, row in enumerate(rows) if any(r[0] == row[0] and r[2] for r in rows[:n])]
    if rows:
        assert broken(LAST, list(rows), step=step) == expected


CLUSTERED = Promise("s", ("a",), None, PromiseKind.CLUSTER, WithinRows(2))


def test_a_clustered_value_does_not_come_back() -> None:
    rows = [(value, 0, False) for value in (1, 1, 2, 3, 1, 4, 5, 6, 1, 1, 6)]
    for step in (1, 2, 3, 20):
        assert broken(CLUSTERED, rows, step=step) == [8, 9]


@given(st.lists(st.one_of(st.integers(0, 3), st.none()), min_size=1), st.integers(1, 5), st.integers(0, 3))
def test_broken_is_what_comes_back_after_too_many_others(
    values: list[int | None], step: int, within: int
) -> None:
    expected, last, gone = [], {}, set[int]()
    for place, value in enumerate(values):
        gone |= {v for v, p in last.items() if place - p > within + 1 or (v != value and place - p > within)}
        if value in gone:
            expected.append(place)
        if value is not None:
            last[value] = place
    promise = Promise("s", ("a",), None, PromiseKind.CLUSTER, WithinRows(within))
    assert broken(promise, [(value, 0, False) for value in values], step=step) == expected


TEXT = """
CREATE STREAM items (ts TIMESTAMP, item BIGINT) TIMESTAMP BY ts KEY (item);
CREATE STREAM bids (ts TIMESTAMP, item BIGINT, last BOOLEAN) TIMESTAMP BY ts WITHIN INTERVAL 2 SECONDS
  PUNCTUATED BY (item) WHEN last;
CREATE QUERY q AS SELECT ISTREAM(i.item) FROM items i, bids b WHERE i.item = b.item;
CREATE QUERY plain AS SELECT ISTREAM(item) FROM bids;
"""


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def late_rows(query: str) -> tuple[list[int], int]:
    """The times of the late bids, and how many rows the query says."""
    session = Session()
    session.sql(TEXT)
    chosen = session.query(query)
    ready = compile_query(chosen.planned)
    bids = [(3, False), (6, True), (5, False), (7, False), (9, False)]
    frames = {
        "items": pl.DataFrame({"ts": [at(1)], "item": [7]}),
        "bids": pl.DataFrame(
            {"ts": [at(t) for t, _ in bids], "item": [7] * 5, "last": [last for _, last in bids]}
        ),
    }
    definitions = {stream.name: stream for stream in session.catalog.streams}
    used = [name for name in frames if name in ready.graph.streams]
    run = LocalRun(Program((ready,)), [(definitions[name], frames[name].iter_slices(2)) for name in used])
    late: list[int] = []
    said: list[pl.DataFrame] = []
    run.run(
        lambda name, frame: said.append(frame),
        lambda query, stream, frame: late.extend((each - at(0)).seconds for each in frame["ts"].to_list()),
    )
    assert run.states[query].metrics.late_rows == len(late)
    return late, sum(frame.height for frame in said)


def test_a_broken_row_is_late_and_a_disordered_one_is_not() -> None:
    assert late_rows("q") == ([7, 9], 3)


def test_who_relies_on_no_promise_sees_all_rows() -> None:
    assert late_rows("plain") == ([], 5)


def test_a_row_that_fails_a_check_that_a_query_relies_on_is_late() -> None:
    session = Session()
    session.sql(
        "CREATE STREAM s (ts TIMESTAMP, k STRING CHECK (k IN ('a', 'b'))) TIMESTAMP BY ts;"
        "CREATE QUERY few AS SELECT ISTREAM(DISTINCT k) FROM s;"
        "CREATE QUERY all_rows AS SELECT ISTREAM(k) FROM s;"
    )
    session.stream("s", [{"ts": at(n), "k": k} for n, k in enumerate(["a", "c", None, "b"])])
    few = session.query("few").run()
    assert [row["k"] for row in few.to_dicts()] == ["a", None, "b"]
    assert few.metrics.late_rows == 1
    assert session.query("all_rows").run().table.num_rows == 4


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 20), st.just(0), st.just(False)), max_size=25),
    st.integers(0, 4),
    st.integers(1, 5),
)
def test_a_row_out_of_order_is_one_that_is_less_than_a_row_too_long_ago(
    rows: list[tuple[int | None, int, bool]], within: int, step: int
) -> None:
    expected = [
        place
        for place, (value, _, _) in enumerate(rows)
        if value is not None
        and any(other is not None and other > value for other, _, _ in rows[: max(0, place - within)])
    ]
    order = Promise("s", ("a",), None, PromiseKind.ORDER, WithinRows(within))
    assert broken(order, rows, step=step) == expected
