"""A refused query's witness: rows of its own streams that change answers to come, and that are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli_runner import headgate

from headgate.physical.compile import compile_query
from headgate.runtime.local.promise_audit import PLACE, broken_promise
from headgate.runtime.local.witnessing import NotShown, Shown, play
from headgate.safety.witness.find import find_adversaries
from headgate.safety.witness.model import Adversary
from headgate.safety.witness.purge import find_purge_adversary
from headgate.session import Session

STREAMS = """
CREATE STREAM a (ts TIMESTAMP, id BIGINT, x BIGINT, day DATE) TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, id BIGINT, y BIGINT, name STRING) TIMESTAMP BY ts USING parquet OPTIONS (path 'b');
CREATE STREAM k (ts TIMESTAMP, id BIGINT, v BIGINT) TIMESTAMP BY ts KEY (id);
CREATE STREAM f (ts TIMESTAMP, share DOUBLE) TIMESTAMP BY ts;
"""
REFUSED = {
    "join": "SELECT ISTREAM(a.x, b.y) FROM a, b WHERE a.id = b.id",
    "join on an inequality": "SELECT ISTREAM(a.x) FROM a, b WHERE a.id < b.id AND a.x BETWEEN 1 AND 5",
    "join, nothing shown of it": "SELECT ISTREAM(b.y) FROM a, b WHERE a.id = b.id AND b.y BETWEEN 1 AND 5",
    "two inequalities": "SELECT DISTINCT 1 AS one FROM a, b WHERE a.id < b.id AND a.x < b.y",
    "distinct": "SELECT ISTREAM(DISTINCT id) FROM a WHERE id > 10",
    "distinct days": "SELECT DISTINCT day FROM a",
    "distinct, of some names": "SELECT ISTREAM(DISTINCT id) FROM b WHERE name IN ('x', 'y')",
    "groups": "SELECT name, COUNT(*) AS n FROM b GROUP BY name",
    "groups of a join": "SELECT a.id, SUM(b.y) AS total FROM a, b WHERE a.id = b.id GROUP BY a.id",
}
ASKED = {
    "a window": "SELECT ISTREAM(a.x) FROM a [RANGE 5 SECONDS], b WHERE a.id = b.id",
    "rows of a window": "SELECT a.x, b.y FROM a, b [ROWS 3] WHERE a.id = b.id",
    "negation": "SELECT ISTREAM(a.id) FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b.id = a.id)",
    "negation of a window": "SELECT a.id FROM a WHERE NOT EXISTS (SELECT * FROM b [RANGE 3 SECONDS] WHERE id = a.id)",
    "windowed, not in b": "SELECT id FROM a [RANGE 9 SECONDS] WHERE NOT EXISTS (SELECT * FROM b WHERE b.id = a.id)",
    "in": "SELECT ISTREAM(id) FROM a WHERE id IN (SELECT id FROM b)",
    "except": "SELECT id FROM a EXCEPT SELECT id FROM b",
    "except all": "SELECT id FROM a EXCEPT ALL SELECT id FROM b",
    "count distinct": "SELECT COUNT(DISTINCT id) AS n FROM a",
}
NONE_KNOWN = {
    "a self join with a key": (
        "SELECT ISTREAM(p.ts) FROM k AS p, k AS q WHERE p.id = q.v",
        "k makes promises",
    ),
    "a join of a stream with a key in which nothing is equal": (
        "SELECT k.v FROM k, b WHERE k.id <> b.y",
        "the rows that would show it do not change the answers to come",
    ),
    "negation with a key": (
        "SELECT ISTREAM(a.id) FROM a WHERE NOT EXISTS (SELECT * FROM k WHERE k.id = a.id)",
        "k makes promises",
    ),
    "quantile": ("SELECT QUANTILE(x, 0.9) AS m FROM a", "what it computes need not change with every row"),
    "median of fractions": (
        "SELECT MEDIAN(share) AS m FROM f",
        "what it computes need not change with every row",
    ),
    "last rows of each": (
        "SELECT id, x FROM a [PARTITION BY id ROWS 2]",
        "newer rows replace the older ones of their value",
    ),
    "last rows of each and a window": (
        "SELECT p.id, b.y FROM a [PARTITION BY id ROWS 2] AS p, b [ROWS 3]",
        "newer rows replace the older ones of their value",
    ),
    "a filter that no row passes": (
        "SELECT ISTREAM(DISTINCT id) FROM a WHERE LENGTH(CAST(x AS STRING)) > 5",
        "it has a form for which no such rows have been worked out",
    ),
}


EXPRESSIONS = {
    "groups by a comparison": "SELECT x / 7 > 3 AS g, COUNT(*) AS n FROM a GROUP BY x / 7 > 3",
    "groups by a quotient": "SELECT x / 7 AS g, COUNT(*) AS n FROM a GROUP BY x / 7",
    "an expression over a key": "SELECT DISTINCT id + 1 AS g FROM k",
    "joined on an expression": "SELECT DISTINCT 1 AS one FROM a, b WHERE a.id / 7 = b.id / 7",
    "a group that is shown late": "SELECT x FROM a GROUP BY x HAVING COUNT(*) > 3",
}


def asked(query: str) -> Session:
    session = Session()
    session.sql(STREAMS + query)
    return session


@cache
def witness(name: str) -> Shown:
    """40 rows for a query."""
    shown = asked({**REFUSED, **ASKED}[name]).queries[0].witness(40)
    assert shown is not None
    return shown


@pytest.mark.parametrize("name", [*REFUSED, *ASKED])
def test_state_grows_with_the_witness(name: str) -> None:
    shown = witness(name)
    assert [each.rows for each in shown.growth] == [10, 20, 30, 40]
    for each in shown.growth:
        assert each.bits >= each.rows // 2
        assert each.kept >= each.rows


def said(query: str, adversary: Adversary, places: Sequence[int], probe: int) -> list[dict[str, Any]]:
    """What is said once some rows of an adversary and then a probe have come."""
    plain = {"a": {"id": 0, "x": 0, "day": None}, "b": {"id": 0, "y": 0, "name": ""}}
    timed = [(place, adversary.stream, adversary.rows[place]) for place in places]
    timed += [(100 + number, *row) for number, row in enumerate(adversary.probes[probe])]
    rows: dict[str, list[dict[str, Any]]] = {}
    for second, stream, row in timed:
        instant = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second)
        rows.setdefault(stream, []).append(plain[stream] | dict(row) | {"ts": instant})
    session = asked(query)
    for stream, found in rows.items():
        session.stream(stream, found)
    answer = session.queries[0].run(allow_unbounded=True).to_dicts()
    return [row for row in answer if row["_time"] >= datetime(2026, 1, 1, 0, 1, 40, tzinfo=UTC)]


@pytest.mark.parametrize("name", [*REFUSED, *ASKED])
def test_every_row_matters(name: str) -> None:
    """Whether a row has come is told by its probe, whatever came before it."""
    query, shown = {**REFUSED, **ASKED}[name], witness(name)
    for place in (1, 2, 39):
        before = list(range(place))
        with_it = said(query, shown.adversary, [*before, place], place)
        assert with_it != said(query, shown.adversary, before, place)


def test_a_median_is_moved_over_every_value() -> None:
    shown = asked("SELECT MEDIAN(x) AS m FROM a").queries[0].witness(40)
    assert shown is not None
    assert [(each.rows, each.kept >= each.rows) for each in shown.growth] == [
        (10, True),
        (20, True),
        (30, True),
        (40, True),
    ]
    assert shown.growth[-1].bits > 30
    told = [
        {row["m"] for row in said("SELECT MEDIAN(x) AS m FROM a", shown.adversary, places, 0)}
        for places in ([0, 2, 5, 7], [0, 3, 5, 7])
    ]
    assert {1, 3, 6, 8} <= told[0]
    assert {1, 4, 6, 8} <= told[1]


@pytest.mark.parametrize("name", NONE_KNOWN)
def test_where_none_is_known_none_is_shown(name: str) -> None:
    text, reason = NONE_KNOWN[name]
    query = asked(text).queries[0]
    assert not query.check().admitted
    assert query.witness(10) is None
    assert query.no_witness.startswith(f"no rows are known that show it for this query: {reason}")


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_is_not_taken_for_its_column(name: str) -> None:
    """Whether these are admitted or not: that different values of a column are told apart is no fact about them."""
    assert asked(EXPRESSIONS[name]).queries[0].witness(10) is None


def test_a_key_of_other_columns_hides_nothing() -> None:
    shown = asked("SELECT DISTINCT v FROM k").queries[0].witness(40)
    assert shown is not None
    assert [each.kept for each in shown.growth] == [10, 20, 30, 40]
    assert shown.frames["k"]["id"].is_unique().all()


ONE_STREAM = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, v BIGINT, f BOOLEAN{}) TIMESTAMP BY ts {};"


@pytest.mark.parametrize(
    ("promises", "query", "reason"),
    [
        ("", "SELECT k % 10 AS g, COUNT(*) AS n FROM s GROUP BY k % 10", "does not grow"),
        ("", "SELECT k > 3 AS g, COUNT(*) AS n FROM s GROUP BY k > 3", "do not change the answers"),
        ("", "SELECT COUNT(*) AS n FROM s", "do not change the answers"),
        ("", "SELECT DISTINCT k FROM s WHERE k <> 17", "do not change the answers"),
        ("", "SELECT DISTINCT k FROM s [RANGE 10 MINUTES]", "do not change the answers"),
        ("KEY (k)", "SELECT DISTINCT k + 1 AS g FROM s", "break a promise: KEY (k) of s"),
        ("ORDERED BY (k) WITHIN 5 ROWS", "SELECT DISTINCT k + 1 AS g FROM s", "ORDERED BY (k) of s"),
        ("ORDERED BY (k) WITHIN 999 ROWS", "SELECT DISTINCT k + 1 AS g FROM s", "ORDERED BY (k) of s"),
        ("CLUSTERED BY (k) WITHIN 5 ROWS", "SELECT DISTINCT k + 1 AS g FROM s", "CLUSTERED BY (k) of s"),
        ("ORDERED BY (k) WITHIN 9 DAYS", "SELECT DISTINCT k + 1 AS g FROM s", "ORDERED BY (k) of s"),
        ("CLUSTERED BY (k) WITHIN 9 DAYS", "SELECT DISTINCT k + 1 AS g FROM s", "CLUSTERED BY (k) of s"),
        ("PUNCTUATED BY (k) WHEN k % 3 = 0", "SELECT DISTINCT k + 1 AS g FROM s", "PUNCTUATED BY (k) of s"),
        ("CHECK", "SELECT DISTINCT k FROM s", "break a promise: CHECK of s"),
    ],
)
def test_a_false_claim_is_found_out_when_it_is_played(promises: str, query: str, reason: str) -> None:
    """Rows k = 1, 2, 3, … and the same again, each asking whether it came before, as if DISTINCT k were asked."""
    session = Session()
    check = ", CHECK (k < 50)" if promises == "CHECK" else ""
    session.sql(ONE_STREAM.format(check, promises.removeprefix("CHECK")) + query)
    claim = Adversary(
        "s",
        tuple({"k": number} for number in range(1, 65)),
        tuple((("s", {"k": number}),) for number in range(1, 65)),
        one_size=False,
        reason="",
    )
    refuted = play(claim, compile_query(session.queries[0].planned, allow_unbounded=True))
    assert isinstance(refuted, NotShown)
    assert reason in refuted.reason


@pytest.mark.parametrize("rows", [4, 100])
def test_one_row_that_makes_no_difference_is_found_among_many(rows: int) -> None:
    """Values of the rows depend on how many there are, so a condition may leave out one of few or of many."""
    session = Session()
    session.sql(ONE_STREAM.format("", "") + f"SELECT DISTINCT k FROM s WHERE k <> {rows - 1}")
    played = tuple({"k": number} for number in range(1, rows + 1))
    claim = Adversary("s", played, tuple((("s", row),) for row in played), one_size=False, reason="")
    assert isinstance(play(claim, compile_query(session.queries[0].planned, allow_unbounded=True)), NotShown)


def test_a_claim_that_holds_passes() -> None:
    session = Session()
    session.sql(ONE_STREAM.format("", "KEY (v)") + "SELECT DISTINCT k FROM s")
    rows = tuple({"k": number} for number in range(1, 65))
    claim = Adversary("s", rows, tuple((("s", row),) for row in rows), one_size=False, reason="")
    assert isinstance(play(claim, compile_query(session.queries[0].planned, allow_unbounded=True)), Shown)


@pytest.mark.parametrize(
    ("within", "breaks"), [("0 ROWS", True), ("2 ROWS", True), ("40 ROWS", False), ("9 DAYS", True)]
)
def test_a_reference_is_kept_if_its_row_comes_in_time(within: str, breaks: bool) -> None:
    session = Session()
    session.sql(
        "CREATE STREAM p (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts KEY (k);"
        "CREATE STREAM c (ts TIMESTAMP, k BIGINT) TIMESTAMP BY ts "
        f"FOREIGN KEY (k) REFERENCES p (k) WITHIN {within};"
    )
    places = {"c": [0, 1, 2, 3], "p": [4, 5, 6, 7, 8]}
    keys = {"c": [4, 3, 2, 1], "p": [1, 2, 3, 4, 5]}
    frames = {name: pl.DataFrame({"k": keys[name], PLACE: places[name]}) for name in ("c", "p")}
    broken = broken_promise(session.catalog.streams, frames, allowance=100)
    assert (broken is not None) is breaks


PROMISED = """
CREATE STREAM items (ts TIMESTAMP, id BIGINT, name STRING) TIMESTAMP BY ts KEY (id);
CREATE STREAM bids (ts TIMESTAMP, item BIGINT, bidder BIGINT, bye BOOLEAN)
  TIMESTAMP BY ts PUNCTUATED BY (bidder) WHEN bye;
CREATE STREAM s1 (ts TIMESTAMP, a BIGINT, b BIGINT, f BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (b) WHEN f;
CREATE STREAM s2 (ts TIMESTAMP, b BIGINT, c BIGINT, f BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (b) WHEN f;
CREATE STREAM s3 (ts TIMESTAMP, c BIGINT, a BIGINT, f BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (a, c) WHEN f;
"""


TRIANGLE = (
    "SELECT ISTREAM(s1.a, s2.b, s3.c) FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a"
)


@pytest.mark.parametrize(
    ("query", "stream"),
    [
        ("SELECT ISTREAM(i.name, b.bidder) FROM items AS i, bids AS b WHERE i.id = b.item", "items"),
        (TRIANGLE, "s3"),
    ],
)
def test_rows_stay_although_all_that_could_be_promised_was(query: str, stream: str) -> None:
    """The second is the example of the Punctuation document, section 4.2, as it is printed."""
    session = Session()
    session.sql(PROMISED + query)
    shown = session.queries[0].witness(12)
    assert shown is not None
    assert shown.adversary.stream == stream
    assert [(each.rows, each.bits) for each in shown.growth] == [(3, 3), (6, 6), (9, 9), (12, 12)]
    assert all(each.kept >= each.rows for each in shown.growth)


@pytest.mark.parametrize(
    ("when", "known"),
    [
        ("WHEN bidder < 0", True),
        ("WHEN bidder < 0 PUNCTUATED BY (bidder, note) WHEN bye", True),
        # No row says that a value is closed.
        ("", False),
    ],
)
def test_rows_stay_whatever_says_that_a_row_closes_values(when: str, known: bool) -> None:
    session = Session()
    session.sql(
        "CREATE STREAM items (ts TIMESTAMP, id BIGINT, name STRING) TIMESTAMP BY ts KEY (id);"
        "CREATE STREAM bids (ts TIMESTAMP, item BIGINT, bidder BIGINT, note STRING, bye BOOLEAN)"
        f" TIMESTAMP BY ts PUNCTUATED BY (bidder) {when};"
        "SELECT ISTREAM(i.name, b.bidder) FROM items AS i, bids AS b WHERE i.id = b.item"
    )
    shown = session.queries[0].witness(12)
    assert (shown.adversary.stream if shown else None) == ("items" if known else None)


def test_promises_are_kept_by_the_rows() -> None:
    session = Session()
    session.sql(PROMISED + TRIANGLE)
    shown = session.queries[0].witness(6)
    assert shown is not None
    for stream, columns in {"s1": ["b"], "s2": ["b"], "s3": ["a", "c"]}.items():
        rows = shown.frames[stream]
        closed = rows.filter("f").select(*columns, pl.col("ts").alias("since"))
        broken = rows.join(closed, on=columns).filter(pl.col("ts") > pl.col("since"))
        assert broken.is_empty()
        assert not closed.is_empty()


def test_an_admitted_query_has_no_witness() -> None:
    assert asked("SELECT ISTREAM(DISTINCT id) FROM a [RANGE 5 SECONDS]").queries[0].witness(10) is None


def test_the_rows_are_written_for_the_streams_formats(tmp_path: Path) -> None:
    file = tmp_path / "q.cql"
    file.write_text(STREAMS + f"CREATE QUERY j AS {REFUSED['join']};", encoding="utf-8")
    done = headgate("check", file, "--witness", 12, "--output", tmp_path / "out", "--format", "json")
    assert done.code == 1
    (query,) = json.loads(done.out)["queries"]
    assert query["witness"]["growth"][-1] == {"rows": 12, "bits": 12, "kept": 12}
    assert query["witness"]["files"] == [str(tmp_path / "out/j/a.csv"), str(tmp_path / "out/j/b.parquet")]
    assert pl.read_csv(tmp_path / "out/j/a.csv").height == 12
    assert pl.read_parquet(tmp_path / "out/j/b.parquet").columns == ["ts", "id", "y", "name"]


def test_output_alone_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "q.cql"
    file.write_text(STREAMS + REFUSED["join"], encoding="utf-8")
    done = headgate("check", file, "--output", tmp_path / "out")
    assert done.code == 2
    assert "give --witness N too" in done.err


def test_a_purge_is_shown_by_as_many_rows_as_its_closings_can_be_written_out_for() -> None:
    columns = "(ts TIMESTAMP, x BIGINT, y BIGINT, z BIGINT, last BOOLEAN)"
    session = Session()
    session.sql(f"CREATE STREAM p {columns} TIMESTAMP BY ts PUNCTUATED BY (x, y, z) WHEN last;")
    session.sql(f"CREATE STREAM q {columns} TIMESTAMP BY ts;")
    session.sql(
        "CREATE QUERY r AS SELECT ISTREAM(p.x) FROM p, q WHERE p.x = q.x AND p.y = q.y AND p.z = q.z;"
    )
    plan = session.query("r").plan
    found = find_purge_adversary(plan, 20)
    assert found is not None
    assert len(found.setting) == 20**3
    assert find_purge_adversary(plan, 28) is None


def test_nothing_is_claimed_of_rows_that_no_condition_lets_pass() -> None:
    session = Session()
    where = "WHERE p.x > p.x GROUP BY q.x"
    session.sql(
        f"{STREAMS} CREATE QUERY r AS SELECT q.x, COUNT(DISTINCT p.id) AS n FROM a AS p, a AS q {where};"
    )
    assert not session.query("r").judged.admitted
    assert list(find_adversaries(session.query("r").plan, 2)) == []
