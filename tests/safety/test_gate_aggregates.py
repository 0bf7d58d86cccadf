"""The gate on every aggregate: what its kind says is what is admitted and what is refused."""

from __future__ import annotations

from typing import assert_never

import pytest

from headgate.model.aggregates import Function, Kind, Parameter, Second
from headgate.safety.cause import Cause
from headgate.session import Session

DECLARED = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v INT, b BOOLEAN) TIMESTAMP BY ts;
CREATE STREAM t (ts TIMESTAMP, k BIGINT, v INT) TIMESTAMP BY ts;
"""


def admitted(text: str) -> bool:
    found = Session().sql(f"{DECLARED} CREATE QUERY q AS {text};")
    assert found is not None
    return found.judged.admitted


def call(function: Function, argument: str, second: str = "v") -> str:
    traits = function.traits
    parts = [argument if "BOOLEAN" not in traits.takes else "b"]
    if traits.second in (Second.NUMBER, Second.ORDER):
        parts.append(second)
    if traits.parameter is not Parameter.NONE:
        parts.append("1")
    return f"{function}({', '.join(parts)})"


def one_row_or_sums(function: Function) -> bool:
    """Whether a group that only grows needs no more than something of a fixed size."""
    match function.traits.kind:
        case Kind.LINEAR | Kind.EXTREME | Kind.SKETCH:
            return True
        case Kind.HOLISTIC:
            return False
        case never:
            assert_never(never)


every_function = pytest.mark.parametrize("function", list(Function))


@every_function
def test_one_group_that_only_grows(function: Function) -> None:
    assert admitted(f"SELECT ISTREAM({call(function, 'k')} AS a) FROM s") is one_row_or_sums(function)


@every_function
def test_few_groups_that_only_grow(function: Function) -> None:
    text = f"SELECT ISTREAM(v % 3 AS g, {call(function, 'k')} AS a) FROM s GROUP BY v % 3"
    assert admitted(text) is one_row_or_sums(function)


@every_function
def test_many_groups_that_only_grow(function: Function) -> None:
    assert not admitted(f"SELECT ISTREAM(k, {call(function, 'v')} AS a) FROM s GROUP BY k")


@every_function
@pytest.mark.parametrize("window", ["[RANGE 5 SECONDS]", "[ROWS 10]", "[RANGE 5 SECONDS SLIDE 5 SECONDS]"])
def test_a_window_bounds_them_all(function: Function, window: str) -> None:
    assert admitted(f"SELECT ISTREAM(k, {call(function, 'v')} AS a) FROM s {window} GROUP BY k")


@every_function
def test_few_values_bound_what_needs_every_value_unless_it_goes_by_time(function: Function) -> None:
    text = f"SELECT ISTREAM({call(function, 'k % 5', 'v % 5')} AS a) FROM s"
    assert admitted(text) is (one_row_or_sums(function) or function.traits.second is not Second.TIME)


@every_function
def test_a_column_of_an_unwindowed_join_that_nothing_bounds(function: Function) -> None:
    """Of the join itself every row stays, whatever is made of its rows."""
    assert not admitted(f"SELECT ISTREAM({call(function, 's.k', 't.v')} AS a) FROM s, t WHERE s.v < t.v")


@every_function
def test_values_of_groups_that_change_have_to_be_known(function: Function) -> None:
    """A group's old value ends when its new one comes; sums take it back, and extremes need the others."""
    inner = "(SELECT k, v % 3 AS w, COUNT(*) AS n, BOOL_OR(b) AS b FROM s GROUP BY k, v % 3) g"
    if function.traits.second is Second.TIME:
        return
    assert not admitted(f"SELECT ISTREAM({call(function, 'n', 'w')} AS a) FROM {inner}")
    few = inner.replace("k, v % 3", "v % 3").replace("AS w", "AS w").replace("SELECT k, ", "SELECT ")
    if function.traits.kind in (Kind.LINEAR, Kind.SKETCH):
        assert admitted(f"SELECT ISTREAM({call(function, 'n', 'w')} AS a) FROM {few}")


def test_of_groups_that_only_grow_an_aggregate_keeps_one_number() -> None:
    """Each value of a group ends when the next one comes: no death is announced that would have to be remembered."""
    text = "SELECT COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) x"
    found = Session().sql(f"{DECLARED} CREATE QUERY q AS {text};")
    assert found is not None
    assert [each.by for each in found.judged.states] == [Cause.VALUES, Cause.NONE]


@pytest.mark.parametrize(
    ("query", "operators"),
    [
        ("SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k", {"aggregate"}),
        (
            "SELECT n + 1 AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k) x",
            {"aggregate"},
        ),
        ("SELECT k FROM s [RANGE 1 MINUTE]", {"relation"}),
    ],
)
def test_values_of_an_aggregate_are_not_kept_as_an_answer_too(query: str, operators: set[str]) -> None:
    session = Session()
    session.sql(f"CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts; CREATE QUERY q AS {query};")
    assert {state.operator for state in session.query("q").judged.states} == operators
