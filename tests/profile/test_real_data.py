"""Constraints that the logs of a network obey, which nobody made up."""

from __future__ import annotations

from pathlib import Path

import pytest

import headgate as hg
from headgate.lab.generators import read_zeek
from headgate.profile.profile import profile

LOGS = Path(__file__).parents[2].parent / "shared" / "data" / "zeek-wrccdc-2018"

pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason=f"there is no real data in {LOGS}")

STREAMS = """
CREATE STREAM ssl (ts TIMESTAMP, uid STRING, version STRING) TIMESTAMP BY ts WITHIN INTERVAL 1 MINUTE;
CREATE STREAM weird (ts TIMESTAMP, uid STRING, name STRING) TIMESTAMP BY ts WITHIN INTERVAL 1 MINUTE;
CREATE QUERY strange AS SELECT ISTREAM(DISTINCT uid) FROM weird WHERE uid IS NOT NULL;
CREATE QUERY odd AS SELECT ISTREAM(s.uid, s.version, w.name) FROM ssl s, weird w WHERE s.uid = w.uid;
"""


def test_what_is_odd_about_a_connection_comes_in_clusters_and_after_it() -> None:
    session = hg.Session()
    session.sql(STREAMS)
    for name in ("ssl", "weird"):
        session.stream(name, read_zeek(LOGS / f"{name}.log.gz"))
    found = profile(session, ["strange", "odd"])
    ssl, weird = sorted(found.streams, key=lambda each: each.sample.stream.name)
    assert ssl.keys == (("uid",),)
    assert {each.clause: each.rows for each in weird.constraints} == {
        "CLUSTERED BY (uid) WITHIN 32 ROWS": 24_202,
        "FOREIGN KEY (uid) REFERENCES ssl (uid) WITHIN 0 ROWS": 24_160,
    }
    strange, odd = found.savings
    assert (strange.before.verdict, strange.after.verdict) == ("refused", "conditional")
    assert strange.before.state_rows == 12_377
    assert strange.after.state_rows is not None
    assert strange.after.state_rows * 20 < strange.before.state_rows
    # A connection may always have another oddity: nothing in these rows says when it has had its last.
    assert (odd.after.verdict, odd.constraints) == ("refused", ())
