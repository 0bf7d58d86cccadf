"""What operators over panes keep: nothing, if all that counts at a tick is born there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headgate.plan.nodes import Aggregate, Distinct
from headgate.session import Session

STREAM = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts;"
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "keeps"),
    [
        ("SELECT k, SUM(v) FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS] GROUP BY k", False),
        ("SELECT k, MIN(v) FROM s [NOW] GROUP BY k", False),
        ("SELECT DISTINCT k FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS]", False),
        ("SELECT k, SUM(v) FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY k", True),
        ("SELECT k, SUM(v) FROM s [RANGE 5 SECONDS] GROUP BY k", True),
        ("SELECT SUM(v) FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS]", True),
        ("SELECT k, MEDIAN(v) FROM s [RANGE 5 SECONDS SLIDE 5 SECONDS] GROUP BY k", True),
        ("SELECT DISTINCT k FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS]", True),
    ],
)
def test_only_panes_keep_nothing(query: str, keeps: bool) -> None:
    session = Session()
    session.sql(f"{STREAM} CREATE QUERY q AS {query};")
    best = session.query("q").optimized.best
    assert keeps == any(isinstance(node, (Aggregate, Distinct)) for node in best.states)


@pytest.mark.parametrize("keeps", [False, True])
def test_the_engine_keeps_what_is_said(keeps: bool) -> None:
    window = "RANGE 8 SECONDS SLIDE 4 SECONDS" if keeps else "RANGE 4 SECONDS SLIDE 4 SECONDS"
    session = Session()
    session.sql(f"{STREAM} CREATE QUERY q AS SELECT ISTREAM(k, SUM(v) AS n) FROM s [{window}] GROUP BY k;")
    session.stream(
        "s", [{"ts": START + timedelta(seconds=each), "k": each % 3, "v": each} for each in range(50)]
    )
    operators = session.run(drain=False)["q"].metrics.as_dict()["operators"]
    assert keeps == any(name.endswith(":aggregate") for name in operators)
