"""What the fast tests take for Spark's values of expressions is what Spark says."""

from __future__ import annotations

from typing import Any

from pyspark import __version__
from tests.expressions.edges import failing
from tests.expressions.written import known, on_spark


def test_the_values_that_are_written_down_are_those_of_spark(spark: Any) -> None:
    expected = known()
    assert on_spark(spark, [each.text for each in expected]) == expected


def test_what_must_fail_is_understood_by_spark_and_fails(spark: Any) -> None:
    # Before 4.3, FLOOR and CEIL of what is too large for BIGINT are the largest BIGINT.
    lenient = () if tuple(map(int, __version__.split(".")[:2])) >= (4, 3) else ("floor(", "ceil(")
    texts = [each for each in failing() if not each.startswith(lenient)]
    assert on_spark(spark, texts) == []
    for text in texts:
        assert spark.sql(f"SELECT {text} FROM expressions").schema
