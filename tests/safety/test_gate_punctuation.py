"""The gate on joins and groups that promises keep small: who is admitted, by what, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.safety.verdict import StateVerdict, Verdict
from headgate.session import Session

AUCTION = Path(__file__).parents[2] / "examples" / "auction.cql"


def verdict(text: str) -> Verdict:
    query = Session().sql(text)
    assert query is not None
    return query.check()


def causes(found: Verdict, operator: str = "join") -> dict[str, str]:
    return {state.stream: state.by for state in found.states if state.operator == operator}


def state(found: Verdict, operator: str, stream: str) -> StateVerdict:
    return next(each for each in found.states if (each.operator, each.stream) == (operator, stream))


def streams(*declared: str) -> str:
    """Streams `s1(a, b) PUNCTUATED BY (b)` and so on; every column is BIGINT."""
    text = ""
    for each in declared:
        head, _, promises = each.partition(")")
        name, _, columns = head.partition("(")
        listed = ", ".join(f"{column.strip()} BIGINT" for column in columns.split(","))
        text += (
            f"CREATE STREAM {name} (ts TIMESTAMP, {listed}, p BOOLEAN) TIMESTAMP BY ts {promises.strip()};\n"
        )
    return text


CYCLE = "CREATE QUERY q AS SELECT s1.a, s2.b, s3.c FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a;"


def test_closing_is_bounded_by_punctuation_and_key() -> None:
    found = Session.from_file(AUCTION).query("closing").check()
    assert found.admitted
    assert causes(found) == {"i": "punctuation", "b": "key"}
    assert causes(found, "aggregate") == {"i, b": "punctuation"}
    assert found.as_dict()["plan"] == "mjoin"


def test_an_item_without_a_window_goes_when_its_windowed_bids_are_closed() -> None:
    found = Session.from_file(AUCTION).query("hot").check()
    assert found.admitted
    assert causes(found) == {"i": "punctuation", "b": "window"}
    assert causes(found, "aggregate") == {"i, b": "window"}


def test_a_window_on_one_side_does_not_let_the_other_go() -> None:
    found = verdict(
        streams("s(a, b)", "t(a, c)")
        + "CREATE QUERY q AS SELECT b, c FROM s, t [RANGE 1 MINUTE] WHERE s.a = t.a;"
    )
    assert causes(found) == {"s": "none", "t": "window"}
    assert "t may always bring another row with the same t.a" in state(found, "join", "s").reason


def test_a_cycle_is_safe_at_once_and_says_how() -> None:
    found = verdict(
        streams(
            "s1(a, b) PUNCTUATED BY (b) WHEN p",
            "s2(b, c) PUNCTUATED BY (c) WHEN p",
            "s3(c, a) PUNCTUATED BY (a) WHEN p",
        )
        + CYCLE
    )
    assert found.admitted
    assert found.plan == "mjoin"
    assert found.plan_note.startswith("no tree of two-way joins could forget")
    assert set(causes(found).values()) == {"punctuation"}
    assert state(found, "join", "s1").reason == (
        "a row of s1 is dropped when s3 is closed at s3.a = s1.a (PUNCTUATED BY (a)), "
        "and then s2 is closed at s2.c = s3.c (PUNCTUATED BY (c))"
    )


def test_trees_that_could_forget_too_are_counted() -> None:
    both = "PUNCTUATED BY (a) WHEN p PUNCTUATED BY (b) WHEN p"
    found = verdict(
        streams(f"s1(a, b) {both}", f"s2(a, b) {both}", f"s3(a, b) {both}")
        + "CREATE QUERY q AS SELECT s1.a FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.a = s3.a;"
    )
    assert found.admitted
    assert found.plan == "mjoin"
    assert "2 of the 3 trees of two-way joins could forget too" in found.plan_note


def test_a_cycle_with_one_promise_less_is_refused() -> None:
    found = verdict(
        streams("s1(a, b) PUNCTUATED BY (b) WHEN p", "s2(b, c) PUNCTUATED BY (c) WHEN p", "s3(c, a)") + CYCLE
    )
    assert causes(found)["s1"] == "none"
    assert not found.admitted


@pytest.mark.parametrize(("more", "bounded"), [("", False), ("PUNCTUATED BY (c) WHEN p", True)])
def test_the_example_with_a_scheme_of_two_columns(more: str, bounded: bool) -> None:
    """As printed in the document it is not safe: nothing closes S1.A or S2.C. One more scheme, S2(C), makes it so."""
    found = verdict(
        streams(
            "s1(a, b) PUNCTUATED BY (b) WHEN p",
            f"s2(b, c) PUNCTUATED BY (b) WHEN p {more}",
            "s3(c, a) PUNCTUATED BY (a, c) WHEN p",
        )
        + CYCLE
    )
    assert found.admitted is bounded
    assert causes(found)["s3"] == ("punctuation" if bounded else "none")


def test_a_key_bounds_the_many_side_only() -> None:
    found = verdict(
        streams("items(item)  KEY (item)", "bids(item, gain)")
        + "CREATE QUERY q AS SELECT gain FROM items i, bids b WHERE i.item = b.item;"
    )
    assert causes(found) == {"i": "none", "b": "key"}


def test_a_chain_that_ends_at_a_window_needs_no_more_promises() -> None:
    """Once t is closed at s.a, its few rows with that value die; then no u can matter to the row of s any more."""
    declared = streams("s(a)", "t(a, b) PUNCTUATED BY (a) WHEN p", "u(b)")
    query = "CREATE QUERY q AS SELECT s.a FROM s, t {}, u {} WHERE s.a = t.a AND t.b = u.b;"
    found = verdict(declared + query.format("[RANGE 1 MINUTE]", "[RANGE 1 MINUTE]"))
    assert found.admitted
    assert causes(found) == {"s": "punctuation", "t": "window", "u": "window"}
    assert state(found, "join", "s").reason.endswith("and has none left in its window")
    assert causes(verdict(declared + query.format("", "[RANGE 1 MINUTE]")))["s"] == "none"


def test_nothing_is_dropped_while_another_input_ends_rows() -> None:
    found = verdict(
        streams("s(a, b)", "t(a, c) PUNCTUATED BY (a) WHEN p")
        + "CREATE QUERY q AS SELECT b, c FROM s, t [ROWS 5] WHERE s.a = t.a;"
    )
    assert causes(found)["s"] == "none"
    assert "can leave early" in state(found, "join", "s").reason


def test_monitoring_bounds_nothing() -> None:
    found = verdict(
        streams("s(a)", "t(a) ORDERED BY (a) WITHIN AUTO CLUSTERED BY (a) WITHIN AUTO")
        + "CREATE QUERY q AS SELECT s.a FROM s, t WHERE s.a = t.a;"
    )
    assert causes(found)["s"] == "none"
    reason = state(found, "join", "s").reason
    assert "ORDERED BY (a) WITHIN AUTO asks for monitoring, which proves nothing" in reason
    assert "CLUSTERED BY (a) WITHIN AUTO asks for monitoring, which proves nothing" in reason


@pytest.mark.parametrize("order", ["a", "a, b"])
def test_rows_of_others_go_when_an_ordered_stream_has_gone_beyond_them(order: str) -> None:
    ordered = f"ORDERED BY ({order}) WITHIN 10 ROWS"
    found = verdict(
        streams(f"s(a, b) {ordered}", f"t(a, b) {ordered}")
        + "CREATE QUERY q AS SELECT s.a, COUNT(*) AS n FROM s, t WHERE s.a = t.a GROUP BY s.a;"
    )
    assert causes(found) == {"s": "constraint", "t": "constraint"}
    assert causes(found, "aggregate") == {"s, t": "constraint"}
    assert state(found, "join", "s").reason == (
        "a row of s is dropped when t has gone beyond t.a = s.a (ORDERED BY (a) WITHIN 10 ROWS)"
    )
    assert state(found, "punctuations", "s").reason == (
        "its last 10 values are remembered, and the greatest before them"
    )


def test_an_order_bounds_the_others_and_not_its_own_stream() -> None:
    found = verdict(
        streams("s(a)", "t(a) ORDERED BY (a) WITHIN 10 ROWS")
        + "CREATE QUERY q AS SELECT s.a FROM s, t WHERE s.a = t.a;"
    )
    assert causes(found) == {"s": "constraint", "t": "none"}


def test_a_reference_bounds_the_row_that_refers_and_not_the_one_referred_to() -> None:
    """RIDS(k) reduces what waits of the parent, and nothing of the child (k-Mon document, table 2)."""
    query = "CREATE QUERY q AS SELECT gain FROM items i, bids b WHERE i.item = b.item;"
    referring = "bids(item, gain) FOREIGN KEY (item) REFERENCES items (item) WITHIN 5 ROWS"
    found = verdict(streams("items(item) KEY (item)", referring) + query)
    assert causes(found) == {"i": "none", "b": "constraint"}
    unkeyed = verdict(streams("items(item) CLUSTERED BY (item) WITHIN AUTO", referring) + query)
    assert causes(unkeyed) == {"i": "none", "b": "none"}
    assert "only if items (item) is a KEY" in state(unkeyed, "join", "i").reason


def test_an_order_in_time_bounds_the_others_as_one_in_rows_does() -> None:
    ordered = "ORDERED BY (a) WITHIN 90 SECONDS"
    found = verdict(
        streams(f"s(a, b) {ordered}", f"t(a, b) {ordered}")
        + "CREATE QUERY q AS SELECT s.a, COUNT(*) AS n FROM s, t WHERE s.a = t.a GROUP BY s.a;"
    )
    assert causes(found) == {"s": "constraint", "t": "constraint"}
    assert state(found, "join", "s").reason == (
        "a row of s is dropped when t has gone beyond t.a = s.a (ORDERED BY (a) WITHIN 90 SECONDS)"
    )
    assert state(found, "punctuations", "s").reason == (
        "its values of the last 90 seconds are remembered, and the greatest before them"
    )
    assert [each.sentence for each in found.assumes] == [
        "a of s goes on rising",
        "a of t goes on rising",
        "rows of s and t keep coming",
    ]


def test_a_reference_in_time_needs_the_clock_alone() -> None:
    referring = "bids(item, gain) FOREIGN KEY (item) REFERENCES items (item) WITHIN 5 MINUTES"
    query = "CREATE QUERY q AS SELECT gain FROM items [RANGE 1 DAY] i, bids b WHERE i.item = b.item;"
    found = verdict(streams("items(item) KEY (item)", referring) + query)
    assert state(found, "join", "b").reason.endswith(
        "has come (KEY (item)) or can come no more, 5 minutes after it (FOREIGN KEY)"
    )
    reasons = [each.reason for each in found.states if each.operator == "punctuations"]
    assert "up to when its rows have come is remembered" in reasons
    assert [each.sentence for each in found.assumes if "items" in each.sentence] == [
        "rows of items and bids keep coming"
    ]


def test_a_cluster_in_time_needs_no_other_rows() -> None:
    found = verdict(
        streams("t(a, b) CLUSTERED BY (a) WITHIN 5 MINUTES")
        + "CREATE QUERY q AS SELECT a, MEDIAN(b) AS b FROM t GROUP BY a;"
    )
    assert state(found, "aggregate", "t").reason == (
        "a group is forgotten when its t.a is closed on t (CLUSTERED BY (a) WITHIN 5 MINUTES); "
        "a row with NULL there is late"
    )
    assert [each.as_dict() for each in found.assumes] == [
        {
            "sentence": "no value of a keeps coming on t for ever",
            "otherwise": "what waits for a value that keeps coming stays",
            "metric": "state_rows",
        }
    ]


def test_clustered_values_are_closed_when_others_have_come_if_all_values_do_come() -> None:
    query = "CREATE QUERY q AS SELECT s.a FROM s, t [RANGE 1 MINUTE] WHERE s.a = t.a;"
    sure = verdict(
        streams("s(a) FOREIGN KEY (a) REFERENCES t (a) WITHIN 9 ROWS", "t(a) CLUSTERED BY (a) WITHIN 10 ROWS")
        + query
    )
    assert causes(sure) == {"s": "constraint", "t": "window"}
    assert state(sure, "join", "s").reason == (
        "a row of s is dropped when t is closed at t.a = s.a (CLUSTERED BY (a) WITHIN 10 ROWS)"
    )
    unsure = verdict(streams("s(a)", "t(a) CLUSTERED BY (a) WITHIN 10 ROWS") + query)
    assert causes(unsure)["s"] == "none"
    assert "no FOREIGN KEY says that every value comes" in state(unsure, "join", "s").reason


def test_a_key_says_what_it_cannot_promise() -> None:
    query = "CREATE QUERY q AS SELECT gain FROM items [RANGE 1 DAY] i, bids b WHERE i.item = b.item;"
    unsure = verdict(streams("items(item) KEY (item)", "bids(item, gain)") + query)
    assert state(unsure, "join", "b").reason.endswith("one whose row never comes stays")
    referring = "bids(item, gain) FOREIGN KEY (item) REFERENCES items (item) WITHIN 5 ROWS"
    sure = verdict(streams("items(item) KEY (item)", referring) + query)
    assert state(sure, "join", "b").reason.endswith(
        "has come (KEY (item)) or can come no more, 5 rows of i after it (FOREIGN KEY)"
    )


def test_values_of_distinct_are_closed() -> None:
    declared = streams("s(a, b) PUNCTUATED BY (a) WHEN p")
    found = verdict(declared + "CREATE QUERY q AS SELECT DISTINCT a, b FROM s;")
    assert causes(found, "distinct") == {"s": "punctuation"}
    assert not verdict(declared + "CREATE QUERY q AS SELECT DISTINCT b FROM s;").admitted


def test_groups_of_one_punctuated_stream_are_closed() -> None:
    declared = streams("s(a, b) PUNCTUATED BY (a) WHEN p")
    assert verdict(declared + "CREATE QUERY q AS SELECT a, b, MEDIAN(b) AS m FROM s GROUP BY a, b;").admitted
    assert not verdict(declared + "CREATE QUERY q AS SELECT b, COUNT(*) AS n FROM s GROUP BY b;").admitted
    assert not verdict(
        declared + "CREATE QUERY q AS SELECT a + 1 AS x, COUNT(*) AS n FROM s GROUP BY a + 1;"
    ).admitted


def test_a_group_needs_all_inputs_closed() -> None:
    query = "CREATE QUERY q AS SELECT s.a, COUNT(*) AS n FROM s, t WHERE s.a = t.a GROUP BY s.a;"
    both = streams("s(a) PUNCTUATED BY (a) WHEN p", "t(a) PUNCTUATED BY (a) WHEN p")
    assert causes(verdict(both + query), "aggregate") == {"s, t": "punctuation"}
    one = streams("s(a) PUNCTUATED BY (a) WHEN p", "t(a)")
    assert causes(verdict(one + query), "aggregate") == {"s, t": "none"}


def test_an_answer_that_is_kept_whole_is_not_bounded_by_closings() -> None:
    declared = streams("s(a) PUNCTUATED BY (a) WHEN p")
    found = verdict(declared + "CREATE QUERY q AS SELECT RSTREAM(a, COUNT(*) AS n) FROM s GROUP BY a;")
    assert causes(found, "rstream") == {"s": "none"}


def test_floating_point_numbers_close_nothing() -> None:
    text = """
    CREATE STREAM s (ts TIMESTAMP, a DOUBLE) TIMESTAMP BY ts KEY (a);
    CREATE STREAM t (ts TIMESTAMP, a DOUBLE) TIMESTAMP BY ts KEY (a);
    CREATE QUERY q AS SELECT s.a FROM s, t WHERE s.a = t.a;
    """
    assert causes(verdict(text)) == {"s": "none", "t": "none"}


def test_exists_is_as_large_as_its_left_side() -> None:
    text = streams("s(a)", "t(a)") + (
        "CREATE QUERY q AS SELECT a, COUNT(*) AS n FROM s [RANGE 1 MINUTE] "
        "WHERE EXISTS (SELECT * FROM t WHERE t.a = s.a) GROUP BY a;"
    )
    found = verdict(text)
    assert causes(found, "semijoin") == {"s": "window", "t": "none"}
    assert causes(found, "aggregate") == {"s, t": "window"}
