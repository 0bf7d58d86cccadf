"""Profiles of sessions: which clauses are found, what they save, and what is left alone."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headgate as hg
from headgate.model.adherence import WithinRows
from headgate.model.errors import InputError
from headgate.model.source import SourceText
from headgate.plan.catalog import References
from headgate.profile.constraint import Constraint
from headgate.profile.profile import Profile, clauses_by_stream, measure_streams, profile
from headgate.profile.report import to_text
from headgate.profile.rewrite import rewritten
from headgate.runtime.local.promise_audit import PLACE, broken_promise

START = dt.datetime(2025, 3, 1, tzinfo=dt.UTC)

SHOP = """
CREATE STREAM orders (ts TIMESTAMP, orderid BIGINT, amount BIGINT) TIMESTAMP BY ts;
CREATE STREAM shipments (ts TIMESTAMP, orderid BIGINT, parcel BIGINT, final BOOLEAN) TIMESTAMP BY ts;
"""
SHIPPED = """
CREATE QUERY shipped AS
SELECT ISTREAM(o.amount, s.parcel) FROM orders o, shipments s WHERE o.orderid = s.orderid;
"""


def frame(columns: str, rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows whose first column is a number of seconds, as a stream brings them."""
    found = pl.DataFrame(list(rows), schema=columns.split(), orient="row")
    since = pl.duration(milliseconds=(pl.col("ts") * 1000).cast(pl.Int64))
    return found.with_columns(ts=pl.lit(START, dtype=pl.Datetime("us", "UTC")) + since)


def shop(text: str = SHIPPED, *, orders: int = 120, late: int = 1, jump: int = 7919) -> hg.Session:
    """Orders, one a second, each with two parcels; the first comes up to `late` orders before its order.

    Their numbers are in order if they `jump` by 1.
    """
    chance = random.Random(5)
    session = hg.Session()
    session.sql(SHOP + text)
    placed = [(n, (n * jump) % 100_003, n % 9) for n in range(orders)]
    sent = [
        (n + gone + 0.5, id, parcel == 1)
        for n, id, _ in placed
        for parcel, gone in enumerate((chance.randint(-late, 3), chance.randint(4, 9)))
    ]
    parcels = [(ts, id, number, final) for number, (ts, id, final) in enumerate(sorted(sent))]
    session.stream("orders", frame("ts orderid amount", ((float(n), *rest) for n, *rest in placed)))
    session.stream("shipments", frame("ts orderid parcel final", parcels))
    return session


def clauses(found: Profile) -> list[str]:
    return [worth.constraint.shown for worth in found.clauses]


def constraints(session: hg.Session, stream: str, margin: float = 1.0) -> dict[str, Constraint]:
    """What the rows of a stream obey, by kind."""
    return {str(each.kind): each for each in measure_streams(session, margin=margin)[stream].constraints}


def test_a_refused_join_gets_the_clauses_with_which_it_keeps_least() -> None:
    found = profile(shop())
    (saving,) = found.savings
    assert saving.before.verdict == "refused"
    assert saving.after.verdict == "conditional"
    assert sorted(clauses(found)) == [
        "CREATE STREAM orders … KEY (orderid)",
        "CREATE STREAM shipments … PUNCTUATED BY (orderid) WHEN final",
    ]
    assert saving.before.state_rows is not None
    assert saving.after.state_rows is not None
    assert saving.after.state_rows * 2 < saving.before.state_rows


def test_the_clauses_as_they_are_written_change_no_answer() -> None:
    before = shop()
    written = rewritten(SourceText("f.cql", SHOP + SHIPPED), clauses_by_stream(profile(before)))
    after = hg.Session()
    after.sql(written)
    for name, rows in before.local.rows.items():
        after.stream(name, rows)
    one = before.run(allow_unbounded=True)["shipped"].to_polars()
    other = after.run()["shipped"].to_polars()
    assert other.height == 240
    assert other.sort(other.columns).equals(one.sort(one.columns))


def test_each_clause_says_what_would_be_without_it() -> None:
    for worth in profile(shop()).clauses:
        ((query, after, without),) = worth.helps
        assert (query, after.verdict, without.verdict) == ("shipped", "conditional", "refused")
        assert worth.admits == 1


def test_keys_are_single_columns_that_no_two_rows_share() -> None:
    keys = {name: each.keys for name, each in measure_streams(shop()).items()}
    assert keys == {"orders": (("orderid",),), "shipments": (("parcel",),)}


def test_a_reference_is_measured_to_the_key_of_another_stream() -> None:
    reference = constraints(shop(late=3), "shipments")["rids"]
    assert reference.clause == "FOREIGN KEY (orderid) REFERENCES orders (orderid) WITHIN 3 ROWS"
    assert reference.share == 1.0


def test_a_margin_widens_the_clauses_and_not_what_was_found() -> None:
    reference = constraints(shop(late=3), "shipments", margin=1.5)["rids"]
    assert reference.clause.endswith("WITHIN 5 ROWS")
    assert reference.as_dict()["k"] == 3


def test_what_is_declared_is_not_proposed_again() -> None:
    session = hg.Session()
    declared = SHOP.replace("BY ts;", "BY ts KEY (orderid);", 1).replace(
        "BY ts;", "BY ts PUNCTUATED BY (orderid) WHEN final;", 1
    )
    session.sql(declared + SHIPPED)
    for name, rows in shop().local.rows.items():
        session.stream(name, rows)
    assert "key" not in constraints(session, "orders")
    assert "punctuation" not in constraints(session, "shipments")


def test_a_query_that_nothing_helps_gets_no_clauses() -> None:
    found = profile(shop("CREATE QUERY q AS SELECT ISTREAM(amount) FROM orders [RANGE 5 SECONDS];"))
    assert found.clauses == ()
    assert found.savings[0].before == found.savings[0].after


def test_groups_and_distinct_values_are_helped_too() -> None:
    found = profile(
        shop(
            "CREATE QUERY parcels AS SELECT orderid, COUNT(*) AS n FROM shipments GROUP BY orderid;"
            "CREATE QUERY ids AS SELECT ISTREAM(DISTINCT orderid) FROM shipments;"
        )
    )
    assert [(each.query, each.after.verdict) for each in found.savings] == [
        ("parcels", "conditional"),
        ("ids", "conditional"),
    ]


def test_a_clause_that_changes_the_answer_is_not_proposed() -> None:
    # Groups of NULL are answered, and rows with NULL would be late once a promise closes groups.
    session = hg.Session()
    session.sql("CREATE STREAM s (ts TIMESTAMP, a BIGINT) TIMESTAMP BY ts;")
    session.sql("CREATE QUERY q AS SELECT a, COUNT(*) AS n FROM s GROUP BY a;")
    session.stream("s", frame("ts a", ((n, None if n % 10 == 0 else n // 20) for n in range(200))))
    found = profile(session)
    assert found.clauses == ()
    assert [each.clause for each in found.refuted] == [
        "ORDERED BY (a) WITHIN 0 ROWS",
        "CLUSTERED BY (a) WITHIN 1 ROWS",
    ]
    assert found.idle == ()
    assert "rows with NULL in a (20 of 200) would be late" in to_text(found).plain


def test_an_order_that_jumps_about_is_not_proposed() -> None:
    assert "oac" not in constraints(shop(), "orders")


def test_an_order_is_of_the_parent_or_of_the_child() -> None:
    session = hg.Session()
    session.sql(SHOP + SHIPPED)
    session.stream("orders", frame("ts orderid amount", ((n, n, 0) for n in range(80))))
    session.stream("shipments", frame("ts orderid parcel final", ((n, n // 2, n, False) for n in range(160))))
    assert constraints(session, "orders")["oac"].clause == "ORDERED BY (orderid) WITHIN 0 ROWS"
    assert constraints(session, "shipments")["oap"].clause == "ORDERED BY (orderid) WITHIN 0 ROWS"


def test_late_rows_are_left_out_and_counted() -> None:
    session = shop()
    rows = session.local.rows["orders"]
    session.stream("orders", pl.concat([rows, rows.head(3)]))
    measured = measure_streams(session)["orders"]
    assert (measured.sample.height, measured.sample.late, measured.keys) == (120, 3, (("orderid",),))


def test_samples_of_joined_streams_end_together() -> None:
    samples = {name: each.sample for name, each in measure_streams(shop(), rows=60).items()}
    assert samples["shipments"].height == 60
    assert samples["orders"].height < 60
    assert not any(each.whole for each in samples.values())


def test_streams_without_rows_have_nothing_to_find() -> None:
    session = hg.Session()
    session.sql(SHOP + SHIPPED)
    for name in ("orders", "shipments"):
        session.stream(name, shop().local.rows[name].clear())
    with pytest.raises(InputError, match="no rows in orders, shipments"):
        profile(session)


def test_a_query_over_a_stream_without_rows_is_left_alone() -> None:
    session = shop()
    session.stream("shipments", session.local.rows["shipments"].clear())
    assert profile(session).savings == ()


def test_a_clause_for_one_query_that_is_in_the_way_of_another_is_told() -> None:
    parcels = "CREATE QUERY parcels AS SELECT orderid, COUNT(*) AS n FROM shipments GROUP BY orderid;"
    found = profile(shop(SHIPPED + parcels, jump=1))
    order = "ORDERED BY (orderid) WITHIN 17 ROWS"
    assert [each.clause for each in found.savings[1].constraints] == [order]
    # The join needs PUNCTUATED BY (orderid), beside which no query relies on an order of the same column.
    assert [each.clause for each in found.spare] == [order]
    assert order not in [each.clause for each in clauses_by_stream(found)["shipments"]]
    (together,) = found.together
    assert (together.query, together.standing.verdict, together.same_answer) == (
        "parcels",
        "conditional",
        True,
    )


CONNECTIONS = """
CREATE STREAM opened (ts TIMESTAMP, uid BIGINT, cipher BIGINT) TIMESTAMP BY ts KEY (uid);
CREATE STREAM desktops (ts TIMESTAMP, uid BIGINT, cookie BIGINT) TIMESTAMP BY ts KEY (uid);
CREATE QUERY remote AS
SELECT ISTREAM(o.cipher, d.cookie)
FROM opened [RANGE 5 MINUTES INTERNAL] o, desktops [RANGE 5 MINUTES INTERNAL] d WHERE o.uid = d.uid;
"""


def connections(queries: str = "") -> hg.Session:
    """One connection of ten is a remote desktop, which is known half a second later, once behind a hundred others."""
    session = hg.Session()
    session.sql(CONNECTIONS + queries)
    begun = [(n / 100, (n * 7919) % 100_003, n % 10 == 0) for n in range(2_000)]
    session.stream("opened", frame("ts uid cipher", ((ts, uid, 0) for ts, uid, _ in begun)))
    known = [(ts + 0.5, uid, 0) for ts, uid, it in begun if it]
    known += [(10.31 + n / 10_000, 200_000 + (n * 7919) % 1_009, 0) for n in range(100)]
    session.stream("desktops", frame("ts uid cookie", sorted(known)))
    return session


def test_most_rows_may_have_no_partner_if_those_of_others_come_soon() -> None:
    opened = measure_streams(connections())["opened"]
    (rows,) = (each for each in opened.constraints if each.kind == "rids")
    (time,) = opened.timed
    assert rows.clause == "FOREIGN KEY (uid) REFERENCES desktops (uid) WITHIN 105 ROWS"
    assert time.clause == "FOREIGN KEY (uid) REFERENCES desktops (uid) WITHIN 500 MILLISECONDS"
    assert rows.share == time.share == 0.1


def test_a_k_in_time_is_proposed_where_it_keeps_less() -> None:
    (saving,) = profile(connections()).savings
    assert "FOREIGN KEY (uid) REFERENCES desktops (uid) WITHIN 500 MILLISECONDS" in [
        each.clause for each in saving.constraints
    ]
    assert saving.before.state_rows is not None
    assert saving.after.state_rows is not None
    assert saving.after.state_rows * 5 < saving.before.state_rows


def test_one_reference_has_one_k_in_all_queries() -> None:
    again = CONNECTIONS[CONNECTIONS.index("CREATE QUERY") :].replace("remote", "again")
    found = profile(connections(again.replace("5 MINUTES", "4 MINUTES")))
    assert found.savings[0].constraints == found.savings[1].constraints
    assert found.spare == ()


@settings(max_examples=15)
@given(st.integers(0, 6), st.randoms(use_true_random=False))
def test_a_reference_holds_with_its_k_and_not_with_less(most: int, chance: random.Random) -> None:
    session = hg.Session()
    session.sql(
        "CREATE STREAM orders (ts TIMESTAMP, id BIGINT) TIMESTAMP BY ts KEY (id);"
        "CREATE STREAM sent (ts TIMESTAMP, id BIGINT) TIMESTAMP BY ts;"
        "CREATE QUERY q AS SELECT ISTREAM(o.id) FROM orders o, sent s WHERE o.id = s.id;"
    )
    orders = [(10 * n, n) for n in range(60)]
    sent = sorted((10 * n - chance.randint(0, 10 * most) - 5, n) for n in range(most, 60))
    session.stream("orders", frame("ts id", orders))
    session.stream("sent", frame("ts id", sent))
    k = constraints(session, "sent")["rids"].k
    assert k is not None
    # Places in the order of arrival over both streams are what the audit of promises goes by.
    rows = {
        name: each.with_columns(each["ts"].dt.epoch("us").alias(PLACE))
        for name, each in session.local.rows.items()
    }
    parent, child = session.catalog.streams
    said = []
    for within in (k.k, k.k - 1):
        reference = References(("id",), "orders", ("id",), WithinRows(within))
        said.append(broken_promise([parent, replace(child, references=(reference,))], rows, allowance=100))
    assert said[0] is None
    assert k.k == 0 or said[1] == "FOREIGN KEY (id) of sent"
