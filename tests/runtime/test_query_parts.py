"""A stream inside a plan that says much is worked through part by part."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headgate as hg
from headgate.kernels.emit.emit import Dstream
from headgate.model.batch import Batch
from headgate.model.time import Clock

START = datetime(2026, 1, 1, tzinfo=UTC)


def asked(text: str, days: float, length: str) -> hg.Session:
    """A session with the queries `pulse` and `q`, over three rows of which the last comes so many days later."""
    session = hg.Session()
    rows = [{"ts": START + timedelta(days=each), "v": n} for n, each in enumerate((0, days / 2, days))]
    session.stream("s", rows, time="ts")
    session.stream("t", [{"ts": START + timedelta(minutes=5 * n), "w": n} for n in range(60)], time="ts")
    session.sql(f"CREATE QUERY pulse AS SELECT RSTREAM(v) FROM s [RANGE {length} SLIDE 1 SECOND]")
    session.sql(f"CREATE QUERY q AS {text}")
    return session


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ISTREAM(v, COUNT(*) AS n) FROM pulse [RANGE 30 SECONDS SLIDE 10 MINUTES] GROUP BY v",
        "SELECT RSTREAM(v, w) FROM pulse [RANGE 2 SECONDS SLIDE 1 MINUTE], t [RANGE 7 MINUTES]",
        "SELECT ISTREAM(w) FROM t [NOW], pulse [NOW] WHERE v = 1",
        "SELECT RSTREAM(COUNT(*)) FROM (SELECT RSTREAM(v) FROM pulse [RANGE 9 SECONDS SLIDE 3 SECONDS])"
        " [RANGE 1 MINUTE SLIDE 1 MINUTE]",
    ],
)
def test_the_answer_is_the_same_in_one_part_and_in_many(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session = asked(text, 0.02, "40 MINUTES")
    once = session.run(["q"])["q"].to_polars()
    monkeypatch.setattr("headgate.kernels.emit.rstream.BLOCK", 97)
    assert once.height
    assert Counter(session.run(["q"])["q"].to_polars().rows()) == Counter(once.rows())


def test_no_operator_ever_gets_more_than_a_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a day of a second each: 65 thousand rows said inside the plan, and none outside."""
    heights: list[int] = []
    emit = Dstream.emit

    def counted(self: Dstream, state: Any, batch: Batch, clock: Clock) -> Any:
        heights.append(batch.height)
        return emit(self, state, batch, clock)

    monkeypatch.setattr(Dstream, "emit", counted)
    monkeypatch.setattr("headgate.kernels.emit.rstream.BLOCK", 4096)
    session = asked(
        "SELECT DSTREAM(v, COUNT(*) AS n) FROM pulse [RANGE 1 SECOND] GROUP BY v", 0.5, "1000 DAYS"
    )
    found = session.run(["q"], drain=False)["q"].to_polars()
    assert found.is_empty()
    assert sum(heights) > 60_000
    assert max(heights) <= 2 * 4096
