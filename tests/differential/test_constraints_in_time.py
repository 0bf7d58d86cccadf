"""Constraints with the least time that the rows keep: nothing is late, and forgetting by them changes no answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.differential.punctuated import APART_IN_TIME, Punctuated, Rows, random_rows, tables
from tests.differential.test_punctuated import QUERIES, pieces, sweeping_often, text_of
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, stage_of

from headgate.physical.compile import compile_query
from headgate.runtime.data import frame_of
from headgate.runtime.promise_checker import PromiseChecker
from headgate.session import Session

__all__ = ["sweeping_often"]

IN_TIME = sorted(
    name
    for name, (streams, _) in QUERIES.items()
    if all(each.timed or each.keys for each in streams.values())
)
SECONDS = f"WITHIN {APART_IN_TIME} SECONDS"


def least(streams: Mapping[str, Punctuated], rows: Rows) -> int:
    """The least number of seconds within which the rows of all streams keep all that they declare in time."""
    return max(
        (seconds for name, about in streams.items() for seconds in _needed(name, about, rows)), default=0
    )


def _needed(name: str, about: Punctuated, rows: Rows) -> Iterator[int]:
    pairs = [(_at(one), one, _at(other), other) for one, other in combinations(rows[name], 2)]
    for column in about.ordered:
        yield from (later - at for at, one, later, other in pairs if _of(other, column) < _of(one, column))
    for columns in about.clusters:
        last: dict[tuple[int, ...], int] = {}
        for row in rows[name]:
            value = tuple(_of(row, column) for column in columns)
            yield _at(row) - last.get(value, _at(row))
            last[value] = _at(row)
    for column, parent in about.refers:
        born = {_of(row, column): _at(row) for row in rows[parent]}
        yield from (born[_of(row, column)] - _at(row) for row in rows[name] if _of(row, column) in born)


def _at(row: Mapping[str, object]) -> int:
    return _of(row, "ts")


def _of(row: Mapping[str, object], column: str) -> int:
    value = row[column]
    assert isinstance(value, int)
    return value


@given(
    name=st.sampled_from(IN_TIME),
    seed=st.integers(0, 10_000),
    rounds=st.integers(1, 8),
    way=st.integers(0, 5),
)
def test_a_time_that_the_rows_only_just_keep(name: str, seed: int, rounds: int, way: int) -> None:
    random = Random(seed)
    made = random_rows(QUERIES[name][0], random, rounds=rounds)
    text = text_of(name).replace(SECONDS, f"WITHIN {max(0, least(QUERIES[name][0], made))} SECONDS")
    rows = tables(text, made)
    remembered = output_of(text_of(name, promises=False), "q", [rows], {})
    assert same_output(output_of(text, "q", pieces(rows, random), {}), remembered)
    cluster = Cluster(stage_of(text, "q", {}, shards=4, way=way))
    for piece in pieces(rows, random):
        cluster.batch({stream: [table] for stream, table in piece.items() if table.num_rows})
    cluster.end()
    assert not any(cluster.late.values())
    assert same_output(cluster.changes(), remembered)


@pytest.mark.parametrize("name", ["groups of clusters in time", "ordered distinct in time"])
def test_one_second_less_and_a_row_is_late(name: str) -> None:
    for seed in range(5):
        made = random_rows(QUERIES[name][0], Random(seed), rounds=6)
        streams = {"s2": QUERIES[name][0]["s2"]}
        seconds = least(streams, made)
        for fewer in (0, 1):
            text = text_of(name).replace(SECONDS, f"WITHIN {seconds - fewer} SECONDS")
            session = Session()
            session.sql(text)
            ready = compile_query(session.query("q").planned)
            frame = frame_of(tables(text, made)["s2"], ready.streams[0].columns)
            frame = frame.with_columns(frame["ts"].dt.epoch("us").alias("_born"))
            _, broken = PromiseChecker(ready.graph.promises).split(frame)
            assert broken.is_empty() is (fewer == 0)


@pytest.mark.parametrize("name", IN_TIME)
def test_rows_are_spread_over_shards(name: str) -> None:
    """What is measured in time need not be counted over all rows, so no constraint in time keeps them together."""
    # By no column do rows of all three streams meet.
    apart = name == "referring twice in time"
    assert stage_of(text_of(name), "q", {}, shards=4).most_shards == (1 if apart else 4)
