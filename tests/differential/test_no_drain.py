"""Without a drain, both engines answer what is certain: all before the clock of the slowest input, by the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.differential.local import output_of
from tests.oracle.generate import Example, examples
from tests.oracle.inputs import TimedRow
from tests.oracle.oracle import Oracle
from tests.oracle.values import Change, same_output
from tests.spark.shards import Cluster, arriving, stage_of

from headgate.model.errors import MeaninglessError
from headgate.model.time import SECOND
from headgate.runtime.local.engine import Stop
from headgate.runtime.stage import Stage

TWO = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE STREAM t (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts WITHIN INTERVAL 2 SECONDS;
CREATE TABLE p (k BIGINT);
CREATE QUERY one AS SELECT k FROM s [RANGE 3 SECONDS];
CREATE QUERY both AS SELECT s.k FROM s [RANGE 3 SECONDS], t [RANGE 3 SECONDS] WHERE s.k = t.k;
CREATE QUERY held AS SELECT s.k FROM s [RANGE 3 SECONDS], p WHERE s.k = p.k;
CREATE QUERY timeless AS SELECT k FROM p;
"""


def rows(*seconds: int) -> pa.Table:
    instants = pa.array([second * SECOND for second in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": instants, "k": pa.array([1] * len(seconds), pa.int64())})


Tables = Mapping[str, pa.Table | Sequence[TimedRow]]


def on_shards(
    text: str, query: str, arrivals: Sequence[Mapping[str, pa.Table]], tables: Tables, shards: int = 2
) -> tuple[Stage, list[Change]]:
    """What a query's shards have said before they hear that their streams have ended, and their stage."""
    cluster = Cluster(stage_of(text, query, tables, shards=shards))
    for arrival in arriving(cluster.stage, arrivals, tables):
        cluster.batch({name: [rows] for name, rows in arrival.items() if rows.num_rows})
    return cluster.stage, cluster.changes()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # At 9 another row may come, and take effect at 9.
        ("one", [(1, "+"), (4, "-"), (5, "+"), (8, "-")]),
        # Rows of t may come from 6 on.
        ("both", [(1, "+"), (4, "-")]),
        # The table may change again at 3.
        ("held", [(1, "+")]),
    ],
)
def test_what_may_still_change_is_not_answered(query: str, expected: list[tuple[int, str]]) -> None:
    arrivals = [{"s": rows(1, 5, 9), "t": rows(1, 8)}]
    tables: Tables = {"p": [(0, "+", {"k": 1}), (3 * SECOND, "+", {"k": 2})]}
    found = output_of(TWO, query, arrivals, tables, stop=Stop.CERTAIN)
    assert [(change.time // SECOND, change.op) for change in found] == expected
    assert on_shards(TWO, query, arrivals, tables)[1] == found


def test_of_a_table_that_does_not_change_all_is_certain() -> None:
    tables: Tables = {"p": pa.table({"k": pa.array([7], pa.int64())})}
    assert output_of(TWO, "timeless", [], tables, stop=Stop.CERTAIN) == [Change(0, "+", (7,))]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(), st.integers(1, 4))
def test_both_engines_answer_what_is_certain(example: Example, shards: int) -> None:
    agree(example, shards)


@pytest.mark.long
@settings(max_examples=3_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(examples(), st.integers(1, 9))
def test_many_more(example: Example, shards: int) -> None:
    agree(example, shards)


def agree(example: Example, shards: int) -> None:
    oracle = Oracle(example.text, example.inputs, example.tables)
    whole = oracle.output(example.query)
    if oracle.order_matters:
        return
    arrivals = list(example.arrivals())
    try:
        stage, told = on_shards(example.text, example.query, arrivals, example.tables, shards)
    except MeaninglessError:
        return
    if not stage.streams:
        # Nothing tells the shards to answer but the end, which the command then says at once.
        told = whole
    certain = _certain(stage, example)
    expected = [change for change in whole if certain is None or change.time < certain]
    found = output_of(example.text, example.query, arrivals, example.tables, stop=Stop.CERTAIN)
    event("has output" if expected else "says nothing")
    assert same_output(found, expected), f"expected {expected}\nfound    {found}"
    assert same_output(told, expected), f"expected {expected}\nfound    {told}"


def _certain(stage: Stage, example: Example) -> int | None:
    """The clock of the slowest input of a query; None if it has none."""
    clocks = []
    for stream in stage.streams:
        given = example.inputs.get(stream.name)
        instants = (
            [time for time, _, _ in example.tables[stream.name]]
            if given is None
            else given["ts"].cast(pa.int64()).to_pylist()
        )
        clocks.append(max(instants) - stream.slack if instants else -(2**63))
    return min(clocks, default=None)
