"""What KEY and PUNCTUATED BY bound beside joins and groups, on which assumptions, and what they do not."""

from __future__ import annotations

import pytest

from headgate.safety.cause import Cause
from headgate.safety.verdict import Verdict
from headgate.session import Session

STREAMS = {
    "o": "PUNCTUATED BY (k) WHEN last",
    "p": "PUNCTUATED BY (k) WHEN last",
    "c": "KEY (k)",
    "pair": "PUNCTUATED BY (k, v) WHEN last",
    "rising": "ORDERED BY (k) WITHIN 10 ROWS",
    "near": "CLUSTERED BY (k) WITHIN 10 ROWS",
    "rising_in_time": "ORDERED BY (k) WITHIN 10 SECONDS",
    "near_in_time": "CLUSTERED BY (k) WITHIN 10 SECONDS",
    "open": "",
}
TEXT = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT, x DOUBLE, last BOOLEAN) TIMESTAMP BY ts {promise};\n"
    for name, promise in STREAMS.items()
)


def verdict(query: str) -> Verdict:
    found = Session().sql(f"{TEXT}CREATE QUERY q AS {query};")
    assert found is not None
    return found.check()


def exists(left: str, right: str, condition: str = "", word: str = "EXISTS") -> str:
    name, other = left.split(maxsplit=1)[0], right.split(maxsplit=1)[0]
    return f"SELECT {name}.k FROM {left} WHERE {word} (SELECT * FROM {right} WHERE {other}.k = {name}.k{condition})"


GROUPS = "(SELECT k, MAX(v) AS m FROM o GROUP BY k) x"


@pytest.mark.parametrize(
    "query",
    [
        exists("o", "p"),
        exists("o", "p", " AND p.v > o.v"),
        exists("o", "p", word="NOT EXISTS"),
        exists("o", "c"),
        exists("c", "o", word="NOT EXISTS"),
        exists("o", "rising"),
        exists("rising", "rising_in_time"),
        exists("rising_in_time", "o", word="NOT EXISTS"),
        exists("o [RANGE 1 MINUTE]", "p"),
        exists("o", "p [RANGE 1 MINUTE]"),
        exists("open [RANGE 1 MINUTE]", "p [RANGE 1 MINUTE]"),
        exists("open", "p [RANGE 1 MINUTE]", word="NOT EXISTS"),
        exists("pair", "o", " AND o.v = pair.v"),
        "SELECT k FROM o EXCEPT SELECT k FROM p",
        "SELECT k, v FROM o EXCEPT SELECT k, v FROM pair",
        "SELECT k, v FROM o EXCEPT ALL SELECT k, v FROM p",
        "SELECT k FROM o INTERSECT SELECT k FROM c",
        "SELECT k, x FROM o UNION SELECT k, x FROM p",
        "SELECT k FROM o UNION SELECT k FROM p UNION SELECT k FROM rising",
        "SELECT k FROM rising_in_time UNION SELECT k FROM rising",
        "SELECT DISTINCT k, v FROM near_in_time",
        "SELECT COUNT(DISTINCT k) AS n FROM near_in_time",
        "SELECT k, COUNT(*) AS n FROM (SELECT k FROM o UNION ALL SELECT k FROM c) x GROUP BY k",
        "SELECT COUNT(DISTINCT k) AS n, SUM(DISTINCT k) AS s, MAX(v) AS m FROM o",
        "SELECT v, COUNT(DISTINCT k) AS n FROM pair WHERE v BETWEEN 0 AND 9 GROUP BY v",
        "SELECT COUNT(DISTINCT o.k) AS n FROM o, p WHERE o.k = p.k",
        f"SELECT MIN(m) AS a, MAX(m) AS b, AVG(m) AS c FROM {GROUPS}",
        f"SELECT MIN(m) AS a FROM {GROUPS} WHERE m > 3",
        "SELECT k, MEDIAN(m) AS a FROM (SELECT k, v, COUNT(*) AS m FROM o GROUP BY k, v) x GROUP BY k",
        f"SELECT COUNT(*) AS n FROM ({exists('o', 'p', word='NOT EXISTS')}) x",
        "SELECT x.k, p.v FROM (SELECT DISTINCT k FROM o) x, p WHERE x.k = p.k",
    ],
)
def test_it_is_bounded_as_long_as_values_are_closed(query: str) -> None:
    found = verdict(query)
    assert found.admitted, found
    assert found.kind == "conditional"
    assert found.assumes


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (exists("o", "open"), "open may always bring another row"),
        (exists("open", "o"), "open may always bring another row"),
        (exists("o", "near"), "no FOREIGN KEY says that every value comes"),
        (exists("o", "near_in_time"), "no FOREIGN KEY says that every value comes"),
        (exists("o", "pair"), "pair may always bring another row"),
        (exists("o [ROWS 5]", "p"), "can leave early"),
        (exists("o [RANGE 1 MINUTE]", "p [PARTITION BY k ROWS 1]"), "values never stop coming"),
        ("SELECT k FROM o EXCEPT SELECT k FROM open", "open may always bring another row"),
        ("SELECT k + 1 FROM o EXCEPT SELECT k FROM p", "o has no window"),
        ("SELECT v FROM o EXCEPT ALL SELECT v FROM p", "o has no window"),
        ("SELECT k FROM o UNION SELECT k FROM open", "o has no window"),
        ("SELECT k FROM o UNION SELECT k FROM near", "o has no window"),
        ("SELECT k FROM o UNION SELECT k FROM near_in_time", "o has no window"),
        ("SELECT COUNT(DISTINCT v) AS n FROM o", "o has no window"),
        ("SELECT COUNT(DISTINCT k) AS n, MEDIAN(k) AS m FROM o", "o has no window"),
        ("SELECT COUNT(DISTINCT k) AS n, COUNT(DISTINCT v) AS m FROM o", "o has no window"),
        (f"SELECT MEDIAN(m) AS a FROM {GROUPS}", "a group stays for every value"),
        (f"SELECT COUNT(DISTINCT m) AS a FROM {GROUPS}", "a group stays for every value"),
        (f"SELECT m, COUNT(*) AS n FROM {GROUPS} GROUP BY m", "a group stays for every value"),
        (
            "SELECT MIN(m) AS a FROM (SELECT v, MAX(k) AS m FROM o GROUP BY v) x",
            "a group stays for every value",
        ),
        (f"SELECT MIN(k) AS n FROM ({exists('o', 'p', word='NOT EXISTS')}) x", "o has no window"),
    ],
)
def test_it_is_refused_where_nothing_closes_what_is_kept(query: str, reason: str) -> None:
    found = verdict(query)
    assert not found.admitted, found
    assert any(reason in state.reason for state in found.unbounded), found.unbounded


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(DISTINCT k) AS n FROM c",
        "SELECT k, COUNT(*) AS n FROM c GROUP BY k",
        "SELECT DISTINCT k FROM c",
    ],
)
def test_a_key_of_the_only_stream_needs_nothing_else_to_come(query: str) -> None:
    assert verdict(query).kind == "bounded"


@pytest.mark.parametrize("within", ["10 ROWS", "10 SECONDS"])
@pytest.mark.parametrize(("residual", "cause"), [(" AND r.v > l.v", Cause.CONSTRAINT), ("", Cause.KEY)])
def test_rows_that_are_kept_whole_are_let_go_by_age(residual: str, cause: Cause, within: str) -> None:
    """Of rows on the right of EXISTS without a further condition the key alone is kept, which has no age."""
    text = f"""
    CREATE STREAM l (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts KEY (k);
    CREATE STREAM r (ts TIMESTAMP, k BIGINT, v BIGINT) TIMESTAMP BY ts KEY (k)
      FOREIGN KEY (k) REFERENCES l (k) WITHIN {within};
    """
    found = Session().sql(
        f"{text} CREATE QUERY q AS SELECT k FROM l WHERE EXISTS (SELECT * FROM r WHERE r.k = l.k{residual});"
    )
    assert found is not None
    states = {state.stream: state.by for state in found.check().states if state.operator == "semijoin"}
    assert states == {"l": Cause.KEY, "r": cause}


def test_a_number_of_rows_that_rests_on_a_check_is_not_said_without_it() -> None:
    text = """
    CREATE STREAM s (ts TIMESTAMP, a BIGINT, b BIGINT, CHECK (a BETWEEN 0 AND 3), CHECK (b BETWEEN 0 AND 3))
      TIMESTAMP BY ts;
    CREATE STREAM t (ts TIMESTAMP, d BIGINT) TIMESTAMP BY ts;
    """
    found = Session().sql(
        f"{text} CREATE QUERY q AS SELECT DISTINCT a FROM s, t WHERE b < d AND a BETWEEN 0 AND 1000000;"
    )
    assert found is not None
    (kept,) = (state for state in found.check().states if (state.operator, state.stream) == ("join", "s"))
    assert kept.reason.startswith("at most 2,000,002 rows stand for all of s")
    assert kept.assumes


def test_what_is_closed_on_one_side_only_is_remembered_for_a_while() -> None:
    found = verdict(exists("open", "p [RANGE 1 MINUTE]", word="NOT EXISTS"))
    assert any("comes before p has closed" in each.sentence for each in found.assumes)


def test_what_exists_in_a_window_rests_on_the_closing_by_which_left_rows_are_dropped() -> None:
    states = {
        (state.operator, state.stream): state for state in verdict(exists("o", "p [RANGE 1 MINUTE]")).states
    }
    assumed = states["semijoin", "o"].assumes
    assert [each.sentence for each in assumed] == ["p closes every value of k sooner or later"]
    assert states["relation", "o, p"].assumes == assumed
