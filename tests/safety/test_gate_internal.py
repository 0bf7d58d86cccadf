"""INTERNAL windows bound what operators keep, but not an answer that is listed again and again."""

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
