"""Expressions have the types and values that Spark gives them; `tests/spark/test_expression_values.py` asks it."""

from __future__ import annotations

import pytest
from tests.expressions.edges import failing
from tests.expressions.written import GROUP, Known, by_headgate, known, same

from headgate.model.errors import DataError

KNOWN = known()
FAILING = list(failing())


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
    return one.dtype == other.dtype and all(
        same(a, b, one.dtype) for a, b in zip(one.values, other.values, strict=True)
    )
