"""What the fast tests take for Spark's values of expressions is what Spark says."""

from __future__ import annotations

from typing import Any

from tests.expressions.edges import failing
from tests.expressions.written import known, on_spark


def test_the_values_that_are_written_down_are_those_of_spark(spark: Any) -> None:
    expected = known()
    assert on_spark(spark, [each.text for each in expected]) == expected


def test_what_must_fail_is_understood_by_spark_and_fails(spark: Any) -> None:
    texts = list(failing())
    assert on_spark(spark, texts) == []
    for text in texts:
        assert spark.sql(f"SELECT {text} FROM expressions").schema
