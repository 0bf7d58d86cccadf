"""Intervals that are written out."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from headgate.plan.intervals import fixed_interval, months_of


def parsed(text: str) -> exp.Interval:
    found = sqlglot.parse_one(f"INTERVAL {text}", dialect="spark")
    assert isinstance(found, exp.Interval)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 MINUTES", "'5' MINUTE"),
        ("'-1.5' SECOND", "'-1.5' SECOND"),
        ("'.5' HOUR", "'.5' HOUR"),
        ("'+2' WEEKS", "'+2' WEEK"),
        ("'1 02:03:04.5' DAY TO SECOND", "'93784500' MILLISECOND"),
        ("'-1 2' DAY TO HOUR", "'-26' HOUR"),
        ("'1:30' HOUR TO MINUTE", "'90' MINUTE"),
        ("'3:4' MINUTE TO SECOND", "'184' SECOND"),
        ("'1 day 2 hours'", "'26' HOUR"),
        ("'1 day -2.5 hours 1 microsecond'", "'77400000001' MICROSECOND"),
        ("'0 seconds'", "'0' SECOND"),
    ],
)
def test_an_interval_has_a_number_and_one_unit(text: str, expected: str) -> None:
    found = fixed_interval(parsed(text))
    assert found is not None
    assert found.sql() == f"INTERVAL {expected}"


@pytest.mark.parametrize(
    "text",
    [
        "1 MONTH",
        "'1 month 2 days'",
        "'x' DAY",
        "'1 2 3' DAY TO HOUR",
        "'1-2' YEAR TO MONTH",
        "'1:2' HOUR TO SECOND",
        "'٣' DAY",
        "'0.0000001' SECOND TO SECOND",
        f"{'9' * 5000} WEEKS",
        "3660001 DAYS",
        "'3660000 00:01' DAY TO MINUTE",
        "k HOURS",
    ],
)
def test_what_has_no_fixed_length_is_none(text: str) -> None:
    assert fixed_interval(parsed(text)) is None


@pytest.mark.parametrize(
    ("text", "months"),
    [
        ("2 MONTHS", 2),
        ("'-3' QUARTER", -9),
        ("10 YEARS", 120),
        ("10001 YEARS", None),
        ("'1.5' YEARS", None),
        (f"{'9' * 5000} MONTHS", None),
        ("1 DAY", None),
    ],
)
def test_months_are_counted(text: str, months: int | None) -> None:
    assert months_of(parsed(text)) == months
