"""Warnings of a SLIDE by which RSTREAM floods its reader."""

from __future__ import annotations

import pytest

from headgate.session import Session

STREAM = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;\n"


@pytest.mark.parametrize(
    ("query", "times"),
    [
        ("SELECT RSTREAM(k) FROM s [RANGE 1 HOUR SLIDE 1 SECOND]", "3,600 times"),
        (
            "SELECT RSTREAM(k, COUNT(*) AS n) FROM s [RANGE 100 DAYS SLIDE 1 SECOND] GROUP BY k",
            "8,640,000 times",
        ),
        (
            "SELECT ISTREAM(COUNT(*) AS n) "
            "FROM (SELECT RSTREAM(k) FROM s [RANGE 1 HOUR SLIDE 1 SECOND]) x [RANGE 1 HOUR]",
            "3,600 times",
        ),
        (
            "SELECT RSTREAM(k) FROM (SELECT ISTREAM(k) FROM s [RANGE 1 DAY]) x [RANGE 5 SECONDS SLIDE 1 SECOND]",
            None,
        ),
        ("SELECT RSTREAM(k) FROM s [RANGE 1001 SECONDS SLIDE 1 SECOND]", "1,001 times"),
        ("SELECT RSTREAM(k) FROM s [RANGE 1000 SECONDS SLIDE 1 SECOND]", None),
        ("SELECT RSTREAM(k) FROM s [RANGE 1 HOUR]", None),
        ("SELECT ISTREAM(k) FROM s [RANGE 1 HOUR SLIDE 1 SECOND]", None),
        ("SELECT k FROM s [RANGE 1 HOUR SLIDE 1 SECOND]", None),
        ("SELECT RSTREAM(k) FROM s [ROWS 5]", None),
        (
            "SELECT RSTREAM(s.k) FROM s [RANGE 5 SECONDS SLIDE 1 SECOND], s AS t [ROWS 3] WHERE s.k = t.k",
            None,
        ),
    ],
)
def test_a_row_that_is_written_at_very_many_ticks_is_warned_of(query: str, times: str | None) -> None:
    found = Session().sql(STREAM + query)
    assert found is not None
    verdict = found.judged
    assert verdict.admitted
    assert len(verdict.warnings) == (times is not None)
    assert all(times is not None and times in each for each in verdict.warnings)
    assert verdict.as_dict()["warnings"] == list(verdict.warnings)
    shown = " ".join(str(found.checked.to_text()).split())
    assert ("warning RSTREAM repeats a row" in shown) == (times is not None)
