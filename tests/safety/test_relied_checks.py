"""Whose CHECKs a verdict rests on: the rows of these streams have to keep them, those of other streams need not."""

from __future__ import annotations

import pytest

from headgate.session import Session

STREAMS = """
CREATE STREAM a (ts TIMESTAMP, k BIGINT, v BIGINT, until TIMESTAMP,
  CHECK (until BETWEEN ts AND ts + INTERVAL 20 SECONDS), CHECK (k BETWEEN 0 AND 9)) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, k BIGINT, w BIGINT) TIMESTAMP BY ts;
CREATE STREAM c (ts TIMESTAMP, k BIGINT, w BIGINT, CHECK (w > 0)) TIMESTAMP BY ts;
"""


@pytest.mark.parametrize(
    ("query", "relied_on"),
    [
        ("SELECT k, COUNT(*) AS n FROM a GROUP BY k", {"a"}),
        ("SELECT COUNT(DISTINCT k) AS n FROM a", {"a"}),
        ("SELECT v, COUNT(*) AS n FROM a WHERE v BETWEEN 1 AND 5 GROUP BY v", set()),
        ("SELECT k, COUNT(*) AS n FROM a [RANGE 1 MINUTE] GROUP BY k", set()),
        ("SELECT ISTREAM(a.v, b.w) FROM a, b WHERE a.k = b.k AND b.ts BETWEEN a.ts AND a.until", {"a"}),
        ("SELECT ISTREAM(a.v, b.w) FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k", set()),
        ("SELECT ISTREAM(DISTINCT a.v) FROM a, c WHERE a.v = c.w AND a.v BETWEEN 1 AND 3", set()),
        ("SELECT ISTREAM(DISTINCT a.k) FROM a, b WHERE a.k = b.k", {"a"}),
    ],
)
def test_only_rows_of_streams_that_the_proof_needs_have_to_keep_their_checks(
    query: str, relied_on: set[str]
) -> None:
    session = Session()
    session.sql(f"{STREAMS} CREATE QUERY q AS {query};")
    [compiled] = session.compile().queries
    assert {promise.stream for promise in compiled.graph.promises} == relied_on
