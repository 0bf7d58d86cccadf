"""What parses and binds but cannot mean anything is refused, with the reason."""

from __future__ import annotations

import pytest
from tests.plan.outline import query

from headgate.model.errors import MeaninglessError

W = "[RANGE 1 MINUTE]"
IN = "[RANGE 1 MINUTE INTERNAL]"

MEANINGLESS = {
    f"SELECT DISTINCT a FROM s {IN}": "INTERNAL under DISTINCT",
    f"SELECT DISTINCT s.a FROM s {W}, u {IN} WHERE s.a = u.a": "INTERNAL under DISTINCT",
    f"SELECT a FROM s {IN} WHERE NOT EXISTS (SELECT * FROM u {W} WHERE u.a = s.a)": "INTERNAL under negation",
    f"SELECT a FROM s {W} WHERE NOT EXISTS (SELECT * FROM u {IN} WHERE u.a = s.a)": "INTERNAL under negation",
    f"SELECT a FROM s {IN} EXCEPT SELECT a FROM u {W}": "INTERNAL under",
    f"SELECT a FROM s {IN} EXCEPT ALL SELECT a FROM u {W}": "INTERNAL under negation",
    f"SELECT a FROM s {IN} UNION SELECT a FROM u {IN}": "INTERNAL under DISTINCT",
    f"SELECT a FROM s {IN} WHERE EXISTS (SELECT * FROM u {W} WHERE u.a = s.a)": "INTERNAL under EXISTS",
    f"SELECT WSTREAM(DISTINCT a)[ROWS 10] FROM s {W}": "DISTINCT cannot stand over internal windows",
    f"SELECT WSTREAM(a)[ROWS 10] FROM s {W} WHERE NOT EXISTS (SELECT * FROM u {W} WHERE u.a = s.a)": (
        "negation cannot stand over internal windows"
    ),
    f"SELECT SUM(k) FROM (SELECT SUM(a) AS k FROM s {W}) [ROWS 10]": "a window over an aggregate's output",
    f"SELECT x.a FROM (SELECT a, COUNT(*) FROM s {W} GROUP BY a) AS x {W}": "a window over an aggregate's output",
    f"SELECT x.a FROM (SELECT a FROM s {W}) AS x [ROWS 10]": "a window needs a stream",
    f"SELECT x.a FROM (SELECT a FROM s {W} WHERE NOT EXISTS (SELECT * FROM u)) AS x {W}": "a window needs a stream",
    f"SELECT WSTREAM RESTORE(a)[ROWS 10] FROM s {W}": "WSTREAM cannot RESTORE",
    f"SELECT DSTREAM RESTORE(a) FROM s {W}": "DSTREAM does not RESTORE",
    f"SELECT ISTREAM RESTORE(a) FROM s {W}": "ISTREAM RESTORE needs windows with SLIDE",
    f"SELECT WSTREAM(a) FROM s {W}": "WSTREAM needs an output window",
    f"SELECT WSTREAM(a)[NOW] FROM s {W}": "WSTREAM needs an output window",
    f"SELECT WSTREAM(a)[RANGE 1 MINUTE SLIDE 1 SECOND] FROM s {W}": "an output window is plain",
    f"SELECT ISTREAM(a)[ROWS 10] FROM s {W}": "only WSTREAM takes an output window, not ISTREAM",
    f"SELECT a, WSTREAM(b)[ROWS 10] FROM s {W}": "WSTREAM takes the whole select list",
    f"SELECT a FROM s {W} WHERE EXISTS (SELECT ISTREAM(*) FROM u {W})": "ISTREAM makes a stream of it",
    "SELECT name FROM s [ROWS 5], n WHERE s.a = n.x": "a join with table n above a ROWS window",
    "SELECT name FROM s [ROWS 5], t WHERE s.a = t.x": "a join with table t above a ROWS window",
    f"SELECT name FROM s [ROWS 5], u {W}, n WHERE s.a = u.a AND u.a = n.x": "a join with table n above a ROWS window",
    "SELECT a FROM s [ROWS 5] WHERE EXISTS (SELECT * FROM n WHERE n.x = s.a)": "EXISTS over table n above a ROWS",
    "SELECT n.name FROM (SELECT a, COUNT(*) AS k FROM s GROUP BY a) x, n WHERE x.a = n.x": (
        "a join with table n above an aggregate"
    ),
    f"SELECT n.name FROM (SELECT a FROM s {W} EXCEPT SELECT a FROM u {W}) x, n WHERE x.a = n.x": (
        "a join with table n above a negation"
    ),
    f"SELECT t1.name FROM s {W}, t AS t1, t AS t2 WHERE s.a = t1.x AND s.b = t2.x": (
        "a join with table t above the retroactive table t"
    ),
    "SELECT name FROM s [ROWS 5 INTERNAL], n WHERE s.a = n.x": "a join with table n above a ROWS window",
    f"SELECT COUNT(*) FROM s {IN}, t WHERE s.a = t.x": "an aggregate over INTERNAL windows, and over table t",
    f"SELECT WSTREAM(COUNT(*))[ROWS 2] FROM s {W}, t WHERE s.a = t.x": "an aggregate over WSTREAM, which takes",
    f"SELECT s.a FROM s {IN}, u {IN}, t WHERE s.a = u.a AND s.b = t.x": "a join over INTERNAL windows, and over",
    "SELECT x FROM t [NOW]": "t is a table: its rows have no time for a window to slide over",
    "SELECT name FROM n": "n is NON RETROACTIVE: it only answers for rows that arrive on a stream",
    "SELECT t.name FROM t, n WHERE t.x = n.x": "n is NON RETROACTIVE",
    "SELECT s.a FROM s [RANGE 9 SECONDS SLIDE 1 SECOND], u [RANGE 9 SECONDS SLIDE 3 SECONDS]": "all SLIDEs must be",
    "CREATE QUERY q AS SELECT a FROM q": "query q reads itself",
    "CREATE QUERY p AS SELECT a FROM q; CREATE QUERY q AS SELECT a FROM p": "query p reads itself",
}


@pytest.mark.parametrize("text", MEANINGLESS)
def test_it_is_refused(text: str) -> None:
    with pytest.raises(MeaninglessError) as caught:
        query(text)
    assert MEANINGLESS[text] in caught.value.cause
    assert caught.value.place is not None


MEANINGFUL = [
    "SELECT name FROM s [ROWS 5], fixed WHERE s.a = fixed.x",
    "SELECT fixed.name FROM (SELECT a, COUNT(*) AS k FROM s GROUP BY a) x, fixed WHERE x.a = fixed.x",
    f"SELECT one.name FROM s {W}, fixed AS one, fixed AS two WHERE s.a = one.x AND s.b = two.x",
    f"SELECT a, COUNT(*) FROM s {IN} GROUP BY a",
    f"SELECT x.a FROM (SELECT ISTREAM(DISTINCT a) FROM s {W}) AS x [ROWS 10]",
    f"SELECT x.a FROM (SELECT a FROM s {IN}) AS x [ROWS 10]",
    f"SELECT SUM(k) FROM (SELECT SUM(a) AS k FROM s {IN}) [ROWS 10]",
    "SELECT x.a FROM (SELECT a FROM s) AS x [ROWS 10]",
    "SELECT RSTREAM RESTORE(a) FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS]",
    "SELECT ISTREAM RESTORE(s.a) FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS], u [RANGE 2 MINUTES SLIDE 10 SECONDS]",
    f"SELECT n1.name FROM s {W}, n AS n1, n AS n2 WHERE s.a = n1.x AND s.b = n2.x",
    f"SELECT t.name FROM s {W}, t, n WHERE s.a = t.x AND s.b = n.x",
    "SELECT a FROM s [ROWS 5] WHERE EXISTS (SELECT * FROM t WHERE t.x = s.a)",
    "SELECT a FROM s WHERE EXISTS (SELECT RSTREAM(*) FROM u WHERE u.a = s.a)",
    "SELECT s.a FROM s [RANGE 1 MINUTE SLIDE 1 SECOND], u [ROWS 5] WHERE s.a = u.a",
    "SELECT x FROM t",
]


@pytest.mark.parametrize("text", MEANINGFUL)
def test_it_is_accepted(text: str) -> None:
    query(text)
