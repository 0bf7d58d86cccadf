"""Queries with constraints that count rows, spread over shards: the oracle's answers, from states that stay small."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.differential.punctuated import random_rows, tables
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
ALONE = {
    "ordered cycle",  # each stream is closed by one of the two columns that its partners know it by
    "ordered cycle in time",
    "referring twice",  # so is s3
    "referring twice in time",
    "count distinct in order",
    "least of ordered groups",
}


@pytest.mark.parametrize("name", COUNTING)
def test_streams_with_constraints_are_spread(name: str) -> None:
    assert (stage_of(text_of(name), "q", {}, shards=4).shards == 1) == (name in ALONE)


@settings(max_examples=settings().max_examples // 4)
@given(
    name=st.sampled_from(COUNTING),
    seed=st.integers(0, 10_000),
    rounds=st.integers(1, 8),
    shards=st.sampled_from((2, 4)),
)
def test_shards_answer_as_the_oracle_does(name: str, seed: int, rounds: int, shards: int) -> None:
    random = Random(seed)
    rows = tables(text_of(name), random_rows(QUERIES[name][0], random, rounds=rounds))
    cluster = Cluster(stage_of(text_of(name), "q", {}, shards=shards))
    for piece in pieces(rows, random):
        cluster.batch({stream: [table] for stream, table in piece.items() if table.num_rows})
    cluster.end()
    assert not any(cluster.late.values())
    assert same_output(cluster.changes(), Oracle(text_of(name), rows, {}).output("q"))


KINDS = ("clusters", "ordered", "referring", "many to one", "many to one in turn", "union in order")


@pytest.mark.parametrize("name", [*KINDS, "exists in order", "ordered distinct"])
def test_no_shard_keeps_more_and_more(name: str) -> None:
    rows = tables(text_of(name), random_rows(QUERIES[name][0], Random(5), rounds=240))
    cluster = Cluster(stage_of(text_of(name), "q", {}, shards=4))
    sizes = []
    for piece in by_time(rows, 16):
        cluster.batch({stream: [table] for stream, table in piece.items()})
        sizes.append(kept(cluster))
    first = max(map(max, sizes[:8]))
    assert first < sum(table.num_rows for table in rows.values()) / 6
    for shard in zip(*sizes[8:], strict=True):
        assert 0 < max(shard) <= 1.5 * first + 10


def by_time(rows: dict[str, pa.Table], count: int) -> Iterator[dict[str, pa.Table]]:
    """The rows of all streams in so many pieces, each of a time."""
    frames = {name: pl.DataFrame(table) for name, table in rows.items()}
    last = max(int(frame["ts"].dt.epoch("us")[-1]) for frame in frames.values())
    for begin, end in pairwise([number * (last + 1) // count for number in range(count + 1)]):
        at = pl.col("ts").dt.epoch("us")
        yield {
            name: frame.filter((at >= begin) & (at < end)).to_arrow().cast(rows[name].schema)
            for name, frame in frames.items()
        }


def kept(cluster: Cluster) -> list[int]:
    """How many rows each shard of the first stage keeps."""
    facts = [json.loads(store.facts() or "{}") for store in cluster.stores[0]]
    return [each["queries"]["0"]["metrics"]["state_rows"] if each else 0 for each in facts]


DECLARED = """
CREATE STREAM s (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts ORDERED BY (a) WITHIN 8 ROWS;
CREATE STREAM t (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts
  FOREIGN KEY (b) REFERENCES u (b) WITHIN 8 ROWS;
CREATE STREAM u (ts TIMESTAMP, b BIGINT) TIMESTAMP BY ts KEY (b);
"""


def arrived(**columns: Sequence[int]) -> pa.Table:
    """Rows one second apart."""
    count = len(next(iter(columns.values())))
    instants = pa.array([number * 1_000_000 for number in range(count)], pa.timestamp("us", tz="UTC"))
    return pa.table({"ts": instants, **{name: pa.array(values) for name, values in columns.items()}})


@pytest.mark.parametrize(("behind", "late"), [(100, {1: 1, 4: 1}), (16, {1: 1, 4: 0})])
def test_a_row_that_its_shard_still_waits_for_is_taken_in(behind: int, late: dict[int, int]) -> None:
    """Of so many rows since, the shard that the row goes to has had a fourth: less than 8 of 16, more of 100."""
    text = f"{DECLARED} CREATE QUERY q AS SELECT DISTINCT a, b FROM s;"
    rows = {"s": arrived(a=[*range(1, 201), 200 - behind], b=[0] * 200 + [7])}
    for shards, count in late.items():
        cluster = Cluster(stage_of(text, "q", {}, shards=shards))
        cluster.batch({"s": [rows["s"]]})
        cluster.end()
        assert cluster.late.get("s", 0) == count
        assert len(cluster.changes()) == 201 - count


@pytest.mark.parametrize("shards", [1, 4])
def test_a_late_row_of_which_shards_have_copies_is_late_once(shards: int) -> None:
    query = (
        "SELECT ISTREAM(s.a, t.b, s.b AS c) FROM s [RANGE 1 HOUR], t, u [RANGE 1 HOUR] "
        "WHERE s.a = t.a AND t.b = u.b"
    )
    text = f"{DECLARED} CREATE QUERY q AS {query};"
    stage = stage_of(text, "q", {}, shards=shards)
    assert stage.shares == ((2, 2) if shards == 4 else (1,))
    cluster = Cluster(stage)
    values = [*range(100), 5]
    cluster.batch(
        {
            "s": [arrived(a=values, b=values)],
            "t": [arrived(a=range(100), b=range(100))],
            "u": [arrived(b=values)],
        }
    )
    cluster.end()
    assert cluster.late == {"s": 1, "u": 1}
    facts = [json.loads(store.facts() or "") for store in cluster.stores[0]]
    assert sum(each["queries"]["0"]["metrics"]["late_rows"] for each in facts) == 2
    true = {
        "s": arrived(a=range(100), b=range(100)),
        "t": arrived(a=range(100), b=range(100)),
        "u": arrived(b=range(100)),
    }
    assert same_output(cluster.changes(), output_of(text, "q", [true], {}))
