"""The local engine: queries that run together answer as each does alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

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
