"""Random queries over random streams, with their own micro-batches, as the oracle says.

Most go through packs and shards without Spark, a few through Spark itself.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from enum import Enum
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.oracle.generate import Example, examples
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.on_spark import output_on_spark
from tests.spark.shards import Cluster, arriving, stage_of

from headgate.model.errors import MeaninglessError
from headgate.runtime.spark import store
from headgate.runtime.spark.local_state_cache import LocalStateCache


class Workers(Enum):
    """Who gets the micro-batches of a shard."""

    ONE = "one worker"
    NEW = "another one each time, which knows nothing"
    TWO = "two in turn, each of which knows the state before the last one"


def agree(example: Example, shards: int, workers: Workers) -> None:
    oracle = Oracle(example.text, example.inputs, example.tables)
    expected = oracle.output(example.query)
    if oracle.order_matters:
        return
    try:
        cluster = Cluster(stage_of(example.text, example.query, example.tables, shards=shards))
    except MeaninglessError:
        # A table that changes cannot be joined with rows that may end early.
        assert "changing table" in example.features
        return
    caches = cycle([OrderedDict(), OrderedDict()])
    with TemporaryDirectory(prefix="headgate-") as folder, pytest.MonkeyPatch.context() as patch:
        if workers is Workers.TWO:
            cluster.nearby = LocalStateCache(Path(folder))
        for arrival in arriving(cluster.stage, list(example.arrivals()), example.tables):
            if workers is not Workers.ONE:
                patch.setattr(store, "_CACHE", next(caches) if workers is Workers.TWO else OrderedDict())
            cluster.batch({name: [rows] for name, rows in arrival.items() if rows.num_rows})
        cluster.end()
    found = cluster.changes()
    assert same_output(found, expected, ticking=oracle.ticking(example.query)), (
        f"expected {expected}\nfound    {found}"
    )


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(), st.integers(1, 5), st.sampled_from(Workers))
def test_shards_say_what_the_oracle_says(example: Example, shards: int, workers: Workers) -> None:
    agree(example, shards, workers)


@pytest.mark.long
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(), st.integers(1, 9), st.sampled_from(Workers))
def test_many_more(example: Example, shards: int, workers: Workers) -> None:
    agree(example, shards, workers)


def agree_on_spark(spark: Any, example: Example, shards: int) -> None:
    oracle = Oracle(example.text, example.inputs, example.tables)
    expected = oracle.output(example.query)
    if oracle.order_matters:
        return
    with TemporaryDirectory(prefix="headgate-") as folder, suppress(MeaninglessError):
        found, _ = output_on_spark(
            spark,
            Path(folder),
            example.text,
            example.query,
            list(example.arrivals()),
            example.tables,
            shards=shards,
        )
        assert same_output(found, expected, ticking=oracle.ticking(example.query)), (
            f"expected {expected}\nfound    {found}"
        )


ON_SPARK = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    # A smaller example would be nice to have, but every attempt takes seconds.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)


@settings(ON_SPARK, max_examples=12)
@given(example=examples(), shards=st.sampled_from([1, 4]))
def test_spark_says_what_the_oracle_says(spark: Any, example: Example, shards: int) -> None:
    agree_on_spark(spark, example, shards)


@pytest.mark.long
@settings(ON_SPARK, max_examples=200)
@given(example=examples(), shards=st.sampled_from([1, 4]))
def test_many_more_on_spark(spark: Any, example: Example, shards: int) -> None:
    agree_on_spark(spark, example, shards)
