"""Which queries run in bounded memory: the document's examples, and three ways to decide that always agree."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from tests.safety.memory_queries import ALL, STRICT, query, random_queries

from headgate.safety.theory.memory.closure import close
from headgate.safety.theory.memory.domain import Domain
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.ordering import orderings
from headgate.safety.theory.memory.polynomial import induced, polynomial_failure
from headgate.safety.theory.memory.query import Attribute, Comparison, Constant, Element, SpjQuery
from headgate.safety.theory.memory.references import is_redundant, join_inequalities, references
from headgate.safety.theory.memory.theorems import (
    equality_failure,
    failure_by_definition,
    failure_of_ordered,
    projection_failure,
)
from headgate.safety.theory.memory.verdict import judge

A, B, C = Attribute("S", "A"), Attribute("S", "B"), Attribute("S", "C")
D, E = Attribute("T", "D"), Attribute("T", "E")

ONE = {"S": "A B C"}
TWO = {"S": "A B C", "T": "D E"}


@pytest.mark.parametrize(
    ("streams", "predicates", "keeps", "removes"),
    [
        (ONE, "A>10", True, False),
        (TWO, "A=D", False, False),
        (TWO, "A=D, A>10, D<20", True, True),
        (TWO, "B<D, A>10, A<20", False, True),
        (TWO, "B<D, C<E, A>10, A<20", False, False),
        (TWO, "B<D, B<E, C<D, C<E, A>10, A<20", False, True),
    ],
)
def test_the_table_of_examples(streams: dict[str, str], predicates: str, keeps: bool, removes: bool) -> None:
    for distinct, bounded in ((False, keeps), (True, removes)):
        tried = query("A", predicates, distinct=distinct, streams=streams)
        assert judge(tried).bounded is bounded
        assert (failure_by_definition(tried) is None) is bounded


def test_redundancy_tells_the_fifth_example_from_the_sixth() -> None:
    fifth = close(query("A", "B<D, C<E, A>10, A<20, B<C, D<E", distinct=True))
    sixth = close(query("A", "B<D, B<E, C<D, C<E, A>10, A<20, B<C, D<E", distinct=True))
    assert fifth is not None
    assert sixth is not None
    assert {str(p) for p in join_inequalities(fifth) if not is_redundant(fifth, p)} == {
        "S.B < T.D",
        "S.C < T.E",
    }
    assert {str(p) for p in join_inequalities(sixth) if not is_redundant(sixth, p)} == {"S.C < T.D"}


def test_redundancy_through_a_constant_on_either_side() -> None:
    closure = close(query("", "A=3, A<D, B<D, B<5, E=9, B<E", distinct=True))
    assert closure is not None
    assert is_redundant(closure, Comparison(A, "<", D))  # a filter on D
    assert is_redundant(closure, Comparison(B, "<", E))  # a filter on B
    assert not is_redundant(closure, Comparison(B, "<", D))


def test_two_weak_steps_stand_for_a_weak_one_but_not_for_a_strict_one() -> None:
    streams = {"S": "A", "T": "D", "U": "F"}
    weak = close(query("", "A<=D, D<=F", distinct=True, streams=streams))
    strict = close(query("", "A<=D, D<=F, A<F", distinct=True, streams=streams))
    assert weak is not None
    assert strict is not None
    assert is_redundant(weak, Comparison(A, "<=", Attribute("U", "F")))
    assert not is_redundant(strict, Comparison(A, "<", Attribute("U", "F")))


def test_an_attribute_sought_from_both_sides_counts_twice() -> None:
    streams = {"S": "A", "T": "D", "U": "F"}
    tried = query("", "D<A, A<F", distinct=True, streams=streams)
    failure = judge(tried).failure
    assert failure is not None
    assert failure.attributes == (A,)
    assert set(map(str, failure.predicates)) == {"T.D < S.A", "S.A < U.F"}


def test_max_ref_and_min_ref() -> None:
    streams = {"S": "A B C", "T": "D E", "U": "F"}
    closure = close(query("", "D<A, A<B, B<F, D<F, C<E, C>0, E<9", distinct=True, streams=streams))
    assert closure is not None
    found = references(closure, "S")
    assert found.max_ref == (A,)  # D < B follows from D < A
    assert found.min_ref == (B,)  # C has both bounds
    assert references(closure, "T").min_ref == (D,)
    assert references(closure, "U").max_ref == (Attribute("U", "F"),)


def test_a_failure_names_condition_attribute_and_predicate() -> None:
    projected = judge(query("A", "A>10, D=3", distinct=True)).failure
    assert projected == Failure(Condition.PROJECTION, (A,))
    equal = judge(query("", "A=D, A>10", distinct=True)).failure
    assert equal == Failure(Condition.EQUALITY, (A, D), (Comparison(A, "=", D),))
    below = judge(query("", "B<D", distinct=False)).failure
    assert below == Failure(Condition.INEQUALITY, (B,), (Comparison(B, "<", D),))


def test_a_failure_names_the_case_in_which_it_happens() -> None:
    failure = judge(query("", "B<D, C<E, B<9", distinct=True)).failure
    assert failure is not None
    assert failure.condition is Condition.INEQUALITY
    assert set(map(str, failure.predicates)) == {"S.B < T.D", "S.C < T.E"}
    assert "S.B < S.C" in set(map(str, failure.case)) or "S.B > S.C" in set(map(str, failure.case))
    assert str(failure).startswith("whether S.B < T.D and S.C < T.E depends on every")


def test_an_interval_of_fractions_is_refused_with_the_reason() -> None:
    predicates = "A=D, A>10, D<20"
    dense = {"A": Domain.continuous(), "D": Domain.continuous()}
    assert judge(query("A", predicates, distinct=True)).bounded
    failure = judge(query("A", predicates, distinct=True, domains=dense)).failure
    assert failure is not None
    assert failure.dense == (A,)
    assert "between two values of S.A there is always another" in str(failure)


def test_a_fraction_equal_to_a_constant_is_bounded() -> None:
    dense = {"A": Domain.continuous(), "D": Domain.continuous()}
    assert judge(query("A", "A=D, A=10", distinct=True, domains=dense)).bounded


def test_extreme_rows_answer_inequalities_of_fractions_too() -> None:
    dense = {"B": Domain.continuous(), "D": Domain.continuous()}
    assert judge(query("A", "B<D, A>10, A<20", distinct=True, domains=dense)).bounded


def test_finite_domains_make_every_query_bounded() -> None:
    small = {name: Domain.finite(("low", "mid", "high")) for name in "ABCDE"}
    assert judge(query("A B C D", "A=D, B<E", distinct=False, domains=small)).bounded


def test_weak_inequalities_that_squeeze_are_an_equality_join() -> None:
    # B <= D <= C, and a row with B = C asks for D = B.
    failure = judge(query("", "B<=D, D<=C", distinct=True)).failure
    assert failure is not None
    tried = query("", "B<=D", distinct=True)
    assert judge(tried).bounded


def test_a_stream_that_nothing_mentions_still_multiplies_the_result() -> None:
    tried = query("A", "", distinct=False, streams={"S": "A", "T": ""})
    assert not judge(tried).bounded
    assert failure_by_definition(tried) is not None
    assert judge(query("A", "A>0, A<9", distinct=False, streams={"S": "A", "T": ""})).bounded


def test_an_unsatisfiable_query_is_bounded() -> None:
    assert judge(query("A", "A=D, A<3, D>5", distinct=True)).bounded


def all_small_sets_failure(tried: SpjQuery) -> Failure | None:
    """The polynomial test as the document words it: every set of at most four attributes."""
    closure = close(tried)
    if closure is None or (len(tried.streams) == 1 and not tried.distinct):
        return None
    failure = projection_failure(closure, tried.projection) or equality_failure(closure)
    if failure is not None:
        return failure
    for size in (2, 3, 4):
        for attributes in combinations(closure.attributes, size):
            for ordered in orderings(induced(closure, attributes)):
                failure = failure_of_ordered(ordered, (), distinct=tried.distinct)
                if failure is not None:
                    return failure
    return None


@settings(max_examples=600)
@given(tried=random_queries(ops=STRICT))
def test_definition_and_polynomial_test_agree(tried: SpjQuery) -> None:
    assert (failure_by_definition(tried) is None) == (polynomial_failure(tried) is None)


@settings(max_examples=300)
@given(tried=random_queries(ops=("<", ">"), distinct=True, joins_only=True))
def test_they_agree_on_inequality_joins_without_duplicates(tried: SpjQuery) -> None:
    assert (failure_by_definition(tried) is None) == (polynomial_failure(tried) is None)


@settings(max_examples=300)
@given(tried=random_queries(ops=ALL, joins_only=True))
def test_they_agree_with_weak_inequalities(tried: SpjQuery) -> None:
    assert (failure_by_definition(tried) is None) == (polynomial_failure(tried) is None)


@settings(max_examples=200)
@given(tried=random_queries(ops=ALL, dense=True, max_attributes=4))
def test_they_agree_without_gaps(tried: SpjQuery) -> None:
    assert (failure_by_definition(tried) is None) == (polynomial_failure(tried) is None)


@settings(max_examples=150)
@given(tried=random_queries(ops=ALL, dense=None, max_attributes=4))
def test_they_agree_where_both_kinds_meet(tried: SpjQuery) -> None:
    assert (failure_by_definition(tried) is None) == (polynomial_failure(tried) is None)


@settings(max_examples=150)
@given(tried=random_queries(ops=ALL, dense=None, max_attributes=4, joins_only=True))
def test_the_order_may_be_turned_round(tried: SpjQuery) -> None:
    """What is said of the lesser side of a comparison holds of the greater one in the mirror."""

    def negated(side: Element) -> Element:
        return Constant(-side.value) if isinstance(side, Constant) else side

    turned = tuple(Comparison(negated(p.right), p.op, negated(p.left)) for p in tried.predicates)
    assert judge(replace(tried, predicates=turned)).bounded == judge(tried).bounded


@settings(max_examples=100)
@given(tried=random_queries(ops=ALL))
def test_pairs_of_joins_find_what_all_small_sets_find(tried: SpjQuery) -> None:
    assert (all_small_sets_failure(tried) is None) == (polynomial_failure(tried) is None)


@pytest.mark.long
@settings(max_examples=20_000)
@given(tried=random_queries(ops=STRICT))
def test_definition_and_polynomial_test_agree_on_very_many(tried: SpjQuery) -> None:
    assert (failure_by_definition(tried) is None) == (polynomial_failure(tried) is None)
