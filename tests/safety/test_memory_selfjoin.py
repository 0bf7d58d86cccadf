"""Self joins: covered occurrences are dropped before a duplicate-eliminating query is judged."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.safety.memory_queries import STRICT, query
from tests.safety.memory_synopsis import Evaluation

from headgate.safety.theory.memory import verdict
from headgate.safety.theory.memory.answers import Row, answer
from headgate.safety.theory.memory.buckets import size_bound
from headgate.safety.theory.memory.closure import close
from headgate.safety.theory.memory.failure import Condition
from headgate.safety.theory.memory.query import Comparison, Constant, Element, SpjQuery, StreamSchema
from headgate.safety.theory.memory.selfjoin import fold
from headgate.safety.theory.memory.verdict import evaluable, judge
from headgate.safety.theory.memory.witness import build_witness, find_witness

TWICE = {"S as x": "A B", "S as y": "A B"}
THRICE = {"S as x": "A B", "S as y": "A B", "S as z": "A B"}


@st.composite
def self_joins(draw: st.DrawFn, *, distinct: bool) -> SpjQuery:
    parts = [StreamSchema("S", ("A", "B"), alias) for alias in ("x", "y")]
    parts += draw(st.sampled_from([[], [StreamSchema("T", ("D",))]]))
    attributes = [attribute for part in parts for attribute in part.elements]
    sides: list[Element] = [*attributes, *(Constant(n) for n in draw(st.sampled_from([[], [1], [0, 2]])))]
    pairs = st.tuples(st.sampled_from(attributes), st.sampled_from(STRICT), st.sampled_from(sides))
    chosen = draw(st.lists(pairs, min_size=1, max_size=4))
    predicates = tuple(Comparison(left, op, right) for left, op, right in chosen if left != right)
    projected = draw(st.sampled_from([(), (), (attributes[0],)]))
    return SpjQuery(tuple(parts), predicates, projected, distinct)


def test_an_occurrence_that_only_repeats_another_is_dropped() -> None:
    tried = query("", "x.A=y.A", distinct=True, streams=TWICE)
    assert [schema.occurrence for schema in fold(tried).streams] == ["x"]
    assert judge(tried).bounded


def test_with_duplicates_kept_it_counts_pairs() -> None:
    tried = query("", "x.A=y.A", distinct=False, streams=TWICE)
    assert not judge(tried).bounded


def test_an_occurrence_with_a_filter_of_its_own_stays() -> None:
    tried = query("", "x.A=y.A, x.B>5, y.B<5", distinct=True, streams=TWICE)
    assert len(fold(tried).streams) == 2
    assert not judge(tried).bounded


def test_a_projected_occurrence_is_covered_only_by_an_equal_value() -> None:
    kept = query("x.A", "x.A>0, x.A<9", distinct=True, streams=TWICE)
    assert [schema.occurrence for schema in fold(kept).streams] == ["x"]
    both = query("x.A y.A", "x.A>0, x.A<9, y.A>0, y.A<9", distinct=True, streams=TWICE)
    assert len(fold(both).streams) == 2


def test_several_occurrences_fold_onto_one_at_once() -> None:
    # One row that is x, y and z is found as soon as there is a z.
    tried = query("", "x.A=y.A, x.B>5, y.B<9, z.B>5, z.B<9", distinct=True, streams=THRICE)
    assert [schema.occurrence for schema in fold(tried).streams] == ["z"]
    assert judge(tried).bounded


def test_an_occurrence_may_be_covered_in_each_ordered_part_and_not_in_the_whole() -> None:
    # Where D < E a row below D is also below E, so x covers y; elsewhere y covers x.
    streams = {"S as x": "A", "S as y": "A", "T": "D E"}
    tried = query("", "x.A<D, y.A<E", distinct=True, streams=streams)
    assert fold(tried) == tried
    assert judge(tried).bounded
    assert {len(part.streams) for part in evaluable(tried)} == {2}
    assert size_bound(tried) == {"x": 2, "y": 1, "T": 3}


def test_a_query_of_too_many_parts_is_refused_without_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = query("", "x.A<D, y.A<E", distinct=True, streams={"S as x": "A", "S as y": "A", "T": "D E"})
    monkeypatch.setattr(verdict, "PARTS_LIMIT", 1)
    found = judge(tried)
    assert found.failure is not None
    assert found.failure.condition is Condition.SIZE
    assert not found.exact


def test_a_query_without_covered_occurrences_that_is_bounded_is_not_taken_apart() -> None:
    tried = query("", "x.A>5, x.A<9, y.B=3, x.B=4", distinct=True, streams={"S as x": "A B", "S as y": "A B"})
    assert close(fold(tried)) is not None
    assert evaluable(tried) == (fold(tried),)


@settings(max_examples=80)
@given(tried=self_joins(distinct=True), data=st.data())
def test_folding_keeps_the_answer(tried: SpjQuery, data: st.DataObject) -> None:
    rows = st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), max_size=4)
    seen: dict[str, list[Row]] = {"S": list(data.draw(rows)), "T": [(value,) for value in range(3)]}
    assert answer(fold(tried), seen) == answer(tried, seen)


@settings(max_examples=60)
@given(tried=st.booleans().flatmap(lambda distinct: self_joins(distinct=distinct)), data=st.data())
def test_the_synopses_give_the_right_answer(tried: SpjQuery, data: st.DataObject) -> None:
    if close(tried) is None or not judge(tried).bounded or len(evaluable(tried)) > 50:
        return
    evaluation = Evaluation(tried)
    seen: dict[str, list[Row]] = defaultdict(list)
    for _ in range(data.draw(st.integers(0, 7))):
        stream = data.draw(st.sampled_from(sorted({s.stream for s in tried.streams})))
        width = 2 if stream == "S" else 1
        row = data.draw(st.tuples(*[st.integers(-1, 4)] * width))
        seen[stream].append(row)
        evaluation.add(stream, row)
        assert evaluation.emitted == answer(tried, seen)


@settings(max_examples=25)
@given(tried=self_joins(distinct=False))
def test_a_witness_of_a_self_join_has_been_tried_out(tried: SpjQuery) -> None:
    failure = judge(tried).failure
    if failure is not None:
        # A few inequality joins of a stream with itself have no witness of this form.
        found = build_witness(tried, failure, 5)
        assert found is not None or failure.condition is Condition.INEQUALITY
        assert found is None or found.tells_apart(tried)


def test_pairs_of_rows_with_equal_values_have_a_witness() -> None:
    tried = query("", "x.A=y.A", distinct=False, streams=TWICE)
    found = find_witness(tried, 5)
    assert found is not None
    assert found.one_size
    assert found.proven == 5
    assert found.tells_apart(tried)


def test_a_refusal_without_duplicates_is_not_claimed_to_be_exact() -> None:
    assert not judge(query("", "x.A=y.A, x.B>5, y.B<5", distinct=True, streams=TWICE)).exact
    assert judge(query("", "x.A=y.A, x.B>5, y.B<5", distinct=False, streams=TWICE)).exact
