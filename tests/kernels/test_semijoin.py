"""EXISTS: at every instant the left rows, with their multiplicities, that have a match on the right."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.matching import LEFT, RIGHT, Case, cases
from tests.kernels.signed import ENDLESS, PATTERNS, Contents, Row, assert_exact, contents, cuts, steps

from headgate.kernels.join.semi_join import SemiJoin
from headgate.model.time import NEVER

L, R = {"k": pl.String()}, {"rk": pl.String()}
LX, RX = {"k": pl.String(), "x": pl.Int64()}, {"rk": pl.String(), "rx": pl.Int64()}
KEYS = (("k", "rk"),)


def sure() -> SemiJoin:
    """Over inputs without endings."""
    return SemiJoin(L, R, KEYS, right_endings=False)


def said(kernel: SemiJoin, left: list[Row], right: list[Row], stops: list[int]) -> list[Row]:
    schemas = [kernel.left_schema, kernel.right_schema]
    return [row for step in steps(kernel, schemas, [left, right], stops) for row in step.said]


def test_without_endings_a_row_is_announced_until_its_match_dies_and_then_handed_on() -> None:
    left: list[Row] = [(("a",), 1, 12, 1)]
    right: list[Row] = [(("a",), 3, 6, 1), (("a",), 5, 9, 1)]
    assert said(sure(), left, right, [2, 4, 5, 7]) == [(("a",), 3, 6, 1), (("a",), 6, 9, 1)]


def test_a_row_that_comes_between_two_matches_is_handed_on_at_the_death_of_the_first() -> None:
    left: list[Row] = [(("a",), 3, 12, 1)]
    right: list[Row] = [(("a",), 1, 6, 1), (("a",), 2, 9, 1)]
    assert said(sure(), left, right, [1, 2, 4]) == [(("a",), 3, 6, 1), (("a",), 6, 9, 1)]


def test_with_endings_a_row_is_announced_until_its_own_death_and_ended_with_its_last_match() -> None:
    left: list[Row] = [(("a",), 1, 12, 1)]
    right: list[Row] = [(("a",), 3, NEVER, 1), (("a",), 5, NEVER, -1)]
    assert said(SemiJoin(L, R, KEYS), left, right, [2, 4]) == [(("a",), 3, 12, 1), (("a",), 5, 12, -1)]


def test_a_left_row_counts_as_often_as_it_is_there() -> None:
    left: list[Row] = [(("a",), 1, 9, 1)] * 2
    right: list[Row] = [(("a",), 2, 5, 1)] * 3
    assert said(sure(), left, right, [1]) == [(("a",), 2, 5, 1)] * 2


def test_a_null_key_matches_only_if_nulls_are_equal() -> None:
    left: list[Row] = [((None,), 1, 9, 1)]
    right: list[Row] = [((None,), 2, 5, 1)]
    assert said(SemiJoin(L, R, KEYS), left, right, []) == []
    assert_exact(
        SemiJoin(L, R, KEYS, null_equal=True),
        [L, R],
        [left, right],
        [3],
        lambda ours, theirs: ours if theirs else Counter(),
    )


def test_a_residual_is_asked_of_each_pair() -> None:
    kernel = SemiJoin(LX, RX, KEYS, pl.col("rx") > pl.col("x"), right_endings=False)
    left: list[Row] = [(("a", 1), 1, 20, 1), (("a", 5), 1, 20, 1)]
    right: list[Row] = [(("a", 3), 2, 10, 1), (("a", 7), 4, 6, 1)]
    assert said(kernel, left, right, [1, 2, 3]) == [(("a", 1), 2, 10, 1), (("a", 5), 4, 6, 1)]


def test_without_keys_any_right_row_will_do() -> None:
    kernel = SemiJoin(L, R, (), right_endings=False)
    left: list[Row] = [(("a",), 1, 9, 1), (("b",), 4, 9, 1)]
    right: list[Row] = [(("z",), 3, 6, 1)]
    assert sorted(said(kernel, left, right, [2])) == [(("a",), 3, 6, 1), (("b",), 4, 6, 1)]


def test_a_row_whose_match_stays_for_ever_is_not_kept() -> None:
    right: list[Row] = [(("a",), 1, NEVER, 1)]
    left: list[Row] = [(("a",), 2, NEVER, 1), (("b",), 2, NEVER, 1)]
    first, second = steps(sure(), [L, R], [left, right], [1])
    assert first.state.rows == 1
    assert second.state.rows == 2


def test_a_waiting_row_leaves_when_its_match_comes_to_stay() -> None:
    left: list[Row] = [(("a",), 1, NEVER, 1), (("a",), 1, NEVER, 1)]
    right: list[Row] = [(("a",), 5, NEVER, 1)]
    waiting, done = steps(sure(), [L, R], [left, right], [2])
    assert waiting.state.rows == 2
    assert done.state.rows == 1


def test_a_row_that_outlives_its_match_by_an_instant_waits_for_another() -> None:
    left: list[Row] = [(("a",), 1, 7, 1)]
    right: list[Row] = [(("a",), 2, 6, 1), (("a",), 6, 9, 1)]
    assert said(sure(), left, right, [1, 3, 5]) == [(("a",), 2, 6, 1), (("a",), 6, 7, 1)]


def test_what_takes_back_each_other_in_one_step_is_not_said() -> None:
    left: list[Row] = [(("a",), 1, 20, 1), (("a",), 4, 20, -1)]
    right: list[Row] = [(("a",), 6, NEVER, 1), (("a",), 8, NEVER, -1)]
    assert said(SemiJoin(L, R, KEYS), left, right, [2]) == []


def test_a_left_row_that_was_taken_back_waits_no_more() -> None:
    left: list[Row] = [(("a",), 1, 20, 1), (("b",), 1, 20, 1), (("a",), 4, 20, -1)]
    right: list[Row] = [(("a",), 6, 9, 1), (("b",), 6, 9, 1)]
    assert said(sure(), left, right, [2, 5]) == [(("b",), 6, 9, 1)]


@pytest.mark.parametrize("residuals", [False, True])
@pytest.mark.parametrize("patterns", [ENDLESS, PATTERNS])
@given(data=st.data(), stops=cuts, restored=st.booleans())
def test_the_answer_is_the_left_rows_with_a_match(
    patterns: tuple[str, ...], residuals: bool, data: st.DataObject, stops: list[int], restored: bool
) -> None:
    case = data.draw(cases(SemiJoin, patterns, residuals))

    def matched(left: Contents, right: Contents) -> Contents:
        return Counter({row: count for row, count in left.items() if case.has_match(row, right)})

    assert_exact(case.kernel, [LEFT, RIGHT], [case.left, case.right], stops, matched, restored=restored)


@given(case=cases(SemiJoin, ENDLESS), stops=cuts)
def test_inputs_without_endings_give_output_without_endings(case: Case, stops: list[int]) -> None:
    kernel = SemiJoin(LEFT, RIGHT, case.kernel.keys, case.kernel.residual, right_endings=False)
    for step in steps(kernel, [LEFT, RIGHT], [case.left, case.right], stops):
        assert all(sign == 1 for *_, sign in step.said)


@given(case=cases(SemiJoin), stops=cuts)
def test_nothing_is_kept_when_everything_has_died(case: Case, stops: list[int]) -> None:
    left, right = ([row for row in rows if row[2] < NEVER] for rows in (case.left, case.right))
    *_, last = steps(case.kernel, [LEFT, RIGHT], [left, right], stops)
    assert last.state.rows == 0


@given(case=cases(SemiJoin, ENDLESS), stops=cuts)
def test_the_state_is_no_larger_than_what_lives(case: Case, stops: list[int]) -> None:
    kernel = SemiJoin(LEFT, RIGHT, (("k", "rk"),), right_endings=False)
    for step in steps(kernel, [LEFT, RIGHT], [case.left, case.right], stops):
        left, right = (contents(rows, step.clock.upto) for rows in (case.left, case.right))
        keys = {payload[0] for payload in right} - {None}
        assert step.state.rows <= left.total() + 2 * len(keys)
