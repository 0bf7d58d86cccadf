"""What a session and a check show of themselves, in a terminal and in a notebook."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import headgate
from headgate import Session

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS = pl.DataFrame({"ts": [0, 1], "k": [1, 2]}).with_columns(
    pl.from_epoch("ts", time_unit="s").dt.replace_time_zone("UTC")
)


def test_the_package_lists_its_names() -> None:
    assert {"Session", "Query", "HeadgateError", "KafkaTopic", "PostgresView", "lint"} <= set(dir(headgate))
    assert all(hasattr(headgate, name) for name in dir(headgate))


def test_a_session_shows_what_it_holds() -> None:
    session = Session()
    session.stream("bids", ROWS, time="ts")
    session.sql(
        "CREATE TABLE rates (k BIGINT) USING jdbc OPTIONS (url 'jdbc:postgresql://db/x', password 'geheim')"
    )
    session.sql("CREATE STREAM later (a INT)")
    session.sql("CREATE QUERY q AS SELECT ISTREAM(k) FROM bids [RANGE 1 SECOND]")
    assert repr(session).splitlines() == [
        "session  2 streams, 1 table, 1 query, on the local engine",
        "  stream  bids (ts TIMESTAMP, k BIGINT): by ts, 2 rows",
        "  stream  later (a INT): no event time, no rows yet",
        "  table   rates (k BIGINT): jdbc",
        "  query   q",
    ]


def test_an_empty_session() -> None:
    assert repr(Session()) == "session  0 streams, 0 tables, 0 queries, on the local engine"


def test_a_session_of_a_file_names_its_files() -> None:
    assert ": by ts, csv data/quickstart/bids.csv" in repr(Session.from_file(EXAMPLES / "quickstart.cql"))


def test_a_session_in_a_notebook_is_safe_html() -> None:
    session = Session()
    session.sql("CREATE STREAM `<b>x` (a INT)")
    shown = session._repr_html_()
    assert shown.startswith("<pre")
    assert shown.endswith("</pre>")
    assert "&lt;b&gt;x" in shown


def test_a_check_reads_as_on_the_command_line() -> None:
    query = Session.from_file(EXAMPLES / "quickstart.cql").query("active")
    assert repr(query.check()) == str(query.check()) == query.checked.to_text().plain.rstrip("\n")
    assert repr(query.check()).startswith("bounded  active\n  ✓ istream over bids: window")


def test_a_check_in_a_notebook_has_colours_and_all_its_lines() -> None:
    session = Session()
    session.sql("CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts")
    query = session.sql("CREATE QUERY q AS SELECT DISTINCT a FROM s WHERE a < 3.5")
    assert query is not None
    shown = query.check()._repr_html_()
    assert "refused" in shown
    assert 'style="' in shown
    assert len(shown.splitlines()) == len(repr(query.check()).splitlines()) + 1


def test_a_check_is_still_a_verdict() -> None:
    query = Session.from_file(EXAMPLES / "quickstart.cql").query("active")
    assert query.check() == query.check()
    assert query.check().as_dict() == query.judged.as_dict()
