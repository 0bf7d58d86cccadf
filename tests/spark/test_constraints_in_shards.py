"""Streams whose constraints count rows, and keys on a hypercube, over four shards of a Spark job."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

from tests.differential.local import output_of
from tests.differential.punctuated import random_rows, tables
from tests.differential.test_constraints_in_shards import by_time
from tests.differential.test_punctuated import QUERIES, text_of
from tests.oracle.values import same_output
from tests.spark.on_spark import output_on_spark
from tests.spark.shards import stage_of


def test_four_shards_count_their_own_rows_and_forget(spark: Any, tmp_path: Path) -> None:
    name = "ordered groups"
    rows = tables(text_of(name), random_rows(QUERIES[name][0], Random(3), rounds=1_500))
    found, metrics = output_on_spark(
        spark, tmp_path, text_of(name), "q", list(by_time(rows, 3)), {}, shards=4
    )
    assert same_output(found, output_of(text_of(name, promises=False), "q", [rows], {}))
    assert metrics["late_rows"] == 0
    assert metrics["peak_state_rows"] < sum(table.num_rows for table in rows.values()) / 4


def test_a_many_one_join_on_a_hypercube(spark: Any, tmp_path: Path) -> None:
    name = "many to one"
    assert stage_of(text_of(name), "q", {}, shards=4).shares == (2, 2)
    rows = tables(text_of(name), random_rows(QUERIES[name][0], Random(3), rounds=300))
    found, metrics = output_on_spark(
        spark, tmp_path, text_of(name), "q", list(by_time(rows, 3)), {}, shards=4
    )
    assert same_output(found, output_of(text_of(name, promises=False), "q", [rows], {}))
    assert metrics["late_rows"] == 0
