"""Expressions have the types and values that Spark gives them; `tests/spark/test_expression_values.py` asks it."""

from __future__ import annotations

import re
from operator import eq

import pytest
from tests.expressions.edges import failing
from tests.expressions.written import GROUP, Known, by_headgate, known, near

from headgate.model.errors import DataError

KNOWN = known()
FAILING = list(failing())
ROUGH = re.compile(r"\b(a?sin|a?cos|a?tan2?|exp|ln|log(2|10|1p)?|power|cbrt|degrees|radians)\(")
"""Functions whose last digit depends on the library that computes them."""


@pytest.mark.parametrize("start", range(0, len(KNOWN), GROUP))
def test_values_are_those_of_spark(start: int) -> None:
    expected = KNOWN[start : start + GROUP]
    found = by_headgate([each.text for each in expected])
    wrong = [pair for pair in zip(expected, found, strict=True) if not _same(*pair)]
    assert not wrong


@pytest.mark.parametrize("text", FAILING)
def test_what_spark_stops_at_is_an_error(text: str) -> None:
    with pytest.raises(DataError):
        by_headgate([text])


def _same(one: Known, other: Known) -> bool:
    equal = near if one.dtype in ("DOUBLE", "FLOAT") and ROUGH.search(one.text) else eq
    return one.dtype == other.dtype and all(map(equal, one.values, other.values))
