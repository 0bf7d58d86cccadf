"""The local engine: queries that run together answer as each does alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from headgate.model.batch import BORN
from headgate.runtime.local.engine import Progress, Stop
from headgate.runtime.reorder_buffer import ReorderBuffer
from headgate.session import Session

START = datetime(2026, 1, 1, tzinfo=UTC)
TEXT = """
CREATE STREAM short (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE STREAM long (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;
CREATE QUERY ticks AS SELECT RSTREAM(COUNT(*) AS n) FROM short [RANGE 10 SECONDS SLIDE 10 SECONDS];
CREATE QUERY counts AS SELECT COUNT(*) AS n FROM long [RANGE 10 SECONDS];
CREATE QUERY pairs AS
SELECT ISTREAM(s.k, l.k AS j) FROM short s [RANGE 1 MINUTE], long l [RANGE 1 MINUTE] WHERE s.k = l.k;
"""


def rows(*seconds: int) -> list[dict[str, Any]]:
    return [{"ts": START + timedelta(seconds=at), "k": at % 3} for at in seconds]


@pytest.fixture
def session() -> Session:
    session = Session()
    session.sql(TEXT)
    session.stream("short", rows(1, 5, 12))
    session.stream("long", rows(*range(0, 600, 7)))
    return session


@pytest.mark.parametrize("batch_rows", [2, 7, 1_000])
@pytest.mark.parametrize("drain", [True, False])
def test_queries_that_run_together_answer_as_each_does_alone(
    session: Session, batch_rows: int, drain: bool
) -> None:
    together = session.run(batch_rows=batch_rows, drain=drain)
    for name in ("ticks", "counts", "pairs"):
        alone = session.query(name).run(batch_rows=batch_rows, drain=drain)
        assert together[name].to_dicts() == alone.to_dicts()


def test_a_stream_that_has_ended_holds_nobody_up(session: Session) -> None:
    seen: list[int] = []
    run, _ = session.local.prepare(
        session.compile(["pairs"]), session.catalog, base=session.base, batch_rows=8
    )
    run.run(lambda *_: None, lambda *_: None, lambda step: seen.append(step.clock))
    # Not all at the end: rows of the longer stream are answered while they come.
    assert len(seen) > 5


def test_a_run_until_the_last_row_answers_the_last_row_of_the_longest_stream(session: Session) -> None:
    session.sql(
        "CREATE QUERY u AS SELECT ISTREAM(k) FROM (SELECT k FROM short UNION ALL SELECT k FROM long) x"
    )
    drained, _ = session.local.prepare(session.compile(["u"]), session.catalog, base=session.base)
    run = replace(drained, stop=Stop.LAST_ROW)
    said: list[int] = []
    run.run(lambda _, frame: said.append(frame.height), lambda *_: None)
    assert sum(said) == 3 + len(range(0, 600, 7))


def test_progress_follows_the_queries_whose_streams_go_on(session: Session) -> None:
    seen: list[Progress] = []
    run, _ = session.local.prepare(session.compile(), session.catalog, base=session.base, batch_rows=8)
    run.run(lambda *_: None, lambda *_: None, seen.append)
    assert seen[-1].rows == 3 + len(range(0, 600, 7))
    clocks = [each.clock for each in seen if each.clock is not None]
    assert clocks == sorted(clocks)
    assert clocks[-1] > clocks[0] + 500 * 1_000_000


def test_before_the_first_answer_there_is_no_clock() -> None:
    session = Session()
    session.sql(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts; CREATE QUERY q AS SELECT k FROM s [NOW]"
    )
    session.stream("s", rows(9, 1, 2))
    seen: list[int | None] = []
    run, _ = session.local.prepare(session.compile(), session.catalog, base=session.base, batch_rows=100)
    run.run(lambda *_: None, lambda *_: None, lambda step: seen.append(step.clock))
    assert seen[0] is None or seen[0] > 0


def test_queries_that_run_together_share_the_rows_that_wait() -> None:
    frame = pl.DataFrame({BORN: [3, 1, 2], "k": [1, 2, 3]})
    one = ReorderBuffer.empty().adding(frame)
    first, _ = one.take(1)
    second, _ = one.take(1)
    (mine,), (others,) = first.chunks().values(), second.chunks().values()
    assert mine is others
    assert mine[BORN].to_list() == [3, 2]
