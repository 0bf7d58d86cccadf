"""DISTINCT in each form: one copy of each value at every instant, from no more state than promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernels.signed import (
    ENDLESS,
    LAST,
    PATTERNS,
    Contents,
    Row,
    assert_exact,
    contents,
    cuts,
    steps,
    stream,
)

from headgate.kernels import keys
from headgate.kernels.distinct import multiplicity
from headgate.kernels.distinct.distinct import Distinct, Form
from headgate.kernels.distinct.presence import presence
from headgate.kernels.state import sorted_runs, table
from headgate.model.time import NEVER

SCHEMA = {"k": pl.Int64(), "x": pl.Float64()}
ONE = {"v": pl.String()}

values = st.tuples(
    st.one_of(st.none(), st.integers(0, 2)), st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")])
)


def once(content: Contents) -> Contents:
    return Counter(dict.fromkeys(content, 1))


def said(form: Form, rows: list[Row], stops: list[int]) -> list[Row]:
    return [row for step in steps(Distinct(ONE, form), [ONE], [rows], stops) for row in step.said]


def test_star_hands_a_value_to_the_younger_row_when_the_announced_one_dies() -> None:
    rows: list[Row] = [(("a",), 1, 6, 1), (("a",), 3, 9, 1)]
    assert said("star", rows, [1, 2, 3, 4, 5, 6, 7]) == [(("a",), 1, 6, 1), (("a",), 6, 9, 1)]


def test_star_is_silent_about_a_row_that_dies_before_the_announced_one() -> None:
    rows: list[Row] = [(("a",), 1, 9, 1), (("a",), 3, 5, 1)]
    assert said("star", rows, [2, 4, 6]) == [(("a",), 1, 9, 1)]


def test_star_announces_what_it_sees_in_one_step_in_one_piece() -> None:
    rows: list[Row] = [(("a",), 1, 6, 1), (("a",), 3, 9, 1), (("a",), 12, 15, 1)]
    assert said("star", rows, []) == [(("a",), 1, 9, 1), (("a",), 12, 15, 1)]


def test_star_over_rows_that_never_die_says_each_value_once_and_keeps_only_the_values() -> None:
    rows: list[Row] = [((value,), at, NEVER, 1) for at, value in enumerate("abacabad", start=1)]
    done = list(steps(Distinct(ONE, "star"), [ONE], [rows], [2, 4, 6]))
    assert sorted(row[0][0] for step in done for row in step.said) == ["a", "b", "c", "d"]
    assert done[-1].state.rows == 4


@pytest.mark.parametrize("form", ["extent", "strict"])
def test_a_long_lifetime_is_announced_without_a_death_and_ended_when_the_last_row_dies(form: Form) -> None:
    rows: list[Row] = [(("a",), 1, 6, 1), (("a",), 3, 9, 1)]
    assert said(form, rows, [1, 2, 5, 6]) == [(("a",), 1, NEVER, 1), (("a",), 9, NEVER, -1)]


def test_strict_keeps_a_value_until_the_ending_of_its_last_row() -> None:
    rows: list[Row] = [
        (("a",), 1, NEVER, 1),
        (("a",), 2, NEVER, 1),
        (("a",), 4, NEVER, -1),
        (("a",), 7, NEVER, -1),
    ]
    assert said("strict", rows, [3, 5]) == [(("a",), 1, NEVER, 1), (("a",), 7, NEVER, -1)]


def test_strict_forgets_a_death_that_an_ending_has_taken_back() -> None:
    rows: list[Row] = [(("a",), 1, 9, 1), (("a",), 3, 9, -1)]
    done = list(steps(Distinct(ONE, "strict"), [ONE], [rows], [2, 4]))
    assert [step.state.rows for step in done] == [2, 0, 0]


def test_a_death_and_a_birth_at_one_instant_leave_no_gap() -> None:
    rows: list[Row] = [(("a",), 1, 5, 1), (("a",), 5, 8, 1)]
    for form in ("star", "extent", "strict", "naive"):
        for stops in ([], [4], [5], [4, 5]):
            assert_exact(Distinct(ONE, form), [ONE], [rows], stops, once)


@pytest.mark.parametrize("form", ["star", "extent", "naive", "strict"])
@given(data=st.data(), stops=cuts, restored=st.booleans())
def test_each_value_is_there_once_while_it_is_there_at_all(
    form: Form, data: st.DataObject, stops: list[int], restored: bool
) -> None:
    pattern = data.draw(st.sampled_from(PATTERNS if form == "strict" else ENDLESS))
    rows = data.draw(stream(pattern, values))
    done = assert_exact(Distinct(SCHEMA, form), [SCHEMA], [rows], stops, once, restored=restored)
    if form in ("star", "naive"):
        assert all(sign == 1 for step in done for *_, sign in step.said)


@pytest.mark.parametrize("form", ["star", "strict"])
@given(data=st.data(), stops=cuts, hashes=st.integers(1, 2))
def test_values_with_equal_hashes_stay_apart(
    form: Form, data: st.DataObject, stops: list[int], hashes: int
) -> None:
    def few_hashes(frame: pl.DataFrame, columns: Sequence[str]) -> keys.Hashes:
        return keys.key_hash(frame, columns) % np.uint64(hashes)

    rows = data.draw(stream("WK", values))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiplicity, "key_hash", few_hashes)
        for module in (table, sorted_runs):
            patch.setattr(module, "key_hash", few_hashes)
        assert_exact(Distinct(SCHEMA, form), [SCHEMA], [rows], stops, once)


@given(data=st.data(), stops=cuts)
def test_star_keeps_at_most_two_rows_per_value_of_its_answer(data: st.DataObject, stops: list[int]) -> None:
    rows = data.draw(stream(data.draw(st.sampled_from(ENDLESS)), values, most=30))
    for step in steps(Distinct(SCHEMA, "star"), [SCHEMA], [rows], stops):
        assert step.state.rows <= 2 * len(contents(rows, step.clock.upto))


def test_rows_without_columns_are_all_equal() -> None:
    found = multiplicity.group(pl.DataFrame({"at": [3, 1, 2]}), (), np.array([3, 1, 2]))
    assert (found.order.tolist(), found.codes.tolist(), found.leaders.tolist()) == ([1, 2, 0], [0, 0, 0], [1])


def test_naive_keeps_every_row_that_lives_beside_the_values() -> None:
    rows: list[Row] = [(("a",), 1, 5, 1), (("a",), 2, 9, 1), (("b",), 3, 9, 1)]
    done = list(steps(Distinct(ONE, "naive"), [ONE], [rows], [3, 6]))
    assert [step.state.input.rows for step in done] == [3, 2, 0]


@pytest.mark.parametrize("form", ["star", "extent", "naive", "strict"])
@given(data=st.data(), stops=cuts)
def test_nothing_is_kept_when_everything_has_died(form: Form, data: st.DataObject, stops: list[int]) -> None:
    pattern = data.draw(st.sampled_from(["WKS", "WK"] if form != "strict" else ["WKS", "WK", "STR"]))
    rows = [row for row in data.draw(stream(pattern, values)) if row[2] < NEVER]
    *_, last = steps(Distinct(SCHEMA, form), [SCHEMA], [rows], stops)
    assert not contents(rows, LAST)
    assert last.state.rows == 0


def test_strict_waits_for_no_death_of_a_row_that_never_dies() -> None:
    rows: list[Row] = [(("a",), instant, NEVER, 1) for instant in range(1, 9)]
    *_, last = steps(Distinct(ONE, "strict"), [ONE], [rows], [4, 9])
    assert last.state.rows == 1


def test_lifetimes_that_touch_are_one_stretch() -> None:
    # The value 0 is known to last until 10; two rows go on from there, a third begins after a gap.
    codes, born, dies = (np.array(each) for each in ([0, 0, 0], [10, 20, 31], [20, 30, 40]))
    found = presence(codes, born, dies, np.array([10]))
    assert (list(found.reach), list(found.born), list(found.ends)) == ([30], [31], [40])
