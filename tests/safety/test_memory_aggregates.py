"""Grouping and aggregates: what each need needs of the join below it."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.safety.memory_queries import ALL, query, random_queries
from tests.safety.memory_synopsis import Values, representatives

from headgate.safety.theory.memory import polynomial
from headgate.safety.theory.memory.aggregates import (
    Aggregate,
    AggregateQuery,
    Need,
    extreme_failure,
    extreme_failure_of_ordered,
    judge_aggregate,
)
from headgate.safety.theory.memory.answers import Row, answer, holds
from headgate.safety.theory.memory.buckets import Bucket, synopses
from headgate.safety.theory.memory.closure import close
from headgate.safety.theory.memory.domain import Code, Domain
from headgate.safety.theory.memory.failure import Condition, Failure
from headgate.safety.theory.memory.ordering import orderings
from headgate.safety.theory.memory.polynomial import polynomial_failure
from headgate.safety.theory.memory.query import Attribute, SpjQuery
from headgate.safety.theory.memory.witness import build_witness

A, B, C = Attribute("S", "A"), Attribute("S", "B"), Attribute("S", "C")
D, E = Attribute("T", "D"), Attribute("T", "E")

HOLISTIC = [Need.DIFFERENT_VALUES, Need.EVERY_VALUE]
ADDITIVE = [Need.SUMS]
EXTREME = [Need.LEAST, Need.GREATEST]


def bounded(need: Need, attribute: Attribute, grouping: str, predicates: str, **more: object) -> bool:
    source = query(grouping, predicates, distinct=False, **more)  # type: ignore[arg-type]
    return judge_aggregate(AggregateQuery(source, (Aggregate(need, attribute),))).bounded


@pytest.mark.parametrize("need", ADDITIVE)
def test_sums_over_an_equality_join_of_an_interval(need: Need) -> None:
    assert bounded(need, B, "A", "A=D, A>10, D<20")


@pytest.mark.parametrize("need", ADDITIVE)
def test_sums_under_an_inequality_join_need_all_rows(need: Need) -> None:
    assert not bounded(need, B, "A", "B<D, A>10, A<20")


def test_a_refusal_that_is_not_exact_is_a_refusal() -> None:
    """Where attributes with and without gaps are compared, nothing is proved, and nothing is bounded either."""
    source = query(
        "A", "B<D, A>10, A<20", distinct=False, domains={"B": Domain.continuous(), "D": Domain.integers()}
    )
    found = judge_aggregate(AggregateQuery(source, (Aggregate(Need.SUMS, C), Aggregate(Need.LEAST, A))))
    assert not found.bounded
    assert not found.exact


@pytest.mark.parametrize("need", list(Need))
def test_groups_must_be_finitely_many(need: Need) -> None:
    verdict = judge_aggregate(
        AggregateQuery(query("A", "A>10", distinct=False, streams={"S": "A B"}), (Aggregate(need, B),))
    )
    assert verdict.failure is not None
    assert verdict.failure.condition is Condition.GROUPING


@pytest.mark.parametrize("need", [*ADDITIVE, *EXTREME])
def test_one_stream_is_aggregated_as_it_comes(need: Need) -> None:
    assert bounded(need, B, "A", "A>10, A<20", streams={"S": "A B"})


@pytest.mark.parametrize("need", HOLISTIC)
def test_holistic_aggregates_need_finitely_many_values(need: Need) -> None:
    assert not bounded(need, B, "A", "A>10, A<20", streams={"S": "A B"})
    assert bounded(need, B, "A", "A>10, A<20, B>0, B<9", streams={"S": "A B"})
    assert not bounded(need, B, "A", "A=D, A>10, D<20")
    assert bounded(need, B, "A", "A=D, A>10, D<20, B>0, B<9")


def test_counting_distinct_values_does_not_count_rows() -> None:
    assert bounded(Need.DIFFERENT_VALUES, A, "", "B<D, A>10, A<20")
    assert not bounded(Need.EVERY_VALUE, A, "", "B<D, A>10, A<20")


@pytest.mark.parametrize(
    ("predicates", "greatest", "least"),
    [
        ("A=D, A>10, D<20", True, True),  # no inequality
        ("D<B", True, False),  # the greatest B is also the one that D < B needs
        ("B<D", False, True),
        ("D<C", False, False),  # the greatest B above D is not the B of the greatest C
        ("C<D", False, False),
        ("C<D, C>0, C<9, D<9", True, True),  # C is one of finitely many
        ("C<D, B>0, B<9", True, True),  # B is
    ],
)
def test_an_extreme_is_kept_only_if_joins_ask_for_the_same(
    predicates: str, greatest: bool, least: bool
) -> None:
    assert bounded(Need.GREATEST, B, "", predicates) is greatest
    assert bounded(Need.LEAST, B, "", predicates) is least


def test_every_aggregate_of_a_query_must_be_bounded() -> None:
    source = query("", "D<B", distinct=False)
    only = AggregateQuery(source, (Aggregate(Need.GREATEST, B),))
    both = AggregateQuery(source, (Aggregate(Need.GREATEST, B), Aggregate(Need.SUMS)))
    assert judge_aggregate(only).bounded
    assert not judge_aggregate(both).bounded


def test_too_many_cases_are_no_proof_against_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polynomial, "MOST_PATTERNS", 0)
    source = query("", "D<B", distinct=False)
    found = judge_aggregate(AggregateQuery(source, (Aggregate(Need.GREATEST, B),)))
    assert not found.bounded
    assert not found.exact


def test_grouping_alone_is_a_projection_without_duplicates() -> None:
    assert judge_aggregate(AggregateQuery(query("A", "B<D, A>10, A<20", distinct=False), ())).bounded


def extremes(
    source: SpjQuery, attribute: Attribute, need: Need, seen: dict[str, list[Row]]
) -> dict[Row, Code]:
    """The MIN or MAX of every group over all rows."""
    pairs = answer(source.projecting((*source.projection, attribute), distinct=True), seen)
    best = max if need is Need.GREATEST else min
    groups: dict[Row, list[Code]] = defaultdict(list)
    for row in pairs:
        groups[row[:-1]].append(row[-1])
    return {group: best(values) for group, values in groups.items()}


@settings(max_examples=150)
@given(tried=random_queries(ops=ALL, joins_only=True, distinct=True), data=st.data())
def test_the_definition_and_three_attributes_agree_on_extremes(tried: SpjQuery, data: st.DataObject) -> None:
    closure = close(tried)
    attribute = data.draw(st.sampled_from(tried.attributes))
    need = data.draw(st.sampled_from(EXTREME))
    if closure is None or polynomial_failure(tried) is not None:
        return  # the question only arises where the join itself is bounded
    by_definition = any(extreme_failure_of_ordered(part, attribute, need) for part in orderings(closure))
    assert by_definition == (extreme_failure(closure, attribute, need) is not None)


@settings(max_examples=150)
@given(tried=random_queries(ops=ALL, joins_only=True, distinct=True), data=st.data())
def test_a_refused_extreme_has_a_witness(tried: SpjQuery, data: st.DataObject) -> None:
    attribute = data.draw(st.sampled_from(tried.attributes))
    need = data.draw(st.sampled_from(EXTREME))
    failure = judge_aggregate(AggregateQuery(tried, (Aggregate(need, attribute),))).failure
    if failure is not None and failure.condition in (Condition.GREATEST, Condition.LEAST):
        assert_told_apart(tried, attribute, need, failure)


@pytest.mark.parametrize(
    ("predicates", "need"),
    [("B<D", Need.GREATEST), ("D<C", Need.GREATEST), ("C<D", Need.LEAST), ("D<B", Need.LEAST)],
)
def test_a_witness_of_an_extreme_is_found(predicates: str, need: Need) -> None:
    tried = query("", predicates, distinct=True)
    failure = judge_aggregate(AggregateQuery(tried, (Aggregate(need, B),))).failure
    assert failure is not None
    assert failure.condition is (Condition.GREATEST if need is Need.GREATEST else Condition.LEAST)
    assert_told_apart(tried, B, need, failure)


def assert_told_apart(tried: SpjQuery, attribute: Attribute, need: Need, failure: Failure) -> None:
    """All parts of a witness' rows have answers of their own."""
    found = build_witness(tried, failure, 4)
    assert found is not None
    told = {}
    for history in found.histories():
        answers = []
        for probe in found.probes:
            seen: dict[str, list[Row]] = defaultdict(list)
            seen[found.stream] = [found.rows[place] for place in history]
            for stream, row in probe:
                seen[stream].append(row)
            answers.append(sorted(extremes(tried, attribute, need, seen).items()))
        told[history] = repr(answers)
    assert len(set(told.values())) == 2**4


@settings(max_examples=150)
@given(tried=random_queries(ops=ALL, joins_only=True, distinct=True, max_attributes=4), data=st.data())
def test_an_admitted_extreme_is_computed_from_synopses(tried: SpjQuery, data: st.DataObject) -> None:
    """The aggregated attribute is cut too; a bucket that no join refines keeps the row with its extreme."""
    attribute = data.draw(st.sampled_from(tried.attributes))
    need = data.draw(st.sampled_from(EXTREME))
    if (
        close(tried) is None
        or not judge_aggregate(AggregateQuery(tried, (Aggregate(need, attribute),))).bounded
    ):
        return
    best = max if need is Need.GREATEST else min
    kept_by = synopses(tried.projecting((attribute,), distinct=True))
    memory: dict[str, dict[Bucket, list[Values]]] = {s.occurrence: {} for s in tried.streams}
    seen: dict[str, list[Row]] = defaultdict(list)
    for _ in range(data.draw(st.integers(0, 10))):
        schema = data.draw(st.sampled_from(tried.streams))
        row = tuple(data.draw(st.integers(-2, 7)) for _ in schema.attributes)
        seen[schema.stream].append(row)
        values = dict(zip(schema.elements, row, strict=True))
        synopsis = next(s for s in kept_by if s.occurrence == schema.occurrence)
        if all(holds(predicate, values) for predicate in synopsis.filters):
            bucket = synopsis.bucket(values)
            rows = [*memory[schema.occurrence].get(bucket, []), values]
            keep = synopsis.keep(bucket)
            if keep.greatest or keep.least or attribute.stream != schema.occurrence:
                memory[schema.occurrence][bucket] = representatives(rows, keep)
            else:
                memory[schema.occurrence][bucket] = [best(rows, key=lambda kept: kept[attribute])]
        stored: dict[str, list[Row]] = {
            s.stream: [
                tuple(kept[a] for a in s.elements) for rows in memory[s.occurrence].values() for kept in rows
            ]
            for s in tried.streams
        }
        assert extremes(tried, attribute, need, stored) == extremes(tried, attribute, need, seen)
