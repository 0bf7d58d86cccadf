"""Constraints in time on Spark: rows are spread over shards, each of which forgets by its own."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from tests.differential.local import output_of
from tests.differential.punctuated import random_rows, tables
from tests.differential.test_punctuated import QUERIES, text_of
from tests.oracle.values import same_output
from tests.spark.on_spark import output_on_spark
from tests.spark.shards import stage_of
from tests.spark.test_cases import in_batches

NAME, ROUNDS = "referring in time", 1500


def test_four_shards_forget_by_the_clock_and_say_the_same(spark: Any, tmp_path: Path) -> None:
    """Payments wait for what they refer to, orders for payments to have gone beyond them, each for a time."""
    text = text_of(NAME)
    rows = tables(text, random_rows(QUERIES[NAME][0], Random(11), rounds=ROUNDS))
    assert stage_of(text, "q", {}, shards=4).shards == 4
    expected = output_of(text_of(NAME, promises=False), "q", [rows], {})
    found, metrics = output_on_spark(spark, tmp_path, text, "q", in_batches(rows, 5), {}, shards=4)
    assert same_output(found, expected)
    assert metrics["late_rows"] == 0
    # Without them every row would be kept.
    assert metrics["state_rows"] < sum(table.num_rows for table in rows.values()) / 4
