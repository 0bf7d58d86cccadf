"""Queries with constraints that count rows, spread over shards: the oracle's answers, from states that stay small."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.differential.punctuated import Punctuated, Rows, random_rows, tables
from tests.differential.test_punctuated import QUERIES, pieces, sweeping_often, text_of
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

__all__ = ["sweeping_often"]

COUNTING = [
    name
    for name, (streams, _) in QUERIES.items()
    if any(about.clusters or about.ordered or about.refers for about in streams.values())
]
SPREAD = [name for name in COUNTING if len(stage_of(text_of(name), "q", {}, shards=4).shares) > 0]


def cluster_of(text: str, rows: dict[str, pa.Table], random: Random, shards: int) -> Cluster:
    """The shards of a query that have answered, piece by piece."""
    cluster = Cluster(stage_of(text, "q", {}, shards=shards))
    for piece in pieces(rows, random):
        cluster.batch({stream: [table] for stream, table in piece.items() if table.num_rows})
    cluster.end()
    return cluster


@settings(max_examples=settings().max_examples // 2)
@given(
    name=st.sampled_from(COUNTING),
    seed=st.integers(0, 10_000),
    rounds=st.integers(1, 8),
    shards=st.sampled_from((2, 4)),
)
def test_shards_answer_as_the_oracle_does(name: str, seed: int, rounds: int, shards: int) -> None:
    random = Random(seed)
    rows = tables(text_of(name), random_rows(QUERIES[name][0], random, rounds=rounds))
    cluster = cluster_of(text_of(name), rows, random, shards)
    assert not any(cluster.late.values())
    assert same_output(cluster.changes(), Oracle(text_of(name), rows, {}).output("q"))
