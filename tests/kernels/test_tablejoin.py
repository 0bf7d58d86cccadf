"""A stream row meets a non-retroactive table as it is when the row arrives."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp
from tests.kernels.stepping import CUTS, lifetimes, rows, run, stream

from headgate.kernels.expressions import compile_scalar
from headgate.kernels.join.table_join import Kind, TableJoin
from headgate.model import types
from headgate.model.batch import BORN, DIES, LIFETIME_COLUMNS, SIGN, Batch
from headgate.model.scalar import Scalar, column
from headgate.model.time import BEGINNING, NEVER, Clock

STREAM: dict[str, pl.DataType] = {"s.k": pl.Int64(), "s.v": pl.Int64()}
TABLE: dict[str, pl.DataType] = {"t.k": pl.Int64(), "t.w": pl.Int64()}
KEYS = (("s.k", "t.k"),)
SMALLER = compile_scalar(Scalar(exp.LTE(this=column("s.v"), expression=column("t.w")), types.BOOLEAN))


def expected(
    left: pl.DataFrame, right: pl.DataFrame, keys: bool, residual: bool, kind: Kind
) -> Counter[tuple[Any, ...]]:
    """Every stream row against the table at its birth, straight from the definition."""
    found: Counter[tuple[Any, ...]] = Counter()
    for k, v, born, dies, _ in left.iter_rows():
        at: Counter[tuple[Any, ...]] = Counter()
        for tk, tw, from_, until, sign in right.iter_rows():
            if from_ <= born < until:
                at[tk, tw] += sign
        partners = [
            (tk, tw)
            for (tk, tw) in (+at).elements()
            if (not keys or (k is not None and k == tk))
            and (not residual or (v is not None and tw is not None and v <= tw))
        ]
        if kind == "inner":
            found.update((k, v, *partner, born, dies, 1) for partner in partners)
        elif bool(partners) == (kind == "semi"):
            found[k, v, born, dies, 1] += 1
    return found


SMALL = st.one_of(st.none(), st.integers(0, 2))
LEFT = st.lists(st.tuples(SMALL, SMALL, st.integers(0, 50), st.integers(1, 20)), max_size=15)
UPDATES = lifetimes(st.tuples(SMALL, SMALL), endings=True)
STATIC = st.lists(st.tuples(SMALL, SMALL), max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    left=LEFT, updates=UPDATES, static=STATIC, cuts=CUTS, restore=st.booleans(), keys=st.booleans(),
    residual=st.booleans(), kind=st.sampled_from(["inner", "semi", "anti"]),
)  # fmt: skip
def test_each_stream_row_sees_the_table_of_its_time(
    left: Any,
    updates: Any,
    static: Any,
    cuts: list[int],
    restore: bool,
    keys: bool,
    residual: bool,
    kind: Kind,
) -> None:
    left = rows(
        STREAM, [(k, v, t, t + length, 1) for k, v, t, length in sorted(left, key=lambda row: row[2])]
    )
    initially = [(k, w, BEGINNING + 1, NEVER, 1) for k, w in static]
    right = rows(TABLE, initially + [(*pair, *life) for pair, *life in updates])
    kernel = TableJoin(STREAM, TABLE, KEYS if keys else (), SMALLER if residual else None, kind)
    _, output = run(kernel, [left, right], cuts, restore=restore)
    assert Counter(output.rows()) == expected(left, right, keys, residual, kind)


@settings(max_examples=100, deadline=None)
@given(
    left=UPDATES, static=STATIC, cuts=CUTS, restore=st.booleans(), null_equal=st.booleans(),
    kind=st.sampled_from(["inner", "semi", "anti"]),
)  # fmt: skip
def test_a_static_table_says_the_same_to_a_row_and_to_its_ending(
    left: Any, static: Any, cuts: list[int], restore: bool, null_equal: bool, kind: Kind
) -> None:
    signed = [(*pair, *life) for pair, *life in left]
    right = rows(TABLE, [(k, w, BEGINNING + 1, NEVER, 1) for k, w in static])
    kernel = TableJoin(STREAM, TABLE, KEYS, kind=kind, static=True, null_equal=null_equal)
    _, output = run(kernel, [rows(STREAM, signed), right], cuts, restore=restore)
    found: Counter[tuple[Any, ...]] = Counter()
    for k, v, *life in signed:
        partners = [pair for pair in static if pair[0] == k and (k is not None or null_equal)]
        if kind == "inner":
            found.update((k, v, *pair, *life) for pair in partners)
        elif bool(partners) == (kind == "semi"):
            found[k, v, *life] += 1
    assert Counter(output.rows()) == found


def joined(
    left: list[tuple[int, int, int]], right: list[tuple[int, int, int, int, int]], cuts: list[int]
) -> list[Any]:
    _, output = run(TableJoin(STREAM, TABLE, KEYS), [stream(STREAM, left), rows(TABLE, right)], cuts)
    return output.select("s.v", "t.w", BORN).rows()


@pytest.mark.parametrize("cuts", [[], [3, 5, 9, 12], [4, 10]])
def test_updates_do_not_touch_earlier_rows_and_count_at_their_own_instant(cuts: list[int]) -> None:
    table = [(1, 10, 5, NEVER, 1), (1, 10, 12, NEVER, -1)]
    assert joined([(1, t, t) for t in (3, 5, 9, 12)], table, cuts) == [(5, 10, 5), (9, 10, 9)]


def test_a_result_lives_as_long_as_its_stream_row() -> None:
    table = [(1, 10, BEGINNING + 1, NEVER, 1), (1, 10, 6, NEVER, -1)]
    left = rows(STREAM, [(1, 1, 5, 15, 1)])
    _, output = run(TableJoin(STREAM, TABLE, KEYS), [left, rows(TABLE, table)], [5])
    assert output.select(BORN, DIES, SIGN).rows() == [(5, 15, 1)]


def test_results_come_in_the_order_of_the_stream() -> None:
    table = [(k, w, BEGINNING + 1, NEVER, 1) for k in (2, 1) for w in (8, 9)]
    assert joined([(1, 0, 5), (2, 1, 5), (1, 2, 5)], table, []) == [
        (0, 8, 5), (0, 9, 5), (1, 8, 5), (1, 9, 5), (2, 8, 5), (2, 9, 5),
    ]  # fmt: skip


def test_an_emptied_table_leaves_no_state() -> None:
    table = [(k, k, 1, NEVER, 1) for k in range(30)] + [(k, k, 9, NEVER, -1) for k in range(30)]
    state, _ = run(TableJoin(STREAM, TABLE, KEYS), [stream(STREAM, []), rows(TABLE, table)], [5])
    assert state.rows == 0


def test_table_rows_that_nothing_can_meet_are_not_stored() -> None:
    table = rows(TABLE, [(None, 1, 1, NEVER, 1), (None, 1, 5, NEVER, -1), (None, 2, 6, NEVER, 1)])
    state, _ = run(TableJoin(STREAM, TABLE, KEYS), [stream(STREAM, []), table], [3])
    assert state.rows == 0


def test_the_stream_is_not_stored() -> None:
    state, _ = run(
        TableJoin(STREAM, TABLE, KEYS), [stream(STREAM, [(1, t, t) for t in range(50)]), rows(TABLE, [])], [5]
    )
    assert state.rows == 0


def test_a_stream_row_cannot_be_taken_back() -> None:
    kernel = TableJoin(STREAM, TABLE, KEYS)
    with pytest.raises(ValueError, match="taken back"):
        kernel.advance(
            kernel.initial(),
            [Batch(rows(STREAM, [(1, 1, 5, NEVER, -1)])), Batch(rows(TABLE, []))],
            Clock(0, 9, 1),
        )


def test_columns_have_different_names_on_the_two_sides() -> None:
    with pytest.raises(ValueError, match="both sides"):
        TableJoin(STREAM, STREAM, ())
    output = TableJoin(STREAM, TABLE, ())
    _, batch = output.advance(
        output.initial(),
        [Batch(stream(STREAM, [(1, 1, 5)])), Batch(rows(TABLE, [(2, 2, 1, NEVER, 1)]))],
        Clock(0, 9, 1),
    )
    assert batch.frame.columns == [*STREAM, *TABLE, *LIFETIME_COLUMNS]
