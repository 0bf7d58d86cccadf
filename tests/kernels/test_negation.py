"""NOT EXISTS: at every instant the left rows, with their multiplicities, that have no match on the right."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.matching import LEFT, RIGHT, Case, cases
from tests.kernels.signed import ENDLESS, PATTERNS, Contents, Row, assert_exact, cuts, steps

from headgate.kernels.join.negation import Negation
from headgate.model.time import NEVER

L, R = {"k": pl.String()}, {"rk": pl.String()}
LX, RX = {"k": pl.String(), "x": pl.Int64()}, {"rk": pl.String(), "rx": pl.Int64()}
KEYS = (("k", "rk"),)


def said(kernel: Negation, left: list[Row], right: list[Row], stops: list[int]) -> list[Row]:
    schemas = [kernel.left_schema, kernel.right_schema]
    return [row for step in steps(kernel, schemas, [left, right], stops) for row in step.said]


@pytest.mark.parametrize("endings", [True, False])
def test_a_match_ends_a_row_and_its_death_brings_it_back(endings: bool) -> None:
    kernel = Negation(L, R, KEYS, right_endings=endings)
    left: list[Row] = [(("a",), 1, 12, 1)]
    right: list[Row] = [(("a",), 3, 6, 1), (("a",), 5, 9, 1)]
    expected = [(("a",), 1, 12, 1), (("a",), 3, 12, -1), (("a",), 9, 12, 1)]
    assert said(kernel, left, right, [2, 4, 7]) == expected
    assert sorted(said(kernel, left, right, [])) == sorted(expected)


def test_a_row_that_comes_while_it_has_a_match_is_not_said_until_the_match_is_gone() -> None:
    left: list[Row] = [(("a",), 4, 12, 1)]
    right: list[Row] = [(("a",), 3, NEVER, 1), (("a",), 9, NEVER, -1)]
    assert said(Negation(L, R, KEYS), left, right, [3, 5]) == [(("a",), 9, 12, 1)]


def test_a_match_that_goes_at_the_instant_the_row_comes_is_no_match() -> None:
    left: list[Row] = [(("a",), 6, 9, 1)]
    right: list[Row] = [(("a",), 3, 6, 1)]
    for stops in ([], [5], [6], [5, 6]):
        assert said(Negation(L, R, KEYS), left, right, stops) == [(("a",), 6, 9, 1)]


def test_a_row_with_a_null_key_has_no_match_and_is_not_kept() -> None:
    left: list[Row] = [((None,), 1, 9, 1)]
    right: list[Row] = [((None,), 2, 5, 1)]
    done = list(steps(Negation(L, R, KEYS), [L, R], [left, right], [3]))
    assert [row for step in done for row in step.said] == left
    assert all(step.state.rows == 0 for step in done)


def test_with_equal_nulls_negation_and_distinct_make_except() -> None:
    kernel = Negation(L, R, KEYS, null_equal=True)
    left: list[Row] = [((None,), 1, 9, 1)]
    right: list[Row] = [((None,), 2, 5, 1)]
    assert said(kernel, left, right, [3]) == [((None,), 1, 9, 1), ((None,), 2, 9, -1), ((None,), 5, 9, 1)]


def test_the_largest_x_of_each_key_is_the_row_without_a_larger_one() -> None:
    kernel = Negation(LX, RX, KEYS, pl.col("rx") > pl.col("x"))
    rows: list[Row] = [(("a", 3), 1, 9, 1), (("a", 5), 4, 7, 1), (("b", 1), 2, 9, 1)]

    def largest(left: Contents, _: Contents) -> Contents:
        top = {key: max(x for other, x in left if other == key) for key, _ in left}
        return Counter({(key, x): count for (key, x), count in left.items() if x == top[key]})

    for stops in ([], [1, 2, 3, 4, 5, 6, 7, 8]):
        assert_exact(kernel, [LX, RX], [rows, rows], stops, largest)


def test_a_row_whose_match_stays_for_ever_is_not_kept() -> None:
    kernel = Negation(L, R, KEYS, right_endings=False)
    left: list[Row] = [(("a",), 1, NEVER, 1), (("a",), 7, NEVER, 1)]
    right: list[Row] = [(("a",), 5, NEVER, 1)]
    waiting, done = steps(kernel, [L, R], [left, right], [2])
    assert waiting.state.rows == 1
    assert done.state.rows == 1


def test_a_row_whose_matches_go_on_for_ever_one_after_the_other_is_not_kept() -> None:
    kernel = Negation(L, R, KEYS, right_endings=False)
    left: list[Row] = [(("a",), 7, NEVER, 1)]
    right: list[Row] = [(("a",), 5, 8, 1), (("a",), 6, NEVER, 1)]
    done = list(steps(kernel, [L, R], [left, right], [5, 6, 7]))
    assert [step.state.left.rows for step in done] == [0] * 4


@pytest.mark.parametrize("endings", [True, False])
def test_a_row_that_outlives_its_match_by_an_instant_comes_back_for_it(endings: bool) -> None:
    kernel = Negation(L, R, KEYS, right_endings=endings)
    left: list[Row] = [(("a",), 1, 7, 1)]
    right: list[Row] = [(("a",), 2, 6, 1)]
    assert said(kernel, left, right, [1, 3, 5])[-1] == (("a",), 6, 7, 1)


def test_a_restored_state_knows_that_a_match_died_in_a_step_that_wrote_nothing() -> None:
    kernel = Negation(L, R, KEYS, right_endings=False)
    left: list[Row] = [(("a",), 7, 9, 1)]
    right: list[Row] = [(("a",), 1, 5, 1), (("b",), 1, 20, 1)]
    done = list(steps(kernel, [L, R], [left, right], [2, 6], restored=True))
    assert done[-1].said == left


@pytest.mark.parametrize("residuals", [False, True])
@pytest.mark.parametrize("patterns", [ENDLESS, PATTERNS])
@given(data=st.data(), stops=cuts, restored=st.booleans())
def test_the_answer_is_the_left_rows_without_a_match(
    patterns: tuple[str, ...], residuals: bool, data: st.DataObject, stops: list[int], restored: bool
) -> None:
    case = data.draw(cases(Negation, patterns, residuals))

    def unmatched(left: Contents, right: Contents) -> Contents:
        return Counter({row: count for row, count in left.items() if not case.has_match(row, right)})

    assert_exact(case.kernel, [LEFT, RIGHT], [case.left, case.right], stops, unmatched, restored=restored)


@given(case=cases(Negation), stops=cuts)
def test_every_ending_takes_back_a_row_that_was_announced_with_its_death(
    case: Case, stops: list[int]
) -> None:
    announced: Counter[object] = Counter()
    for step in steps(case.kernel, [LEFT, RIGHT], [case.left, case.right], stops):
        for payload, born, dies, sign in sorted(step.said, key=lambda row: (row[1], -row[3])):
            key = (repr(payload).replace("-0.0", "0.0"), dies)
            announced[key] += sign
            assert announced[key] >= 0, f"{payload} at {born}"


@given(case=cases(Negation), stops=cuts)
def test_nothing_is_kept_when_everything_has_died(case: Case, stops: list[int]) -> None:
    left, right = ([row for row in rows if row[2] < NEVER] for rows in (case.left, case.right))
    *_, last = steps(case.kernel, [LEFT, RIGHT], [left, right], stops)
    assert last.state.rows == 0
