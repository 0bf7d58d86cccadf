"""INTERNAL windows bound what operators keep, but not an answer that is listed again, nor what is built on it."""

from __future__ import annotations

import pytest

from headgate.session import Session

STREAM = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts;"


@pytest.mark.parametrize(
    ("query", "bounded"),
    [
        ("SELECT RSTREAM(k) FROM s [RANGE 5 SECONDS INTERNAL]", False),
        ("SELECT RSTREAM(k) FROM s [RANGE 5 SECONDS]", True),
        ("SELECT ISTREAM(k) FROM s [RANGE 5 SECONDS INTERNAL]", True),
        (
            "SELECT RSTREAM(a.k) FROM s [RANGE 5 SECONDS INTERNAL] a, s [RANGE 9 SECONDS] b WHERE a.k = b.k",
            True,
        ),
    ],
)
def test_rstream_over_internal_windows_is_refused(query: str, bounded: bool) -> None:
    found = Session().sql(STREAM + query)
    assert found is not None
    assert found.check().admitted == bounded


COUNTS = "(SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS INTERNAL] GROUP BY k) x"


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT ISTREAM(x.n, b.k) FROM {COUNTS}, s [RANGE 1 MINUTE] b WHERE x.k = b.k",
        f"SELECT ISTREAM(x.n) FROM {COUNTS}, {COUNTS[:-1]}y WHERE x.k = y.k",
        f"SELECT n, COUNT(*) AS m FROM {COUNTS} GROUP BY n",
        f"SELECT COUNT(DISTINCT n) AS m FROM {COUNTS}",
        f"SELECT MEDIAN(n) AS m FROM {COUNTS}",
        "SELECT RSTREAM(k, COUNT(*)) FROM s [RANGE 5 SECONDS INTERNAL] GROUP BY k",
        "SELECT RSTREAM(COUNT(*)) FROM s [ROWS 5 INTERNAL]",
        # Of an instant it says something new for as long as rows leave the window.
        "SELECT ISTREAM(x.ts, b.k) FROM (SELECT ts, COUNT(*) AS n FROM s [RANGE 9 SECONDS INTERNAL] GROUP BY ts) x, "
        "s AS b WHERE b.ts BETWEEN x.ts AND x.ts + INTERVAL 5 SECONDS",
        # Few values limit how many rows are in the window at a time, not how many have been in it.
        "SELECT RSTREAM(x.ts) FROM (SELECT ts FROM s [PARTITION BY k ROWS 3 INTERNAL] WHERE k IN (0, 1)) x",
    ],
)
def test_what_an_aggregate_over_internal_windows_has_said_stays(query: str) -> None:
    found = Session().sql(STREAM + query)
    assert found is not None
    assert found.check().kind == "refused"
    assert any("stays" in state.reason for state in found.check().unbounded)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n FROM s [RANGE 5 SECONDS INTERNAL] GROUP BY k",
        f"SELECT MAX(n) AS m, COUNT(*) AS c FROM {COUNTS}",
        f"SELECT k, n FROM {COUNTS} [RANGE 10 SECONDS]",
        f"SELECT x.n, b.k FROM {COUNTS} [RANGE 10 SECONDS], s [RANGE 1 MINUTE] b WHERE x.k = b.k",
    ],
)
def test_what_needs_none_of_it_is_admitted(query: str) -> None:
    found = Session().sql(STREAM + query)
    assert found is not None
    assert found.check().kind == "bounded", found.check()
