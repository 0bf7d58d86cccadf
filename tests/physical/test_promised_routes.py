"""By which columns streams with promises are spread over shards, so that each hears what closes its values."""

from __future__ import annotations

import pytest
from tests.spark.shards import stage_of

Routes = dict[str, tuple[tuple[str, ...], ...]]


def routes_of(declared: str, query: str, shards: int = 4) -> tuple[tuple[int, ...], Routes]:
    """The lengths of the axes of the first stage, and the columns of each feed on them."""
    stage = stage_of(f"{declared} CREATE QUERY q AS {query};", "q", {}, shards=shards)
    return stage.shares, {feed.name: feed.columns for feed in stage.feeds}


def streams(**clauses: str) -> str:
    """Streams s, t and u with the columns a and b, and these promises."""
    columns = "ts TIMESTAMP, a BIGINT, b BIGINT, last BOOLEAN"
    return "\n".join(
        f"CREATE STREAM {name} ({columns}) TIMESTAMP BY ts {clauses.get(name, '')};" for name in "stu"
    )


ON_A = {"s": (("a",),), "t": (("a",),)}
ORDERED = "ORDERED BY (a) WITHIN 9 ROWS"
CLUSTERED = "CLUSTERED BY (a) WITHIN 9 ROWS"
REFERS = "FOREIGN KEY (a) REFERENCES t (a) WITHIN 9 ROWS"


@pytest.mark.parametrize(
    ("s", "t"),
    [
        (ORDERED, ORDERED),
        (ORDERED, "PUNCTUATED BY (a) WHEN last"),
        (f"{ORDERED} {REFERS}", "KEY (a)"),
        (f"{CLUSTERED} {REFERS}", f"{CLUSTERED} {REFERS.replace('REFERENCES t', 'REFERENCES s')}"),
    ],
)
def test_streams_whose_constraints_count_rows_go_by_their_columns(s: str, t: str) -> None:
    joined = "SELECT s.a, s.b, t.b AS c FROM s, t WHERE s.a = t.a"
    assert routes_of(streams(s=s, t=t), joined) == ((4,), ON_A)
    also = f"{joined} AND s.b = t.b"
    assert routes_of(streams(s=s, t=t), also) == ((4,), ON_A), "no shard is without rows that close b"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, COUNT(*) AS n FROM s GROUP BY a",
        "SELECT DISTINCT a, b FROM s",
        "SELECT a, MAX(n) AS m FROM (SELECT a, b, COUNT(*) AS n FROM s GROUP BY a, b) x GROUP BY a",
    ],
)
def test_groups_that_an_order_closes(query: str) -> None:
    assert routes_of(streams(s=ORDERED), query) == ((4,), {"s": (("a",),)})


@pytest.mark.parametrize("word", ["EXISTS", "NOT EXISTS"])
def test_existence_that_an_order_closes(word: str) -> None:
    query = f"SELECT a, b FROM s WHERE {word} (SELECT * FROM t WHERE t.a = s.a AND t.b > s.b)"
    assert routes_of(streams(s=ORDERED, t=ORDERED), query) == ((4,), ON_A)


def test_a_stream_whose_rows_are_counted_has_one_feed() -> None:
    """Otherwise a row could be late for one of two readers, which count it among different others."""
    query = "SELECT x.b, y.b AS c FROM s x, s y WHERE x.b = y.a"
    two = "ORDERED BY (a) WITHIN 9 ROWS ORDERED BY (b) WITHIN 9 ROWS"
    assert routes_of(streams(s=two), query) == ((1,), {"s": ((),)})
    closed = "PUNCTUATED BY (a) WHEN last PUNCTUATED BY (b) WHEN last"
    assert routes_of(streams(s=closed), query) == ((1,), {"s": ((),)}), "each is closed by another column"
    turned = f"{query} AND x.a = y.b"
    both = "CLUSTERED BY (a, b) WITHIN 9 ROWS FOREIGN KEY (a, b) REFERENCES s (b, a) WITHIN 9 ROWS"
    assert routes_of(streams(s=both), turned) == ((1,), {"s": ((),)})
    # A row with a key that has come goes where that has gone, to both.
    assert routes_of(streams(s="KEY (a, b)"), turned) == ((4,), {"s": (("a", "b"),), "s#1": (("b", "a"),)})


MANY_ONE = "s.a = t.a AND s.b = u.b"
KEYS = {
    "s": f"{REFERS} FOREIGN KEY (b) REFERENCES u (b) WITHIN 9 ROWS",
    "t": "KEY (a)",
    "u": "KEY (b)",
}
WINDOWED = f"SELECT ISTREAM(s.a, s.b, t.b AS c, u.a AS d) FROM s, t [RANGE 1 HOUR], u [RANGE 1 HOUR] WHERE {MANY_ONE}"


def test_keys_of_a_many_one_join_are_heard_on_a_hypercube() -> None:
    assert routes_of(streams(**KEYS), WINDOWED) == (
        (2, 2),
        {"s": (("a",), ("b",)), "t": (("a",), ()), "u": ((), ("b",))},
    )


def test_an_axis_on_which_nothing_closes_is_left_out() -> None:
    """Rows of t that wait for s at their a would be in shards that no row of s with it ever reaches."""
    windowed = f"SELECT ISTREAM(s.a, u.a AS d) FROM s, t, u [RANGE 1 HOUR] WHERE {MANY_ONE}"
    for closing in ("PUNCTUATED BY (a) WHEN last", ORDERED):
        declared = streams(**{**KEYS, "s": f"{closing} {KEYS['s']}"})
        assert routes_of(declared, windowed) == ((4,), {"s": (("a",),), "t": (("a",),), "u": ((),)})


def test_one_shard_where_every_axis_is_left_out() -> None:
    both = {**KEYS, "s": f"{KEYS['s']} {ORDERED} ORDERED BY (b) WITHIN 9 ROWS"}
    query = f"SELECT ISTREAM(s.a, s.b) FROM s, t, u WHERE {MANY_ONE}"
    assert routes_of(streams(**both), query) == ((1,), {"s": ((),), "t": ((),), "u": ((),)})


def test_equal_rows_of_an_answer_that_changes_meet_after_the_hypercube() -> None:
    """Rows that differ in s.b alone come from different shards."""
    query = WINDOWED.replace("ISTREAM(s.a, s.b, t.b AS c, u.a AS d)", "s.a, t.b AS c")
    stage = stage_of(f"{streams(**KEYS)} CREATE QUERY q AS {query};", "q", {}, shards=4)
    assert [each.shares for each in stage.chain] == [(2, 2), (4,)]


def test_what_only_drops_rows_sooner_takes_no_axis_away() -> None:
    """All rows leave with their windows, so a shard that does not hear of something keeps it no longer than that."""
    windowed = WINDOWED.replace("FROM s,", "FROM s [RANGE 1 HOUR],")
    both = {**KEYS, "s": f"{KEYS['s']} {ORDERED} ORDERED BY (b) WITHIN 9 ROWS"}
    assert routes_of(streams(**both), windowed) == (
        (2, 2),
        {"s": (("a",), ("b",)), "t": (("a",), ()), "u": ((), ("b",))},
    )


def test_what_drops_rows_sooner_is_heard_where_that_costs_nothing() -> None:
    windowed = (
        "SELECT ISTREAM(s.a, s.b) FROM s [RANGE 1 HOUR], t [RANGE 1 HOUR] WHERE s.a = t.a AND s.b = t.b"
    )
    assert routes_of(streams(t="KEY (a)"), windowed) == ((4,), ON_A)
    assert routes_of(streams(), windowed) == ((4,), {"s": (("a", "b"),), "t": (("a", "b"),)})


def test_a_row_is_late_for_all_readers_of_its_stream_or_for_none() -> None:
    """By b, as y wants them, two rows with the same a would be in different shards: they go there one stage later."""
    windowed = "SELECT ISTREAM(x.a) FROM s [RANGE 1 HOUR] x, s [RANGE 1 HOUR] y WHERE x.a = y.b"
    assert routes_of(streams(s="KEY (a)"), windowed) == ((4,), {"s": (("a",),)})
    assert routes_of(streams(s=ORDERED), windowed) == ((1,), {"s": ((),)})
    assert routes_of(streams(), windowed) == ((4,), {"s": (("a",),), "s#1": (("b",),)})
