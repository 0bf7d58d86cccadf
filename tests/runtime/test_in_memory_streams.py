"""Streams and tables that are given their rows in Python: what is said beside the rows holds, or is refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from headgate.model.errors import InputError, NameResolutionError
from headgate.plan.catalog import StreamDef, TableDef
from headgate.session import Session

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECOND = 1_000_000
DECLARED = "CREATE STREAM a (ts TIMESTAMP, other TIMESTAMP, x INT) TIMESTAMP BY ts WITHIN INTERVAL 5 SECONDS"


def rows(*seconds: int) -> list[dict[str, Any]]:
    return [{"ts": START + dt.timedelta(seconds=each), "other": START, "x": each} for each in seconds]


def test_what_is_said_again_may_be_what_was_declared() -> None:
    session = Session()
    session.sql(DECLARED)
    session.stream("a", rows(5, 1))
    session.stream("A", rows(5, 1), time="TS", slack=5 * SECOND)
    query = session.sql("SELECT ISTREAM(x) FROM a [RANGE 1 SECOND]")
    assert query is not None
    assert [row["x"] for row in query.run().to_dicts()] == [1, 5]


@pytest.mark.parametrize(
    ("how", "message", "remedy"),
    [
        ({"time": "other"}, "stream a has the event time ts, not other", "TIMESTAMP BY other"),
        ({"time": "x"}, "stream a has the event time ts, not x", "leave time out"),
        ({"slack": 60 * SECOND}, "has a slack of 5000000 microseconds, not 60000000", "WITHIN INTERVAL"),
        ({"slack": 0}, "has a slack of 5000000 microseconds, not 0", "leave slack out"),
        ({"slack": -1}, "slack is -1", "whole microseconds"),
        ({"slack": 0.5}, r"slack is 0\.5", "whole microseconds"),
    ],
)
def test_what_contradicts_a_declaration_is_refused(how: dict[str, Any], message: str, remedy: str) -> None:
    session = Session()
    session.sql(DECLARED)
    with pytest.raises(InputError, match=message) as refused:
        session.stream("a", rows(5, 1), **how)
    assert remedy in (refused.value.remedy or "")


def test_a_stream_that_its_rows_declared_keeps_its_word() -> None:
    session = Session()
    session.stream("a", rows(1), time="Ts", slack=2 * SECOND)
    found = session.catalog.find("a")
    assert isinstance(found, StreamDef)
    assert (found.time, found.slack) == ("ts", 2 * SECOND)
    with pytest.raises(InputError, match="has a slack of 2000000"):
        session.stream("a", rows(1), slack=0)
    session.stream("a", rows(1, 2))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "needs one timestamp column"),
        ({"time": "x"}, "needs one timestamp column"),
        ({"time": "ts", "slack": -5}, "slack is -5"),
    ],
)
def test_a_stream_not_yet_declared_needs_a_time_and_no_negative_slack(
    how: dict[str, Any], message: str
) -> None:
    session = Session()
    with pytest.raises(InputError, match=message):
        session.stream("b", rows(1), **how)
    assert session.catalog.find("b") is None


def test_a_table_is_as_retroactive_as_it_was_declared() -> None:
    session = Session()
    session.sql("CREATE TABLE t (k INT) NON RETROACTIVE; CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts")
    session.table("t", [{"k": 1}])
    session.table("t", [{"k": 1}], retroactive=False)
    with pytest.raises(InputError, match="table t is declared NON RETROACTIVE"):
        session.table("t", [{"k": 1}], retroactive=True)
    session.table("u", [{"k": 1}])
    found = session.catalog.find("u")
    assert isinstance(found, TableDef)
    assert found.retroactive
    with pytest.raises(InputError, match="table u is not declared NON RETROACTIVE"):
        session.table("u", [{"k": 1}], retroactive=False)
    with pytest.raises(NameResolutionError, match="s is not a table"):
        session.table("s", [{"k": 1}])
