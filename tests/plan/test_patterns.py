"""Update patterns of every edge: rules 1 to 4 of the Windows document (3.5.1) and what 3.3 adds to them."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from textwrap import dedent

import pytest
from tests.plan.outline import labelled, outline, query

from headgate.plan.patterns import Pattern, answer_edge, label
from headgate.session import Session

MINUTE = "[RANGE 1 MINUTE]"
INTERNAL = "[RANGE 1 MINUTE INTERNAL]"


def answer(text: str) -> Pattern:
    """The pattern of a query's answer."""
    plan = query(text).plan
    return answer_edge(plan, label(plan)).pattern


LEAVES = {
    "SELECT a FROM s": "MON",
    "SELECT a FROM s [UNBOUNDED]": "MON",
    "SELECT a FROM s [NOW]": "WKS",
    "SELECT a FROM s [RANGE 1 MINUTE]": "WKS",
    "SELECT a FROM s [RANGE 1 MINUTE SLIDE 20 SECONDS]": "WKS",
    "SELECT a FROM s [ROWS 5]": "STR",
    "SELECT a FROM s [PARTITION BY a ROWS 5]": "STR",
    "SELECT x FROM t": "STR",
    # internal windows never let a result die
    "SELECT a FROM s [RANGE 1 MINUTE INTERNAL]": "MON",
    "SELECT a FROM s [ROWS 5 INTERNAL]": "MON",
}
RULE_1 = {
    "SELECT a + 1 FROM s [NOW] WHERE b > 1": "WKS",
    "SELECT a + 1 FROM s WHERE b > 1": "MON",
    "SELECT a + 1 FROM s [ROWS 5] WHERE b > 1": "STR",
    f"SELECT x.k FROM (SELECT s.a AS k FROM s {MINUTE}, u {MINUTE} WHERE s.a = u.a) x WHERE x.k > 1": "WK",
    f"SELECT name FROM s {MINUTE}, n WHERE s.a = n.x": "WKS",
    "SELECT name FROM s, n WHERE s.a = n.x": "MON",
    f"SELECT name FROM s {MINUTE}, u {MINUTE}, n WHERE s.a = u.a AND u.b = n.x": "WK",
    f"SELECT a FROM s {MINUTE} WHERE EXISTS (SELECT * FROM n WHERE n.x = s.a)": "WKS",
    f"SELECT a FROM s {MINUTE} WHERE NOT EXISTS (SELECT * FROM n WHERE n.x = s.a)": "WKS",
}
RULE_2 = {
    f"SELECT a FROM s {MINUTE} UNION ALL SELECT a FROM u {MINUTE}": "WKS",
    "SELECT a FROM s UNION ALL SELECT a FROM u": "MON",
    f"SELECT a FROM s {MINUTE} UNION ALL SELECT u.a FROM u {MINUTE}, v {MINUTE} WHERE u.a = v.a": "WK",
    f"SELECT a FROM s {MINUTE} UNION ALL SELECT a FROM u [ROWS 5]": "STR",
}
RULE_3 = {
    f"SELECT s.a FROM s {MINUTE}, u {MINUTE} WHERE s.a = u.a": "WK",
    f"SELECT s.a FROM s {MINUTE}, u {MINUTE}, v {MINUTE} WHERE s.a = u.a AND u.a = v.a": "WK",
    f"SELECT s.a FROM s {MINUTE}, u [ROWS 5] WHERE s.a = u.a": "STR",
    "SELECT s.a FROM s, u WHERE s.a = u.a": "MON",
    f"SELECT DISTINCT a FROM s {MINUTE}": "WK",
    "SELECT DISTINCT a FROM s [ROWS 5]": "STR",
    "SELECT DISTINCT a FROM s": "MON",
    f"SELECT a FROM s {MINUTE} WHERE EXISTS (SELECT * FROM u {MINUTE} WHERE u.a = s.a)": "WK",
    f"SELECT a FROM s {MINUTE} WHERE EXISTS (SELECT * FROM u [ROWS 5] WHERE u.a = s.a)": "STR",
    f"SELECT a FROM s {MINUTE} INTERSECT SELECT a FROM u {MINUTE}": "WK",
    f"SELECT a FROM s {MINUTE} UNION SELECT a FROM u {MINUTE}": "WK",
}
FIXED_TABLES = {
    "SELECT x FROM fixed": "MON",
    "SELECT name FROM s, fixed WHERE s.a = fixed.x": "MON",
    f"SELECT name FROM s {MINUTE}, fixed WHERE s.a = fixed.x": "WKS",
    "SELECT name FROM s [ROWS 5], fixed WHERE s.a = fixed.x": "STR",
    f"SELECT a FROM s {MINUTE} WHERE EXISTS (SELECT * FROM fixed WHERE fixed.x = s.a)": "WKS",
    f"SELECT a FROM s {MINUTE} WHERE NOT EXISTS (SELECT * FROM fixed WHERE fixed.x = s.a)": "WKS",
    f"SELECT a FROM s {MINUTE} WHERE NOT EXISTS (SELECT * FROM fixed f, t WHERE f.x = s.a AND t.x = f.x)": "STR",
    f"SELECT a FROM s {MINUTE} WHERE EXISTS (SELECT * FROM (SELECT RSTREAM(x) FROM fixed) f WHERE f.x = s.a)": "WK",
}
RULE_4 = {
    f"SELECT a FROM s {MINUTE} WHERE NOT EXISTS (SELECT * FROM u {MINUTE} WHERE u.a = s.a)": "STR",
    "SELECT a FROM s WHERE NOT EXISTS (SELECT * FROM u WHERE u.a = s.a)": "STR",
    f"SELECT a FROM s {MINUTE} EXCEPT SELECT a FROM u {MINUTE}": "STR",
    f"SELECT a FROM s {MINUTE} EXCEPT ALL SELECT a FROM u {MINUTE}": "STR",
    f"SELECT a, COUNT(*) FROM s {MINUTE} GROUP BY a": "STR",
    "SELECT MAX(a) FROM s": "STR",
    f"SELECT name FROM s {MINUTE}, t WHERE s.a = t.x": "STR",
    f"SELECT a FROM s {MINUTE} WHERE EXISTS (SELECT * FROM t WHERE t.x = s.a)": "STR",
}
INTERNAL_WINDOWS = {
    f"SELECT s.a FROM s {INTERNAL}, u {INTERNAL} WHERE s.a = u.a": "MON",
    f"SELECT s.a FROM s {INTERNAL}, u WHERE s.a = u.a": "MON",
    f"SELECT a, COUNT(*) FROM s {INTERNAL} GROUP BY a": "MON",
    f"SELECT a FROM s {INTERNAL} UNION ALL SELECT a FROM u {INTERNAL}": "MON",
    f"SELECT a FROM s {INTERNAL} UNION ALL SELECT a FROM u {MINUTE}": "WK",
}
OUTPUT_WINDOWS = {
    f"SELECT WSTREAM(a)[ROWS 10] FROM s {MINUTE}": "STR",
    f"SELECT WSTREAM(a)[RANGE 5 SECONDS] FROM s {MINUTE}": "WKS",
    f"SELECT WSTREAM(a, COUNT(*))[RANGE 5 SECONDS] FROM s {MINUTE} GROUP BY a": "WKS",
}
STREAMS = {
    f"SELECT ISTREAM(a) FROM s {MINUTE}": "WKS",
    f"SELECT x.a FROM (SELECT ISTREAM(a) FROM s {MINUTE}) x": "MON",
    f"SELECT x.a FROM (SELECT DSTREAM(a) FROM s {MINUTE}) AS x [NOW]": "WKS",
    f"SELECT x.a FROM (SELECT RSTREAM(a) FROM s {MINUTE}) AS x [ROWS 5]": "STR",
}
DEVIATIONS = {
    f"SELECT s.a FROM s {MINUTE}, u {INTERNAL} WHERE s.a = u.a": "WK",
    f"SELECT s.a FROM s {MINUTE}, u WHERE s.a = u.a": "WK",
    f"SELECT a FROM s {MINUTE} UNION ALL SELECT a FROM u [RANGE 2 MINUTES]": "WK",
    "SELECT a FROM s [RANGE 14 MINUTES SLIDE 3 MINUTES]": "WK",
}
ALL = (
    LEAVES
    | RULE_1
    | RULE_2
    | RULE_3
    | FIXED_TABLES
    | RULE_4
    | INTERNAL_WINDOWS
    | OUTPUT_WINDOWS
    | STREAMS
    | DEVIATIONS
)


@pytest.mark.parametrize("text", ALL)
def test_the_pattern_of_an_answer(text: str) -> None:
    assert str(answer(text)) == ALL[text]


# -- where the document's definitions win over its rules ------------------------------------------

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def lifetimes(text: str, **streams: dict[int, int]) -> set[int]:
    """The different lengths of life, in seconds, of the rows of a query over streams of {second: b}."""
    session = Session()
    for name, rows in streams.items():
        session.sql(f"CREATE STREAM {name} (ts TIMESTAMP, a BIGINT, b BIGINT) TIMESTAMP BY ts")
        found = [{"ts": START + timedelta(seconds=at), "a": 1, "b": b} for at, b in rows.items()]
        session.stream(name, found)
    moments = defaultdict(list)
    for operator in ("ISTREAM", "DSTREAM"):
        asked = session.sql(text.replace("LIST", operator))
        assert asked is not None
        for row in asked.run(allow_unbounded=True).to_dicts():
            moments[row["b"]].append(row["_time"])
    return {round((dies - born).total_seconds()) for born, dies in moments.values()}


def test_one_external_window_beside_a_stream_gives_lives_of_different_lengths() -> None:
    text = "SELECT LIST(u.b) FROM s [RANGE 10 SECONDS], u WHERE s.a = u.a"
    assert lifetimes(text, s={0: 0}, u={1: 1, 8: 8}) == {9, 2}


def test_so_does_one_beside_an_internal_window() -> None:
    text = "SELECT LIST(u.b) FROM s [RANGE 10 SECONDS], u [RANGE 10 SECONDS INTERNAL] WHERE s.a = u.a"
    assert lifetimes(text, s={0: 0}, u={1: 1, 8: 8}) == {9, 2}


def test_a_union_of_windows_of_different_lengths_does_not_die_in_order() -> None:
    text = "SELECT LIST(x.b) FROM (SELECT b FROM s [RANGE 3 SECONDS] UNION ALL SELECT b FROM u [RANGE 7 SECONDS]) x"
    assert lifetimes(text, s={1: 1}, u={0: 0}) == {3, 7}


def test_a_range_that_is_no_multiple_of_its_slide_holds_rows_for_different_times() -> None:
    text = "SELECT LIST(b) FROM s [RANGE 5 SECONDS SLIDE 3 SECONDS]"
    assert lifetimes(text, s={0: 0, 1: 1}) == {6, 3}


def test_a_range_that_is_one_holds_them_for_the_same_time() -> None:
    text = "SELECT LIST(b) FROM s [RANGE 6 SECONDS SLIDE 3 SECONDS]"
    assert lifetimes(text, s={0: 0, 1: 1, 2: 2}) == {6}


# -- whole plans ----------------------------------------------------------------------------------

FIGURE_3_5 = f"""
SELECT RSTREAM(*) FROM s {MINUTE}, u {MINUTE} WHERE s.a = u.a
AND NOT EXISTS (SELECT RSTREAM(*) FROM v {MINUTE} WHERE v.a = s.a)
""".replace("RSTREAM(*) FROM s", "RSTREAM(s.a AS k, u.b) FROM s")


def plans(text: str) -> list[str]:
    """All plans that were compared, without the projections."""
    found = []
    for each in query(text).optimized.compared:
        lines = [
            line for line in outline(each.plan.input, patterns=True).splitlines() if "project" not in line
        ]
        found.append("\n".join(line.strip() for line in lines))
    return found


def test_both_plans_of_figure_3_5() -> None:
    pulled_up = """
        negation s.a = v.a  STR
        join s.a = u.a  WK
        [RANGE 1 MINUTE]  WKS
        stream s  MON
        [RANGE 1 MINUTE]  WKS
        stream u  MON
        [RANGE 1 MINUTE]  WKS
        stream v  MON
        """
    pushed_down = """
        join s.a = u.a  STR
        negation s.a = v.a  STR
        [RANGE 1 MINUTE]  WKS
        stream s  MON
        [RANGE 1 MINUTE]  WKS
        stream v  MON
        [RANGE 1 MINUTE]  WKS
        stream u  MON
        """
    assert {dedent(pulled_up).strip(), dedent(pushed_down).strip()} <= set(plans(FIGURE_3_5))


def test_query_4_has_the_same_two_plans() -> None:
    text = f"""
        SELECT RSTREAM(s.a, v.b) FROM s {MINUTE}, v {MINUTE} WHERE s.a = v.a AND v.c = 'ftp'
        AND NOT EXISTS (SELECT * FROM u {MINUTE} WHERE u.a = s.a)"""
    tops = {plan.splitlines()[0] for plan in plans(text)}
    assert {"negation s.a = u.a  STR", "join s.a = v.a  STR"} <= tops


def test_the_state_below_internal_windows_still_expires() -> None:
    plan = query(f"SELECT s.a FROM s {INTERNAL}, u [ROWS 5 INTERNAL] WHERE s.a = u.a").plan
    edges = label(plan)
    join = plan.input.inputs[0]
    assert edges[join].pattern == Pattern.MON
    assert [edges[member].expiry for member in join.inputs] == [Pattern.WKS, Pattern.STR]


def test_a_sum_of_sums_of_3_4() -> None:
    assert labelled(
        "SELECT SUM(a) FROM (SELECT SUM(a) FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS INTERNAL]) [ROWS 10]"
    ) == dedent(
        """\
        relation  STR
          project SUM(sub.sum(a)) as sum(a)  STR
            aggregate SUM(sub.sum(a))  STR
              project sub.sum(a)  STR
                [ROWS 10]  STR
                  project SUM(s.a) as sub.sum(a)  MON
                    aggregate SUM(s.a)  MON
                      project s.a  MON
                        [RANGE 6 SECONDS SLIDE 6 SECONDS INTERNAL]  MON
                          stream s  MON"""
    )
