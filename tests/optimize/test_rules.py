"""The optimizer's rules one by one: plans before and after."""

from __future__ import annotations

from textwrap import dedent

import pytest
from tests.plan.outline import outline, query

from headgate.optimize.optimize import ALTERNATIVES, RULES, alternatives
from headgate.optimize.rules.drop_contradictions import drop_contradictions
from headgate.optimize.rules.drop_covered import drop_covered
from headgate.optimize.rules.drop_distinct import drop_distinct
from headgate.optimize.rules.group_by_time_span import group_by_time_span
from headgate.optimize.rules.move_negation import move_negation
from headgate.optimize.rules.prune_columns import prune_columns
from headgate.optimize.rules.push_distinct import push_distinct
from headgate.optimize.rules.push_filters import push_filters
from headgate.optimize.rules.reduce_by_table import reduce_by_table
from headgate.optimize.rules.remember_values import remember_values


def same(actual: str, expected: str) -> None:
    assert actual.splitlines() == dedent(expected).strip("\n").splitlines()


PUSHED = {
    "below a time window": (
        "SELECT a FROM s [RANGE 1 MINUTE] WHERE a > 1",
        """
        project s.a as a
          [RANGE 1 MINUTE]
            filter s.a > 1
              stream s
        """,
    ),
    "below a window with a slide": (
        "SELECT a FROM s [RANGE 1 MINUTE SLIDE 7 SECONDS] WHERE a > 1",
        """
        project s.a as a
          [RANGE 1 MINUTE SLIDE 7 SECONDS]
            filter s.a > 1
              stream s
        """,
    ),
    "below NOW and UNBOUNDED": (
        "SELECT s.a FROM s [NOW], u [UNBOUNDED] WHERE s.a > 1 AND u.b = 2",
        """
        project s.a as a
          join everything
            [NOW]
              filter s.a > 1
                stream s
            [UNBOUNDED]
              filter u.b = 2
                stream u
        """,
    ),
    "not below a row window": (
        "SELECT a FROM s [ROWS 5] WHERE a > 1",
        """
        project s.a as a
          filter s.a > 1
            [ROWS 5]
              stream s
        """,
    ),
    "below a partitioned row window, on the partition alone": (
        "SELECT a FROM s [PARTITION BY a ROWS 5] WHERE a > 1 AND b > 2 AND a + b > 3",
        """
        project s.a as a
          filter s.b > 2 AND s.a + s.b > 3
            [PARTITION BY a ROWS 5]
              filter s.a > 1
                stream s
        """,
    ),
    "below DISTINCT and through its expressions": (
        "SELECT k FROM (SELECT DISTINCT a + b AS k FROM s [NOW]) x WHERE k > 1",
        """
        project k
          distinct
            project s.a + s.b as k
              [NOW]
                filter s.a + s.b > 1
                  stream s
        """,
    ),
    "below a group by its keys only": (
        "SELECT a, COUNT(*) FROM s [NOW] GROUP BY a HAVING a > 1 AND COUNT(*) > 2",
        """
        project s.a as a, COUNT(*) as count(*)
          filter COUNT(*) > 2
            aggregate COUNT(*) by s.a
              project s.a
                [NOW]
                  filter s.a > 1
                    stream s
        """,
    ),
    "not below an aggregate without groups": (
        "SELECT COUNT(*) FROM s [NOW] HAVING 1 > 2",
        """
        project COUNT(*) as count(*)
          filter 1 > 2
            aggregate COUNT(*)
              [NOW]
                stream s
        """,
    ),
    "into every member of a union": (
        "SELECT x.a FROM (SELECT a FROM s [NOW] UNION ALL SELECT b FROM u [ROWS 5]) x WHERE x.a > 1",
        """
        project union.a as a
          union
            project s.a as union.a
              [NOW]
                filter s.a > 1
                  stream s
            project u.b as union_2.a
              filter u.b > 1
                [ROWS 5]
                  stream u
        """,
    ),
    "into both sides of a difference": (
        "SELECT x.a FROM (SELECT a FROM s [NOW] EXCEPT ALL SELECT b FROM u [NOW]) x WHERE x.a > 1",
        """
        project except.a as a
          difference
            project s.a as except.a
              [NOW]
                filter s.a > 1
                  stream s
            project u.b as except_2.a
              [NOW]
                filter u.b > 1
                  stream u
        """,
    ),
    "to the left of a semi join and of a negation": (
        "SELECT x.a FROM (SELECT a FROM s [NOW] WHERE EXISTS (SELECT * FROM u [NOW] WHERE u.a = s.a)) x"
        " WHERE x.a > 1",
        """
        project s.a as a
          semi join s.a = u.a
            [NOW]
              filter s.a > 1
                stream s
            [NOW]
              stream u
        """,
    ),
    "not through a stream of a query": (
        "SELECT x.a FROM (SELECT ISTREAM(a) FROM s [NOW]) AS x [NOW] WHERE x.a > 1",
        """
        project x.a as a
          [NOW]
            project a as x.a
              filter a > 1
                istream
                  project s.a as a
                    [NOW]
                      stream s
        """,
    ),
}


@pytest.mark.parametrize("name", PUSHED)
def test_filters_are_pushed(name: str) -> None:
    text, after = PUSHED[name]
    same(outline(push_filters(query(text).plan.input)), after)


UNREAD = {
    "SELECT a FROM s WHERE a > 5 AND a < 3": """
        filter FALSE
          project s.a as a
            filter s.a > 5 AND s.a < 3
              filter FALSE
                stream s
        """,
    "SELECT COUNT(*) FROM s, u WHERE s.a < u.a AND u.a < s.a": """
        project COUNT(*) as count(*)
          aggregate COUNT(*)
            filter FALSE
              join s.a < u.a & u.a < s.a
                filter FALSE
                  stream s
                filter FALSE
                  stream u
        """,
    "SELECT a FROM s [NOW] WHERE NOT EXISTS (SELECT * FROM u WHERE u.a = s.a AND u.b = 1 AND u.b = 2)": """
        project s.a as a
          negation s.a = u.a
            [NOW]
              stream s
            filter FALSE
              filter u.b = 1 AND u.b = 2
                filter FALSE
                  stream u
        """,
}


@pytest.mark.parametrize("text", UNREAD)
def test_streams_are_not_read_for_what_stays_empty(text: str) -> None:
    same(outline(drop_contradictions(push_filters(query(text).plan.input))), UNREAD[text])


DROPPED = {
    "SELECT DISTINCT x.a FROM (SELECT DISTINCT a FROM s [NOW]) x": 1,
    "SELECT DISTINCT a, COUNT(*) FROM s [NOW] GROUP BY a": 0,
    "SELECT DISTINCT COUNT(*) FROM s [NOW]": 0,
    "SELECT DISTINCT COUNT(*) FROM s [NOW] GROUP BY a": 1,
    "SELECT DISTINCT a + 1 AS k FROM (SELECT DISTINCT a FROM s [NOW]) x": 2,
    "SELECT DISTINCT x.a FROM (SELECT DISTINCT a, b FROM s [NOW]) x": 2,
    "SELECT DISTINCT x.a FROM (SELECT DISTINCT a FROM s [NOW] EXCEPT SELECT a FROM u [NOW]) x": 1,
    "SELECT DISTINCT s.a FROM s [NOW], u [NOW] WHERE s.a = u.a": 1,
    "SELECT DISTINCT a FROM s [NOW]": 1,
}


@pytest.mark.parametrize("text", DROPPED)
def test_distinct_is_dropped_where_rows_differ_already(text: str) -> None:
    plan = drop_distinct(query(text).plan.input)
    assert outline(plan).count("distinct") == DROPPED[text]


MONTH = "date_format(ts, 'yyyy-MM')"
SPANS = {
    "of an aggregate": (
        f"SELECT {MONTH} AS d, a, COUNT(*) AS n FROM s GROUP BY {MONTH}, a",
        """
        project DATE_FORMAT(s.ts, 'yyyy-MM') as d, s.a as a, COUNT(*) as n
          project DATE_FORMAT(DATE_TRUNC('MONTH', s.ts), 'yyyy-MM') as DATE_FORMAT(s.ts, 'yyyy-MM'), s.a, COUNT(*)
            aggregate COUNT(*) by DATE_TRUNC('MONTH', s.ts), s.a
              project s.a, DATE_TRUNC('MONTH', s.ts)
                stream s
        """,
    ),
    "of DISTINCT, through a sub-query": (
        f"SELECT DISTINCT d FROM (SELECT a, {MONTH} AS d FROM s) x",
        """
        project DATE_FORMAT(DATE_TRUNC('MONTH', s.ts), 'yyyy-MM') as d
          distinct
            project DATE_TRUNC('MONTH', s.ts)
              stream s
        """,
    ),
    "beside an aggregate of the text": (
        f"SELECT MAX({MONTH}) AS m FROM s GROUP BY {MONTH}",
        """
        project MAX(DATE_FORMAT(s.ts, 'yyyy-MM')) as m
          project DATE_FORMAT(DATE_TRUNC('MONTH', s.ts), 'yyyy-MM') as DATE_FORMAT(s.ts, 'yyyy-MM'), """
        """MAX(DATE_FORMAT(s.ts, 'yyyy-MM'))
            aggregate MAX(DATE_FORMAT(s.ts, 'yyyy-MM')) by DATE_TRUNC('MONTH', s.ts)
              project DATE_FORMAT(s.ts, 'yyyy-MM'), DATE_TRUNC('MONTH', s.ts)
                stream s
        """,
    ),
    "once for two texts and the span itself": (
        f"SELECT COUNT(*) AS n FROM s GROUP BY {MONTH}, date_trunc('MONTH', ts), date_format(ts, 'MM/yyyy')",
        """
        project COUNT(*) as n
          project DATE_FORMAT(DATE_TRUNC('MONTH', s.ts), 'yyyy-MM') as DATE_FORMAT(s.ts, 'yyyy-MM'), """
        """DATE_TRUNC('MONTH', s.ts), """
        """DATE_FORMAT(DATE_TRUNC('MONTH', s.ts), 'MM/yyyy') as DATE_FORMAT(s.ts, 'MM/yyyy'), COUNT(*)
            aggregate COUNT(*) by DATE_TRUNC('MONTH', s.ts)
              project DATE_TRUNC('MONTH', s.ts)
                stream s
        """,
    ),
}


@pytest.mark.parametrize("name", SPANS)
def test_groups_are_by_a_span_instead_of_its_text(name: str) -> None:
    text, expected = SPANS[name]
    same(outline(group_by_time_span(push_filters(query(text).plan.input))), expected)


UNITS = {
    "yyyy": "YEAR",
    "MM.yyyy": "MONTH",
    "yyyyMMdd": "DAY",
    "HH dd/MM/yyyy": "HOUR",
    "yyyy-MM-dd HH:mm": "MINUTE",
    "yyyyMMddHHmmss": "SECOND",
    "HH": None,
    "yyyy-dd": None,
    "MM-dd": None,
    "yy-MM": None,
    "yyyy-M-d": None,
    "yyyy-MM-dd hh": None,
    "yyyy-MM-dd E": None,
    "yyyy-MM-dd HH:mm:ss.SSS": None,
    "yyyy-MM-ddTHH": None,
    "": None,
}


@pytest.mark.parametrize("pattern", UNITS)
def test_a_pattern_names_spans_if_it_leaves_out_no_field(pattern: str) -> None:
    plan = outline(
        group_by_time_span(query(f"SELECT DISTINCT date_format(ts, '{pattern}') AS d FROM s").plan.input)
    )
    unit = UNITS[pattern]
    assert plan.count("DATE_TRUNC") == (0 if unit is None else 2)
    assert unit is None or f"DATE_TRUNC('{unit}', s.ts)" in plan


@pytest.mark.parametrize("value", ["day", "ntz", "CAST(ts AS DATE)", "TIMESTAMP '2020-01-01 00:00:00'"])
def test_what_is_no_timestamp_keeps_its_text(value: str) -> None:
    plan = query(f"SELECT DISTINCT date_format({value}, 'yyyy') AS d FROM s").plan.input
    assert outline(group_by_time_span(plan)) == outline(plan)


PRUNED = {
    "below windows": (
        "SELECT a FROM s [RANGE 1 MINUTE]",
        """
        project s.a as a
          [RANGE 1 MINUTE]
            project s.a
              stream s
        """,
    ),
    "but not what a window is partitioned by": (
        "SELECT a FROM s [PARTITION BY b ROWS 2]",
        """
        project s.a as a
          [PARTITION BY b ROWS 2]
            project s.a, s.b
              stream s
        """,
    ),
    "keys and conditions of a join until it has used them": (
        "SELECT s.c FROM s [NOW], u [NOW] WHERE s.a = u.a AND s.b < u.b",
        """
        project s.c as c
          join s.a = u.a & s.b < u.b
            [NOW]
              project s.a, s.b, s.c
                stream s
            [NOW]
              project u.a, u.b
                stream u
        """,
    ),
    "all that EXCEPT compares": (
        "SELECT x.a FROM (SELECT a, b FROM s [NOW] EXCEPT SELECT a, b FROM u [NOW]) x",
        """
        project except.a as a
          negation except.a = except_2.a & except.b = except_2.b
            distinct
              project s.a as except.a, s.b as except.b
                [NOW]
                  project s.a, s.b
                    stream s
            project u.a as except_2.a, u.b as except_2.b
              [NOW]
                project u.a, u.b
                  stream u
        """,
    ),
    "one column stays to carry the rows": (
        "SELECT COUNT(*) FROM s [NOW]",
        """
        project COUNT(*) as count(*)
          aggregate COUNT(*)
            [NOW]
              project s.ts
                stream s
        """,
    ),
    "aggregates that nobody reads": (
        "SELECT x.a FROM (SELECT a, SUM(b) AS k, MAX(i) AS m FROM s [NOW] GROUP BY a) x WHERE x.k > 1",
        """
        project s.a as a
          filter SUM(s.b) > 1
            aggregate SUM(s.b) by s.a
              project s.a, s.b
                [NOW]
                  project s.a, s.b
                    stream s
        """,
    ),
}


@pytest.mark.parametrize("name", PRUNED)
def test_columns_are_pruned(name: str) -> None:
    text, after = PRUNED[name]
    plan = query(text).plan.input
    pruned = prune_columns(plan)
    same("\n".join(_without_top_columns(outline(pruned))), after)
    assert [column.name for column in pruned.schema] == [column.name for column in plan.schema]


def _without_top_columns(text: str) -> list[str]:
    """The outline without projections that only drop columns above a join or a negation."""
    lines = text.splitlines()
    kept: list[str] = []
    dropped = 0
    for index, line in enumerate(lines):
        below = lines[index + 1].strip() if index + 1 < len(lines) else ""
        narrows = (
            line.strip().startswith("project")
            and " as " not in line
            and below.startswith(("join", "negation"))
        )
        if narrows:
            dropped += 1
            continue
        kept.append(line[2 * dropped :])
    return kept


def test_negations_cross_joins_in_both_directions() -> None:
    text = """
        SELECT s.c FROM s [NOW], u [NOW] WHERE s.a = u.b
        AND NOT EXISTS (SELECT * FROM v [NOW] WHERE v.a = s.a AND v.c < s.c)"""
    plan = query(text).plan.input
    (down,) = move_negation(plan)
    same(
        outline(down),
        """
        project s.c as c
          join s.a = u.b
            negation s.a = v.a & v.c < s.c
              [NOW]
                stream s
              [NOW]
                stream v
            [NOW]
              stream u
        """,
    )
    (up,) = move_negation(down)
    assert outline(up) == outline(plan)


def test_a_negation_may_go_to_every_input_that_has_an_equal_column() -> None:
    text = "SELECT s.c FROM s [NOW], u [NOW] WHERE s.a = u.b AND NOT EXISTS (SELECT * FROM v [NOW] WHERE v.a = s.a)"
    first, second = (outline(plan) for plan in move_negation(query(text).plan.input))
    assert "negation s.a = v.a" in first
    assert "negation u.b = v.a" in second


def test_a_negation_is_pulled_out_of_a_sub_query() -> None:
    text = """
        SELECT x.k FROM u [NOW],
          (SELECT a AS k FROM s [NOW] WHERE NOT EXISTS (SELECT * FROM v [NOW] WHERE v.a = s.a)) x
        WHERE x.k = u.a"""
    (up,) = move_negation(query(text).plan.input)
    same(
        outline(up),
        """
        project x.k as k
          negation x.k = v.a
            join u.a = x.k
              [NOW]
                stream u
              project s.a as x.k
                [NOW]
                  stream s
            [NOW]
              stream v
        """,
    )


def test_a_negation_that_asks_about_two_inputs_stays() -> None:
    text = """
        SELECT s.c FROM s [NOW], u [NOW] WHERE s.a = u.a
        AND NOT EXISTS (SELECT * FROM v [NOW] WHERE v.b = s.b AND v.c = u.c)"""
    assert list(move_negation(query(text).plan.input)) == []


def test_distinct_is_pushed_below_a_join() -> None:
    text = "SELECT DISTINCT s.a FROM s [NOW], u [ROWS 5], v WHERE s.a = u.a AND u.a = v.a"
    (pushed,) = push_distinct(query(text).plan.input)
    same(
        outline(pushed),
        """
        distinct
          project s.a as a
            join s.a = u.a = v.a
              distinct
                [NOW]
                  stream s
              [ROWS 5]
                stream u
              stream v
        """,
    )
    assert list(push_distinct(pushed)) == []


def test_the_rules_have_one_visible_order() -> None:
    first = (drop_covered, push_filters, drop_contradictions, drop_distinct)
    assert (*first, group_by_time_span, prune_columns) == RULES
    assert (move_negation, push_distinct, remember_values, reduce_by_table) == ALTERNATIVES


def test_alternatives_are_different_and_few() -> None:
    streams = ", ".join(f"s [NOW] AS s{i}" for i in range(6))
    equal = " AND ".join(f"s0.a = s{i}.a" for i in range(1, 6))
    negated = " AND ".join(f"NOT EXISTS (SELECT * FROM u [NOW] WHERE u.b = s{i}.b)" for i in range(6))
    found = alternatives(query(f"SELECT DISTINCT s0.c FROM {streams} WHERE {equal} AND {negated}").plan)
    shapes = [outline(plan) for plan in found]
    assert len(set(shapes)) == len(shapes) == 32
