"""The gate on few values: expressions, lists, static tables and contradictions, each run over unkind streams."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import polars as pl
import pytest
from tests.safety.growth import keeps

from headgate.model.errors import DeclarationError
from headgate.physical.compile import compile_query
from headgate.physical.program import Program
from headgate.runtime.io.changes import static_table
from headgate.runtime.local.engine import LocalRun
from headgate.session import Query, Session

DECLARED = """
CREATE STREAM s (ts TIMESTAMP, k BIGINT, v INT, c STRING, d DATE, f BOOLEAN, z DOUBLE, h SMALLINT) TIMESTAMP BY ts;
CREATE STREAM r (ts TIMESTAMP, k BIGINT, v INT, c STRING) TIMESTAMP BY ts;
CREATE STREAM q (ts TIMESTAMP, a BIGINT, b BIGINT, CHECK (b BETWEEN 1 AND 3), CHECK (a = b)) TIMESTAMP BY ts;
CREATE TABLE t (k BIGINT, c STRING);
CREATE TABLE u (k BIGINT, c STRING) USING json OPTIONS (path 'u', changeTime 'at', changeOp 'op');
CREATE TABLE n (k BIGINT) NON RETROACTIVE USING json OPTIONS (path 'n', changeTime 'at', changeOp 'op');
"""


def query(text: str) -> Query:
    found = Session().sql(f"{DECLARED} CREATE QUERY q1 AS {text};")
    assert found is not None
    return found


def kind(text: str) -> str:
    """The verdict, leaving aside that streams must not fall silent."""
    found = query(text).judged
    if not found.admitted:
        return "refused"
    return "conditional" if any(state.assumes for state in found.states) else "bounded"


BOUNDED = [
    "SELECT k % 10 AS m, v > 3 AS b, COUNT(*) AS n FROM s GROUP BY k % 10, v > 3",
    "SELECT CASE WHEN v > 3 THEN 'a' WHEN v < 0 THEN 'b' END AS m, SUM(v) AS n FROM s "
    "GROUP BY CASE WHEN v > 3 THEN 'a' WHEN v < 0 THEN 'b' END",
    "SELECT DISTINCT hour(ts) AS h, month(d) AS m, COALESCE(f, v IS NULL) AS w FROM s",
    "SELECT COUNT(DISTINCT k % 5) AS n, MEDIAN(v % 7) AS m FROM s",
    "SELECT COUNT(DISTINCT pmod(k, 5) + 1) AS n, COUNT(DISTINCT try_mod(k, 3) * 2) AS m FROM s",
    "SELECT DISTINCT c FROM s WHERE c = 'v8' OR c IN ('v9', 'v10')",
    "SELECT upper(c) AS u, COUNT(*) AS n FROM s WHERE upper(c) IN ('V8', 'V9') GROUP BY upper(c)",
    "SELECT k, v FROM s [PARTITION BY k ROWS 1] WHERE k IN (8, 9)",
    "SELECT DISTINCT k FROM s [PARTITION BY k ROWS 2] WHERE k BETWEEN 5 AND 9 AND v > 0",
    "SELECT DISTINCT k % 3 AS m FROM (SELECT k FROM s UNION ALL SELECT k FROM r) w",
    "SELECT MIN(m) AS least FROM (SELECT k % 4 AS g, MAX(v % 3) AS m FROM s GROUP BY k % 4) x",
    "SELECT DISTINCT s.k % 10 AS m FROM s, r WHERE s.v % 5 = r.v % 5",
    "SELECT DISTINCT s.k FROM s, r WHERE s.k = r.k AND s.k IN (7, 1000000000) AND r.k IN (7, 1000000000)",
    "SELECT DISTINCT s.k FROM s, r WHERE s.k = r.k AND s.k IN (7.0, 8.5, 1000000000)",
    "SELECT s.k % 10 AS m, COUNT(*) AS n FROM s, r WHERE s.v % 5 = r.v % 5 GROUP BY s.k % 10",
    "SELECT DISTINCT x.v % 3 AS m FROM s x, s y WHERE x.k = y.k AND x.f AND y.f",
    "SELECT DISTINCT x.v % 3 AS m FROM s x, s y WHERE x.k = y.k AND NOT x.f AND NOT y.f",
    "SELECT DISTINCT s.k FROM s, r WHERE NOT (s.v < r.v) AND s.k IN (1, 2)",
    "SELECT t.c, COUNT(*) AS n FROM s, t WHERE s.k = t.k GROUP BY t.c",
    "SELECT s.k, t.c, COUNT(DISTINCT s.v % 2) AS n FROM s, t WHERE s.k = t.k GROUP BY s.k, t.c",
    "SELECT DISTINCT s.k FROM s WHERE EXISTS (SELECT * FROM t WHERE t.k = s.k)",
    "SELECT ISTREAM(s.k) FROM s WHERE NOT EXISTS (SELECT * FROM t WHERE t.k = s.k)",
    "SELECT s.k, t.c FROM s, t WHERE s.k = t.k",
    "SELECT t.c, s.v FROM s [ROWS 5], t WHERE s.k = t.k",
    "SELECT s.v FROM s [ROWS 5] WHERE NOT EXISTS (SELECT * FROM t WHERE t.k > s.k)",
    "SELECT k FROM s [RANGE 3 SECONDS] EXCEPT SELECT k FROM t",
    "SELECT s.v, t.c FROM s [PARTITION BY k ROWS 1], t WHERE s.k = t.k AND s.k IN (1, 2)",
    "SELECT c FROM t WHERE NOT EXISTS (SELECT * FROM s WHERE s.k = t.k)",
    "SELECT c FROM t WHERE EXISTS (SELECT * FROM s WHERE s.k = t.k)",
    "SELECT DISTINCT s.k FROM s, r, t WHERE s.k = r.k AND r.k = t.k",
    "SELECT DISTINCT r.k FROM s, r WHERE s.k = r.k AND EXISTS (SELECT * FROM t WHERE t.k = s.k)",
    "SELECT DISTINCT k FROM s WHERE k > 5 AND k < 3",
    "SELECT s.k, r.v FROM s, r WHERE s.k = r.k AND s.k > 5 AND r.k < 3",
    "SELECT COUNT(*) AS n FROM s, r WHERE s.v < r.v AND r.v < s.v",
    "SELECT RSTREAM(k) FROM s WHERE c = 'x' AND c = 'y'",
    "SELECT k FROM s WHERE k IS NULL AND k > 3 AND NOT EXISTS (SELECT * FROM r WHERE r.k = s.k)",
]
CONDITIONAL = [
    "SELECT DISTINCT k FROM s WHERE k BETWEEN 0 AND 1000000000000000",
    "SELECT COUNT(DISTINCT k) AS n FROM s WHERE k BETWEEN 0 AND 1000000000000000",
    "SELECT k, v FROM s [PARTITION BY k ROWS 1] WHERE k BETWEEN 0 AND 1000000000000000",
    "SELECT s.k, COUNT(*) AS n FROM s, r WHERE s.k = r.k AND s.k BETWEEN 0 AND 1000000000000000 GROUP BY s.k",
    "SELECT k % 100000 AS a, v % 100000 AS b, COUNT(*) AS n FROM s GROUP BY k % 100000, v % 100000",
    "SELECT s.k, u.c FROM s [RANGE 3 SECONDS], u WHERE s.k = u.k",
]
REFUSED = [
    "SELECT DISTINCT z % 10 AS m FROM s",
    "SELECT DISTINCT year(d) AS y FROM s",
    "SELECT DISTINCT s.k FROM s, r WHERE s.k = r.k AND s.k IN (7, 4000000000000000000)",
    "SELECT DISTINCT s.k FROM s, r WHERE s.k = r.k AND s.k IN (7, 8, r.v)",
    "SELECT DISTINCT k FROM s WHERE k IN (v, h)",
    "SELECT DISTINCT CAST(k AS INT) AS m FROM s WHERE k > 0",
    "SELECT DISTINCT CAST(k AS INT) AS m FROM s WHERE k < 9",
    "SELECT DISTINCT v % k AS m FROM s WHERE k > 0",
    "SELECT DISTINCT v % k AS m FROM s WHERE k < 0",
    "SELECT DISTINCT CASE WHEN f THEN 1 ELSE z END AS m FROM s WHERE z BETWEEN 0 AND 1",
    "SELECT DISTINCT CASE WHEN f THEN z END % 3 AS m FROM s",
    "SELECT DISTINCT c FROM s WHERE c = 'x' OR k = 3",
    "SELECT DISTINCT c FROM s WHERE NOT (c = 'x' OR c = 'y')",
    "SELECT DISTINCT upper(c) AS u FROM s WHERE lower(c) IN ('x', 'y')",
    "SELECT k, v FROM s [PARTITION BY k ROWS 1] WHERE v IN (8, 9)",
    "SELECT DISTINCT s.c FROM s WHERE EXISTS (SELECT * FROM t WHERE t.k = s.k)",
    "SELECT DISTINCT s.k FROM s WHERE NOT EXISTS (SELECT * FROM t WHERE t.k = s.k)",
    "SELECT DISTINCT s.k FROM s, t WHERE s.k > t.k",
    "SELECT u.c, COUNT(*) AS n FROM s, u WHERE s.k = u.k GROUP BY u.c",
    "SELECT c FROM u WHERE NOT EXISTS (SELECT * FROM s WHERE s.k = u.k)",
    "SELECT c FROM t WHERE NOT EXISTS (SELECT * FROM s WHERE s.k = t.k AND s.c > t.c)",
    "SELECT s.k FROM s, r, t WHERE s.k = r.k AND r.k = t.k",
    "SELECT DISTINCT s.k FROM s WHERE EXISTS (SELECT * FROM u WHERE u.k = s.k)",
    "SELECT DISTINCT a FROM q",
]


@pytest.mark.parametrize("text", BOUNDED)
def test_few_values_bound_it_and_it_stays_flat(text: str) -> None:
    found = query(text)
    assert kind(text) == "bounded", found.judged
    for data in ("unique", "null"):
        kept = keeps(found, data, Random(1))
        assert kept.sizes is not None
        assert not kept.grows, (data, kept.sizes)


@pytest.mark.parametrize("text", CONDITIONAL)
def test_very_many_values_and_tables_that_change_are_an_assumption(text: str) -> None:
    assert kind(text) == "conditional", query(text).judged


@pytest.mark.parametrize("text", REFUSED)
def test_endless_values_bound_nothing(text: str) -> None:
    assert kind(text) == "refused", query(text).judged


def test_the_limit_is_a_million_values() -> None:
    assert kind("SELECT h, MAX(k) AS n FROM s GROUP BY h") == "bounded"
    assert kind("SELECT DISTINCT k FROM s WHERE k BETWEEN 1 AND 1000000") == "bounded"
    found = query("SELECT DISTINCT k FROM s WHERE k BETWEEN 0 AND 1000000").judged
    (assumed,) = found.assumes
    assert assumed.sentence == "no more than 1,000,000 different values of k come"
    assert assumed.metric == "state_rows"


def test_a_check_of_two_columns_says_nothing_where_one_is_null() -> None:
    """A row with NULL in b keeps CHECK (a = b), whatever a is."""
    assert query("SELECT DISTINCT a FROM q WHERE a > 0 AND b > 0").judged.admitted
    assert not query("SELECT DISTINCT a FROM q").judged.admitted


def test_changes_of_a_table_that_was_taken_as_static_are_an_error() -> None:
    found = query("SELECT t.c, COUNT(*) AS n FROM s, t WHERE s.k = t.k GROUP BY t.c")
    ready = compile_query(found.planned)
    rows = static_table(pl.DataFrame({"k": [1], "c": ["a"]}))
    streams = [(stream, iter(())) for stream in ready.streams]
    LocalRun(Program((ready,)), streams, {"t": rows})
    with pytest.raises(DeclarationError, match="planned for one that does not"):
        LocalRun(Program((ready,)), streams, {"t": rows.with_columns(_born=pl.lit(5, dtype=pl.Int64))})


def test_a_session_that_is_given_changes_judges_the_query_anew() -> None:
    session = Session()
    session.sql(DECLARED)
    session.sql("CREATE QUERY q1 AS SELECT t.c, COUNT(*) AS n FROM s, t WHERE s.k = t.k GROUP BY t.c")
    assert session.query("q1").judged.admitted
    change = {"k": 1, "c": "a", "at": datetime(2026, 1, 1, tzinfo=UTC), "op": "+"}
    session.table_changes("t", [change], time="at", op="op")
    assert not session.query("q1").judged.admitted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k FROM s [RANGE 2 SECONDS] UNION SELECT k FROM u",
        "SELECT k FROM u UNION SELECT k FROM s [RANGE 2 SECONDS]",
        "SELECT s.k FROM s [RANGE 9 SECONDS] WHERE EXISTS "
        "(SELECT * FROM (SELECT k FROM t UNION ALL SELECT k FROM u) x WHERE x.k = s.k)",
    ],
)
def test_what_a_table_that_changes_assumes_is_said_wherever_it_stands(text: str) -> None:
    found = query(text).judged
    assert kind(text) == "conditional"
    assert any("grow" in each.sentence for each in found.assumes), found.assumes


def test_above_a_join_a_state_rests_on_what_each_input_rests_on() -> None:
    found = query(
        "SELECT DISTINCT s.v, r.v AS w FROM s [RANGE 3 SECONDS], r [PARTITION BY k ROWS 1] "
        "WHERE s.k = r.k AND r.k BETWEEN 0 AND 1000000000000000"
    ).judged
    (distinct,) = [state for state in found.states if state.operator == "distinct"]
    assert any("different values" in each.sentence for each in distinct.assumes), distinct


def test_equal_rows_are_not_made_one_below_a_table_that_is_asked_at_their_birth() -> None:
    text = (
        "SELECT DISTINCT s.k FROM s, r WHERE s.k = r.k AND EXISTS (SELECT * FROM t WHERE t.k = s.k) "
        "AND EXISTS (SELECT * FROM n WHERE n.k = s.k)"
    )
    assert kind(text) == "refused"


def test_an_expression_that_no_value_is_left_of_is_judged_too() -> None:
    text = "SELECT v % 3 AS m, COUNT(*) AS n FROM s [PARTITION BY v ROWS 2] WHERE v % 3 > 7 GROUP BY v % 3"
    assert kind(text) == "refused"


def test_few_groups_rest_on_their_number_even_if_they_are_closed() -> None:
    session = Session()
    session.sql(
        "CREATE STREAM p (ts TIMESTAMP, k BIGINT, f BOOLEAN) TIMESTAMP BY ts PUNCTUATED BY (k) WHEN f;"
        "CREATE QUERY q1 AS SELECT k, COUNT(*) AS n FROM p WHERE k BETWEEN 1 AND 3 GROUP BY k;"
    )
    [state] = session.query("q1").judged.states
    assert (state.by, state.assumes) == ("values", ())


def test_rows_that_stand_for_others_are_as_many_as_the_values_of_columns_and_expressions() -> None:
    text = "SELECT DISTINCT s.k, s.v % 2000000 AS m FROM s, r WHERE s.k = r.k AND s.k BETWEEN 1 AND 3"
    states = {(state.operator, state.stream): state for state in query(text).judged.states}
    assert states["join", "s"].reason.startswith("at most 24,000,000 rows stand for all of s")
    assert states["join", "s"].assumes
    assert not states["join", "r"].assumes


@pytest.mark.parametrize(
    ("selected", "rows"),
    [("s.v", 2), ("DISTINCT s.k", 4)],
    ids=["equal rows are counted", "the least and the greatest"],
)
def test_listed_values_are_counted_and_not_those_between(selected: str, rows: int) -> None:
    text = f"SELECT {selected} AS a FROM s, r WHERE s.k = r.k AND s.k IN (7, 1000000000) AND s.v = 3"
    reasons = {state.stream: state.reason for state in query(text).judged.states if state.operator == "join"}
    assert reasons["s"].startswith(f"at most {rows} rows stand for all of s")
