"""Random queries that forget by promise answer like those that remember all, and what they keep stays small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.differential.promised_queries import Promised, random_query
from tests.differential.punctuated import random_rows, tables
from tests.differential.test_punctuated import peak_rows, pieces, sweeping_often
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

from headgate.session import Session

__all__ = ["sweeping_often"]


def admitted(query: Promised) -> bool:
    session = Session()
    found = session.sql(query.text())
    assert found is not None
    return found.check().admitted


def admitted_queries(count: int, seed: int) -> Iterator[Promised]:
    random = Random(seed)
    while count:
        query = random_query(random)
        if admitted(query):
            count -= 1
            yield query


def test_most_random_queries_are_admitted() -> None:
    random = Random(1)
    found = Counter(admitted(random_query(random)) for _ in range(60))
    assert found[True] > found[False]


@settings(max_examples=settings().max_examples // 2)
@given(
    seed=st.integers(0, 1_000_000),
    rounds=st.integers(1, 6),
    way=st.integers(0, 5),
    shards=st.sampled_from((2, 3, 4)),
)
def test_answers_are_those_of_a_perfect_memory(seed: int, rounds: int, way: int, shards: int) -> None:
    random = Random(seed)
    query = random_query(random)
    if not admitted(query):
        return
    rows = tables(query.text(), random_rows(query.streams, random, rounds=rounds))
    remembered = output_of(query.text(promises=False), "q", [rows], {})
    restored = random.random() < 0.5
    output = output_of(query.text(), "q", pieces(rows, random), {}, restore_every_step=restored)
    assert same_output(output, remembered), query.query
    cluster = Cluster(stage_of(query.text(), "q", {}, shards=shards, way=way))
    for piece in pieces(rows, random):
        cluster.batch({stream: [table] for stream, table in piece.items() if table.num_rows})
    cluster.end()
    assert same_output(cluster.changes(), remembered), query.query


@pytest.mark.parametrize("seed", range(8))
def test_answers_are_those_of_the_oracle(seed: int) -> None:
    for query in admitted_queries(1, seed):
        rows = tables(query.text(), random_rows(query.streams, Random(seed), rounds=3))
        expected = Oracle(query.text(), rows, {}).output("q")
        assert same_output(output_of(query.text(), "q", [rows], {}), expected), query.query


@pytest.mark.parametrize("seed", range(10))
def test_the_state_stays_small(seed: int) -> None:
    """Values are open for a few rounds, so what is kept is that of a few rounds however many there have been.

    Closed values that nothing counters are kept for a while, here 25 of them, which may come late in the first half.
    """
    for query in admitted_queries(1, 100 + seed):
        rows = random_rows(query.streams, Random(seed), rounds=50, per_round=3)
        first, second = peak_rows(query.text(), rows, step=12)
        assert second <= 1.5 * first + 40, query
