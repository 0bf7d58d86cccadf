"""Every refusal comes with rows that any correct evaluation has to remember."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from tests.safety.memory_queries import ALL, STRICT, query, random_queries

from headgate.safety.theory.memory.domain import Domain
from headgate.safety.theory.memory.query import SpjQuery
from headgate.safety.theory.memory.verdict import judge
from headgate.safety.theory.memory.witness import Witness, find_witness


def witness_of(tried: SpjQuery, count: int) -> Witness:
    found = find_witness(tried, count)
    assert found is not None, judge(tried).failure
    return found


def test_an_admitted_query_has_no_witness() -> None:
    assert find_witness(query("A", "A=D, A>10, D<20", distinct=True), 3) is None


@pytest.mark.parametrize(
    ("projection", "predicates", "distinct"),
    [
        ("A", "A=D", False),
        ("A", "A=D", True),
        ("A", "B<D, A>10, A<20", False),
        ("A", "B<D, C<E, A>10, A<20", False),
        ("A", "B<D, C<E, A>10, A<20", True),
        ("A", "B<D, B<E, C<D, C<E, A>10, A<20", False),
        ("", "D<B, B<E", True),
        ("B", "A=D, A>10, D<20", False),
    ],
)
def test_the_refused_examples_have_witnesses(projection: str, predicates: str, distinct: bool) -> None:
    tried = query(projection, predicates, distinct=distinct)
    assert witness_of(tried, 5).tells_apart(tried)


def test_a_value_between_two_others_has_a_witness() -> None:
    tried = query("", "D<A, A<F", distinct=True, streams={"S": "A", "T": "D", "U": "F"})
    found = witness_of(tried, 5)
    assert found.stream == "S"
    assert found.tells_apart(tried)


def test_over_one_stream_the_row_itself_comes_again() -> None:
    tried = query("A", "A>10", distinct=True, streams={"S": "A B"})
    found = witness_of(tried, 4)
    assert [probe[0][0] for probe in found.probes] == ["S"] * 4
    assert found.tells_apart(tried)


def test_probes_that_bring_nothing_tell_nothing_apart() -> None:
    tried = query("A", "A>10", distinct=True, streams={"S": "A B"})
    found = witness_of(tried, 4)
    assert not replace(found, probes=((),) * 4).tells_apart(tried)


def test_the_number_of_histories_doubles_with_every_row() -> None:
    tried = query("", "D<A", distinct=False)
    for count in (1, 2, 3, 4):
        found = witness_of(tried, count)
        places = range(count)
        histories = [frozenset(h) for size in range(count + 1) for h in combinations(places, size)]
        behaviours = {
            tuple(sorted(found.news(tried, h, k).items()) for k in places).__repr__() for h in histories
        }
        assert len(behaviours) == 2**count


def test_a_thousand_rows_are_found_at_once() -> None:
    tried = query("", "B<D, C<E", distinct=True)
    found = witness_of(tried, 1000)
    assert len(set(found.rows)) == 1000


def test_values_respect_bounded_domains() -> None:
    tried = query(
        "", "A=D, B<E", distinct=False, domains={"A": Domain.integers(3, 4), "D": Domain.integers(3, 4)}
    )
    found = witness_of(tried, 4)
    assert {row[0] for row in found.rows} <= {3, 4}
    assert found.tells_apart(tried)


def test_a_case_may_compare_a_value_with_gaps_with_one_without() -> None:
    dense = Domain.continuous()
    tried = query(
        "",
        "A<E, B<C",
        distinct=True,
        streams={"S": "A", "T": "B E", "U": "C"},
        domains={"B": dense, "C": dense},
    )
    failure = judge(tried).failure
    assert failure is not None
    # The query compares like with like; the case in which it fails puts E, a whole number, beside B.
    assert [str(each) for each in failure.case] == ["T.E < T.B"]
    found = witness_of(tried, 4)
    assert all(isinstance(e, int) and e < b for b, e in found.rows)
    assert found.tells_apart(tried)


def test_whole_numbers_beside_fractions_keep_their_distance_to_constants() -> None:
    dense = Domain.continuous()
    streams = {"S": "A B", "T": "D E"}
    tried = query("B", "A>2, A<4, B<E", distinct=False, streams=streams, domains={"B": dense, "E": dense})
    found = witness_of(tried, 4)
    assert {row[0] for row in found.rows} == {3}
    assert found.tells_apart(tried)


@settings(max_examples=150)
@given(tried=random_queries(ops=STRICT))
def test_every_refusal_is_proven(tried: SpjQuery) -> None:
    if not judge(tried).bounded:
        assert witness_of(tried, 3).tells_apart(tried)


@settings(max_examples=150)
@given(tried=random_queries(ops=("<", ">"), distinct=True, joins_only=True))
def test_every_refusal_of_inequality_joins_is_proven(tried: SpjQuery) -> None:
    if not judge(tried).bounded:
        assert witness_of(tried, 3).tells_apart(tried)


@settings(max_examples=100)
@given(tried=random_queries(ops=ALL, dense=True))
def test_every_refusal_is_proven_without_gaps(tried: SpjQuery) -> None:
    if not judge(tried).bounded:
        assert witness_of(tried, 3).tells_apart(tried)


@settings(max_examples=100)
@given(tried=random_queries(ops=ALL, dense=None))
def test_where_kinds_are_not_compared_every_refusal_is_proven(tried: SpjQuery) -> None:
    verdict = judge(tried)
    if not verdict.bounded and verdict.exact:
        assert witness_of(tried, 3).tells_apart(tried)


@settings(max_examples=200)
@given(tried=random_queries(ops=("<", ">"), dense=None, distinct=True, joins_only=True, across=False))
def test_joins_of_values_of_both_kinds_every_refusal_is_proven(tried: SpjQuery) -> None:
    verdict = judge(tried)
    assert verdict.exact
    if not verdict.bounded:
        assert witness_of(tried, 3).tells_apart(tried)
