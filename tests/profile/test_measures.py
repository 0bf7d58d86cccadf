"""What is measured in rows: the smallest k of each constraint, by small frames and by the checker of promises."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.language.render import render
from headgate.model.adherence import WithinRows
from headgate.model.batch import BORN
from headgate.profile.clusters import closed_share, clustering_distances
from headgate.profile.constraint import Flag, Spread
from headgate.profile.keys import find_keys
from headgate.profile.order import scrambling_distances
from headgate.profile.punctuations import find_closings, find_flags
from headgate.profile.references import join_distances
from headgate.profile.within import Within
from headgate.runtime.promise_checker import PromiseChecker
from headgate.safety.promise import Promise, PromiseKind

VALUES = st.lists(st.one_of(st.none(), st.integers(0, 12)), max_size=40)


def broken(kind: PromiseKind, rows: pl.DataFrame, within: int) -> int:
    """How many rows the checker finds that break a constraint on all columns."""
    promise = Promise("s", tuple(rows.columns), None, kind, WithinRows(within))
    return PromiseChecker([promise], memory=1_000).split(rows)[1].height


# -- order ----------------------------------------------------------------------------------------


def test_a_row_is_as_late_as_rows_have_come_since_the_earliest_greater_one() -> None:
    assert scrambling_distances(pl.Series([3, 5, 4, 9, 7, 6])).tolist() == [0, 0, 1, 0, 1, 2]


def test_a_row_without_a_value_counts_and_is_never_late() -> None:
    assert scrambling_distances(pl.Series([None, 5, None, 4])).tolist() == [0, 2]


def test_equal_values_are_in_order() -> None:
    assert scrambling_distances(pl.Series([2, 2, 2])).tolist() == [0, 0, 0]


@given(VALUES)
def test_k_of_an_order_is_the_smallest_that_no_row_breaks(values: list[int | None]) -> None:
    rows = pl.DataFrame({"a": values}, schema={"a": pl.Int64})
    k = Spread.of(scrambling_distances(rows["a"])).most.k
    assert broken(PromiseKind.ORDER, rows, k) == 0
    assert k == 0 or broken(PromiseKind.ORDER, rows, k - 1) > 0


# -- clusters -------------------------------------------------------------------------------------


def test_rows_of_others_lie_between_two_of_one_value() -> None:
    rows = pl.DataFrame({"a": ["a", "a", "b", "c", "a", "b"]})
    assert clustering_distances(rows, ["a"]).tolist() == [0, 0, 0, 0, 2, 2]


def test_a_row_with_null_lies_between_others() -> None:
    rows = pl.DataFrame({"a": [1, None, 1], "b": [1, 1, 1]})
    assert clustering_distances(rows, ["a", "b"]).tolist() == [0, 1]


def test_what_comes_again_and_again_is_never_closed() -> None:
    again, gone = pl.DataFrame({"a": [1, 2] * 10}), pl.DataFrame({"a": [n // 2 for n in range(20)]})
    assert closed_share(again, ["a"], 1) == 0.0
    assert closed_share(gone, ["a"], 0) == 0.9


@given(VALUES, st.lists(st.integers(0, 2), min_size=40, max_size=40))
def test_k_of_a_cluster_is_the_smallest_that_no_row_breaks(values: list[int | None], more: list[int]) -> None:
    rows = pl.DataFrame({"a": values, "b": more[: len(values)]}, schema={"a": pl.Int64, "b": pl.Int64})
    k = Spread.of(clustering_distances(rows, ["a", "b"])).most.k
    assert broken(PromiseKind.CLUSTER, rows, k) == 0
    assert k == 0 or broken(PromiseKind.CLUSTER, rows, k - 1) > 0


# -- references -----------------------------------------------------------------------------------


def test_a_partner_that_is_there_is_no_row_away() -> None:
    shipments = pl.DataFrame({BORN: [1, 3, 5, 5], "order": [1, 1, 4, 3]})
    orders = pl.DataFrame({BORN: [2, 4, 5, 6], "id": [1, 2, 3, 4]})
    found = join_distances(shipments, ["order"], orders, ["id"])
    assert found.distances.tolist() == [1, 0, 1, 0]
    assert found.delays.tolist() == [1, 0, 1, 0]
    assert found.share == 1.0


def test_rows_without_a_partner_are_a_share_and_those_with_null_ask_for_none() -> None:
    rows = pl.DataFrame({BORN: [1, 1, 1], "order": [1, 7, None]})
    found = join_distances(rows, ["order"], pl.DataFrame({BORN: [0], "id": [1]}), ["id"])
    assert (found.distances.tolist(), found.asking, found.share) == ([0], 2, 0.5)


# -- keys -----------------------------------------------------------------------------------------


def test_a_key_has_no_two_equal_values_and_none_missing() -> None:
    rows = pl.DataFrame(
        {"id": range(60), "gap": [None, *range(59)], "twice": [0, *range(59)], "name": ["x"] * 60}
    )
    assert find_keys(rows, rows.columns, []) == [("id",)]


def test_few_rows_mean_nothing() -> None:
    assert find_keys(pl.DataFrame({"id": range(10)}), ["id"], []) == []


def test_columns_that_are_used_together_may_be_a_key_and_no_part_of_it_is_one() -> None:
    rows = pl.DataFrame(
        {"hour": [n // 3 for n in range(90)], "site": [n % 3 for n in range(90)], "id": range(90)}
    )
    assert find_keys(rows, ["hour", "site"], [("hour", "site")]) == [("hour", "site")]
    assert find_keys(rows, ["id"], [("hour", "id")]) == [("id",)]


def test_columns_with_so_many_values_that_rows_hardly_agree_are_no_key() -> None:
    rows = pl.DataFrame({"a": [0, *range(59)], "b": [*range(59), 0]})
    assert find_keys(rows, ["a", "b"], [("a", "b")]) == []


# -- punctuations ---------------------------------------------------------------------------------


def sessions(last: bool) -> pl.DataFrame:
    """Ten sessions of three rows; the third says so, or the second."""
    rows = [(user, step) for step in range(3) for user in range(10)]
    return pl.DataFrame(
        {
            "user": [user for user, _ in rows],
            "step": [("login", "click", "bye")[step] for _, step in rows],
            "over": [step == (2 if last else 1) for _, step in rows],
        }
    )


def test_a_flag_closes_values_that_never_come_again() -> None:
    rows = sessions(last=True)
    found = find_closings(rows, ["user"], find_flags(rows, rows.columns))
    assert [(each.flag, each.share) for each in found] == [
        (Flag("over", True), 1.0),
        (Flag("step", "bye"), 1.0),
    ]


def test_a_flag_after_which_a_value_comes_again_closes_nothing() -> None:
    rows = sessions(last=False)
    assert [each.flag for each in find_closings(rows, ["user"], find_flags(rows, ["over"]))] == []


def test_a_flag_that_closes_few_values_is_none() -> None:
    rows = sessions(last=True).with_columns(over=pl.col("over") & (pl.col("user") < 3))
    assert find_closings(rows, ["user"], find_flags(rows, ["over"])) == []


def test_a_flag_on_the_only_row_of_each_value_says_nothing() -> None:
    rows = sessions(last=True).filter(pl.col("over"))
    assert find_closings(rows, ["user"], find_flags(rows, ["over"])) == []


@pytest.mark.parametrize(
    ("flag", "clause"),
    [
        (Flag("over", True), "over"),
        (Flag("open", False), "NOT open"),
        (Flag("step", "it's"), "step = 'it\\'s'"),
        (Flag("code", -3), "code = -3"),
    ],
)
def test_a_flag_is_a_condition(flag: Flag, clause: str) -> None:
    assert render(flag.tree) == clause


# -- k in time ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("microseconds", "margin", "clause"),
    [
        (0, 1.0, "WITHIN 0 SECONDS"),
        (88_119, 1.0, "WITHIN 89 MILLISECONDS"),
        (12 * 3_600_000_000, 1.0, "WITHIN 12 HOURS"),
        (68_069_103, 1.5, "WITHIN 103 SECONDS"),
    ],
)
def test_a_k_in_time_is_rounded_up_to_what_people_write(
    microseconds: int, margin: float, clause: str
) -> None:
    assert render(Within(microseconds, in_time=True).widened(margin).tree) == clause
