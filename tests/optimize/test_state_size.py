"""How much is kept where promises, constraints and values bound it, and in which words explain says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.safety.test_gate_punctuation import streams

from headgate.explain.sizes import Sizes
from headgate.optimize.statistics import read_statistics
from headgate.session import Session

EXAMPLES = Path(__file__).parents[2] / "examples"


def sizes(session: Session, query: str, statistics: str) -> Sizes:
    session.statistics = read_statistics(statistics, "stats", session.catalog)
    found = session.query(query).checked.sizes
    assert found is not None
    return found


def rows(found: Sizes) -> dict[tuple[str, str], float | None]:
    return {(term.operator, term.stream): term.rows for term in found.terms}


AUCTION = "streams: {bids: {rate: 100, closes: {itemid: 300}}, items: {rate: 2, closes: {itemid: 30}}}"


def test_rows_that_wait_for_a_closing_are_a_rate_times_the_time_they_wait() -> None:
    found = sizes(Session.from_file(EXAMPLES / "auction.cql"), "closing", AUCTION)
    assert rows(found) == {
        ("aggregate", "i"): 2 * 300,
        ("join", "i"): 2 * 300,
        ("join", "b"): 100 * 30,
        ("join", "closed b"): 100 * 30,
        ("join", "closed i"): 2 * 300,
    }
    assert found.rows == 7_800
    assert found.terms[1].formula.startswith("2 rows/s × 5 MINUTES until b is closed = 600 rows × 32 bytes")


def test_a_windowed_side_and_a_punctuated_one_have_a_size_together() -> None:
    found = sizes(Session.from_file(EXAMPLES / "auction.cql"), "hot", AUCTION)
    assert found.rows is not None
    assert rows(found)["join", "i"] == 600


def test_a_constraint_takes_the_time_of_its_rows() -> None:
    found = sizes(
        Session.from_file(EXAMPLES / "ordered.cql"),
        "shipped",
        "streams: {orders: {rate: 5}, shipments: {rate: 4}}",
    )
    assert rows(found)["join", "o"] == pytest.approx(5 * 101 / 4)
    assert rows(found)["join", "s"] == pytest.approx(4 * 21 / 5)
    assert found.terms[0].formula.startswith("5 rows/s × 25250 MILLISECONDS for 101 rows of s")


def test_a_constraint_in_time_takes_that_time() -> None:
    found = sizes(
        Session.from_file(EXAMPLES / "trips.cql"),
        "miles",
        "streams: {trips: {rate: 5}, positions: {rate: 4}}",
    )
    assert rows(found)["join", "t"] == 5 * 180
    assert rows(found)["join", "p"] == 4 * 60
    assert found.terms[0].formula.startswith("5 rows/s × 3 MINUTES by which p may be off")
    assert any(each.formula.startswith("up to when rows have come, at most 1 row") for each in found.terms)


def test_an_order_in_time_remembers_the_values_of_that_time() -> None:
    session = Session()
    ordered = "ORDERED BY (a) WITHIN 1 MINUTE"
    session.sql(
        streams(f"s(a) {ordered}", f"t(a) {ordered}")
        + "CREATE QUERY q AS SELECT s.a FROM s, t WHERE s.a = t.a;"
    )
    found = sizes(session, "q", "streams: {s: {rate: 5}, t: {rate: 4}}")
    assert rows(found)["join", "s"] == 5 * 60
    assert sorted(each.rows for each in found.terms)[:2] == [4 * 60, 4 * 60 + 1]


def test_values_are_at_most_their_buckets() -> None:
    session = Session.from_file(EXAMPLES / "values.cql")
    found = sizes(session, "total", "streams: {s: {rate: 5}}")
    assert rows(found) == {("aggregate", "s"): 9, ("join", "s"): 9, ("join", "t"): 9}
    assert found.terms[1].formula == "buckets by 9 of s.a, at most 9 rows × 64 bytes = 576 bytes"


def test_a_time_that_nobody_gave_is_assumed_and_says_so() -> None:
    session = Session()
    session.sql(
        streams("s(a) PUNCTUATED BY (a) WHEN p", "t(a) KEY (a)")
        + "CREATE QUERY q AS SELECT s.a FROM s, t WHERE s.a = t.a;"
    )
    found = sizes(session, "q", "streams: {s: {rate: 3}}")
    assert found.terms[0].formula.startswith("3 rows/s × 10 MINUTES until t is closed (assumed)")


def test_explain_shows_synopses_and_what_lets_rows_go() -> None:
    values = str(Session.from_file(EXAMPLES / "values.cql").query("least").explain())
    assert "s: representatives ≤9 rows, t: representatives ≤1 row" in values
    auction = Session.from_file(EXAMPLES / "auction.cql").query("closing").explain()
    assert (
        "i: runs ~600 rows dropped by PUNCTUATED BY (itemid), b: runs ~600 rows dropped by KEY (itemid)"
        in str(auction)
    )
    assert "groups ~600 rows forgotten by KEY (itemid), PUNCTUATED BY (itemid)" in str(auction)
    join = auction.as_dict()["queries"][0]["plan"]["inputs"][0]["inputs"][0]["inputs"][0]
    assert [each["forgets"] for each in join["state"]["inputs"]][:2] == [
        "dropped by PUNCTUATED BY (itemid)",
        "dropped by KEY (itemid)",
    ]
