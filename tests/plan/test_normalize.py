"""Every select-project-join block gets one shape: pairs of query and normal form."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.plan.outline import normalized, outline, query

from headgate.plan.normalize import normalize

PAIRS = {
    "a predicate on one input stands on that input": (
        "SELECT s.a FROM s [NOW], u [NOW] WHERE s.a = u.a AND s.b > 5 AND u.c = 'x'",
        """
        project s.a as a
          join s.a = u.a
            filter s.b > 5
              [NOW]
                stream s
            filter u.c = 'x'
              [NOW]
                stream u
        """,
    ),
    "JOIN ON and JOIN USING are the same as commas": (
        "SELECT s.a FROM s [NOW] JOIN v [NOW] USING (c) JOIN u [NOW] ON s.a = u.a AND u.b > 1",
        """
        project s.a as a
          join s.a = u.a & s.c = v.c
            [NOW]
              stream s
            [NOW]
              stream v
            filter u.b > 1
              [NOW]
                stream u
        """,
    ),
    "equalities are transitive": (
        "SELECT s.a FROM s [NOW], u [NOW], v [NOW] WHERE s.a = u.a AND u.a = v.b",
        """
        project s.a as a
          join s.a = u.a = v.b
            [NOW]
              stream s
            [NOW]
              stream u
            [NOW]
              stream v
        """,
    ),
    "a constant reaches every equal column": (
        "SELECT s.a FROM s [NOW], u [NOW] WHERE s.a = u.a AND s.a = 7",
        """
        project s.a as a
          join s.a = u.a
            filter s.a = 7
              [NOW]
                stream s
            filter u.a = 7
              [NOW]
                stream u
        """,
    ),
    "so does any predicate on one column": (
        "SELECT s.a FROM s [NOW], u [NOW], v [NOW] WHERE s.a = u.a AND u.a = v.a AND v.a BETWEEN 1 AND 9",
        """
        project s.a as a
          join s.a = u.a = v.a
            filter s.a >= 1 AND s.a <= 9
              [NOW]
                stream s
            filter u.a >= 1 AND u.a <= 9
              [NOW]
                stream u
            filter v.a >= 1 AND v.a <= 9
              [NOW]
                stream v
        """,
    ),
    "equal columns of one input, by way of another": (
        "SELECT s.a FROM s [NOW], u [NOW] WHERE s.a = u.a AND s.b = u.a",
        """
        project s.a as a
          join s.a = s.b = u.a
            filter s.a = s.b
              [NOW]
                stream s
            [NOW]
              stream u
        """,
    ),
    "what is neither local nor an equality stays as a residual": (
        "SELECT s.a FROM s [NOW], u [NOW] WHERE s.a < u.a AND (s.b = 1 OR u.b = 2)",
        """
        project s.a as a
          join s.a < u.a & s.b = 1 OR u.b = 2
            [NOW]
              stream s
            [NOW]
              stream u
        """,
    ),
    "a self join": (
        "SELECT x.a FROM s [RANGE 1 MINUTE] AS x, s [ROWS 5] AS y WHERE x.a = y.b",
        """
        project x.a as a
          join x.a = y.b
            [RANGE 1 MINUTE]
              stream s as x
            [ROWS 5]
              stream s as y
        """,
    ),
    "a computed key is a column": (
        "SELECT v.b FROM v [NOW], u [NOW] WHERE v.a + 1 = u.a * 2",
        """
        project v.b as b
          join v.a + 1 = u.a * 2
            project v.ts, v.a, v.b, v.c, v.a + 1
              [NOW]
                stream v
            project u.ts, u.a, u.b, u.c, u.a * 2
              [NOW]
                stream u
        """,
    ),
    "a key of another type is converted": (
        "SELECT x.b FROM (SELECT i, b FROM s [NOW] WHERE i = 3 GROUP BY i, b) x, u [NOW] WHERE x.i = u.a",
        """
        project x.b as b
          join CAST(x.i AS BIGINT) = u.a
            project x.i, x.b, CAST(x.i AS BIGINT)
              project s.i as x.i, s.b as x.b
                aggregate  by s.i, s.b
                  project s.i, s.b
                    filter s.i = 3
                      [NOW]
                        stream s
            [NOW]
              stream u
        """,
    ),
    "nested blocks are one join": (
        "SELECT x.a FROM (SELECT s.a, s.b AS k FROM s [NOW], u [NOW] WHERE s.a = u.a AND s.i > 1) x, v [NOW]"
        " WHERE x.k = v.b AND x.a > 2",
        """
        project s.a as a
          join s.a = u.a & s.b = v.b
            filter s.i > 1 AND s.a > 2
              [NOW]
                stream s
            filter u.a > 2
              [NOW]
                stream u
            [NOW]
              stream v
        """,
    ),
    "a sub-query's expression is put in where it is used": (
        "SELECT x.k FROM (SELECT a + b AS k FROM s [NOW]) x WHERE x.k > 3",
        """
        project s.a + s.b as k
          filter s.a + s.b > 3
            [NOW]
              stream s
        """,
    ),
    "EXISTS is a semi join, its own condition on the right, the outer one on the left": (
        "SELECT s.a FROM s [NOW] WHERE s.b > 1 AND EXISTS"
        " (SELECT * FROM u [NOW] WHERE u.a = s.a AND u.b = 2 AND s.i = 3 AND u.c < s.c)",
        """
        project s.a as a
          semi join s.a = u.a & u.c < s.c
            filter s.b > 1 AND s.i = 3
              [NOW]
                stream s
            filter u.b = 2
              [NOW]
                stream u
        """,
    ),
    "EXISTS over a join keeps the join's condition": (
        "SELECT s.a FROM s [NOW], u [NOW]"
        " WHERE s.a = u.a AND EXISTS (SELECT * FROM v [NOW] WHERE v.a = s.a AND s.b > 5)",
        """
        project s.a as a
          semi join s.a = v.a
            join s.a = u.a
              filter s.b > 5
                [NOW]
                  stream s
              [NOW]
                stream u
            [NOW]
              stream v
        """,
    ),
    "NOT EXISTS is a negation; a condition on the left alone is part of it": (
        "SELECT s.a FROM s [NOW] WHERE NOT EXISTS (SELECT * FROM u [NOW] WHERE u.a = s.a AND s.b > 5)",
        """
        project s.a as a
          negation s.a = u.a & s.b > 5
            [NOW]
              stream s
            [NOW]
              stream u
        """,
    ),
    "EXISTS in EXISTS": (
        "SELECT s.a FROM s [NOW] WHERE EXISTS"
        " (SELECT * FROM u [NOW] WHERE u.a = s.a AND NOT EXISTS (SELECT * FROM v [NOW] WHERE v.b = u.b))",
        """
        project s.a as a
          semi join s.a = u.a
            [NOW]
              stream s
            negation u.b = v.b
              [NOW]
                stream u
              [NOW]
                stream v
        """,
    ),
    "IN is a semi join on the value": (
        "SELECT s.a FROM s [NOW] WHERE s.a IN (SELECT b + 1 FROM u [NOW] WHERE c = 'x')",
        """
        project s.a as a
          semi join s.a = u.b + 1
            [NOW]
              stream s
            project u.ts, u.a, u.b, u.c, u.b + 1
              filter u.c = 'x'
                [NOW]
                  stream u
        """,
    ),
    "IN over an aggregate": (
        "SELECT s.a FROM s [NOW] WHERE s.a IN (SELECT MAX(a) FROM u [NOW])",
        """
        project s.a as a
          semi join s.a = sub.max(a)
            [NOW]
              stream s
            project MAX(u.a) as sub.max(a)
              aggregate MAX(u.a)
                project u.a
                  [NOW]
                    stream u
        """,
    ),
    "EXISTS over an aggregate asks about its one row": (
        "SELECT s.a FROM s [NOW] WHERE EXISTS (SELECT COUNT(*) FROM u [NOW])",
        """
        project s.a as a
          semi join everything
            [NOW]
              stream s
            project COUNT(*) as sub.count(*)
              aggregate COUNT(*)
                [NOW]
                  stream u
        """,
    ),
    "EXCEPT is a negation over different values": (
        "SELECT a FROM s [NOW] EXCEPT SELECT b FROM u [NOW]",
        """
        project except.a as a
          negation except.a = except_2.a
            distinct
              project s.a as except.a
                [NOW]
                  stream s
            project u.b as except_2.a
              [NOW]
                stream u
        """,
    ),
    "EXCEPT ALL counts copies": (
        "SELECT a FROM s [NOW] EXCEPT ALL SELECT b FROM u [NOW]",
        """
        project except.a as a
          difference
            project s.a as except.a
              [NOW]
                stream s
            project u.b as except_2.a
              [NOW]
                stream u
        """,
    ),
    "INTERSECT is a semi join over different values": (
        "SELECT a FROM s [NOW] INTERSECT SELECT b FROM u [NOW]",
        """
        project intersect.a as a
          semi join intersect.a = intersect_2.a
            distinct
              project s.a as intersect.a
                [NOW]
                  stream s
            project u.b as intersect_2.a
              [NOW]
                stream u
        """,
    ),
    "a chain of unions is one, in a common type": (
        "SELECT i FROM s [NOW] UNION ALL SELECT b FROM u [NOW] UNION ALL SELECT a FROM v [NOW]",
        """
        project union.i as i
          union
            project CAST(s.i AS BIGINT) as union.i
              [NOW]
                stream s
            project u.b as union_2.i
              [NOW]
                stream u
            project v.a as union_3.i
              [NOW]
                stream v
        """,
    ),
    "UNION removes duplicates once": (
        "SELECT a FROM s [NOW] UNION ALL SELECT b FROM u [NOW] UNION SELECT a FROM v [NOW]",
        """
        project union.a as a
          distinct
            union
              project s.a as union.a
                [NOW]
                  stream s
              project u.b as union_2.a
                [NOW]
                  stream u
              project v.a as union_3.a
                [NOW]
                  stream v
        """,
    ),
    "but keeps the duplicates that a later UNION ALL adds": (
        "SELECT a FROM s [NOW] UNION SELECT b FROM u [NOW] UNION ALL SELECT a FROM v [NOW]",
        """
        project union_3.a as a
          union
            project union.a as union_3.a
              distinct
                union
                  project s.a as union.a
                    [NOW]
                      stream s
                  project u.b as union_2.a
                    [NOW]
                      stream u
            project v.a as union_4.a
              [NOW]
                stream v
        """,
    ),
    "INTERSECT binds before UNION": (
        "SELECT a FROM s [NOW] UNION ALL SELECT a FROM u [NOW] INTERSECT SELECT a FROM v [NOW]",
        """
        project union.a as a
          union
            project s.a as union.a
              [NOW]
                stream s
            project intersect.a as union_2.a
              semi join intersect.a = intersect_2.a
                distinct
                  project u.a as intersect.a
                    [NOW]
                      stream u
                project v.a as intersect_2.a
                  [NOW]
                    stream v
        """,
    ),
    "a table hangs on the input that it is joined with": (
        "SELECT t.name FROM s [NOW], u [NOW], t WHERE s.a = u.a AND u.b = t.x AND t.y > 3",
        """
        project t.name as name
          join s.a = u.a
            [NOW]
              stream s
            table join u.b = t.x
              [NOW]
                stream u
              filter t.y > 3
                table t
        """,
    ),
    "a table joined with two inputs hangs on one, the join does the rest": (
        "SELECT t.name FROM s [NOW], u [NOW], t WHERE s.a = t.x AND u.b = t.y",
        """
        project t.name as name
          join t.y = u.b
            table join s.a = t.x
              [NOW]
                stream s
              table t
            [NOW]
              stream u
        """,
    ),
    "a table avoids inputs with endings": (
        "SELECT t.name FROM s [ROWS 5], u [NOW], t WHERE s.a = u.a AND u.a = t.x",
        """
        project t.name as name
          join s.a = u.a = t.x
            [ROWS 5]
              stream s
            table join u.a = t.x
              [NOW]
                stream u
              table t
        """,
    ),
    "a non-retroactive table that changes answers for what the streams have become together": (
        "SELECT n.name FROM s [NOW], u [NOW], n WHERE s.a = n.x AND u.b = n.x AND s.b < u.a AND n.y > s.b",
        """
        project n.name as name
          table join s.a = n.x & n.y > s.b
            join s.a = u.b & s.b < u.a
              [NOW]
                stream s
              [NOW]
                stream u
            table n
        """,
    ),
    "a sub-query with a non-retroactive table that changes stays one": (
        "SELECT x.name FROM (SELECT s.a, n.name FROM s [NOW], n WHERE s.a = n.x) x, u [NOW] WHERE x.a = u.a",
        """
        project x.name as name
          join x.a = u.a
            project s.a as x.a, n.name as x.name
              table join s.a = n.x
                [NOW]
                  stream s
                table n
            [NOW]
              stream u
        """,
    ),
    "tables hang in an order that gives each its key, the retroactive one last": (
        "SELECT t.name FROM s [NOW], t, n AS n1, n AS n2 WHERE s.a = n2.x AND n2.y = n1.x AND n1.y = t.x",
        """
        project t.name as name
          table join n1.y = t.x
            table join n2.y = n1.x
              table join s.a = n2.x
                [NOW]
                  stream s
                table n as n2
              table n as n1
            table t
        """,
    ),
    "a table with two keys in one class": (
        "SELECT n.name FROM s [NOW], n WHERE s.a = n.x AND s.b = n.x AND s.a = n.y",
        """
        project n.name as name
          table join s.a = n.x
            filter s.a = s.b
              [NOW]
                stream s
            filter n.x = n.y
              table n
        """,
    ),
    "a table with a condition that is no equality": (
        "SELECT n.name FROM s [NOW], n WHERE s.a > n.x",
        """
        project n.name as name
          table join s.a > n.x
            [NOW]
              stream s
            table n
        """,
    ),
    "EXISTS over a table": (
        "SELECT a FROM s [NOW] WHERE NOT EXISTS (SELECT * FROM t WHERE t.x = s.a)",
        """
        project s.a as a
          negation s.a = t.x
            [NOW]
              stream s
            table t
        """,
    ),
    "grouping by a column, an alias, a number and an expression": (
        "SELECT a, a + b AS k, i % 2, COUNT(*) FROM s [NOW] GROUP BY a, k, 3, c",
        """
        project s.a as a, s.a + s.b as k, s.i % 2 as i % 2, COUNT(*) as count(*)
          aggregate COUNT(*) by s.a, s.a + s.b, s.i % 2, s.c
            project s.a, s.a + s.b, s.i % 2, s.c
              [NOW]
                stream s
        """,
    ),
    "HAVING over an alias, a key and an aggregate of its own": (
        "SELECT a, SUM(b) AS total FROM s [NOW] GROUP BY a HAVING total > 5 AND a < 3 AND MAX(i) = 1",
        """
        project s.a as a, SUM(s.b) as total
          filter SUM(s.b) > 5 AND s.a < 3 AND MAX(s.i) = 1
            aggregate SUM(s.b), MAX(s.i) by s.a
              project s.a, s.b, s.i
                [NOW]
                  stream s
        """,
    ),
    "one aggregate for many mentions": (
        "SELECT SUM(a) + SUM(a), SUM(a) * COUNT(*) FROM s [NOW] HAVING SUM(a) > 1",
        """
        project SUM(s.a) + SUM(s.a) as sum(a) + sum(a), SUM(s.a) * COUNT(*) as sum(a) * count(*)
          filter SUM(s.a) > 1
            aggregate SUM(s.a), COUNT(*)
              project s.a
                [NOW]
                  stream s
        """,
    ),
    "FILTER is a CASE inside the aggregate": (
        "SELECT COUNT(*) FILTER (WHERE f), SUM(a) FILTER (WHERE b > 1) FROM s [NOW]",
        """
        project COUNT(CASE WHEN s.f THEN 1 ELSE CAST(NULL AS INT) END) as count(*) FILTER(WHERE f), \
SUM(CASE WHEN s.b > 1 THEN s.a ELSE CAST(NULL AS BIGINT) END) as sum(a) FILTER(WHERE b > 1)
          aggregate COUNT(CASE WHEN s.f THEN 1 ELSE CAST(NULL AS INT) END), \
SUM(CASE WHEN s.b > 1 THEN s.a ELSE CAST(NULL AS BIGINT) END)
            project CASE WHEN s.f THEN 1 ELSE CAST(NULL AS INT) END, \
CASE WHEN s.b > 1 THEN s.a ELSE CAST(NULL AS BIGINT) END
              [NOW]
                stream s
        """,
    ),
    "a filter over groups stays above them here": (
        "SELECT x.a FROM (SELECT a, COUNT(*) AS k FROM s [NOW] GROUP BY a) x, u [NOW] WHERE x.a = u.a AND x.k > 1",
        """
        project x.a as a
          join x.a = u.a
            filter x.k > 1
              project s.a as x.a, COUNT(*) as x.k
                aggregate COUNT(*) by s.a
                  project s.a
                    [NOW]
                      stream s
            [NOW]
              stream u
        """,
    ),
    "WSTREAM inside an expression is a windowed sub-query": (
        "SELECT SUM(WSTREAM(SUM(a))[ROWS 10]) FROM s [RANGE 6 SECONDS SLIDE 6 SECONDS]",
        """
        project SUM(w.c1) as sum(c1)
          aggregate SUM(w.c1)
            project w.c1
              [ROWS 10]
                project SUM(s.a) as w.c1
                  aggregate SUM(s.a)
                    project s.a
                      [RANGE 6 SECONDS SLIDE 6 SECONDS INTERNAL]
                        stream s
        """,
    ),
    "the windows below a WSTREAM are internal, tables have none": (
        "SELECT WSTREAM(s.a)[ROWS 10] FROM s, u [RANGE 1 MINUTE], n WHERE s.a = u.a AND s.a = n.x",
        """
        project s.a as a
          table join s.a = n.x
            join s.a = u.a
              [UNBOUNDED INTERNAL]
                stream s
              [RANGE 1 MINUTE INTERNAL]
                stream u
            table n
        """,
    ),
    "RESTORE evaluates without ticks": (
        "SELECT ISTREAM RESTORE(a) FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS]",
        """
        project s.a as a
          [RANGE 1 MINUTE]
            stream s
        """,
    ),
    "a query that reads a query": (
        "CREATE QUERY q AS SELECT a, b FROM s [NOW] WHERE a > 1; SELECT x.a FROM q AS x, q AS y WHERE x.a = y.b",
        """
        project s.a as a
          join s.a = s_2.b
            filter s.a > 1
              [NOW]
                stream s
            filter s_2.a > 1 AND s_2.b > 1
              [NOW]
                stream s as s_2
        """,
    ),
    "a stream made of a query, with a window": (
        "CREATE QUERY q AS SELECT ISTREAM(a) FROM s [NOW]; SELECT a FROM q [RANGE 1 MINUTE] WHERE a > 1",
        """
        project q.a as a
          filter q.a > 1
            [RANGE 1 MINUTE]
              project a as q.a
                istream
                  project s.a as a
                    [NOW]
                      stream s
        """,
    ),
    "a union of streams is a stream": (
        "SELECT x.a FROM (SELECT ISTREAM(a) FROM s [NOW] UNION ALL SELECT ISTREAM(b) FROM u) AS x [ROWS 3]",
        """
        project x.a as a
          [ROWS 3]
            project a as x.a
              istream
                project union.a as a
                  union
                    project a as union.a
                      istream
                        project s.a as a
                          [NOW]
                            stream s
                    project b as union_2.a
                      istream
                        project u.b as b
                          stream u
        """,
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_normal_form(name: str) -> None:
    text, expected = PAIRS[name]
    assert normalized(text).splitlines() == dedent(expected).strip("\n").splitlines()


@pytest.mark.parametrize("name", PAIRS)
def test_a_normal_form_is_normal(name: str) -> None:
    plan = query(PAIRS[name][0]).plan.input
    again = normalize(plan)
    assert [column.name for column in again.schema] == [column.name for column in plan.schema]
    assert outline(normalize(again)) == outline(again)


def test_the_same_column_twice_is_not_lost() -> None:
    plan = query("SELECT a, a, b AS c, a + 1 FROM s [NOW]").plan
    assert [column.name for column in plan.schema] == ["a", "a_1", "c", "a + 1"]
