"""Every shard has a partition of its own."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.runtime.spark.partition_keys import partition_of, shard_partition_keys


@pytest.mark.parametrize(("shards", "partitions"), [(1, 1), (2, 2), (4, 4), (7, 7), (16, 16), (4, 200)])
def test_no_two_shards_share_a_partition(shards: int, partitions: int) -> None:
    labels = shard_partition_keys(shards, partitions)
    assert len({partition_of(label, partitions) for label in labels}) == shards


def test_more_shards_than_partitions_get_labels_too() -> None:
    assert len(set(shard_partition_keys(5, 2))) == 5


def test_spark_puts_labels_where_we_say(spark: Any) -> None:
    rows = spark.range(100).selectExpr("cast(id as int) id", "pmod(hash(cast(id as int)), 7) place").collect()
    assert [row.place for row in rows] == [partition_of(row.id, 7) for row in rows]
