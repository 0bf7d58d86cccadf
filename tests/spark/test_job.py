"""Several queries as one job: each says what it says alone, and what they read alike is sent once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.oracle.casefile import Case, all_cases
from tests.oracle.generate import Example, examples
from tests.oracle.oracle import Oracle
from tests.oracle.values import same_output
from tests.spark.shards import Cluster, arriving, stage_of
from tests.spark.test_shards import in_partitions

import headgate as hg
from headgate.model.errors import InputError, MeaninglessError
from headgate.runtime.spark import store
from headgate.runtime.spark.job import JobStage
from headgate.runtime.spark.options import SparkOptions
from headgate.runtime.spark.pack import Packer
from headgate.runtime.spark.run import RunTarget, follow, run_to_folder

STREAMS = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts WITHIN 2 SECONDS
    USING parquet OPTIONS (path 's');
CREATE STREAM r (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts USING parquet OPTIONS (path 'r');
CREATE TABLE names (k BIGINT, name STRING) USING csv OPTIONS (path 'names.csv', header 'true');
"""
QUERIES = {
    "sums": "SELECT k, SUM(v) AS total FROM s [RANGE 5 SECONDS] GROUP BY k",
    "counts": "SELECT k, COUNT(*) AS n FROM s [RANGE 9 SECONDS] GROUP BY k",
    "all_rows": "SELECT ISTREAM(COUNT(*) AS n) FROM s [RANGE 3 SECONDS]",
    "values_of": "SELECT v, MAX(k) AS most FROM s [RANGE 4 SECONDS] GROUP BY v",
    "both": "SELECT ISTREAM(s.v, r.v AS w) FROM s [RANGE 4 SECONDS], r [RANGE 4 SECONDS] WHERE s.k = r.k",
    "groups": "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM r [RANGE 9 SECONDS] GROUP BY k)",
    "known": "SELECT k, name FROM names",
}
TEXT = STREAMS + "".join(f"CREATE QUERY {name} AS {query};\n" for name, query in QUERIES.items())


def rows(seconds: list[int]) -> pa.Table:
    times = pa.array([1_000_000 * each for each in seconds], pa.timestamp("us", tz="UTC"))
    return pa.table(
        {"ts": times, "k": [each % 3 for each in seconds], "v": [each * 7 % 5 for each in seconds]}
    )


def job_of(*names: str, shards: int) -> JobStage:
    return JobStage.of([stage_of(TEXT, name, {}, shards=shards) for name in names])


def test_what_queries_read_alike_is_sent_once() -> None:
    job = job_of("sums", "counts", "values_of", shards=2)
    assert [feed.readers for feed in job.feeds] == [((0, 0), (1, 0)), ((2, 0),)]
    [piece] = Packer.of(job, "s").messages(rows([*range(12)]).to_batches(), 0)
    assert [(place, message.feed) for place, message in piece] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    # Each of both kinds of feeds tells its readers how many rows there were.
    assert [message.read for _, message in piece] == [12, 0, 12, 0]


def test_queries_of_one_shard_are_spread_over_the_places() -> None:
    job = job_of("sums", "all_rows", "all_rows", "all_rows", shards=2)
    assert job.places == 2
    assert [job.places_of(query)[0] for query in range(4)] == [0, 0, 1, 0]
    assert [[query for query, _, _ in job.at(place)] for place in range(2)] == [[0, 1, 3], [0, 2]]


def agree(example: Example, shards: list[int], *, forget: bool) -> None:
    """Checks that the queries of an example, as one job, each say what the oracle says."""
    expected, stages = {}, []
    for number, query in enumerate((example.query, *example.others)):
        oracle = Oracle(example.text, example.inputs, example.tables)
        found = oracle.output(query)
        try:
            stage = stage_of(example.text, query, example.tables, shards=shards[number % len(shards)])
        except MeaninglessError:
            # A table that changes cannot be joined with rows that may end early.
            continue
        if not oracle.order_matters:
            expected[len(stages)] = (found, oracle.ticking(query))
        stages.append(stage)
    if not stages:
        return
    cluster = Cluster(stages[0], stages[1:])
    for arrival in arriving(cluster.job, list(example.arrivals()), example.tables):
        if forget:
            store._CACHE.clear()
        cluster.batch({name: [table] for name, table in arrival.items() if table.num_rows})
    cluster.end()
    for number, (answer, ticking) in expected.items():
        assert same_output(cluster.changes(number), answer, ticking=ticking), (
            f"{stages[number].graph.query}: expected {answer}\nfound    {cluster.changes(number)}"
        )


SHARDS = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(queries=3), SHARDS, st.booleans())
def test_a_job_says_what_the_oracle_says(example: Example, shards: list[int], forget: bool) -> None:
    agree(example, shards, forget=forget)


@pytest.mark.long
@settings(max_examples=1_500, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(queries=4), SHARDS, st.booleans())
def test_many_more(example: Example, shards: list[int], forget: bool) -> None:
    agree(example, shards, forget=forget)


@pytest.mark.parametrize("case", [each for each in all_cases() if len(each.expected) > 1], ids=str)
def test_the_queries_of_a_case_as_one_job(case: Case) -> None:
    stages = [stage_of(case.text, query, case.tables, shards=3) for query in case.expected]
    cluster = Cluster(stages[0], stages[1:])
    [whole] = arriving(cluster.job, [case.inputs], case.tables)
    cluster.batch(in_partitions(whole, 2))
    cluster.end()
    for number, expected in enumerate(case.expected.values()):
        assert same_output(cluster.changes(number), expected)


def test_a_silent_stream_leaves_other_queries_alone() -> None:
    """Rows for one query of a job do not make the others say or count anything."""
    stages = [stage_of(TEXT, name, {}, shards=2) for name in ("sums", "groups")]
    cluster = Cluster(stages[0], stages[1:])
    cluster.batch({"s": [rows([1, 2, 3])], "r": [rows([1, 2, 3])]})
    before = [json.loads(each.text or "{}")["queries"].get("1") for each in cluster.stores[0]]
    cluster.batch({"s": [rows([4, 5, 9])]})
    assert [json.loads(each.text or "{}")["queries"].get("1") for each in cluster.stores[0]] == before


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, last in (("s", 40), ("r", 30)):
        (tmp_path / name).mkdir()
        for start in range(0, last, 10):
            seconds = [start, start + 2, start + 1, *range(start + 3, start + 10)]
            table = rows(sorted(seconds) if name == "r" else seconds)
            pl.DataFrame(pl.from_arrow(table)).write_parquet(tmp_path / name / f"{start:02d}.parquet")
    (tmp_path / "names.csv").write_text("k,name\n0,zero\n1,one\n")
    return tmp_path


def session_in(folder: Path) -> hg.Session:
    session = hg.Session()
    session.base = folder
    session.sql(TEXT)
    return session


def answers(folder: Path, names: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of output folders, in some order."""
    return {name: sorted(pl.read_parquet(folder / name / "*.parquet").rows(), key=repr) for name in names}


def test_a_program_is_one_spark_query(spark: Any, folder: Path) -> None:
    """Seven queries of one, two and three stages over two streams and a table, as one job, as the local engine."""
    session = session_in(folder)
    local = {
        name: sorted(result.to_polars().rows(), key=repr) for name, result in session.run(drain=True).items()
    }
    seen: list[int] = []

    def on_batch(_: object) -> None:
        seen.append(len(spark.streams.active))

    place = RunTarget(folder / "out", folder / "state", on_batch=on_batch)
    options = SparkOptions(shards=2, batch_rows=20)
    summary = run_to_folder(spark, session.compile(None), folder, options, place)
    assert answers(folder / "out", [*QUERIES]) == local
    assert set(seen) == {1}
    rows_in = {name: metrics["rows_in"] for name, metrics in summary.metrics.items()}
    assert rows_in == {
        "sums": 40, "counts": 40, "all_rows": 40, "values_of": 40, "both": 70, "groups": 30, "known": 2
    }  # fmt: skip
    # The job goes on with what has come, and only as the queries that it is of.
    more = rows([*range(40, 60)])
    for name in ("s", "r"):
        pl.DataFrame(pl.from_arrow(more)).write_parquet(folder / name / "99.parquet")
    with pytest.raises(InputError, match=r"belongs to the queries sums, .* and this run is of query sums"):
        run_to_folder(spark, session.compile(["sums"]), folder, options, place)
    again = run_to_folder(spark, session.compile(None), folder, options, place)
    assert again.metrics["both"]["rows_in"] > rows_in["both"]


def test_queries_follow_their_files_as_one_job(spark: Any, folder: Path) -> None:
    """A query over tables alone answers at once, although the others never end."""
    session = session_in(folder)
    names = ["sums", "both", "known"]
    place = RunTarget(folder / "out", folder / "state")
    options = SparkOptions(shards=2, batch_rows=20)
    asked = 0

    def is_over() -> bool:
        nonlocal asked
        asked += 1
        files = [folder / "out" / name / "metrics.json" for name in names]
        there = [json.loads(each.read_text()) if each.exists() else {} for each in files]
        return asked > 90 or there[0].get("rows_in", 0) >= 37

    summary = follow(spark, session.compile(names), folder, options, place, is_over=is_over)
    assert asked <= 90
    assert summary.metrics["sums"]["rows_in"] == 37, "rows of the last two seconds wait"
    assert answers(folder / "out", ["known"]) == {
        "known": sorted(session.run(["known"])["known"].to_polars().rows(), key=repr)
    }
