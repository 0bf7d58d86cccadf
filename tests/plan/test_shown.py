"""Expressions as text: what is shown means what is bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.outline import query

from headgate.model.scalar import Scalar
from headgate.plan.nodes import Project


def bound(expression: str) -> Scalar:
    plan = query(f"SELECT {expression} AS r FROM s [NOW]").plan.input
    assert isinstance(plan, Project)
    return plan.outputs[0].scalar


SHOWN = {
    "(a + b) * 2": "(s.a + s.b) * 2",
    "a + b * 2": "s.a + s.b * 2",
    "a - (b - 1) - 2": "s.a - (s.b - 1) - 2",
    "a NOT BETWEEN 1 AND 2": "NOT (s.a >= 1 AND s.a <= 2)",
    "(f OR a > 1) AND NOT (f AND f)": "(s.f OR s.a > 1) AND NOT (s.f AND s.f)",
    "(a > 1) = f": "(s.a > 1) = s.f",
    "-(a + b)": "-(s.a + s.b)",
}


@pytest.mark.parametrize("expression", SHOWN)
def test_an_expression_is_shown_as_it_is_meant(expression: str) -> None:
    assert bound(expression).show() == SHOWN[expression]


NUMBERS = st.recursive(
    st.sampled_from(["s.a", "s.b", "s.i", "7"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda p: f"({p[0]}) {p[1]} ({p[2]})"),
        inner.map("-({})".format),
    ),
    max_leaves=5,
)
CONDITIONS = st.recursive(
    st.one_of(
        st.just("s.f"),
        st.tuples(NUMBERS, st.sampled_from(["=", "<", ">=", "<>", "<=>"]), NUMBERS).map(" ".join),
        NUMBERS.map("({}) IS NULL".format),
        NUMBERS.map("({}) NOT IN (1, 2)".format),
        NUMBERS.map("({}) BETWEEN 1 AND 9".format),
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["AND", "OR", "=", "<=>"]), inner).map(
            lambda p: f"({p[0]}) {p[1]} ({p[2]})"
        ),
        inner.map("NOT ({})".format),
        inner.map("({}) IS NULL".format),
    ),
    max_leaves=5,
)


@given(CONDITIONS)
def test_what_is_shown_means_the_same(expression: str) -> None:
    once = bound(expression)
    again = bound(once.show())
    assert again.show() == once.show()
    assert again.expression.sql() == once.expression.sql()
