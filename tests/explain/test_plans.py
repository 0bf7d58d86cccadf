"""Normalization and rules: what becomes of a query before it runs."""

from __future__ import annotations

import pytest
from tests.explain.plans import ask, shape

from headgate.plan.nodes import Filter, Join, Negation, Node, Project, SemiJoin, StreamScan, TableJoin, Window

W = "[RANGE 1 MINUTE]"


def only(plan: Node, kind: type) -> Node:
    (found,) = [node for node in plan.walk() if isinstance(node, kind)]
    return found


def test_equalities_are_closed_under_transitivity() -> None:
    join = only(ask(f"SELECT * FROM S1 {W}, S2 {W}, S3 {W} WHERE S1.a = S2.a AND S2.a = S3.a").plan, Join)
    assert isinstance(join, Join)
    assert join.equalities == (("S1.a", "S2.a", "S3.a"),)


def test_a_constant_reaches_every_equal_column() -> None:
    plan = ask(f"SELECT * FROM S1 {W}, S2 {W} WHERE S1.a = S2.a AND S1.a = 7").plan
    predicates = [node.predicate.show() for node in plan.walk() if isinstance(node, Filter)]
    assert predicates == ["S1.a = 7", "S2.a = 7"]


def test_nested_selects_become_one_join() -> None:
    query = ask(
        f"SELECT x.b FROM (SELECT S1.a, S2.b FROM S1 {W}, S2 {W} WHERE S1.a = S2.a) x, S3 {W} WHERE x.a = S3.a"
    )
    assert shape(query) == "join WK(window WKS(S1), window WKS(S2), window WKS(S3))"


def test_a_self_join_reads_the_stream_twice() -> None:
    plan = ask(f"SELECT x.b FROM S1 {W} x, S1 {W} y WHERE x.a = y.a").plan
    assert [scan.name for scan in plan.walk() if isinstance(scan, StreamScan)] == ["x", "y"]


def test_an_expression_becomes_a_key() -> None:
    join = only(ask(f"SELECT S1.c FROM S1 {W}, S2 {W} WHERE S1.a = S2.b + 1").plan, Join)
    assert isinstance(join, Join)
    assert len(join.equalities) == 1
    assert join.residual == ()


def test_exists_in_and_not_exists() -> None:
    semi = only(ask(f"SELECT a FROM S1 {W} WHERE b IN (SELECT b FROM S2 {W})").plan, SemiJoin)
    assert isinstance(semi, SemiJoin)
    assert len(semi.keys) == 1
    select = f"SELECT a FROM S1 {W} WHERE NOT EXISTS (SELECT * FROM S2 {W} WHERE S2.a = S1.a AND S2.b > S1.b)"
    negation = only(ask(select).plan, Negation)
    assert isinstance(negation, Negation)
    assert negation.keys == (("S1.a", "S2.a"),)
    assert [part.show() for part in negation.residual] == ["S2.b > S1.b"]


def test_a_column_is_a_key_only_once() -> None:
    select = f"SELECT a FROM S1 {W} WHERE EXISTS (SELECT * FROM S2 {W} WHERE S2.a = S1.a AND S1.a = S2.a)"
    semi = only(ask(select).plan, SemiJoin)
    assert isinstance(semi, SemiJoin)
    assert semi.keys == (("S1.a", "S2.a"),)
    assert semi.residual == ()


def test_a_table_hangs_on_the_input_it_belongs_to() -> None:
    select = (
        f"SELECT * FROM (SELECT * FROM S2 {W}, companies WHERE S2.b = sym) x, S1 [ROWS 5] WHERE S1.a = x.a"
    )
    table = only(ask(select).plan, TableJoin)
    assert isinstance(table, TableJoin)
    assert "S2.b" in table.left.names
    assert "S1.a" not in table.left.names


def test_a_non_retroactive_table_hangs_on_the_join_of_all_streams() -> None:
    select = f"SELECT * FROM S1 {W}, S2 {W}, companies WHERE S1.a = S2.a AND S2.b = sym"
    table = only(ask(select).plan, TableJoin)
    assert isinstance(table, TableJoin)
    assert {"S1.a", "S2.b"} <= table.left.names


def test_a_name_is_not_ambiguous_where_the_query_makes_both_columns_equal() -> None:
    assert ask(f"SELECT a FROM S1 {W}, S2 {W} WHERE S1.a = S2.a").plan is not None


def test_filters_cross_time_windows_but_not_row_windows() -> None:
    assert shape(ask(f"SELECT a FROM S1 {W} WHERE b > 3")) == "window WKS(filter MON(S1))"
    sliding = "SELECT a FROM S1 [RANGE 1 MINUTE SLIDE 10 SECONDS] WHERE b > 3"
    assert shape(ask(sliding)) == "window WKS(filter MON(S1))"
    assert shape(ask("SELECT a FROM S1 [ROWS 9] WHERE b > 3")) == "filter STR(window STR(S1))"


def test_unused_columns_are_dropped_at_the_stream_but_partition_columns_stay() -> None:
    plan = ask("SELECT a FROM S1 [PARTITION BY b ROWS 2]").optimized.best.plan
    window = only(plan, Window)
    assert window.names == {"S1.a", "S1.b"}
    plain = ask(f"SELECT a FROM S1 {W}").optimized.best.plan
    assert only(plain, Window).names == {"S1.a"}


def test_a_distinct_with_nothing_to_remove_is_dropped() -> None:
    query = ask(f"SELECT DISTINCT a, n FROM (SELECT a, COUNT(*) AS n FROM S1 {W} GROUP BY a) x")
    assert shape(query) == "aggregate STR(window WKS(S1))"


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("a + b", "S1.a + CAST(S1.b AS BIGINT)"),
        ("b / 2", "CAST(S1.b AS DOUBLE) / 2"),
        ("ts > '2026-01-01'", "S1.ts > CAST('2026-01-01' AS TIMESTAMP)"),
        ("b BETWEEN 1 AND 3", "S1.b >= 1 AND S1.b <= 3"),
        ("CASE b WHEN 1 THEN 'x' END", "CASE WHEN S1.b = 1 THEN 'x' ELSE NULL END"),
    ],
)
def test_conversions_become_explicit(expression: str, shown: str) -> None:
    plan = ask(f"SELECT {expression} AS e FROM S1").plan
    (output,) = next(node for node in plan.walk() if isinstance(node, Project)).outputs
    assert output.scalar.show().replace("CAST(NULL AS STRING)", "NULL") == shown
