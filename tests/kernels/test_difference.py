"""EXCEPT ALL: at every instant as many copies of a value as the left side has more than the right."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.signed import PATTERNS, Contents, Row, assert_exact, cuts, steps, stream

from headgate.kernels.distinct.difference import Difference
from headgate.model.time import NEVER

ONE = {"v": pl.String()}
SCHEMA = {"k": pl.Int64(), "x": pl.Float64()}

values = st.tuples(st.one_of(st.none(), st.integers(0, 1)), st.sampled_from([None, -0.0, 0.0, float("nan")]))


def more_on_the_left(left: Contents, right: Contents) -> Contents:
    return left - right


def said(left: list[Row], right: list[Row], stops: list[int]) -> list[Row]:
    return [row for step in steps(Difference(ONE), [ONE, ONE], [left, right], stops) for row in step.said]


def test_a_right_row_takes_one_copy_away_and_its_death_gives_it_back() -> None:
    left: list[Row] = [(("a",), 1, NEVER, 1), (("a",), 2, NEVER, 1)]
    right: list[Row] = [(("a",), 4, 7, 1)]
    assert said(left, right, [3, 5]) == [
        (("a",), 1, NEVER, 1),
        (("a",), 2, NEVER, 1),
        (("a",), 4, NEVER, -1),
        (("a",), 7, NEVER, 1),
    ]


def test_right_rows_beyond_the_left_ones_are_remembered() -> None:
    right: list[Row] = [(("a",), 1, NEVER, 1), (("a",), 1, NEVER, 1)]
    left: list[Row] = [(("a",), at, NEVER, 1) for at in (2, 3, 4)]
    assert said(left, right, [1, 2, 3]) == [(("a",), 4, NEVER, 1)]


def test_rows_that_come_to_both_sides_at_one_instant_say_nothing() -> None:
    rows: list[Row] = [(("a",), 3, 8, 1)]
    assert said(rows, rows, [3, 5]) == []


def test_several_copies_change_at_once() -> None:
    left: list[Row] = [(("a",), 1, 5, 1)] * 3
    assert said(left, [], [2]) == [(("a",), 1, NEVER, 1)] * 3 + [(("a",), 5, NEVER, -1)] * 3


@given(data=st.data(), stops=cuts, restored=st.booleans())
def test_the_answer_is_the_bag_difference_of_the_contents(
    data: st.DataObject, stops: list[int], restored: bool
) -> None:
    inputs = [data.draw(stream(data.draw(st.sampled_from(PATTERNS)), values)) for _ in range(2)]
    assert_exact(Difference(SCHEMA), [SCHEMA, SCHEMA], inputs, stops, more_on_the_left, restored=restored)


@given(data=st.data(), stops=cuts)
def test_nothing_is_kept_when_everything_has_died(data: st.DataObject, stops: list[int]) -> None:
    mortal = [stream(pattern, values) for pattern in ("WKS", "WK", "STR")]
    inputs = [[row for row in data.draw(st.one_of(mortal)) if row[2] < NEVER] for _ in range(2)]
    *_, last = steps(Difference(SCHEMA), [SCHEMA, SCHEMA], inputs, stops)
    assert last.state.rows == 0
