"""What an admitted query remembers is bounded as stated, and enough for the right answer."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.safety.memory_queries import ALL, STRICT, query, random_queries
from tests.safety.memory_synopsis import Evaluation

from headgate.safety.theory.memory.answers import Row, answer
from headgate.safety.theory.memory.buckets import (
    Keep,
    answer_bound,
    is_join,
    size_bound,
    synopses,
    weak_orders,
)
from headgate.safety.theory.memory.closure import Bound, close
from headgate.safety.theory.memory.cut import IntegerCut, IntervalCut, cells_between
from headgate.safety.theory.memory.domain import Domain
from headgate.safety.theory.memory.query import Attribute, SpjQuery
from headgate.safety.theory.memory.references import join_inequalities
from headgate.safety.theory.memory.verdict import judge

A, B, C = Attribute("S", "A"), Attribute("S", "B"), Attribute("S", "C")
D, E = Attribute("T", "D"), Attribute("T", "E")


def test_an_equality_join_counts_each_value_of_the_interval() -> None:
    assert size_bound(query("A", "A=D, A>10, D<20", distinct=False)) == {"S": 9, "T": 9}


def test_an_inequality_join_keeps_one_extreme_row_for_each_result() -> None:
    tried = query("A", "B<D, A>10, A<20", distinct=True)
    assert size_bound(tried) == {"S": 9, "T": 1}
    left, right = synopses(tried)
    assert left.keep(left.bucket({A: 15, B: 3, C: 0})) == Keep(least=(B,))
    assert right.keep(right.bucket({D: 15, E: 0})) == Keep(greatest=(D,))


def test_two_attributes_under_the_same_joins_keep_the_least_greatest() -> None:
    tried = query("A", "B<D, B<E, C<D, C<E, A>10, A<20", distinct=True)
    left, right = synopses(tried)
    assert left.keep(left.bucket({A: 15, B: 3, C: 0})) == Keep(least=(B, C))
    assert right.keep(right.bucket({D: 15, E: 0})) == Keep(greatest=(D, E))


def test_equal_attributes_of_both_streams_do_not_make_a_join_needless() -> None:
    tried = query("A", "D<B, A=B, D=E, A>1, A<5, D>0, D<4", distinct=False)
    assert size_bound(tried) == {"S": 9, "T": 9}


def test_a_filter_needs_no_memory() -> None:
    assert size_bound(query("A", "A>10", distinct=False, streams={"S": "A B"})) == {"S": 1}


def test_the_values_of_a_filter_without_duplicates_are_remembered() -> None:
    assert size_bound(query("A", "A>0, A<5", distinct=True, streams={"S": "A B"})) == {"S": 4}


def test_filters_that_follow_from_joins_are_applied_at_once() -> None:
    (left, _) = synopses(query("D", "D=2, A>D", distinct=True))
    assert "2 < S.A" in set(map(str, left.filters))


@pytest.mark.parametrize(
    ("predicates", "joins"),
    [
        ("A<D", True),
        ("A<D, A<5", True),
        ("A<D, D>5", True),
        ("A<D, A<5, D>3", True),
        ("A<D, A<5, D>4", False),
    ],
)
def test_an_inequality_joins_unless_the_bounds_of_its_sides_decide_it(predicates: str, joins: bool) -> None:
    closure = close(query("", predicates, distinct=True))
    assert closure is not None
    (predicate,) = join_inequalities(closure)
    assert is_join(closure, predicate) is joins


def test_filters_that_follow_may_have_constants_of_their_own() -> None:
    (left, _) = synopses(query("A", "D>10, A>D, B<E, E<3", distinct=True))
    assert {"12 <= S.A", "S.B <= 1"} <= set(map(str, left.filters))


def test_the_order_counts_where_weak_inequalities_meet_strict_ones() -> None:
    tried = query("", "D<A, D<=B", distinct=True)
    assert judge(tried).bounded
    left, right = synopses(tried)
    assert (left.size, right.size) == (weak_orders(2), 1)


def test_where_the_order_counts_the_lesser_attribute_is_the_one_to_compare() -> None:
    left, _ = synopses(query("C", "D<A, D<=B, C>0, C<3", distinct=True))
    for a, b, kept in ((10, 11, (A,)), (11, 10, (B,)), (10, 10, (A, B))):
        assert left.keep(left.bucket({A: a, B: b, C: 1})) == Keep(greatest=kept)


def test_no_more_rows_than_the_finite_domain_has_values() -> None:
    tried = query("A", "A=D", distinct=True, domains={n: Domain.finite((False, True)) for n in "AD"})
    assert size_bound(tried) == {"S": 2, "T": 2}
    assert answer_bound(tried) == 2


def test_the_result_of_an_unbounded_projection_has_no_bound() -> None:
    assert answer_bound(query("A", "A>3", distinct=False)) is None


@pytest.mark.parametrize("value", [-7, 10, 11, 19, 20, 10**18])
def test_a_value_satisfies_what_its_integer_cell_says(value: int) -> None:
    cut = IntegerCut(A, 10, 20)
    said = cut.says(cut.cell(value))
    assert {10**18: "S.A > 20", -7: "S.A < 10"}.get(value, f"S.A = {value}") == " and ".join(map(str, said))


def test_cells_without_gaps_are_points_and_the_intervals_between() -> None:
    cut = IntervalCut(A, (1, 2))
    assert [cut.cell(v) for v in (0, 1, Fraction(3, 2), 2, 3)] == [0, 1, 2, 3, 4]
    assert [" and ".join(map(str, cut.says(c))) for c in range(5)] == [
        "S.A < 1",
        "S.A = 1",
        "S.A > 1 and S.A < 2",
        "S.A = 2",
        "S.A > 2",
    ]
    assert cells_between(cut, Bound(1, strict=True), Bound(2, strict=False)) == range(2, 4)


def test_three_values_have_thirteen_orders() -> None:
    assert weak_orders(3) == 13


def arrivals(tried: SpjQuery, *, longest: int = 14) -> st.SearchStrategy[list[tuple[str, Row]]]:
    """Rows on random streams, with values around the constants."""
    whole, halves = st.integers(-2, 7), st.integers(-4, 14).map(lambda n: Fraction(n, 2))
    streams = {schema.stream: schema for schema in tried.streams}
    rows = [
        st.tuples(st.just(name), st.tuples(*(halves if s.domain(n).dense else whole for n in s.attributes)))
        for name, s in streams.items()
    ]
    return st.lists(st.one_of(rows), max_size=longest)


def check_on_streams(tried: SpjQuery, data: st.DataObject) -> None:
    if close(tried) is None or not judge(tried).bounded:
        return
    evaluation = Evaluation(tried)
    seen: dict[str, list[Row]] = defaultdict(list)
    for stream, row in data.draw(arrivals(tried)):
        seen[stream].append(row)
        evaluation.add(stream, row)
        assert evaluation.emitted == answer(tried, seen)


@settings(max_examples=150)
@given(tried=random_queries(ops=STRICT, max_attributes=4), data=st.data())
def test_the_synopses_give_the_right_answer(tried: SpjQuery, data: st.DataObject) -> None:
    check_on_streams(tried, data)


@settings(max_examples=100)
@given(tried=random_queries(ops=("<", ">"), distinct=True, joins_only=True), data=st.data())
def test_extreme_rows_give_the_right_answer(tried: SpjQuery, data: st.DataObject) -> None:
    check_on_streams(tried, data)


@settings(max_examples=150)
@given(tried=random_queries(ops=ALL, dense=None, max_attributes=4), data=st.data())
def test_so_they_do_with_weak_inequalities_and_fractions(tried: SpjQuery, data: st.DataObject) -> None:
    check_on_streams(tried, data)


@pytest.mark.parametrize("distinct", [False, True])
def test_prefixes_with_equal_synopses_have_equal_futures(distinct: bool) -> None:
    """Every prefix of up to three rows over three values: what is forgotten is never asked for."""
    predicates = "A=D, A>0, A<2" if not distinct else "B<D, A>0, A<2"
    tried = query("A", predicates, distinct=distinct, streams={"S": "A B", "T": "D"})
    rows: list[tuple[str, Row]] = [("S", row) for row in product(range(3), repeat=2)]
    rows += [("T", (value,)) for value in range(3)]
    futures: dict[str, object] = {}
    for length in range(4):
        for prefix in product(rows, repeat=length):
            if prefix != tuple(sorted(prefix)):
                continue  # the answer does not depend on the order
            evaluation = Evaluation(tried)
            seen: dict[str, list[Row]] = defaultdict(list)
            for stream, row in prefix:
                evaluation.add(stream, row)
                seen[stream].append(row)
            before = answer(tried, seen)
            news = [answer(tried, {**seen, stream: [*seen[stream], row]}) - before for stream, row in rows]
            assert futures.setdefault(evaluation.contents(), news) == news
    assert len(futures) < sum(1 for _ in product(rows, repeat=3))
